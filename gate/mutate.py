"""`gate mutate`: plants faults in copies of the project, and says which of them neither its tests nor its goldens notice."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gate import encoding, interpreter
from gate.errors import BaselineFailed, GoldenError, NoAccelerator
from gate.machine import Machine
from gate.mutation import aim, baseline, copies, pardons, planted, pool
from gate.mutation.aim import Asked, inside, project
from gate.mutation.cache import Cache
from gate.mutation.evidence import Goldens, Tests
from gate.mutation.judge import LATE, Judge, confirm
from gate.mutation.mutant import Judgement, Mutant
from gate.mutation.order import Order, held, promised
from gate.mutation.pool import Pool
from gate.mutation.result import Result, Witnesses
from gate.mutation.slot import Slot
from gate.mutation.suite import Suite, package, third_party
from gate.selection import NothingChecked, Wanted, to_verify
from gate.trial import Means, Trial, prepare
from gate.workers import cores

__all__ = ["Asked", "inside", "mutate", "operators_json", "operators_text", "project"]


def mutate(means: Means, asked: Asked) -> Result:
    """Plants faults and judges them.

    Raises:
        UsageError: a path, an operator or a pardon is wrong.
        BaselineFailed: the unmutated tree does not pass, or a fault that must be noticed is not.
        NothingChecked: there is nothing to plant, or nobody to ask.
    """
    root, machine = means.config.root, Machine.here()
    if asked.device == "cuda" and machine.cuda is None:
        raise NoAccelerator("There is no CUDA device here. On a machine with one: gate mutate --device cuda")
    names = copies.files(root)
    suite = Suite.of(root, names, asked.tests)
    targets = aim.targets(suite, asked.paths, aim.changed(root, asked.since))
    facts = copies.digests(root, names)
    cache = Cache(root, fresh=asked.fresh)
    sources = {file: encoding.mutable(root, file) for file in targets}
    mutants, total = aim.mutants(sources, asked, targets, cache, facts)
    if not mutants:
        raise NothingChecked("no line here can be mutated: nothing was checked. Name other files, or an older revision with --since.")
    return _judged(means, asked, machine, suite, facts, sources, mutants, total, cache)


def _judged(
    means: Means, asked: Asked, machine: Machine, suite: Suite, facts: Mapping[str, str],
    sources: Mapping[str, str], mutants: list[Mutant], total: int, cache: Cache,
) -> Result:  # fmt: skip
    python = interpreter.running()
    targets = sorted({mutant.file for mutant in mutants})
    files = suite.asked(targets, asked.all_tests)
    trials, left_out = _trials(means, asked, machine, python.torch)
    jobs = means.jobs or (1 if asked.device == "cuda" else cores())
    surroundings = (python.torch, python.version, asked.device, *map(str, sorted(machine.slugs())))
    context = _Context(suite, facts, surroundings, (str(asked.both), str(asked.timeout), *sorted(trials), *left_out))
    with copies.scratch() as scratch:
        opening = pool.opened(suite.project, suite.names, scratch, jobs, suite.roots, asked.device, third_party(suite, [*files, *targets]))
        with opening as slots:
            tests, goldens = _baseline(means, slots, cache, context, files, trials, targets, left_out, sources)
            named = held(promised(sources, suite.documents()), tests)
            judge = Judge(sources, tests, goldens, trials, asked.both, asked.timeout, Order(tests, named))
            begun = time.monotonic()
            judged, new = _all(means, slots, judge, mutants, cache, context)
            seconds = time.monotonic() - begun
    cache.save()
    read = _read(facts, targets, files, suite, goldens)
    _check_unchanged(suite.project, read)
    if not asked.operators and len(mutants) == total and asked.since is None:
        pardons.check_needed(judged, [pardon for file, source in sources.items() for pardon in pardons.read(file, source)])
    return Result(
        tuple(judged),
        _witnesses(tests, goldens, len(files), sorted({test for one in named for test in one.tests})),
        read, python.torch, platform.python_version(),
        machine.default(asked.device) or asked.device,
        total if len(mutants) < total else None, asked.seed, seconds, new,
    )  # fmt: skip


def _trials(means: Means, asked: Asked, machine: Machine, torch: str) -> tuple[dict[str, Trial], list[str]]:
    """The scenarios that can be witnesses here, by name, and why others cannot."""
    if not means.config.scenarios:
        return {}, ["the project has no scenario"]
    found: dict[str, Trial] = {}
    left_out: list[str] = []
    for candidate in to_verify(means.config, machine, Wanted(device=asked.device), torch).candidates:
        name = candidate.settings.name
        if candidate.refusal:
            left_out.append(f"{name}: {candidate.refusal[1]}")
            continue
        try:
            trial = prepare(means, candidate)
        except GoldenError as error:
            left_out.append(f"{name}: {error}")
            continue
        if trial.golden is None:
            left_out.append(f"{name}: no golden for {trial.hardware} and torch {torch}. Record it: gate record {name}")
        elif trial.interpreter.source is not interpreter.Source.RUNNING:
            left_out.append(f"{name}: its golden takes another environment than the running one")
        elif not trial.folder.is_relative_to(means.config.root):
            left_out.append(f"{name}: its golden lies outside the project")
        else:
            found.setdefault(name, trial)
    return found, left_out


def _baseline(
    means: Means, slots: Pool, cache: Cache, context: _Context, files: Sequence[str], trials: Mapping[str, Trial], targets: Sequence[str],
    left_out: Sequence[str], sources: Mapping[str, str],
) -> tuple[Tests, Goldens]:  # fmt: skip
    """What the unmutated tree shows; known from an earlier run where nothing that it depends on has changed."""
    memory = baseline.Memory(
        lambda file: cache.get("tests", context.unmutated(file)), lambda file, found: cache.put("tests", context.unmutated(file), found)
    )
    kinds = sorted({str(package(target) == "golden") for target in targets})
    key = copies.combined({}, context.unmutated(""), *kinds, *left_out, *sorted(trials))
    noticed = copies.combined({}, key, *targets, *map(context.unmutated, files))
    known = cache.get("goldens", key)
    with means.progress.task("unmutated tree") as tell:
        tests = baseline.tests(slots, files, targets, tell, memory) if files else Tests()
        everywhere = Goldens.of_json(known) if known else baseline.goldens(slots, list(trials.values()), targets, left_out, tell)
        cache.put("goldens", key, everywhere.as_json())
        goldens = everywhere.of(targets)
        if not any(tests.lines.values()) and not goldens.scenes:
            raise NothingChecked(
                "no test and no scenario runs a line of these files: nobody could notice a fault. Write one, or name --tests."
            )
        if cache.get("noticed", noticed) is None:
            tell("a fault that must be noticed")
            planted.check(slots.slots[0], Judge(sources, tests, replace(goldens, scenes=()), {}))
            cache.put("noticed", noticed, True)
    for slot in slots.slots:
        slot.tests.preload(tests.modules)
        slot.learn(goldens.modules)
    return tests, goldens


class _Context:
    """What verdicts depend on, as digests."""

    def __init__(self, suite: Suite, facts: Mapping[str, str], surroundings: Sequence[str], more: Sequence[str]) -> None:
        self.suite, self.facts = suite, facts
        tests = {name for file in suite.files() for name in suite.support(file)}
        others = {n: d for n, d in facts.items() if n not in tests and not n.endswith(".md")}
        catalogue = aim.catalogue()
        self.before = copies.combined(others, catalogue.digest(judging=False), *surroundings)
        self.all = copies.combined({}, self.before, catalogue.digest(), *more)
        self._support: dict[str, str] = {}

    def unmutated(self, file: str) -> str:
        """Of what a test file gives before a fault is planted; of what scenarios give, where the name is empty."""
        return copies.combined({}, self.before, file, *([self.test("", file)] if file else []))

    def file(self, name: str) -> str:
        """Of everything but the tests, for one mutated file."""
        return copies.combined({}, self.all, name)

    def test(self, test: str, file: str) -> str:
        """Of one test and what its file needs."""
        if file not in self._support:
            self._support[file] = copies.combined({n: self.facts[n] for n in self.suite.support(file) if n in self.facts})
        return copies.combined({}, test, self._support[file])


def _all(
    means: Means, slots: Pool, judge: Judge, mutants: Sequence[Mutant], cache: Cache, context: _Context
) -> tuple[list[Judgement], int]:
    """Every verdict in the order of the mutants, and how many of them are new."""
    known: dict[int, Judgement] = {}
    digests: dict[int, tuple[str, dict[str, str]]] = {}
    for place, mutant in enumerate(mutants):
        tests = judge.tests.covering(mutant)
        each = {test: context.test(test, judge.tests.files[test]) for test in tests}
        scenes = ",".join(scene.name for scene in judge.goldens.covering(mutant))
        digests[place] = copies.combined(each, scenes, mutant.pardon or ""), each
        found = cache.judged(context.file(mutant.file), mutant, *digests[place])
        if found is not None and found.mutant.pardon == mutant.pardon:
            known[place] = found
            judge.order.note(found)
    known = {place: found for place, found in known.items() if not judge.order.owed(found, digests[place][1])}
    ahead = [place for place in range(len(mutants)) if place not in known]
    done = [0]

    def one(slot: Slot, place: int) -> Judgement:
        judged = judge.judge(slot, mutants[place])
        cache.keep(context.file(mutants[place].file), judged, *digests[place])
        done[0] += 1
        return judged

    with means.progress.task("mutants", lambda: f"{done[0]} of {len(ahead)}"):
        found_now = dict(zip(ahead, slots.map(one, ahead), strict=True))
        found_now |= _confirmed(slots, judge, mutants, found_now)
    for place, judged in found_now.items():
        cache.keep(context.file(mutants[place].file), judged, *digests[place])
    known |= found_now
    return [known[place] for place in range(len(mutants))], len(ahead)


def _confirmed(slots: Pool, judge: Judge, mutants: Sequence[Mutant], found: Mapping[int, Judgement]) -> dict[int, Judgement]:
    """The verdicts that rested on tests which also fail without a fault, judged again without these."""
    killers = sorted({test for judged in found.values() for test in judged.tests if test in judge.tests.seconds})
    if not killers:
        return {}
    parts = [killers[number :: len(slots.slots)] for number in range(len(slots.slots))]
    unstable = frozenset(
        test for tests in slots.map(lambda slot, part: confirm(slot, judge.tests, part), [part for part in parts if part]) for test in tests
    )
    again = [place for place, judged in found.items() if not unstable.isdisjoint(judged.tests)]
    return dict(zip(again, slots.map(lambda slot, place: judge.judge(slot, mutants[place], unstable), again), strict=True))


def _check_unchanged(project: Path, facts: Mapping[str, str]) -> None:
    """Raises BaselineFailed where a file that decided was edited meanwhile: the copies were made of what is there no longer."""
    now = copies.digests(project, [name for name in facts if (project / name).is_file()])
    edited = sorted(name for name in facts if now.get(name) != facts[name])
    if edited:
        raise BaselineFailed(f"{', '.join(edited[:3])} changed while the mutants ran, which had the earlier content: run again.")


def _witnesses(tests: Tests, goldens: Goldens, files: int, named: Sequence[str]) -> Witnesses:
    names = [scene.name for scene in goldens.scenes]
    late = [scene.name for scene in goldens.scenes if scene.seconds >= LATE]
    return Witnesses(len(tests.seconds), files, tests.apart, tests.unstable, names, goldens.left_out, late, named)


def _read(facts: Mapping[str, str], targets: Iterable[str], files: Iterable[str], suite: Suite, goldens: Goldens) -> dict[str, str]:
    """What decided: the mutated sources, the tests with what they need, the goldens and their sources."""
    names = {*targets, *(name for file in files for name in suite.support(file)), "pyproject.toml"}
    for scene in goldens.scenes:
        names |= {name for name in facts if name.startswith(f"{scene.golden}/")} | set(scene.sources)
    return {name: facts[name] for name in sorted(names) if name in facts}


def operators_json(names: Sequence[str] = ()) -> dict[str, Any]:
    """The operators as `--json` has them. Raises UsageError for an unknown name."""
    catalogue = aim.catalogue()
    listed: dict[str, Any] = catalogue.as_json(catalogue.chosen(tuple(names)))
    return listed


def operators_text(names: Sequence[str] = ()) -> str:
    """The operators for people, each with an example. Raises UsageError for an unknown name."""
    lines: list[str] = []
    for operator in aim.catalogue().chosen(tuple(names)):
        before, after = operator.examples[0]
        lines += [f"{operator.name} ({operator.part}): {operator.description}"]
        lines += [f"  - {line}" for line in before.splitlines()] + [f"  + {line}" for line in after.splitlines()]
    return "".join(f"{line}\n" for line in lines)
