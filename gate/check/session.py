"""Runs pytest in processes of its own that end with this one, and writes nothing outside `.gate/check`."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from gate.check import harvest
from gate.check.harvest import Item
from gate.errors import GoldenError
from gate.interpreter import Interpreter, Source
from gate.progress import Progress
from golden.errors import StoreError

PLUGIN = Path(__file__).resolve().parent / "plugin"
MAIN, KEEPER = PLUGIN / "gate_pytest_main.py", PLUGIN / "gate_keeper.py"
LACKING = 90  # what MAIN exits with where pytest or coverage is missing
GRACE = 10.0  # seconds for the keeper to end all the others
# What another run of pytest, of coverage or of ours left in the environment.
_FOREIGN = ("PYTEST_XDIST_", "PYTEST_CURRENT_TEST", "PYTEST_VERSION", "COVERAGE_", "GATE_CHECK_", "PYTHONDONTWRITEBYTECODE")
_TAIL = 25  # lines of pytest's output in an error


class NotRun(GoldenError):  # noqa: N818
    """pytest itself did not get to running tests."""

    reason: ClassVar[str] = "baseline-failed"


class Lacking(GoldenError):  # noqa: N818
    """The interpreter has no pytest, or no coverage, or too old ones."""

    reason: ClassVar[str] = "nothing-checked"


@dataclass(frozen=True)
class Session:
    """A project with a Python that has pytest, and a folder for what they write.

    Attributes:
        root: the project's folder.
        interpreter: the Python.
        store: `.gate/check` of the project.
        folder: a folder of this session in it.
    """

    root: Path
    interpreter: Interpreter
    store: Path
    folder: Path
    progress: Progress

    def collect(self) -> dict[str, Item]:
        """Every test that the project's configuration selects, by id.

        Raises:
            Lacking, NotRun: pytest cannot be run, or finds its configuration wrong.
        """
        folder = self._run("collect", None, (), 0, "collecting tests", "collect")
        return harvest.items(folder)

    def again(self, items: Mapping[str, Item]) -> Path:
        """Runs tests one after the other, unmeasured; returns the folder that holds how they ended."""
        files = sorted({item.file for item in items.values()})
        return self._run("again", list(items), files, 0, f"running {len(items)} that failed once more", "plain")

    def run(self, items: Mapping[str, Item] | None, jobs: int) -> Path:
        """Runs some tests, or all of them for None; returns the folder that holds what is to be harvested.

        Args:
            items: which ones, by id.
            jobs: how many side by side, with pytest-xdist where it is installed.
        """
        files = sorted({item.file for item in (items or {}).values()})
        workers = 0 if jobs == 1 or (items is not None and len(items) < 2 * jobs) else jobs
        count = "all tests" if items is None else f"{len(items)} test{'s' * (len(items) != 1)}"
        return self._run("run", None if items is None else list(items), files, workers, f"running {count}")

    def _run(self, name: str, ids: list[str] | None, files: Collection[str], jobs: int, title: str, mode: str = "measure") -> Path:
        """Runs pytest; `mode` is "measure", "plain" or "collect". Returns the folder that it wrote into, called `name`."""
        folder = self.folder / name
        folder.mkdir()
        chosen = None if ids is None else folder / "ids.json"
        if chosen is not None:
            chosen.write_text(json.dumps(ids), encoding="utf-8")
        request = {
            "root": str(self.root),
            "folder": str(folder),
            "cache": str(self.store / "pytest"),
            "mode": mode,
            "jobs": jobs,
            "ids": None if chosen is None else str(chosen),
            "files": None if ids is None else sorted(files),
        }
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        with self.progress.task(title, lambda: _done(folder)):
            code = self._execute([str(self.interpreter.python), str(MAIN), str(folder / "request.json")], folder / "log")
        _check(code, folder, self.interpreter, collect=mode == "collect")
        return folder

    def _execute(self, command: list[str], log: Path) -> int:
        """The exit code of a command, whose processes have all ended when it is there, whatever happens to this one."""
        keeper = [sys.executable, "-I", "-S", str(KEEPER), *command]
        with log.open("wb") as output:
            process = subprocess.Popen(
                keeper, cwd=self.root, env=self._variables(), stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True
            )
        assert process.stdin is not None
        try:
            return process.wait()
        finally:
            process.stdin.close()  # tells the keeper to end what still runs
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
            process.kill()
            process.wait()

    def _variables(self) -> dict[str, str]:
        variables = {key: value for key, value in self.interpreter.variables(os.environ, self.root).items() if not key.startswith(_FOREIGN)}
        if self.interpreter.source is not Source.RUNNING:  # the project is not installed there
            roots = [str(folder) for folder in (self.root, self.root / "src") if folder.is_dir()]
            variables["PYTHONPATH"] = os.pathsep.join([*roots, *filter(None, [variables.get("PYTHONPATH")])])
        # Bytecode apart from the work tree: none is written there, and none that may be older than its source is read from there.
        variables["PYTHONPYCACHEPREFIX"] = str(self.store / "bytecode")
        variables.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(self.store / "hypothesis"))
        return variables


@contextlib.contextmanager
def opened(root: Path, interpreter: Interpreter, progress: Progress) -> Iterator[Session]:
    """A session; its folder is gone afterwards, and those of killed ones are.

    Raises:
        StoreError: `.gate` cannot be written.
    """
    store = root / ".gate" / "check"
    folder = store / f"session-{secrets.token_hex(4)}"
    try:
        folder.mkdir(parents=True)
        ignore = store.parent / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        clear(store)
    except OSError as error:
        raise StoreError.of(error, folder) from error
    try:
        yield Session(root, interpreter, store, folder, progress)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def clear(store: Path) -> None:
    """Removes folders of sessions that nobody works in, and bytecode of the project and of what its tests make."""
    for folder in store.glob("session-*"):
        with contextlib.suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
    bytecode = store / "bytecode"
    for place in (store.parent.parent, Path(tempfile.gettempdir())):
        _forget(bytecode / place.relative_to(place.anchor), place)


def _forget(bytecode: Path, place: Path) -> None:
    """Removes the bytecode of a folder's sources, but not that of installed packages."""
    if not bytecode.is_dir() or (place / "pyvenv.cfg").exists():
        return
    for path in bytecode.iterdir():
        if path.is_dir():
            _forget(path, place / path.name)
        else:
            path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        bytecode.rmdir()


def _done(folder: Path) -> str:
    """How many tests have ended."""
    try:
        ended = (folder / "outcomes.jsonl").read_bytes().count(b'"when": "teardown"')
    except OSError:
        return ""
    return f"{ended} done"


def _check(code: int, folder: Path, interpreter: Interpreter, *, collect: bool) -> None:
    """pytest: 0 all passed, 1 some failed, 2 interrupted or not collected, 3 a fault of its own, 4 usage, 5 nothing collected."""
    log = (folder / "log").read_text(encoding="utf-8", errors="replace")
    if code == LACKING:
        names = json.loads(log.strip().splitlines()[-1])
        quoted = " ".join(f"'{name}'" for name in names)
        where = interpreter.python
        raise Lacking(f"{where} lacks {', '.join(names)}, which gate check runs tests with. Install there: {where} -m pip install {quoted}")
    if code in (0, 1, 5) or (code == 2 and collect) or (code == 2 and (folder / "outcomes.jsonl").exists()):
        return
    tail = "\n".join(log.strip().splitlines()[-_TAIL:])
    raise NotRun(f"pytest ended with exit code {code} before it could judge anything. It said:\n{tail}")
