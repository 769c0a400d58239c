"""From a change to the tests that it touches, with the reason for each. Pure: it reads and runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import PurePosixPath

from gate.check import harvest, hidden
from gate.check.change import Change
from gate.check.harvest import Item
from gate.check.knowledge import Known
from gate.check.lines import numbers, shown
from gate.check.parts import Part, parts
from gate.check.reach import Reach

_COMPILED_SUFFIXES = {".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".pyx", ".pxd", ".rs", ".so", ".pyd"}
_ENVIRONMENT = {"setup.py", "setup.cfg", "tox.ini", "noxfile.py", "uv.lock", "poetry.lock", "pdm.lock", "pipfile", "pipfile.lock"}
_SETTINGS = {"pyproject.toml", "pytest.ini", ".pytest.ini", "pytest.toml", ".coveragerc"}


class Kind(Enum):
    """What a unit is, and how much it says that one of them was checked."""

    FUNCTION = 0
    IMPORT = 1
    OTHER = 2


@dataclass(frozen=True)
class Unit:
    """Something that changed, and what would check it.

    Attributes:
        kind: a function's code, what a source runs at import, or anything else.
        title: for people.
        path: the file.
        lines: the statements that a passing test has to run; empty where a passing one of `tests` is enough.
        tests: ids of those that it touches.
    """

    kind: Kind
    title: str
    path: str
    lines: int
    tests: frozenset[str]


@dataclass(frozen=True)
class Choice:
    """The tests that a change touches.

    Attributes:
        reasons: by id, in pytest's order, why each was taken.
        fallback: why more were taken than those that are known to be touched.
        units: what changed, as far as it can matter to a test.
    """

    reasons: Mapping[str, tuple[str, ...]]
    fallback: tuple[str, ...] = ()
    units: tuple[Unit, ...] = ()


@dataclass
class _Draft:
    reasons: dict[str, list[str]] = field(default_factory=dict)
    fallback: list[str] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)

    def take(self, ids: Iterable[str], reason: str) -> None:
        for key in ids:
            told = self.reasons.setdefault(key, [])
            if reason not in told:
                told.append(reason)

    def fall_back(self, why: str) -> None:
        if why not in self.fallback:
            self.fallback.append(why)


@dataclass(frozen=True)
class Chooser:
    """Knows the project's tests, and chooses.

    Attributes:
        items: all tests, by id.
        known: what is known of them, in the lines of the tree as it is.
        reach: which files import which.
        quiet: files that changed in what concerns other tools alone.
    """

    items: Mapping[str, Item]
    known: Mapping[str, Known]
    reach: Reach
    quiet: Collection[str] = ()

    def choose(self, changes: Iterable[Change], named: Mapping[str, Iterable[str]]) -> Choice:
        """The tests that changes touch, those that trailers name, those that nothing is known of, and those that failed last.

        Args:
            changes: what changed.
            named: ids with the trailers that name them.
        """
        draft = _Draft()
        for change in changes:
            self._change(draft, change)
        for key, reasons in named.items():
            for reason in reasons:
                draft.take([key], reason)
        if draft.units:
            self._unknown(draft)
        ordered = {key: tuple(draft.reasons[key]) for key in self.items if key in draft.reasons}
        return Choice(ordered, tuple(draft.fallback), tuple(draft.units))

    def _change(self, draft: _Draft, change: Change) -> None:
        name, path = PurePosixPath(change.path).name, change.path
        readers = self._where(lambda known: path in known.reads or (change.listed is not None and change.listed in known.reads))
        draft.take(readers, f"reads {path}, which changed")
        if path in self.quiet:
            return
        if change.old is None and change.new is None:
            self._everything(draft, change, "it is no plain file (a submodule, perhaps)")
        elif name == "conftest.py":
            folder = path.removesuffix("conftest.py")
            below = [key for key, item in self.items.items() if item.file.startswith(folder)]
            self._unit(draft, change, f"{path} changed, which holds for all tests below it", below)
        elif any(item.file == path for item in self.items.values()):
            mine = [key for key, item in self.items.items() if item.file == path]
            self._unit(draft, change, "its file changed", mine)
            draft.take(self._importers(path) - set(mine), f"imports {path}, which changed")
        elif change.document:
            if readers:
                self._unit(draft, change, f"reads {path}, which changed", readers)
        elif (
            name.lower() in _SETTINGS | _ENVIRONMENT or name.startswith("requirements") or "requirements" in PurePosixPath(path).parts[:-1]
        ):
            self._everything(draft, change, "it decides how tests are run")
        elif PurePosixPath(path).suffix in _COMPILED_SUFFIXES:
            self._everything(draft, change, "compiled code says nothing of who runs it")
        elif change.python:
            self._python(draft, change)
        else:
            self._data(draft, change, readers)

    def _python(self, draft: _Draft, change: Change) -> None:
        path = change.path
        found = parts(change, self._handed)
        if found is None:
            touched = self._importers(path)
            what = "is gone" if change.new is None else "does not parse"
            draft.fall_back(f"{path} {what}: all tests that imported or ran something of it are taken")
            self._unit(draft, change, f"imports {path}, which {what}", touched, Kind.IMPORT)
        for part in found or ():
            self._part(draft, part)
        if found is None or found:
            self._blind(draft, path)

    def _part(self, draft: _Draft, part: Part) -> None:
        importers = self._importers(part.path)
        if part.name is None:
            reason, touched = f"imports {part.path}, whose lines {_at(part)} run at import" if part.lines else _gone(part), importers
            needed = 0
        elif part.hidden:
            draft.fall_back(f"{part.title} is {part.hidden}: all tests that import the file are taken")
            reason, touched, needed = f"imports {part.path}, where {part.name} is {part.hidden}", importers, 0
        else:
            reason, touched = self._runners(draft, part, importers)
            needed = part.lines
        draft.take(touched, reason)
        kind = Kind.IMPORT if part.name is None else Kind.FUNCTION
        draft.units.append(Unit(kind, part.title, part.path, needed, frozenset(touched)))

    def _runners(self, draft: _Draft, part: Part, importers: set[str]) -> tuple[str, set[str]]:
        found = self._where(lambda known: known.lines.get(part.path, 0) & part.lines)
        if found:
            return f"runs {part.title}", found
        found = self._where(lambda known: known.lines.get(part.path, 0) & part.body)
        if found:
            return f"runs {part.name} in {part.path}, where lines {_at(part)} changed", found
        draft.fall_back(f"no test is known to run {part.title}: all tests that import the file are taken")
        return f"imports {part.path}, where no test is known to run {part.name}", importers

    def _blind(self, draft: _Draft, path: str) -> None:
        """Tests of which less is known than they run."""
        importers = self._importers(path)
        for key, known in self.known.items():
            if not known.blind or key not in self.items or (known.blind == harvest.COMPILED and key not in importers):
                continue
            draft.take([key], f"{known.blind}; {path} changed")
            draft.fall_back(f"of some tests less is known than they ran ({known.blind}): they are taken for every source that changes")

    def _data(self, draft: _Draft, change: Change, readers: set[str]) -> None:
        started = self._where(lambda known: known.started)
        if started - readers:
            draft.fall_back(f"which processes of tests read {change.path} is not known: all tests that start some are taken")
        draft.take(started, f"starts processes, which may read {change.path}")
        draft.units.append(Unit(Kind.OTHER, change.path, change.path, 0, frozenset(readers | started)))

    def _everything(self, draft: _Draft, change: Change, why: str) -> None:
        draft.fall_back(f"{change.path} changed, and {why}: all tests are taken")
        self._unit(draft, change, f"{change.path} changed", self.items)

    def _unit(self, draft: _Draft, change: Change, reason: str, ids: Collection[str], kind: Kind = Kind.OTHER) -> None:
        draft.take(ids, reason)
        draft.units.append(Unit(kind, change.path, change.path, 0, frozenset(ids)))

    def _unknown(self, draft: _Draft) -> None:
        draft.take((key for key in self.items if key not in self.known), "nothing is known of it yet")
        draft.take(self._where(lambda known: known.outcome == "failed"), "failed when it ran last")

    def _importers(self, path: str) -> set[str]:
        """Tests whose file imports a file, by whatever way, or that have run something of it."""
        reaching = {key for key, item in self.items.items() if path in self._reached[item.file]}
        return reaching | self._where(lambda known: path in known.lines)

    @cached_property
    def _handed(self) -> dict[str, str]:
        return {name: why for tree in self.reach.trees.values() if tree for name, why in hidden.handed(tree).items()}

    @cached_property
    def _reached(self) -> dict[str, frozenset[str]]:
        return {file: self.reach.of(file) for file in {item.file for item in self.items.values()}}

    def _where(self, condition: Callable[[Known], object]) -> set[str]:
        return {key for key, known in self.known.items() if key in self.items and condition(known)}


def _at(part: Part) -> str:
    return shown(numbers(part.lines))


def _gone(part: Part) -> str:
    return f"imports {part.path}, where something that ran at import is gone"


def unproven(units: Iterable[Unit], ran: Collection[str], known: Mapping[str, Known]) -> list[Unit]:
    """What changed and yet was run by no test of those that ran.

    One of its tests for which torch compiled something is taken to have run it: that is how its lines would be run unseen.
    """
    compiled = {key for key in ran if key in known and known[key].blind == harvest.COMPILED}

    def proven(unit: Unit) -> bool:
        if unit.lines and unit.tests.isdisjoint(compiled):
            return any(known[key].lines.get(unit.path, 0) & unit.lines for key in ran if key in known)
        return not unit.tests.isdisjoint(ran)

    return [unit for unit in units if not proven(unit)]


def nothing_checked(units: Collection[Unit], left: Collection[Unit]) -> bool:
    """Whether nothing of what counts most was checked: of changed functions none was run, or of what runs at import, or of the rest.

    That a new function's `def` was run by an import says nothing of the function.

    Args:
        units: what changed.
        left: of that, what no test ran.
    """
    for kind in Kind:
        of_kind = [unit for unit in units if unit.kind is kind]
        if of_kind:
            return all(unit in left for unit in of_kind)
    return False
