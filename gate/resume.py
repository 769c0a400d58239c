"""Holds a scenario with `resume_at` to its word: stopped there and continued in a fresh process, it has the same bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gate.progress import Progress
from gate.runs import Outcome, Runs, halves
from gate.trial import Trial
from golden.compare import Comparison, compare
from golden.store import Golden

HALVES = ("first half", "second half")


class Span:
    """Some steps of a golden, as a recording."""

    def __init__(self, golden: Golden, steps: Sequence[int]) -> None:
        self.steps = steps
        self.leaves, self.find, self.digests, self.digest = golden.leaves, golden.find, golden.digests, golden.digest
        self.bytes, self.text = golden.bytes, golden.text


@dataclass(frozen=True)
class Resumed:
    """How the run in two halves came out.

    Attributes:
        outcome: of the half that decided: one that failed or differs, else the second.
        comparison: what differs from the run in one; None where a half failed.
    """

    outcome: Outcome
    comparison: Comparison | None

    def told(self, trial: Trial) -> str:
        """What is wrong where they differ."""
        at = trial.candidate.settings.resume_at
        return f"Continued in a fresh process after step {at}, it is not what it is in one: what the checkpoint lacks shows first."


def resumed(trial: Trial, runs: Runs, progress: Progress, whole: Golden) -> Resumed:
    """Runs a scenario to `resume_at`, goes on in a fresh process, and compares both halves with the run in one.

    Args:
        trial: of a scenario with `resume_at`.
        runs: where it runs.
        progress: hears what takes long.
        whole: the run in one.
    """
    at = trial.candidate.settings.resume_at
    assert at is not None, "only a scenario with resume_at is resumed"
    first, second = (runs.place(trial.hardware, trial.interpreter.torch, trial.candidate.settings.name, arm) for arm in HALVES)
    before, after = halves(trial.request, first, second)
    done = _half(trial.execute(runs, progress, before, HALVES[0]), whole, range(at + 1))
    if done.comparison is None or not done.comparison.identical:
        return done
    return _half(trial.execute(runs, progress, after, HALVES[1]), whole, range(at + 1, trial.candidate.settings.steps + 1))


def _half(outcome: Outcome, whole: Golden, steps: range) -> Resumed:
    if not outcome.ok:
        return Resumed(outcome, None)
    half = outcome.open()
    sides = [Span(side, [step for step in side.steps if step in steps]) for side in (whole, half)]
    return Resumed(outcome, compare(*sides))
