"""Removes leftovers: of killed records and installations, old runs and findings, environments that no golden of the project needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from gate import disk, environments, need, runs
from gate.config import Config
from gate.environments import Environment
from gate.errors import GoldenError
from golden.aside import clear_leftovers, leftovers
from golden.lock import lock

FORMAT = 1
DAYS = 7.0  # after which a kept run is old
_DAY = 86400.0
_FINDINGS = {
    "check": "what tests ran which lines",
    "mutation": "verdicts of mutants",
    "bench": "what benchmarks timed",
}  # by folder of .gate


@dataclass(frozen=True)
class Item:
    """Something that takes space for nothing.

    Attributes:
        kind: "record", "installation", "run", "findings" or "environment".
        path: its folder; of findings the one that the old ones are in.
        why: what it is.
        size: bytes of its files.
        shared: of them, bytes that uv's own cache holds too, so that removing it does not free them.
    """

    kind: str
    path: Path
    why: str
    size: int
    shared: int = 0


@dataclass(frozen=True)
class Swept:
    """What was removed, or would be.

    Attributes:
        removed: each with its size.
        kept: what was in use or could not be removed, and why.
        dry: whether nothing was removed after all.
        notes: what the user should know.
    """

    removed: tuple[Item, ...] = ()
    kept: tuple[tuple[Path, str], ...] = ()
    dry: bool = False
    notes: tuple[str, ...] = ()

    @property
    def freed(self) -> int:
        """Bytes that were freed for sure."""
        return sum(item.size - item.shared for item in self.removed)

    def as_json(self) -> dict[str, Any]:
        """The result as `--json` writes it; sizes in bytes, `freed` without what uv's cache still holds."""
        items = [{"kind": i.kind, "path": str(i.path), "why": i.why, "bytes": i.size, "freed": i.size - i.shared} for i in self.removed]
        kept = [{"path": str(path), "why": why} for path, why in self.kept]
        return {"format": FORMAT, "dry_run": self.dry, "removed": items, "kept": kept, "freed": self.freed, "notes": list(self.notes)}

    def text(self) -> str:
        """What standard output is to hold."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        did = "would remove" if self.dry else "removed"
        for item in self.removed:
            yield f"{did} {item.path}: {item.why}, {disk.shown(item.size)}"
        for path, why in self.kept:
            yield f"kept {path}: {why}"
        yield from self.notes
        shared = sum(item.shared for item in self.removed)
        also = f"; {disk.shown(shared)} more are in uv's cache too: uv cache prune" if shared else ""
        yield f"{disk.shown(self.freed)} {'would be' if self.dry else 'were'} freed{also}" if self.removed else "nothing to remove"


def clean(config: Config | None, home: Path | None, *, dry: bool, days: float = DAYS) -> Swept:
    """Removes everything left over, and asks nothing.

    Args:
        config: the project's; None where there is none, so that only installations can be told.
        home: the folder of cached environments; None where there is none.
        dry: removes nothing.
        days: how old a kept run has to be, and for how long nobody may have asked for a finding.
    """
    removed: list[Item] = []
    kept: list[tuple[Path, str]] = []
    for item, remove in [*_of_project(config, days), *_of_cache(config, home)]:
        why = _in_use(item) or (None if dry else remove())
        if why is None:
            removed.append(item)
        else:
            kept.append((item.path, why))
    notes = () if config else ("no project here: its goldens, runs and environments were not looked at",)
    return Swept(tuple(removed), tuple(kept), dry, notes)


Removal: TypeAlias = "Callable[[], str | None]"
"""Removes something; says why not where it does not."""


def _of_project(config: Config | None, days: float) -> Iterator[tuple[Item, Removal]]:
    if config is None:
        return
    for path in leftovers(config.goldens):
        yield Item("record", path, "left by a killed record", disk.size(path)), partial(_clear_records, config.goldens)
    for run in runs.newest_first(config.root / ".gate" / "runs"):
        age = (time.time() - runs.made(run)) / _DAY
        if age >= days:
            told = f"a run of {_days(age)}"
            yield Item("run", run, told, disk.size(run)), partial(_told, "another gate works in it", runs.discard, run)
    for name, held in _FINDINGS.items():
        folder = config.root / ".gate" / name
        old = _old(folder, days)
        if old:
            told = f"{held}, asked for last {_days(min(age for _, age in old))}"
            yield Item("findings", folder, told, sum(path.stat().st_size for path, _ in old)), partial(_unlink, [path for path, _ in old])


def _old(folder: Path, days: float) -> list[tuple[Path, float]]:
    """Files below a folder that nobody has written or asked for since, with their age in days."""
    found: list[tuple[Path, float]] = []
    for path in sorted(folder.rglob("*")):
        with suppress(OSError):
            age = (time.time() - path.stat().st_mtime) / _DAY
            if path.is_file() and not path.is_symlink() and age >= days:
                found.append((path, max(age, 0.0)))
    return found


def _unlink(paths: list[Path]) -> str | None:
    try:
        for path in paths:
            path.unlink(missing_ok=True)
    except OSError as error:
        return error.strerror or str(error)
    return None


def _of_cache(config: Config | None, home: Path | None) -> Iterator[tuple[Item, Removal]]:
    if home is None:
        return
    for path in environments.leftovers(home):
        told = "an environment that is not whole"
        yield Item("installation", path, told, disk.size(path)), partial(_told, "another gate makes it", environments.clear, path)
    if config is None:
        return
    known = environments.cached(home)
    serving = need.needed(config, known)
    for environment in known:
        if environment not in serving:
            size, own = environments.size(environment)
            told = f"an environment of torch {environment.torch} that no golden of {config.root} needs"
            yield Item("environment", environment.folder, told, size, size - own), partial(_remove_environment, environment)


def _clear_records(goldens: Path) -> str | None:
    """All of them at once: the second call finds nothing to do."""
    try:
        with lock(goldens):
            clear_leftovers(goldens)
    except GoldenError as error:
        return str(error)
    return None


def _told(otherwise: str, remove: Callable[[Path], bool], path: Path) -> str | None:
    return None if remove(path) else f"{otherwise}, or its permissions do not allow to remove it"


def _remove_environment(environment: Environment) -> str | None:
    try:
        environments.remove(environment)
    except OSError as error:
        return error.strerror or str(error)
    return None


def _in_use(item: Item) -> str | None:
    """Why an environment is left alone: a process runs its Python. Where the system does not list processes, none is seen."""
    if item.kind != "environment":
        return None
    start = f"{item.path}/".encode()
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if process.read_bytes().startswith(start):
                return f"process {process.parent.name} runs its Python"
    return None


def _days(age: float) -> str:
    return "today" if age < 1 else "a day ago" if age < 2 else f"{int(age)} days ago"
