"""Asks the witnesses about one mutant: the tests that run its code, the fastest first, and the goldens of the scenarios that run it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gate.mutation.evidence import Goldens, Scene, Tests
from gate.mutation.mutant import Judgement, Mutant, Status
from gate.mutation.slot import Said, Slot
from gate.mutation.suite import package
from gate.trial import Trial

_FIRST_SECONDS, _FIRST_TESTS, _FIRST_FILES = 1.5, 25, 3
_PATIENCE, _FACTOR = 8.0, 6.0  # seconds of a time-out, beside so many times what the tests usually take
_KILLERS = 6


@dataclass(frozen=True)
class Verdicts:
    """What both witnesses said.

    Attributes:
        tests, goldens: None where the witness was not asked.
    """

    tests: Said | None
    goldens: Said | None


@dataclass
class Judge:
    """Judges mutants; several threads may, each with a slot of its own.

    Attributes:
        sources: the unmutated content of the mutated files.
        tests, goldens: what the baseline showed.
        trials: by scenario.
        both: whether the second witness is asked about what the first has killed.
        limit: seconds that replace the usual time-out, None for that.
    """

    sources: Mapping[str, str]
    tests: Tests
    goldens: Goldens
    trials: Mapping[str, Trial]
    both: bool = True
    limit: float | None = None
    _killers: dict[tuple[str, str], OrderedDict[str, None]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def judge(self, slot: Slot, mutant: Mutant, without: frozenset[str] = frozenset()) -> tuple[Judgement, str]:
        """What came of a mutant, and the test that killed it; leaves the copy as it was.

        Args:
            slot: where it is tried.
            mutant: the fault.
            without: tests that are not asked.
        """
        covering = [test for test in self.tests.covering(mutant) if test not in without]
        scenes = self.goldens.covering(mutant)
        if not covering and not scenes:
            return _pardoned(Judgement(mutant, Status.SURVIVED, (), "no test and no scenario runs this line")), ""
        digest = slot.copy.write(mutant.file, mutant.apply(self.sources[mutant.file]))
        try:
            said = self._ask(slot, mutant, covering, scenes)
        finally:
            slot.copy.restore()
        said = self._proven(slot, mutant, said, digest)
        return _pardoned(_summed(mutant, said)), said.tests.test if said.tests is not None else ""

    def _ask(self, slot: Slot, mutant: Mutant, covering: Sequence[str], scenes: Sequence[Scene]) -> Verdicts:
        first, rest = self._batches(mutant, covering)
        tests = self._tests(slot, mutant, first) if first else None
        if tests is not None and tests.status == "crashed" and not tests.loaded:
            return Verdicts(tests, None)
        killed = tests is not None and tests.status == "failed"
        goldens = self._scenes(slot, mutant, scenes) if scenes and (self.both or not killed) and not _unimportable(tests) else None
        done = goldens is not None and goldens.status == "failed" and not self.both
        if tests is not None and tests.status == "passed" and rest and not done:
            tests = self._tests(slot, mutant, rest)
        if tests is not None and tests.status == "failed":
            self._remember(mutant, tests.test)
        return Verdicts(tests, goldens)

    def _batches(self, mutant: Mutant, covering: Sequence[str]) -> tuple[list[str], list[str]]:
        """A few fast tests, those before them that killed a neighbour; and all others."""
        with self._lock:
            known = dict.fromkeys(reversed(self._killers.get((mutant.file, mutant.scope), OrderedDict())))
        here = set(covering)
        order = [*(test for test in known if test in here), *(test for test in covering if test not in known)]
        first: list[str] = []
        files: set[str] = set()
        spent = 0.0
        for test in order:
            file = self.tests.files[test]
            fits = len(first) < _FIRST_TESTS and spent < _FIRST_SECONDS and (file in files or len(files) < _FIRST_FILES)
            if fits:
                first.append(test)
                files.add(file)
                spent += self.tests.seconds[test]
        chosen = set(first)
        return first, [test for test in order if test not in chosen]

    def _remember(self, mutant: Mutant, test: str) -> None:
        with self._lock:
            known = self._killers.setdefault((mutant.file, mutant.scope), OrderedDict())
            known[test] = None
            known.move_to_end(test)
            if len(known) > _KILLERS:
                known.popitem(last=False)

    def _tests(self, slot: Slot, mutant: Mutant, tests: Sequence[str]) -> Said:
        files = list(dict.fromkeys(self.tests.files[test] for test in tests))
        usual = sum(self.tests.seconds[test] for test in tests)
        seconds = self.limit or _PATIENCE + len(files) + _FACTOR * usual
        said = slot.run_tests(files, tests, seconds, mutated=mutant.file)
        if said.status == "timeout":  # believed when it happens again with twice the time
            slot.copy.restore_scratch()
            said = slot.run_tests(files, tests, 2 * seconds, mutated=mutant.file)
        gone = said.status == "passed" and set(tests) - set(said.answer["collected"])
        if gone:  # the fault changed which tests there are: all of these files, then
            slot.copy.restore_scratch()
            said = slot.run_tests(files, [], 4 * seconds, mutated=mutant.file)
        slot.copy.restore_scratch()
        return said

    def _scenes(self, slot: Slot, mutant: Mutant, scenes: Sequence[Scene]) -> Said:
        outside = package(mutant.file) == "golden"
        said = Said("passed")
        for scene in scenes:
            seconds = self.limit or _PATIENCE + _FACTOR * scene.seconds
            trial = self.trials[scene.name]
            said = slot.run_scene(trial, seconds, outside=outside, bare=scene.bare, mutated=mutant.file)
            slot.copy.restore_scratch()
            if said.status == "timeout":
                said = slot.run_scene(trial, 2 * seconds, outside=outside, bare=scene.bare, mutated=mutant.file)
                slot.copy.restore_scratch()
            if said.status != "passed":
                return said
        return said

    def _proven(self, slot: Slot, mutant: Mutant, said: Verdicts, digest: str) -> Verdicts:
        """Believes a kill only where the mutated file was loaded, or where the test passes without the fault and fails again with it."""
        tests, goldens = said.tests, said.goldens
        for one in (tests, goldens):
            if one is not None and one.loaded and one.loaded != digest:
                raise AssertionError(f"{mutant.file}: another content than the mutant's was loaded")
        if tests is not None and tests.status == "failed" and tests.loaded != digest and not self._contrasted(slot, mutant, tests):
            tests = Said("passed", "a test failed once, but not for the fault")
        return Verdicts(tests, goldens)

    def _contrasted(self, slot: Slot, mutant: Mutant, said: Said) -> bool:
        files, tests = [self.tests.files[said.test]] if said.test in self.tests.files else [], [said.test]
        seconds = 30 + _FACTOR * self.tests.seconds.get(said.test, 1.0)
        plain = slot.run_tests(files, tests, seconds) if files else said
        slot.copy.restore_scratch()
        slot.copy.write(mutant.file, mutant.apply(self.sources[mutant.file]))
        again = slot.run_tests(files, tests, seconds, mutated=mutant.file) if files else said
        slot.copy.restore()
        return plain.status == "passed" and again.status == "failed"


def _unimportable(tests: Said | None) -> bool:
    return tests is not None and tests.status == "crashed"


def _pardoned(judged: Judgement) -> Judgement:
    """A survivor that is pardoned; one that somebody notices needs no pardon."""
    pardon = judged.mutant.pardon
    return judged if pardon is None or judged.status is not Status.SURVIVED else Judgement(judged.mutant, Status.PARDONED, (), pardon)


def _summed(mutant: Mutant, said: Verdicts) -> Judgement:
    """The verdict of two witnesses: killed where one noticed; else the worst that happened."""
    named = [(name, one) for name, one in (("tests", said.tests), ("goldens", said.goldens)) if one is not None]
    killers = [(name, one) for name, one in named if one.status == "failed"]
    if killers:
        return Judgement(mutant, Status.KILLED, tuple(name for name, _ in killers), "; ".join(one.why for _, one in killers))
    for word, status in (("crashed", Status.CRASHED), ("timeout", Status.TIMEOUT)):
        for _, one in named:
            if one.status == word:
                return Judgement(mutant, status, (), one.why)
    asked = " and ".join(name for name, _ in named)
    unloaded = " (the mutated module was loaded in none of their processes)" if not any(one.loaded for _, one in named) else ""
    return Judgement(mutant, Status.SURVIVED, (), f"{asked} passed{unloaded}")


def confirm(slot: Slot, tests: Tests, killers: Sequence[str]) -> list[str]:
    """Of tests that killed, those that fail on the unmutated tree as well."""
    files = list(dict.fromkeys(tests.files[test] for test in killers))
    seconds = 60 + _FACTOR * sum(tests.seconds[test] for test in killers)
    said = slot.run_tests(files, killers, seconds, first=False)
    slot.copy.restore()
    return [failure["test"] for failure in said.answer.get("failed", ())] if said.status != "passed" else []
