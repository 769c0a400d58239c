"""`gate mutate`: plants faults in copies of the project, and says which of them neither its tests nor its goldens notice."""

from __future__ import annotations

import platform
import random
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gate import config, git, interpreter
from gate.config import Config
from gate.errors import BaselineFailed, GoldenError, NoAccelerator, Unconfigured, UsageError
from gate.machine import Machine
from gate.mutation import baseline, catalogue, copies, pardons, planted, pool
from gate.mutation.cache import Cache
from gate.mutation.evidence import Goldens, Tests
from gate.mutation.judge import Judge, confirm
from gate.mutation.mutant import Judgement, Mutant
from gate.mutation.plant import plant
from gate.mutation.pool import Pool
from gate.mutation.result import Result, Witnesses
from gate.mutation.slot import Slot
from gate.mutation.suite import Suite, third_party
from gate.selection import NothingChecked, Wanted, to_verify
from gate.trial import Means, Trial, prepare
from gate.workers import cores

_HUNK = re.compile(rb"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True)
class Asked:
    """What a command line asks for.

    Attributes:
        paths: files and folders, relative to the project; empty for all sources.
        since: only lines that have changed since this revision.
        device: "cpu" or "cuda".
        operators: names; empty for all.
        tests: where tests are looked for; empty for what pytest's configuration says.
        all_tests: also tests that do not import the mutated package.
        both: asks the second witness also about what the first has killed.
        limit: how many mutants to sample, None for all.
        seed: of the sample.
        timeout: seconds that replace the usual time-out.
        fresh: takes nothing from earlier runs.
    """

    paths: tuple[str, ...] = ()
    since: str | None = None
    device: str = "cpu"
    operators: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    all_tests: bool = False
    both: bool = True
    limit: int | None = None
    seed: int = 0
    timeout: float | None = None
    fresh: bool = False


def project(start: Path) -> Config:
    """The configuration that holds for a folder; of a project without any, one that has no scenario."""
    try:
        return config.find(start)
    except Unconfigured:
        start = start.resolve()
        marked = (folder for folder in (start, *start.parents) if (folder / "pyproject.toml").is_file() or (folder / ".git").exists())
        root = next(marked, start)
        return Config(root, root / "goldens")


def mutate(means: Means, asked: Asked) -> Result:
    """Plants faults and judges them.

    Raises:
        UsageError: a path, an operator or a pardon is wrong.
        BaselineFailed: the unmutated tree does not pass, or a fault that must be noticed is not.
        NothingChecked: there is nothing to plant, or nobody to ask.
    """
    project, machine = means.config.root, Machine.here()
    if asked.device == "cuda" and machine.cuda is None:
        raise NoAccelerator("There is no CUDA device here. On a machine with one: gate mutate --device cuda")
    names = copies.files(project)
    suite = Suite.of(project, names, asked.tests)
    targets = _targets(suite, asked.paths, _changed(project, asked.since))
    facts = copies.digests(project, names)
    cache = Cache(project, fresh=asked.fresh)
    sources = {file: (project / file).read_text(encoding="utf-8") for file in targets}
    mutants, total = _mutants(sources, asked, targets, cache, facts)
    if not mutants:
        raise NothingChecked("no line here can be mutated: nothing was checked. Name other files, or an older revision with --since.")
    return _judged(means, asked, machine, suite, facts, sources, mutants, total, cache)


def _targets(suite: Suite, paths: Sequence[str], changed: Mapping[str, set[int] | None] | None) -> dict[str, set[int] | None]:
    """The files to mutate, each with its changed lines, None for all."""
    tests = set(suite.files())
    able = [n for n in suite.names if n.endswith(".py") and n not in tests and not n.endswith("conftest.py")]
    if paths:
        found = [
            n for n in suite.names if n.endswith(".py") and any(n == p or n.startswith(f"{p.rstrip('/')}/") or p == "." for p in paths)
        ]
        for path in paths:
            if not any(n == path or n.startswith(f"{path.rstrip('/')}/") or path == "." for n in found):
                raise UsageError(f"{path}: there is no Python file of the project. Name files or folders in {suite.project}.")
        chosen = [n for n in found if n in able or n in paths]
    else:
        beside = {p.split("/")[0] for p in suite.tests} | {"tests", "goldens", "docs", "setup.py"}
        chosen = [n for n in able if n.split("/")[0] not in beside or suite.tests == (".",)]
    if changed is None:
        return dict.fromkeys(chosen)
    found_lines = {name: changed[name] for name in chosen if name in changed}
    if not found_lines:
        raise NothingChecked("no source line has changed since then: nothing was checked.")
    return found_lines


def _changed(project: Path, since: str | None) -> dict[str, set[int] | None] | None:
    """The lines that have changed since a revision, by file, None for all of a new file; None where no revision is named."""
    if since is None:
        return None
    try:
        commit = git.run(project, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{since}^{{commit}}").decode().strip()
    except BaselineFailed as error:
        raise BaselineFailed(
            f"--since {since}: there is no such revision here (a shallow clone?). git fetch --unshallow. {error}"
        ) from None
    found: dict[str, set[int] | None] = {}
    file = ""
    told = git.run(
        project,
        "diff",
        "--relative",
        "--unified=0",
        "--no-color",
        "--no-ext-diff",
        "--no-renames",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        commit,
        "--",
        ".",
    )
    for line in told.splitlines():
        if line.startswith(b"+++ "):
            file = line[6:].decode(errors="replace").strip('"')
        hunk = _HUNK.match(line)
        if hunk and file:
            start, count = int(hunk[1]), int(hunk[2] or 1)
            lines = found.setdefault(file, set())
            if lines is not None:
                lines |= set(range(start, start + count)) if count else {start, start + 1}
    new = git.run(project, "ls-files", "-z", "--others", "--exclude-standard").decode(errors="replace").split("\0")
    return found | dict.fromkeys(filter(None, new))


def _mutants(
    sources: Mapping[str, str], asked: Asked, targets: Mapping[str, set[int] | None], cache: Cache, facts: Mapping[str, str]
) -> tuple[list[Mutant], int]:
    """The mutants to judge, and of how many they are taken."""
    operators = catalogue.chosen(asked.operators)
    found: list[Mutant] = []
    comments = [pardon for file, source in sources.items() for pardon in pardons.read(file, source)]
    for file, source in sources.items():
        key = copies.combined({file: facts[file]}, catalogue.digest(), *(operator.name for operator in operators))
        known = cache.get("planted", key)
        if known is None:
            made = plant(file, source, operators)
            cache.put("planted", key, [vars(mutant) for mutant in made])
        else:
            made = [Mutant(**{**one, "hits": tuple(one["hits"])}) for one in known]
        found += made
    found = pardons.grant(found, comments)
    if not asked.operators:
        pardons.check_used(found, comments)
    chosen = [mutant for mutant in found if _touched(mutant, targets[mutant.file])]
    if asked.limit is not None and asked.limit < len(chosen):
        places = sorted(random.Random(asked.seed).sample(range(len(chosen)), asked.limit))
        return [chosen[place] for place in places], len(chosen)
    return chosen, len(chosen)


def _touched(mutant: Mutant, lines: set[int] | None) -> bool:
    return lines is None or not lines.isdisjoint(range(mutant.line, mutant.end + 1))


def _judged(
    means: Means, asked: Asked, machine: Machine, suite: Suite, facts: Mapping[str, str],
    sources: Mapping[str, str], mutants: list[Mutant], total: int, cache: Cache,
) -> Result:  # fmt: skip
    python = interpreter.running()
    targets = sorted({mutant.file for mutant in mutants})
    files = suite.asked(targets, asked.all_tests)
    trials, left_out = _trials(means, asked, machine, python.torch)
    jobs = means.jobs or (1 if asked.device == "cuda" else cores())
    surroundings = (catalogue.digest(), python.torch, python.version, asked.device, *map(str, sorted(machine.slugs())))
    key = copies.combined(facts, *surroundings, *targets, *files, *left_out, *sorted(trials))
    with copies.scratch() as scratch:
        opening = pool.opened(suite.project, suite.names, scratch, jobs, suite.roots, asked.device, third_party(suite, [*files, *targets]))
        with opening as slots:
            tests, goldens = _baseline(means, slots, cache, key, files, trials, targets, left_out, sources)
            judge = Judge(sources, tests, goldens, trials, asked.both, asked.timeout)
            context = _Context(suite, facts, (*surroundings, str(asked.both), str(asked.timeout), *sorted(trials), *left_out))
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
        Witnesses(len(tests.seconds), len(files), tests.skipped, tests.unstable, [s.name for s in goldens.scenes], goldens.left_out),
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
    means: Means, slots: Pool, cache: Cache, key: str, files: Sequence[str], trials: Mapping[str, Trial], targets: Sequence[str],
    left_out: Sequence[str], sources: Mapping[str, str],
) -> tuple[Tests, Goldens]:  # fmt: skip
    """What the unmutated tree shows; known from an earlier run where nothing has changed."""
    known = cache.get("baseline", key)
    if known is not None:
        tests, goldens = Tests(**known["tests"]), Goldens.of_json(known["goldens"])
        for slot in slots.slots:
            slot.tests.preload(tests.modules)
            slot.learn(goldens.modules)
        return tests, goldens
    with means.progress.task("unmutated tree") as tell:
        tests = baseline.tests(slots, files, targets, tell) if files else Tests()
        goldens = baseline.goldens(slots, list(trials.values()), targets, left_out, tell)
        if not any(tests.lines.values()) and not goldens.scenes:
            raise NothingChecked(
                "no test and no scenario runs a line of these files: nobody could notice a fault. Write one, or name --tests."
            )
        tell("a fault that must be noticed")
        judge = Judge(sources, tests, replace(goldens, scenes=()), {})
        planted.check(slots.slots[0], judge)
    cache.put("baseline", key, {"tests": tests.as_json(), "goldens": goldens.as_json()})
    return tests, goldens


class _Context:
    """What verdicts depend on, as digests."""

    def __init__(self, suite: Suite, facts: Mapping[str, str], more: Sequence[str]) -> None:
        self.suite, self.facts = suite, facts
        tests = {name for file in suite.files() for name in suite.support(file)}
        others = {n: d for n, d in facts.items() if n not in tests and not n.endswith(".md")}
        self.all = copies.combined(others, *more)
        self._support: dict[str, str] = {}

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
    known: dict[int, tuple[Judgement, str]] = {}
    digests: dict[int, tuple[str, dict[str, str]]] = {}
    for place, mutant in enumerate(mutants):
        tests = judge.tests.covering(mutant)
        each = {test: context.test(test, judge.tests.files[test]) for test in tests}
        scenes = ",".join(scene.name for scene in judge.goldens.covering(mutant))
        digests[place] = copies.combined(each, scenes, mutant.pardon or ""), each
        found = cache.judged(context.file(mutant.file), mutant, *digests[place])
        if found is not None and found[0].mutant.pardon == mutant.pardon:
            known[place] = found
    ahead = [place for place in range(len(mutants)) if place not in known]
    done = [0]

    def one(slot: Slot, place: int) -> tuple[Judgement, str]:
        judged, killer = judge.judge(slot, mutants[place])
        cache.keep(context.file(mutants[place].file), judged, killer, *digests[place])
        done[0] += 1
        return judged, killer

    with means.progress.task("mutants", lambda: f"{done[0]} of {len(ahead)}"):
        found_now = dict(zip(ahead, slots.map(one, ahead), strict=True))
        found_now |= _confirmed(slots, judge, mutants, found_now)
    for place, (judged, killer) in found_now.items():
        cache.keep(context.file(mutants[place].file), judged, killer, *digests[place])
    known |= found_now
    return [known[place][0] for place in range(len(mutants))], len(ahead)


def _confirmed(
    slots: Pool, judge: Judge, mutants: Sequence[Mutant], found: Mapping[int, tuple[Judgement, str]]
) -> dict[int, tuple[Judgement, str]]:
    """The verdicts that rested on tests which also fail without a fault, judged again without these."""
    killers = sorted({killer for _, killer in found.values() if killer in judge.tests.seconds})
    if not killers:
        return {}
    parts = [killers[number :: len(slots.slots)] for number in range(len(slots.slots))]
    unstable = frozenset(
        test for tests in slots.map(lambda slot, part: confirm(slot, judge.tests, part), [part for part in parts if part]) for test in tests
    )
    again = [place for place, (_, killer) in found.items() if killer in unstable]
    return dict(zip(again, slots.map(lambda slot, place: judge.judge(slot, mutants[place], unstable), again), strict=True))


def _check_unchanged(project: Path, facts: Mapping[str, str]) -> None:
    """Raises BaselineFailed where a file that decided was edited meanwhile: the copies were made of what is there no longer."""
    now = copies.digests(project, [name for name in facts if (project / name).is_file()])
    edited = sorted(name for name in facts if now.get(name) != facts[name])
    if edited:
        raise BaselineFailed(f"{', '.join(edited[:3])} changed while the mutants ran, which had the earlier content: run again.")


def _read(facts: Mapping[str, str], targets: Iterable[str], files: Iterable[str], suite: Suite, goldens: Goldens) -> dict[str, str]:
    """What decided: the mutated sources, the tests with what they need, the goldens and their sources."""
    names = {*targets, *(name for file in files for name in suite.support(file)), "pyproject.toml"}
    for scene in goldens.scenes:
        names |= {name for name in facts if name.startswith(f"{scene.golden}/")} | set(scene.sources)
    return {name: facts[name] for name in sorted(names) if name in facts}


def inside(root: Path, here: Path, path: Path) -> str:
    """A path as the user means it, relative to the project.

    Raises:
        UsageError: it leads outside.
    """
    full = (here / path).resolve()
    if not full.exists():
        full = (root / path).resolve()
    if not full.is_relative_to(root):
        raise UsageError(f"{path} lies outside the project {root}. Name a file or folder in it.")
    return full.relative_to(root).as_posix()


def operators_json(names: Sequence[str] = ()) -> dict[str, Any]:
    """The operators as `--json` has them. Raises UsageError for an unknown name."""
    return catalogue.as_json(catalogue.chosen(tuple(names)))


def operators_text(names: Sequence[str] = ()) -> str:
    """The operators for people, each with an example. Raises UsageError for an unknown name."""
    lines: list[str] = []
    for operator in catalogue.chosen(tuple(names)):
        before, after = operator.examples[0]
        lines += [f"{operator.name} ({operator.part}): {operator.description}"]
        lines += [f"  - {line}" for line in before.splitlines()] + [f"  + {line}" for line in after.splitlines()]
    return "".join(f"{line}\n" for line in lines)
