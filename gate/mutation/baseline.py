"""Shows that the unmutated tree passes, twice, and learns from it which tests and scenarios run which lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gate.errors import BaselineFailed
from gate.mutation.evidence import Goldens, Scene, Tests
from gate.mutation.pool import Pool
from gate.mutation.slot import Said, Slot
from gate.mutation.suite import package
from gate.trial import Trial
from golden import manifest

LONGEST = 1800.0  # seconds that one test file, or one scenario, may take unmutated


@dataclass(frozen=True)
class Memory:
    """What earlier runs found.

    Attributes:
        get: of a test file, None where nothing is known.
        put: keeps it.
    """

    get: Callable[[str], Any]
    put: Callable[[str, Any], None]


def tests(pool: Pool, files: Sequence[str], targets: Sequence[str], tell: Callable[[str], None], memory: Memory) -> Tests:
    """Runs those test files twice of which nothing is known, first with coverage.

    Raises:
        BaselineFailed: a test fails both times, or a file cannot be collected.
    """
    known = {file: found for file in files if (found := memory.get(file)) is not None}
    ahead = [file for file in files if file not in known]
    told = dict.fromkeys(name for found in known.values() for name in found["modules"])
    pool.each(lambda slot: slot.tests.preload(list(told)))
    found_now = _twice(pool, ahead, tell)
    for file, found in found_now.items():
        if not found["failed"]:
            memory.put(file, found)
    for found in found_now.values():
        for test, why in found["failed"].items():
            raise BaselineFailed(f"The unmutated tests fail: {test}: {why}. Mend them first, or name others with --tests.")
    return _merged({file: known.get(file) or found_now[file] for file in files}, targets)


def _twice(pool: Pool, files: Sequence[str], tell: Callable[[str], None]) -> dict[str, dict[str, Any]]:
    def measure(slot: Slot, file: str) -> Said:
        tell(f"tests with coverage: {file}")
        said = slot.run_tests([file], [], LONGEST, first=False, learn=True, coverage=True)
        slot.tests.preload(said.answer.get("modules", ()))
        slot.copy.restore()
        return said

    def repeat(slot: Slot, file: str) -> Said:
        tell(f"tests once more: {file}")
        said = slot.run_tests([file], [], LONGEST, first=False, learn=True)
        slot.copy.restore()
        return said

    once = pool.map(measure, files)
    modules = list(dict.fromkeys(name for said in once for name in said.answer.get("modules", ())))
    pool.each(lambda slot: slot.tests.preload(modules))
    twice = pool.map(repeat, files)
    return {file: _found(file, measured, plain) for file, measured, plain in zip(files, once, twice, strict=True)}


def _found(file: str, measured: Said, plain: Said) -> dict[str, Any]:
    """What two runs of a file showed, as it is kept: "failed" holds what failed both times, "unstable" what did the second time alone."""
    if plain.status in ("crashed", "timeout"):
        return {"failed": {file: plain.why}, "modules": []}
    passed = set(measured.answer.get("passed", ()))
    again = {failure["test"]: failure["why"] for failure in plain.answer["failed"]}
    return {
        "failed": {test: why for test, why in sorted(again.items()) if test not in passed},
        "unstable": sorted(passed.intersection(again)),  # what coverage alone makes fail is a witness all the same
        "seconds": {test: round(plain.answer["durations"].get(test, 0.0), 4) for test in plain.answer["passed"] if test not in again},
        **{status: len(plain.answer[status]) for status in ("skipped", "xfailed", "xpassed")},
        "modules": list(measured.answer.get("modules", ())),
        "map": measured.answer.get("map", {"tests": [], "files": {}}),
    }


def _merged(found: Mapping[str, Mapping[str, Any]], targets: Sequence[str]) -> Tests:
    lines: dict[str, dict[str, list[str]]] = {}
    for file, one in found.items():
        names, files = one["map"]["tests"], one["map"]["files"]
        for source in sorted(files.keys() & set(targets)):
            there = lines.setdefault(source, {})
            for line, places in files[source].items():
                there.setdefault(line, []).extend(file if place < 0 else names[place] for place in places)
    return Tests(
        {test: file for file, one in found.items() for test in one["seconds"]},
        {test: seconds for one in found.values() for test, seconds in one["seconds"].items()},
        lines,
        tuple(test for one in found.values() for test in one["unstable"]),
        {status: sum(one[status] for one in found.values()) for status in ("skipped", "xfailed", "xpassed")},
        tuple(dict.fromkeys(name for one in found.values() for name in one["modules"])),
    )


def goldens(pool: Pool, trials: Sequence[Trial], targets: Sequence[str], left_out: Sequence[str], tell: Callable[[str], None]) -> Goldens:
    """Runs scenarios, which must give their goldens, and with a bit flipped must not.

    Raises:
        BaselineFailed: one does not.
    """
    golden = [target for target in targets if package(target) == "golden"]
    others = [target for target in targets if package(target) != "golden"]
    modules: list[str] = []

    def scene(slot: Slot, trial: Trial) -> Scene:
        tell(f"golden: {trial.candidate.settings.name}")
        lines: dict[str, Sequence[int]] = {}
        spent, bare = 0.0, False
        for outside, asked in ((False, others), (True, golden)):
            if asked:
                found, took, alone = _scene(slot, trial, outside, modules)
                lines |= found
                spent, bare = max(spent, took), bare or alone
        folder = trial.folder.relative_to(slot.project).as_posix()
        sources = tuple(sorted(manifest.read(trial.folder).sources))
        return Scene(trial.candidate.settings.name, folder, round(spent, 3), lines, sources, bare)

    scenes = sorted(pool.map(scene, trials), key=lambda found: (found.seconds, found.name))
    known = tuple(dict.fromkeys(modules))
    pool.each(lambda slot: slot.learn(known))
    return Goldens(tuple(scenes), tuple(left_out), known)


def _scene(slot: Slot, trial: Trial, outside: bool, modules: list[str]) -> tuple[dict[str, Sequence[int]], float, bool]:
    """The lines that it runs, its time, and whether it has to run bare."""
    name = trial.candidate.settings.name

    def run(bare: bool = False, flip: bool = False, coverage: bool = False) -> Said:
        said = slot.run_scene(trial, LONGEST, outside=outside, bare=bare, flip=flip, coverage=coverage)
        slot.copy.restore()
        return said

    measured = run(bare=True, coverage=True)
    lines: dict[str, Sequence[int]] = {}
    if measured.status == "passed":
        lines = {file: found for file, found in measured.answer["lines"].items() if found and (package(file) == "golden") is outside}
        modules += measured.answer["modules"]
    slot.learn(tuple(dict.fromkeys(modules)))
    plain, bare = run(), False
    if plain.status != "passed":
        plain, bare = run(bare=True), True
    if plain.status != "passed":
        raise BaselineFailed(f"The unmutated tree does not give the golden {name}: {plain.why}. See: gate verify {name}")
    if lines:
        flipped = run(bare=bare, flip=True)
        if flipped.status != "failed" or "RuntimeError" in flipped.why:
            raise BaselineFailed(f"A bit flipped in {name} was not noticed by its golden ({flipped.status}: {flipped.why}).")
    return lines, float(plain.answer["seconds"]), bare
