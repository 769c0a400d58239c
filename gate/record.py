"""Runs scenarios twice and publishes as goldens what was equal."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from gate import tracking
from gate.cause import changed_sources, decide
from gate.errors import GoldenError
from gate.execution import Execution, each
from gate.failure import failed
from gate.layout import golden_folder
from gate.machine import Machine
from gate.publication import MOST, Published, check_standing, offer, size
from gate.resume import resumed
from gate.row import Arm, Results, Row
from gate.runs import Outcome, Runs
from gate.selection import NothingChecked, Wanted, to_record
from gate.trial import Means, Trial, not_judged, prepare_recording, prepared
from gate.verdict import Cause, Verdict
from golden import environment
from golden.aside import clear_leftovers
from golden.compare import Comparison, compare
from golden.lock import lock
from golden.store import Golden

CENSUS = 1000  # differences whose elements are counted


def record(means: Means, wanted: Wanted, reason: str | None) -> Results:
    """Records what is wanted, or every scenario on what is here.

    Args:
        means: with what.
        wanted: what the command line names.
        reason: why bits were meant to move; None keeps goldens that differ.

    Raises:
        UsageError: the command line or the configuration is wrong.
        NothingChecked: there is nothing to record.
        Locked: another process records here.
        StoreError: the disk or its permissions.
        KeyboardInterrupt: all processes have ended; goldens published before are whole.
    """
    selection = to_record(means.config, Machine.here(), wanted)
    if not selection.candidates:
        raise NothingChecked(
            f"Nothing to record in {means.config.file}: no scenario runs on a device that is here. {selection.left_out or ''}"
        )
    with lock(means.config.goldens), Runs(means.config.root) as runs:
        clear_leftovers(means.config.goldens)
        recorder = Recorder(means, runs, reason)
        rows = each(means, runs, prepared(means, selection.candidates, prepare_recording), recorder.row)
    warn(means)
    return Results(rows, selection.left_out)


def warn(means: Means) -> None:
    """Says so where the goldens have grown beyond what a repository should carry, or git ignores some."""
    for lost in tracking.ignored(means.config.goldens, means.config.root):
        means.progress.say(f"warning: {lost}")
    total = size(means.config.goldens)
    if total > MOST:
        means.progress.say(
            f"{means.config.goldens} holds {total / 2**20:.1f} MiB, more than the {MOST // 2**20} MiB that a repository should carry: "
            'fewer steps, smaller models, or store = "digest" make it less'
        )


@dataclass(frozen=True)
class Recorder:
    """Records trials, in any thread."""

    means: Means
    runs: Runs
    reason: str | None

    def row(self, item: Trial | Row) -> Row:
        """The row of a trial; one that cannot be tried stays as it is."""
        if isinstance(item, Row):
            return item
        begun = time.perf_counter()
        try:
            row = self._record(item)
        except GoldenError as error:
            row = not_judged(item.candidate, error, item.interpreter.torch)
        return replace(row, seconds=time.perf_counter() - begun)

    def _record(self, trial: Trial) -> Row:
        check_standing(trial.folder, self.reason)
        arms = Execution(trial, self.runs, self.means.progress)
        first = arms.run("", None, ())
        if not first.ok:
            return failed(trial, self.runs, first)
        again = arms.run("again", None, ())
        if not again.ok:
            return failed(trial, self.runs, again)
        golden = first.open()
        comparison = compare(golden, again.open(), limit=CENSUS)
        if not comparison.identical:
            return self._unequal(trial, first, again, comparison, "Two runs here, of the same code in the same environment, differ.")
        if trial.candidate.settings.resume_at is not None:
            halves = resumed(trial, self.runs, self.means.progress, golden)
            if halves.comparison is None:
                return failed(trial, self.runs, halves.outcome)
            if not halves.comparison.identical:
                return self._unequal(trial, first, halves.outcome, halves.comparison, halves.told(trial))
        return self._offer(trial, first, golden, Arm("again", "identical", again.seconds))

    def _unequal(self, trial: Trial, one: Outcome, other: Outcome, comparison: Comparison, told: str) -> Row:
        kept = [self.runs.keep(outcome) for outcome in (one, other)]
        return trial.row(
            Verdict.NONDETERMINISTIC,
            version=one.report.torch,
            message=f"{told} Nothing was recorded. Both: gate diff {' '.join(trial.shown(path) for path in kept)}",
            first=comparison.first,
            comparison=comparison,
            run=trial.shown(kept[0]),
            arms=(Arm("again", "differs", other.seconds),),
            replay=one.report.replay,
        )

    def _offer(self, trial: Trial, outcome: Outcome, golden: Golden, again: Arm) -> Row:
        root, version = self.means.config.goldens, outcome.report.torch
        target = golden_folder(root, trial.hardware, version, trial.candidate.golden)
        published = offer(golden, root, target, self.reason)
        facts = {"replay": outcome.report.replay, **told(published, golden)}
        if published.verdict is Verdict.DRIFT:
            facts |= {"run": trial.shown(self.runs.keep(outcome)), "arms": (again,)}
        return trial.row(published.verdict, version=version, **facts)


def told(published: Published, golden: Golden) -> dict[str, Any]:
    """What a row says of a golden that was offered."""
    if published.verdict is Verdict.IDENTICAL:
        return {"message": "unchanged: nothing was written"}
    if published.old is None or published.comparison.identical:
        return {}
    old, new = published.old.manifest, golden.manifest
    changes = tuple(environment.difference(old.environment, new.environment))
    sources = changed_sources(old.sources, new.sources, str(new.scenario["run"]).rpartition(":")[0])
    kept = published.verdict is Verdict.DRIFT
    return {
        "cause": (decide(bool(sources), bool(changes)) or Cause.UNKNOWN) if kept else None,
        "message": "The golden was kept: replacing it takes a reason." if kept else None,
        "first": published.comparison.first,
        "comparison": published.comparison,
        "environment_changes": changes,
        "changed_sources": sources,
    }
