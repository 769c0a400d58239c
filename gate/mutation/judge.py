"""Asks the witnesses about one mutant: the tests that run its code, the fastest first, and the goldens of the scenarios that run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gate.mutation.evidence import Goldens, Scene, Tests
from gate.mutation.mutant import Judgement, Mutant, Status
from gate.mutation.order import Batches, Order
from gate.mutation.slot import Said, Slot
from gate.mutation.suite import package
from gate.trial import Trial

LATE = 4.0  # seconds from which on a scenario is asked only about what nobody else has noticed
_PATIENCE, _FACTOR = 8.0, 6.0  # seconds of a time-out, beside so many times what the tests usually take


@dataclass(frozen=True)
class Verdicts:
    """What both witnesses said.

    Attributes:
        tests, goldens: None where the witness was not asked.
    """

    tests: Said | None
    goldens: Said | None


class Judge:
    """Judges mutants; several threads may, each with a slot of its own.

    Args:
        sources: the unmutated content of the mutated files.
        tests, goldens: what the baseline showed.
        trials: by scenario.
        both: whether the second witness is asked about what the first has killed.
        limit: seconds that replace the usual time-out, None for that.
        order: of the tests.
    """

    def __init__(
        self, sources: Mapping[str, str], tests: Tests, goldens: Goldens, trials: Mapping[str, Trial], both: bool = True,
        limit: float | None = None, order: Order | None = None,
    ) -> None:  # fmt: skip
        self.sources, self.tests, self.goldens, self.trials, self.both, self.limit = sources, tests, goldens, trials, both, limit
        self.order = order or Order(tests)

    def judge(self, slot: Slot, mutant: Mutant, without: frozenset[str] = frozenset()) -> Judgement:
        """What came of a mutant, and the tests that killed it; leaves the copy as it was.

        Args:
            slot: where it is tried.
            mutant: the fault.
            without: tests that are not asked.
        """
        covering = [test for test in self.tests.covering(mutant) if test not in without]
        scenes = self.goldens.covering(mutant)
        if not covering and not scenes:
            return _pardoned(Judgement(mutant, Status.SURVIVED, (), "no test and no scenario runs this line"))
        batches = self.order.batches(mutant, covering)
        digest = slot.copy.write(mutant.file, mutant.apply(self.sources[mutant.file]))
        try:
            said = self._ask(slot, mutant, batches, scenes)
        finally:
            slot.copy.restore()
        said = self._proven(slot, mutant, said, digest)
        judged = replace(_pardoned(_summed(mutant, said)), tests=_noticing(said.tests, digest), asked=tuple(batches.named))
        self.order.note(judged)
        return judged

    def _ask(self, slot: Slot, mutant: Mutant, batches: Batches, scenes: Sequence[Scene]) -> Verdicts:
        """Both witnesses, each up to its first kill; what takes long is asked only about what nobody has noticed yet."""
        tests = self._tests(slot, mutant, batches.named, first=False) if batches.named else None
        tests = self._more(slot, mutant, tests, batches.first)
        if _unimportable(tests):
            return Verdicts(tests, None)
        goldens: Said | None = None
        if self.both or not _failed(tests):
            goldens = self._scenes(slot, mutant, goldens, [scene for scene in scenes if scene.seconds < LATE])
        if self.both or not _failed(goldens):
            tests = self._more(slot, mutant, tests, batches.more)
        if mutant.pardon is not None:  # what nobody has noticed by now is not searched for longer
            return Verdicts(tests, goldens)
        if not _failed(tests) and not _failed(goldens):
            goldens = self._scenes(slot, mutant, goldens, [scene for scene in scenes if scene.seconds >= LATE])
        if not _failed(tests) and not _failed(goldens):
            tests = self._more(slot, mutant, tests, batches.last)
        return Verdicts(tests, goldens)

    def _more(self, slot: Slot, mutant: Mutant, so_far: Said | None, tests: Sequence[str]) -> Said | None:
        """Asks more tests, where those before them have passed."""
        return self._tests(slot, mutant, tests) if tests and (so_far is None or so_far.status == "passed") else so_far

    def _tests(self, slot: Slot, mutant: Mutant, tests: Sequence[str], *, first: bool = True) -> Said:
        files = list(dict.fromkeys(self.tests.files[test] for test in tests))
        usual = sum(self.tests.seconds[test] for test in tests)
        seconds = self.limit or _PATIENCE + len(files) + _FACTOR * usual
        said = slot.run_tests(files, tests, seconds, mutated=mutant.file, first=first)
        if said.status == "timeout":  # believed when it happens again with twice the time
            slot.copy.restore_scratch()
            said = slot.run_tests(files, tests, 2 * seconds, mutated=mutant.file, first=first)
        gone = said.status == "passed" and set(tests) - set(said.answer["collected"])
        if gone:  # the fault changed which tests there are: all of these files, then
            slot.copy.restore_scratch()
            said = slot.run_tests(files, [], 4 * seconds, mutated=mutant.file)
        slot.copy.restore_scratch()
        return said

    def _scenes(self, slot: Slot, mutant: Mutant, so_far: Said | None, scenes: Sequence[Scene]) -> Said | None:
        """Asks more scenarios, where those before them have passed."""
        outside = package(mutant.file) == "golden"
        said = so_far
        if said is not None and said.status != "passed":
            return said
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
        slot.copy.restore()  # a child of the test may have left bytecode, which fits a fault of the same length
        slot.copy.write(mutant.file, mutant.apply(self.sources[mutant.file]))
        again = slot.run_tests(files, tests, seconds, mutated=mutant.file) if files else said
        slot.copy.restore()
        return plain.status == "passed" and again.status == "failed"


def _unimportable(tests: Said | None) -> bool:
    return tests is not None and tests.status == "crashed"


def _failed(said: Said | None) -> bool:
    return said is not None and said.status == "failed"


def _noticing(tests: Said | None, digest: str) -> tuple[str, ...]:
    """The tests that noticed a fault; only the first one was held against the unmutated tree where none loaded the mutant's file."""
    if tests is None or tests.status != "failed":
        return ()
    failed = dict.fromkeys(failure["test"] for failure in tests.answer.get("failed", ()))
    return tuple(failed) if failed and tests.loaded == digest else (tests.test,)


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
