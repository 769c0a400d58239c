"""Runs the tests that a change touches, and judges it by them; writes nothing but `.gate/`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from gate import encoding, interpreter
from gate.check import change, harvest, knowledge, named, setting, since
from gate.check.change import Change
from gate.check.choice import Choice, Chooser, nothing_checked, unproven
from gate.check.harvest import Item, Outcome
from gate.check.knowledge import Knowledge
from gate.check.named import Trailer
from gate.check.parts import text
from gate.check.reach import Reach
from gate.check.result import Checked, Word
from gate.check.session import Session, opened
from gate.check.since import Since
from gate.config import Config
from gate.errors import BaselineFailed
from gate.history import Repository
from gate.interpreter import Interpreter
from gate.machine import Machine
from gate.progress import Progress
from gate.verdict import Reason
from gate.version import public
from gate.workers import cores
from golden.sources import read_content

FEW = 20  # failures that are looked at once more
ASKED = "all tests were asked for"
UNKNOWN_BASE = "there is no commit to compare with (no upstream, no default branch): all tests are taken; --since names one"
NO_GIT = "the project is in no git repository, so that what changed is not known: all tests are taken"
NO_MAP = "what tests run is not known yet under this torch and Python: all of them ran, and it is known now"


@dataclass(frozen=True)
class Asked:
    """What the command line asks for.

    Attributes:
        since: a revision; None for where the branch left what it will be merged into.
        torch: a version; None for the running one.
        everything: all tests.
        jobs: how many side by side; None for as many as there are cores.
        python: an interpreter that the user names.
    """

    since: str | None = None
    torch: str | None = None
    everything: bool = False
    jobs: int | None = None
    python: str | None = None


@dataclass(frozen=True)
class Matter:
    """What is to be judged.

    Attributes:
        base: None where everything is to be run.
        changes: since the base.
        trailers: of the commits since then.
        why: why everything is to be run; "" where it is not.
        sources: every Python file of the project as it is, by path.
    """

    base: Since | None
    changes: tuple[Change, ...]
    trailers: tuple[Trailer, ...]
    why: str
    sources: Mapping[str, str]


def check(config: Config, asked: Asked, progress: Progress) -> Checked:
    """Judges a change by the tests that it touches.

    Raises:
        UsageError: an unknown revision, a wrong version, a wrong configuration.
        BaselineFailed: a shallow clone does not hold the commit to compare with.
        UnknownTest: a trailer names a test that does not exist.
        Lacking, NotRun, NoTorch: pytest cannot be run.
        StoreError: `.gate/` cannot be written.
        KeyboardInterrupt: all processes have ended.
    """
    begun = time.perf_counter()
    matter = _matter(config.root, asked)
    python = interpreter.provide(asked.torch, config, progress, python=asked.python, requires=setting.requirements(config))
    machine = Machine.here()
    plain = Checked(Word.PASSED, base=matter.base, torch=python.torch, hardware=machine.cuda or machine.portable)
    with opened(config.root, python, progress) as session:
        checked = Check(session, matter, asked.jobs or cores(), _name(python), plain).run()
    return replace(checked, seconds=time.perf_counter() - begun)


@dataclass(frozen=True)
class Check:
    """One check: what is asked, with what it works, and a result that holds what is known beforehand."""

    session: Session
    matter: Matter
    jobs: int
    name: str
    plain: Checked

    def run(self) -> Checked:
        """Chooses, runs, learns and judges."""
        kept = knowledge.load(self.session.store, self.name)
        known = (kept or Knowledge()).translated(self.matter.sources)
        if not self.matter.why and self._is_quiet(known):
            return replace(self.plain, verdict=Word.NOTHING, message=self._nothing())
        items = self.session.collect()
        broken = _broken(self.session.folder / "collect")
        trailers = named.tests(self.matter.trailers, items)
        full = bool(self.matter.why) or kept is None
        choice = self._all(items, self.matter.why) if full else self._chooser(items, known).choose(self.matter.changes, trailers)
        if not full and not choice.reasons and not broken:
            return self._nothing_ran(choice, items)
        ran, known = self._learn({key: items[key] for key in choice.reasons}, items, known)
        if full and not self.matter.why:
            choice = self._chooser(items, known).choose(self.matter.changes, trailers)
            choice = replace(choice, fallback=(NO_MAP, *choice.fallback))
        return self._judged(choice, items, {**broken, **ran}, known)

    def _chooser(self, items: Mapping[str, Item], known: Knowledge) -> Chooser:
        quiet = {
            change.path
            for change in self.matter.changes
            if change.path == "pyproject.toml" and setting.same_for_tests(change.old, change.new)
        }
        return Chooser(items, known.tests, self._reach, quiet)

    @cached_property
    def _reach(self) -> Reach:
        return _reach(self.matter)

    def _is_quiet(self, known: Knowledge) -> bool:
        """Whether nothing changed that a test could notice, told before tests are collected."""
        items = {key: Item(test.file, ()) for key, test in known.tests.items()}
        choice = self._chooser(items, known).choose(self.matter.changes, {})
        return not (choice.reasons or choice.units or self.matter.trailers)

    def _nothing(self) -> str:
        paths = [change.path for change in self.matter.changes]
        if not paths:
            return "no file changed. To check all the same: --all"
        names = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
        return f"{names} changed in nothing that a test reads or runs. To check all the same: --all"

    def _all(self, items: Mapping[str, Item], why: str) -> Choice:
        reason = why or NO_MAP
        return Choice(dict.fromkeys(items, (reason,)), () if why in ("", ASKED) else (why,))

    def _nothing_ran(self, choice: Choice, items: Mapping[str, Item]) -> Checked:
        untested = tuple(unit.title for unit in choice.units)
        if not untested:
            return replace(self.plain, verdict=Word.NOTHING, message=self._nothing(), total=len(items))
        return replace(
            self.plain,
            verdict=Word.NOT_JUDGED,
            reason=Reason.NOTHING_CHECKED,
            message=f"no test runs what changed: {untested[0]}{_more(untested)}. Write one, or check with all: --all",
            total=len(items),
            fallback=choice.fallback,
            untested=untested,
        )

    def _learn(self, chosen: Mapping[str, Item], items: Mapping[str, Item], known: Knowledge) -> tuple[dict[str, Outcome], Knowledge]:
        """Runs tests; how they ended, and what is known of all tests now. Nothing is kept of sources that were edited meanwhile."""
        folder = self.session.run(None if len(chosen) == len(items) else chosen, self.jobs)
        ended = harvest.outcomes(folder)
        ran = {key: ended.get(key, Outcome("unfinished", "pytest ended before it ran")) for key in chosen}
        ran |= {key: outcome for key, outcome in ended.items() if key not in chosen and outcome.status != "unfinished"}
        fresh = harvest.known(folder, self.session.root, chosen, ended)
        for key, outcome in self._confirmed(ran, chosen).items():
            ran[key] = outcome
            fresh[key] = replace(fresh[key], outcome=outcome.status, blind=harvest.DISTURBED)
        # What was not even collected (another selection by configuration or variables) is not forgotten as long as its file is there.
        files = {item.file for item in items.values()}
        apart = [key for key, test in known.tests.items() if test.file not in files and test.file in self.matter.sources]
        known = known.refreshed(fresh, [*items, *apart])
        if not _edited(self.session.root, self.matter.sources):
            knowledge.keep(known, self.session.store, self.name)
        return ran, known

    def _confirmed(self, ran: Mapping[str, Outcome], chosen: Mapping[str, Item]) -> dict[str, Outcome]:
        """Of the tests that failed those that pass when nothing is measured: they may count time, threads or processes."""
        failed = {key: chosen[key] for key, outcome in ran.items() if outcome.status == "failed" and key in chosen}
        if not 0 < len(failed) <= FEW:
            return {}
        ended = harvest.outcomes(self.session.again(failed))
        return {key: replace(ended[key], text=harvest.DISTURBED) for key in failed if key in ended and ended[key].status in harvest.SETTLED}

    def _judged(self, choice: Choice, items: Mapping[str, Item], ran: Mapping[str, Outcome], known: Knowledge) -> Checked:
        judged = {key for key, outcome in ran.items() if outcome.status in ("passed", "failed")}
        left = unproven(choice.units, judged, known.tests)
        reasons = {**{key: ("it cannot be collected",) for key in ran if key not in items}, **choice.reasons}
        found = replace(
            self.plain,
            reasons=reasons,
            total=len(items),
            fallback=choice.fallback,
            outcomes=ran,
            untested=tuple(unit.title for unit in left),
            subjects=self._subjects([key for key in ran if key in items], items, known),
            listed=frozenset(path for key in {*ran} & {*known.tests} for path in known.tests[key].reads if path.endswith("/")),
        )
        reason, message = self._doubt(found, nothing_checked(choice.units, left))
        if found.having("failed"):
            return replace(found, verdict=Word.FAILED)
        return found if reason is None else replace(found, verdict=Word.NOT_JUDGED, reason=reason, message=message)

    def _doubt(self, found: Checked, nothing: bool) -> tuple[Reason | None, str]:
        """Why tests of which none failed do not yet show that the change is right."""
        edited = _edited(self.session.root, self.matter.sources)
        part = harvest.part(self.session.folder / "collect")
        unfinished = found.having("unfinished")
        if edited:
            return Reason.STALE_EVIDENCE, f"{edited[0]}{_more(edited)} changed while the tests ran. Run the check again"
        if part:
            return Reason.BASELINE_FAILED, f"PYTEST_ADDOPTS={part} takes part of the tests, so that the others were not asked. Unset it"
        if unfinished:
            return Reason.BASELINE_FAILED, f"pytest ended before it ran {unfinished[0]}{_more(unfinished)}. Look at its configuration (-x?)"
        if not found.outcomes:
            return Reason.NOTHING_CHECKED, "the project has no test, or its configuration selects none. Write one"
        if not found.having("passed"):
            return Reason.NOTHING_CHECKED, f"of {len(found.outcomes)} tests none passed{found.left}, which shows nothing. See --json"
        if nothing:
            return Reason.NOTHING_CHECKED, f"no test runs what changed: {found.untested[0]}{_more(found.untested)}. Write one"
        return None, ""

    def _subjects(self, ran: Iterable[str], items: Mapping[str, Item], known: Knowledge) -> dict[str, str]:
        """Digests of everything of the project that tests imported, ran or read, and of its configuration."""
        paths = {"pyproject.toml"}
        for file in {items[key].file for key in ran}:
            paths |= self._reach.of(file)
        for key in ran:
            test = known.tests.get(key)
            paths |= {*test.lines, *test.reads} if test else set()
        found = {path: read_content(self.session.root / path) for path in sorted(paths) if not path.startswith((".gate/", ".git/"))}
        return {path: content.digest for path, content in found.items() if content is not None}


def _matter(root: Path, asked: Asked) -> Matter:
    base, why, repository = None, ASKED if asked.everything else "", None
    try:
        repository = Repository.of(root)
        base = since.named(repository, asked.since) if asked.since is not None else None if asked.everything else since.usual(repository)
    except BaselineFailed:
        if asked.since is not None or repository is not None:
            raise
        why = why or NO_GIT
    why = why or ("" if base else UNKNOWN_BASE)
    changes = change.changes(repository, base.commit) if repository and base else ()
    trailers = named.trailers(repository, base.commit) if repository and base else ()
    return Matter(base, changes, trailers, why, _sources(root))


def _sources(root: Path) -> dict[str, str]:
    return {path: text((root / path).read_bytes()) for path in change.files(root) if path.endswith(".py")}


def _edited(root: Path, sources: Mapping[str, str]) -> list[str]:
    """Python files that are no longer what they were when the check began."""
    now = _sources(root)
    return sorted(path for path in {*now, *sources} if now.get(path) != sources.get(path))


def _reach(matter: Matter) -> Reach:
    """Of the files that are there and of those that were."""
    gone = {change.path: text(change.old or b"") for change in matter.changes if change.python and change.new is None}
    return Reach({path: encoding.tree(source) for path, source in {**gone, **matter.sources}.items()})


def _broken(folder: Path) -> dict[str, Outcome]:
    """Files of tests that cannot be imported."""
    return {key: outcome for key, outcome in harvest.outcomes(folder).items() if outcome.status == "failed"}


def _name(python: Interpreter) -> str:
    minor = ".".join(python.version.split(".")[:2])
    return f"torch-{public(python.torch)}-python-{minor}"


def _more(several: list[str] | tuple[str, ...]) -> str:
    return f" and {len(several) - 1} more" if len(several) > 1 else ""
