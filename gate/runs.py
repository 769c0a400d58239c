"""Runs scenarios in processes of their own, and keeps of what they made what is worth a look: `.gate/runs/ID`.

```
.gate/runs/20261129T191500Z-3f2a/cpu/torch-2.13.0/digits/               the golden
                                                  digits.log            what the scenario printed
                                                  digits.report.json    what its process says of the run
                                                  digits.request.json   what it was asked for: python -m golden execute runs it again
                                 arms/again/cpu/torch-2.13.0/digits...  the same of another arm
```

The newest 20 are kept, older ones removed unless somebody works in them.
"""

from __future__ import annotations

import calendar
import fcntl
import os
import re
import secrets
import shutil
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from gate.layout import golden_folder
from gate.listing import Listeners, listed
from golden.errors import StoreError
from golden.launch import beside
from golden.settings import Report, Request
from golden.store import Golden

KEPT = 20
_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}")


@dataclass(frozen=True)
class Place:
    """Where one run leaves what it makes.

    Attributes:
        golden: the golden's folder.
    """

    golden: Path

    @property
    def report(self) -> Path:
        """The file of its report."""
        return self.golden.with_name(f"{self.golden.name}.report.json")

    @property
    def log(self) -> Path:
        """The file of what it printed."""
        return beside(self.report, ".log")

    @property
    def saved(self) -> Path:
        """The folder of what a first half saves for a second."""
        return beside(self.report, ".saved")

    @property
    def all(self) -> tuple[Path, ...]:
        """Everything that a run may leave."""
        return self.golden, self.report, self.log, self.saved, *(beside(self.report, end) for end in (".request.json", ".listed"))


@dataclass(frozen=True)
class Outcome:
    """How one run ended.

    Attributes:
        request: what it was asked for.
        report: what it says of itself.
        place: where it left what it made.
        code: its exit code, negative for a signal.
        seconds: what it took, with the start of its process.
        listed: the project's folders that it listed, with a slash at the end.
    """

    request: Request
    report: Report
    place: Place
    code: int
    seconds: float
    listed: frozenset[str] = frozenset()

    @property
    def ok(self) -> bool:
        """Whether there is a golden."""
        return self.report.status == "ok"

    def open(self) -> Golden:
        """The golden. Raises what Golden.open does."""
        return Golden.open(self.place.golden)

    def tail(self, lines: int = 20) -> str:
        """The last lines of what the scenario printed, which may be anything but no control characters other than tabs."""
        with suppress(FileNotFoundError), self.place.log.open(encoding="utf-8", errors="replace") as log:
            return "\n".join("".join(c for c in line if c.isprintable() or c == "\t") for line in deque(log, lines))
        return ""


class Runs:
    """The runs of one command. A context manager: on leaving it, what still runs is ended and what nobody kept is removed.

    Args:
        project: the project's folder.

    Attributes:
        folder: `.gate/runs/ID` of the project; there between entering and leaving, and after that if something was kept.
    """

    def __init__(self, project: Path) -> None:
        self._all = project / ".gate" / "runs"
        self.folder = self._all / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(2)}"
        self._children = Listeners()
        self._places: set[Place] = set()
        self._lock: int | None = None

    def __enter__(self) -> Runs:
        """Makes the folder and locks it, so that nobody prunes it.

        Raises:
            StoreError: if it cannot be made.
        """
        try:
            self.folder.mkdir(parents=True)
            ignore = self._all.parent / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n", encoding="utf-8")
            self._lock = _locked(self.folder)
        except OSError as error:
            raise StoreError.of(error, self.folder) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        try:
            self._children.end()
        finally:
            for place in self._places:
                _remove(place)
            _remove_empty(self.folder)
            if self._lock is not None:
                os.close(self._lock)
            prune(self._all)

    def place(self, hardware: str, torch: str, name: str, arm: str = "") -> Place:
        """Where a run goes; `torch` is the full version, `arm` tells another run of the same scenario apart."""
        root = self.folder / "arms" / arm if arm else self.folder
        return Place(golden_folder(root, hardware, torch, name))

    def run(self, python: Path, request: Request, environment: Mapping[str, str]) -> Outcome:
        """Executes a request, whose `out` and `report` are those of a `place`, and waits for it; several threads may.

        Args:
            python: the interpreter.
            request: what to run.
            environment: the process's whole environment, as golden.profile makes it.

        Raises:
            StoreError: something cannot be written.
            UsageError: there is no such interpreter.
            KeyboardInterrupt: the user's, or `end` was called; nothing of the run is left then.
        """
        place = Place(request.out)
        self._places.add(place)
        try:
            request.out.mkdir(parents=True)
            if request.folder is not None:
                request.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError.of(error, request.out) from error
        ended = self._children.run(python, request, environment, place.log)
        return Outcome(request, ended.report, place, ended.code, ended.seconds, listed(request))

    def keep(self, outcome: Outcome) -> Path:
        """Keeps what a run made; returns the golden's folder."""
        self._places.discard(outcome.place)
        return outcome.place.golden

    def end(self) -> None:
        """Ends everything that runs, from any thread; each `run` then raises KeyboardInterrupt, and none can be started."""
        self._children.end()


def halves(request: Request, first: Place, second: Place) -> tuple[Request, Request]:
    """The two runs of a scenario with `resume_at`: to that step, and from there with what the first one saved."""
    folder = second.saved
    before = replace(request, out=first.golden, report=first.report, folder=folder, last=request.resume_at)
    after = replace(request, out=second.golden, report=second.report, folder=folder, first=(request.resume_at or 0) + 1)
    return before, after


def prune(folder: Path, kept: int = KEPT) -> None:
    """Removes all but the newest runs, save those that somebody works in; what has no run's name is not touched."""
    for path in newest_first(folder)[kept:]:
        discard(path)


def newest_first(folder: Path) -> list[Path]:
    """The folders of all runs; what has no run's name is none."""
    return sorted(_runs(folder), reverse=True)


def discard(run: Path) -> bool:
    """Removes a run's folder, unless somebody works in it; says whether it is gone."""
    try:
        lock = _locked(run)
    except OSError:  # in use, gone, or not ours to touch
        return False
    shutil.rmtree(run, ignore_errors=True)
    os.close(lock)
    return not run.exists()


def made(run: Path) -> float:
    """When a run began, in seconds since 1970, by its name."""
    return calendar.timegm(time.strptime(run.name.partition("Z")[0], "%Y%m%dT%H%M%S"))


def _runs(folder: Path) -> Iterator[Path]:
    with suppress(FileNotFoundError):
        yield from (path for path in folder.iterdir() if _ID.fullmatch(path.name) and path.is_dir() and not path.is_symlink())


def _locked(folder: Path) -> int:
    """A descriptor that holds the folder's lock until it is closed, or the process ends. Raises OSError when another holds it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove(place: Place) -> None:
    for path in place.all:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _remove_empty(folder: Path) -> None:
    """Removes the folders below and including this one that hold nothing."""
    for path, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            Path(path).rmdir()
