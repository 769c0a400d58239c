"""What the runs of the unmutated tree showed: which tests and scenarios run which lines, how long they take, what cannot be relied on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from gate.mutation.mutant import Mutant


@dataclass(frozen=True)
class Tests:
    """The tests as witnesses.

    Attributes:
        files: each test's file, by id.
        seconds: each test's time, by id.
        lines: by source file and line, the tests that run it; the file of a test stands for what its import runs.
        sources: by test, the files that it runs lines of.
        unstable: tests that passed once and failed once: no witnesses.
        apart: how many are no witnesses for how they ended, by "skipped", "xfailed", "xpassed".
        modules: what forks would import of other distributions.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    lines: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    unstable: Sequence[str] = ()
    apart: Mapping[str, int] = field(default_factory=dict)
    modules: Sequence[str] = ()

    def covering(self, mutant: Mutant) -> list[str]:
        """The tests that run a mutant's code, the fastest first; of code that the import runs, those first that run more of its file."""
        lines = self.lines.get(mutant.file, {})
        if mutant.hidden:  # nobody can tell: everything that touches the file
            found = {test for tests in lines.values() for test in tests}
        else:
            found = {test for line in range(mutant.hits[0], mutant.hits[1] + 1) for test in lines.get(str(line), ())}
        importing = {test for test in found if test in self._by_file}
        direct = {test for tests in lines.values() for test in tests} if importing else found
        found = (found - importing) | {test for file in importing for test in self._by_file[file]}
        return sorted((test for test in found if test in self.seconds), key=lambda test: (test not in direct, self.seconds[test], test))

    @property
    def _by_file(self) -> Mapping[str, list[str]]:
        known: dict[str, list[str]] | None = self.__dict__.get("_cached")
        if known is None:
            known = {}
            for test, file in self.files.items():
                known.setdefault(file, []).append(test)
            object.__setattr__(self, "_cached", known)
        return known

    def as_json(self) -> dict[str, Any]:
        """What `Tests(**...)` takes back."""
        return asdict(self)


@dataclass(frozen=True)
class Scene:
    """A scenario as a witness.

    Attributes:
        name: the scenario's.
        golden: its golden's folder, relative to the project.
        seconds: what a run takes.
        lines: the lines that it runs, by source file.
        sources: the files that its golden was recorded with.
        bare: whether it gives its golden only where the modules that it imports were not there before: some draw random numbers.
    """

    name: str
    golden: str
    seconds: float
    lines: Mapping[str, Sequence[int]]
    sources: Sequence[str] = ()
    bare: bool = False

    def covers(self, mutant: Mutant) -> bool:
        """Whether it runs a mutant's code."""
        lines = self.lines.get(mutant.file, ())
        return bool(lines) if mutant.hidden else any(mutant.hits[0] <= line <= mutant.hits[1] for line in lines)


@dataclass(frozen=True)
class Goldens:
    """The goldens as witnesses.

    Attributes:
        scenes: those that were identical, the fastest first.
        left_out: why others are none, a line each.
        modules: what forks would import.
    """

    scenes: Sequence[Scene] = ()
    left_out: Sequence[str] = ()
    modules: Sequence[str] = ()

    def covering(self, mutant: Mutant) -> list[Scene]:
        """The scenarios that run a mutant's code."""
        return [scene for scene in self.scenes if scene.covers(mutant)]

    def of(self, files: Sequence[str]) -> Goldens:
        """What they say of some files: a scenario that runs no line of them is none."""
        useful = [scene for scene in self.scenes if any(scene.lines.get(file) for file in files)]
        idle = [f"{scene.name}: runs no line of these files" for scene in self.scenes if scene not in useful]
        return Goldens(tuple(useful), (*self.left_out, *idle), self.modules)

    def as_json(self) -> dict[str, Any]:
        """What `of_json` takes back."""
        return asdict(self)

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> Goldens:
        """Reads what `as_json` gave."""
        return cls(tuple(Scene(**scene) for scene in document["scenes"]), tuple(document["left_out"]), tuple(document["modules"]))
