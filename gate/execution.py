"""Further runs of one trial, which look for the cause of a drift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gate.progress import Progress
from gate.runs import Outcome, Runs
from gate.trial import Trial


class Execution:
    """Runs a trial again, from the project or from another copy of it.

    Args:
        trial: what to run.
        runs: where.
        progress: hears what takes long.

    Attributes:
        outcomes: the runs so far, by the arm's name.
    """

    def __init__(self, trial: Trial, runs: Runs, progress: Progress) -> None:
        self._trial, self._runs, self._progress = trial, runs, progress
        self.outcomes: dict[str, Outcome] = {}

    def run(self, arm: str, root: Path | None, keep: Sequence[int]) -> Outcome:
        """Runs it in the same environment.

        Args:
            arm: what it is called.
            root: where project files are taken from, the project where None.
            keep: steps whose tensors are kept though digests are stored.
        """
        trial = self._trial
        place = self._runs.place(trial.hardware, trial.interpreter.torch, trial.candidate.settings.name, arm)
        request = replace(trial.request, out=place.golden, report=place.report, root=root or trial.project, keep=tuple(keep))
        self.outcomes[arm] = trial.execute(self._runs, self._progress, request, arm)
        return self.outcomes[arm]
