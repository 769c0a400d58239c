"""Why bits drifted: the code, the environment, or nobody knows; found by further runs, as few as it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gate.errors import BaselineFailed
from gate.row import Arm
from gate.verdict import Cause, Verdict
from gate.witness import Again, BaseRun, Run, Said, run_again, run_base
from golden.compare import Comparison, compare
from golden.store import Golden


def decide(sources: bool, environment: bool, base: Said | None = None) -> Cause | None:
    """The cause of a drift that a second run repeats; None while it takes the base to tell.

    Args:
        sources: whether they differ from the manifest's.
        environment: whether it differs from the manifest's.
        base: what the base's run says, None before it.
    """
    if sources != environment:
        return Cause.CODE if sources else Cause.ENVIRONMENT
    if base is None:
        return None
    return {Said.GOLDEN: Cause.CODE, Said.HEAD: Cause.ENVIRONMENT}.get(base, Cause.UNKNOWN)


def changed_sources(recorded: Mapping[str, str], now: Mapping[str, str], file: str) -> tuple[str, ...]:
    """The paths whose digests differ, or that one of the two did not read; the scenario's own file first."""
    changed = {path for path in {*recorded, *now} if recorded.get(path) != now.get(path)}
    return tuple(sorted(changed, key=lambda path: (path != file, path)))


@dataclass(frozen=True)
class Finding:
    """What was found of a drift.

    Attributes:
        verdict: drift, or nondeterministic where a second run differs from the first.
        comparison: with the golden, its census taken where an arm kept the tensors; where nondeterministic, of the two runs.
        message: why the cause is unknown, or what else there is to know.
        arms: the further runs, with what they cost.
        changed_sources: what the two sides read otherwise, the scenario's own file first.
    """

    verdict: Verdict
    cause: Cause | None
    comparison: Comparison
    message: str | None = None
    arms: tuple[Arm, ...] = ()
    changed_sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Inquest:
    """A drift whose cause is looked for.

    Attributes:
        golden: what was recorded.
        head: what this run recorded.
        comparison: of the two; they differ.
        project: the project's folder.
        file: the scenario's own file, relative to it.
        environment_changes: between the two, as golden.environment tells them.
        run: runs the scenario once more.
        base: the revision that the user names, None to look for the one that recorded the golden.
        limit: the number of differences whose elements are counted.
    """

    golden: Golden
    head: Golden
    comparison: Comparison
    project: Path
    file: str
    environment_changes: Sequence[Mapping[str, Any]]
    run: Run
    base: str | None = None
    limit: int | None = None

    def finding(self) -> Finding:
        """Runs what it takes.

        1. Again: a second run that differs is nondeterministic, whatever moved.
        2. Exactly one of sources and environment differs from the manifest: it is the cause.
        3. Otherwise the base's run decides. It also runs where the user named a revision and the golden holds digests alone, for then it
           brings the tensors that the census takes.

        Raises:
            UsageError: the named revision does not exist.
        """
        sources = changed_sources(self.golden.manifest.sources, self.head.manifest.sources, self.file)
        moved = bool(sources), bool(self.environment_changes)
        cause = decide(*moved)
        keep = self._wanted if cause is None or self.base else ()
        again = run_again(self.head, self.run, keep, self.limit)
        if again.golden is None or again.comparison is not None:
            return replace(_unrepeated(self.comparison, again), changed_sources=sources)
        if cause is not None and not keep:
            return Finding(Verdict.DRIFT, cause, self.comparison, None, (again.arm,), sources)
        base = self._held(run_base(self.project, self.golden, self.head, self.run, self.base, keep))
        cause = decide(*moved, base.said) or Cause.UNKNOWN
        comparison = self._counted(again.golden, base) if keep else self.comparison
        return Finding(Verdict.DRIFT, cause, comparison, _message(cause, base, *moved), (again.arm, base.arm), sources)

    @property
    def _wanted(self) -> tuple[int, ...]:
        """The step whose tensors are missing for the census of the first difference."""
        first = self.comparison.first
        known = first is None or first.kind.structural or first.differing is not None or first.expected is not None
        return () if known or first is None else (first.step,)

    def _held(self, base: BaseRun) -> BaseRun:
        """The base's run held against both sides."""
        if base.golden is None:
            return base
        sides = {Said.GOLDEN: self.golden, Said.HEAD: self.head}
        said = next((said for said, side in sides.items() if compare(side, base.golden, limit=0).identical), Said.NEITHER)
        return replace(base, said=said)

    def _counted(self, again: Golden, base: BaseRun) -> Comparison:
        """The comparison with the census of what the arms kept."""
        if base.said is not Said.GOLDEN or base.golden is None:
            return self.comparison
        return compare(self.golden, self.head, tensors=(base.golden, again), limit=self.limit)


def against_base(project: Path, file: str, head: Golden, run: Run, revision: str, limit: int | None = None) -> Finding:
    """Holds a run against the base's in the same environment, where there is no golden.

    Args:
        project: the project's folder.
        file: the scenario's own file, relative to it.
        head: the run.
        run: runs the scenario once more.
        revision: the one that the user names.
        limit: the number of differences whose elements are counted.

    Raises:
        UsageError: the revision does not exist.
        BaselineFailed: the base gives nothing to compare with; says why.
    """
    base = run_base(project, None, head, run, revision)
    if base.golden is None:
        raise BaselineFailed(f"The base {revision} is {base.arm.verdict}")
    sources = changed_sources(base.golden.manifest.sources, head.manifest.sources, file)
    comparison = compare(base.golden, head, limit=limit)
    if comparison.identical:
        return Finding(Verdict.IDENTICAL, None, comparison, None, (Arm("base", f"equals this run, {base.title}", base.seconds),), sources)
    arm = Arm("base", f"differs from this run, {base.title}", base.seconds)
    again = run_again(head, run, (), limit)
    if again.golden is None or again.comparison is not None:
        finding = _unrepeated(comparison, again)
        return replace(finding, arms=(arm, *finding.arms), changed_sources=sources)
    return Finding(Verdict.DRIFT, Cause.CODE, comparison, None, (arm, again.arm), sources)


def _unrepeated(comparison: Comparison, again: Again) -> Finding:
    """The finding where the second run differs, or failed."""
    if again.comparison is not None:
        return Finding(Verdict.NONDETERMINISTIC, None, again.comparison, None, (again.arm,))
    told = f"A second run, which is to tell chance from cause, {again.arm.verdict}"
    return Finding(Verdict.DRIFT, Cause.UNKNOWN, comparison, told, (again.arm,))


def _message(cause: Cause, base: BaseRun, sources: bool, environment: bool) -> str | None:
    """Why the cause is unknown, or what is odd about it."""
    if cause is Cause.UNKNOWN and base.said is Said.NEITHER:
        return f"The base, {base.title}, gives neither the golden's bits nor those here, so that neither alone is the cause."
    if cause is Cause.UNKNOWN:
        moved = "Sources and environment both differ" if sources else "Neither sources nor environment differ"
        return f"{moved} from the golden's, and the base is {base.said.value}: {base.why}"
    if not sources and not environment:
        kind = "a project file that the run read unseen" if cause is Cause.CODE else "something of this machine"
        return f"No recorded source and nothing recorded of the environment differs; {kind} must."
    return None
