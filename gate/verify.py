"""Runs scenarios again and compares every bit with their goldens; writes nothing but `.gate/`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from gate import missing
from gate.cause import Finding, Inquest, against_base, changed_sources
from gate.errors import BaselineFailed, GoldenError, NoTorch, UsageError
from gate.evidence import Snapshot, verified
from gate.execution import Execution, each
from gate.failure import failed
from gate.history import Repository
from gate.known import KnownAnswers
from gate.machine import Machine
from gate.resume import resumed
from gate.row import Results, Row
from gate.runs import Outcome, Runs
from gate.selection import NothingChecked, Wanted, to_verify
from gate.trial import Means, Trial, not_judged, prepare, prepared, settings_changes, usual
from gate.verdict import Cause, Verdict
from golden import environment
from golden.compare import Comparison, compare
from golden.store import Golden

CENSUS = 1000  # differences whose elements are counted


def verify(means: Means, wanted: Wanted, *, cause: bool = True) -> Results:
    """Judges what is wanted, or what is here where nothing is named.

    Raises:
        UsageError: the command line or the configuration is wrong.
        NothingChecked: there is nothing to judge.
        StoreError: `.gate/` cannot be written, where runs are kept and evidence is left.
        KeyboardInterrupt: all processes have ended, and what they made is removed.
    """
    selection = to_verify(means.config, Machine.here(), wanted, _running(means))
    if wanted.base is not None:
        _check_base(means, wanted.base)
    if not selection.candidates:
        raise NothingChecked(_nothing(means, selection.left_out))
    before = Snapshot.take(means.config)
    with Runs(means.config.root) as runs:
        judge = Judge(means, runs, wanted.base, cause)
        rows = each(means, runs, prepared(means, selection.candidates, prepare), judge.row)
    return Results(tuple(verified.put_on_record(means.config, before, row) for row in rows), selection.left_out)


@dataclass(frozen=True)
class Judge:
    """Judges trials, in any thread.

    Attributes:
        runs: where they run.
        base: the revision that the user names.
        cause: whether to look for the cause of a drift.
        known: whether interpreters honour the portable profile, as far as asked.
    """

    means: Means
    runs: Runs
    base: str | None
    cause: bool
    known: KnownAnswers = field(default_factory=KnownAnswers)

    def row(self, item: Trial | Row) -> Row:
        """The row of a trial; one that is judged already stays as it is."""
        if isinstance(item, Row):
            return item
        begun = time.perf_counter()
        try:
            judged = self._judge(item)
        except UsageError:
            raise
        except GoldenError as error:
            judged = not_judged(item.candidate, error, item.interpreter.torch)
        return replace(judged, seconds=time.perf_counter() - begun)

    def _judge(self, trial: Trial) -> Row:
        golden = trial.golden
        if golden is None and self.base is None:
            return missing.row(trial)
        if golden is not None:
            changes = settings_changes(trial.candidate.settings, golden.manifest.scenario, trial.profile)
            if changes:
                return missing.other_settings(trial, changes)
            golden.check()
        outcome = Execution(trial, self.runs, self.means.progress).run("", None, ())
        if not outcome.ok:
            return failed(trial, self.runs, outcome)
        head = outcome.open()
        if golden is None:
            return self._against_base(trial, outcome, head)
        why = missing.elsewhere(trial, golden, outcome, head)
        return missing.row(trial, why) if why else self._held(trial, golden, outcome, head)

    def _held(self, trial: Trial, golden: Golden, outcome: Outcome, head: Golden) -> Row:
        """A run held against its golden."""
        comparison = compare(golden, head, limit=CENSUS)
        facts = {
            "version": outcome.report.torch,
            "environment_changes": tuple(environment.difference(golden.manifest.environment, head.manifest.environment)),
            "changed_sources": changed_sources(golden.manifest.sources, head.manifest.sources, trial.file),
            "replay": outcome.report.replay,
            "basis": verified.basis(trial, head, outcome),
        }
        if not comparison.identical:
            return self._drifted(trial, golden, outcome, head, comparison, facts)
        if trial.candidate.settings.resume_at is not None:
            return self._resumed(trial, head, facts)
        return trial.row(Verdict.IDENTICAL, **facts)

    def _resumed(self, trial: Trial, head: Golden, facts: Mapping[str, Any]) -> Row:
        """A run in one that is identical, held against the same in two halves."""
        halves = resumed(trial, self.runs, self.means.progress, head)
        if halves.comparison is None:
            return failed(trial, self.runs, halves.outcome)
        if halves.comparison.identical:
            return trial.row(Verdict.IDENTICAL, **facts)
        kept = trial.shown(self.runs.keep(halves.outcome))
        return trial.row(
            Verdict.DRIFT, **facts, **difference(halves.comparison), cause=Cause.CODE, run=kept, message=halves.told(trial),
            honoured=self._honoured(trial),
        )  # fmt: skip

    def _drifted(
        self, trial: Trial, golden: Golden, outcome: Outcome, head: Golden, comparison: Comparison, facts: Mapping[str, Any]
    ) -> Row:
        kept = trial.shown(self.runs.keep(outcome))
        if not self.cause:
            return trial.row(Verdict.DRIFT, **facts, **difference(comparison), run=kept)
        arms = Execution(trial, self.runs, self.means.progress)
        changes = facts["environment_changes"]
        found = Inquest(golden, head, comparison, trial.project, trial.file, changes, arms.run, self.base, CENSUS).finding()
        return trial.row(found.verdict, **{**facts, **self._found(trial, found, arms)}, run=kept)

    def _against_base(self, trial: Trial, outcome: Outcome, head: Golden) -> Row:
        """A run held against the base's, where there is no golden."""
        assert self.base is not None, "without a base there has to be a golden"
        arms = Execution(trial, self.runs, self.means.progress)
        found = against_base(trial.project, trial.file, head, arms.run, self.base, CENSUS)
        kept = None if found.verdict is Verdict.IDENTICAL else trial.shown(self.runs.keep(outcome))
        facts = {"version": outcome.report.torch, "replay": outcome.report.replay, **self._found(trial, found, arms)}
        return trial.row(found.verdict, golden=None, against="base", run=kept, **facts)

    def _found(self, trial: Trial, found: Finding, arms: Execution) -> dict[str, Any]:
        """What a row says of a finding."""
        message = found.message
        if found.verdict is Verdict.NONDETERMINISTIC and "again" in arms.outcomes:
            message = f"The second run: {trial.shown(self.runs.keep(arms.outcomes['again']))}"
        honoured = None if found.verdict is Verdict.IDENTICAL else self._honoured(trial)
        return {
            **difference(found.comparison),
            "cause": found.cause,
            "message": message,
            "arms": found.arms,
            "changed_sources": found.changed_sources,
            "honoured": honoured,
        }

    def _honoured(self, trial: Trial) -> bool | None:
        """Whether this machine gives the portable profile's known answers; None where that profile does not hold."""
        return self.known.honoured(trial) if trial.profile == "portable" else None


def _check_base(means: Means, revision: str) -> None:
    """Raises UsageError where there is no such revision, before anything is run."""
    with suppress(BaselineFailed):  # told in the row that needs it
        Repository.of(means.config.root).named(revision)


def difference(comparison: Comparison) -> dict[str, Any]:
    """What a row says of a comparison."""
    return {"first": comparison.first, "comparison": comparison}


def _running(means: Means) -> str:
    """The full version of the torch that rows are judged under which ask for none; "" where there is none."""
    try:
        return usual(means).torch
    except NoTorch:
        return ""


def _nothing(means: Means, left_out: str | None) -> str:
    here = ", ".join(Machine.here().slugs())
    more = f" {left_out[0].upper()}{left_out[1:]}." if left_out else ""
    return f"There is no golden of the hardware here ({here}) in {means.config.goldens}.{more} Record some: gate record"
