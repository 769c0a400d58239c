"""What is told of a run that gave no golden: its own traceback last, and where the rest of its log is."""

from __future__ import annotations

from gate.row import Row
from gate.runs import Outcome, Runs
from gate.trial import Trial
from gate.verdict import Reason, Verdict

FAULT = "fault"  # what a run's process reports where golden itself is at fault
LOG_LINES = 10


class RunError(Exception):
    """golden, not the scenario, failed in a run's process; holds its traceback."""


def failed(trial: Trial, runs: Runs, outcome: Outcome) -> Row:
    """The row of a run that gave no golden; its log is kept.

    Raises:
        RunError: golden itself is at fault.
    """
    report = outcome.report
    if report.reason == FAULT:
        raise RunError(f"{report.message}\n{report.traceback or ''}")
    runs.keep(outcome)
    return trial.row(
        Verdict.NOT_JUDGED,
        version=report.torch or trial.interpreter.torch,
        reason=Reason(report.reason or Reason.SCENARIO_FAILED),
        message=_told(trial, outcome),
        run=trial.shown(outcome.place.golden.parent),
    )


def _told(trial: Trial, outcome: Outcome) -> str:
    """The message, the end of the log where there is no traceback, and the scenario's traceback."""
    log = outcome.place.log
    lines = [outcome.report.message]
    if log.is_file() and log.stat().st_size:
        lines.append(f"Its log: {trial.shown(log)}")
        if not outcome.report.traceback:
            lines.append(outcome.tail(LOG_LINES))
    if outcome.report.traceback:
        lines.append(outcome.report.traceback.rstrip())
    return "\n".join(lines)
