"""Runs trials side by side, and one trial once more under another name."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from gate.progress import Progress
from gate.row import Row
from gate.runs import Outcome, Runs
from gate.trial import Means, Trial
from gate.workers import cores, side_by_side


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
        self.outcomes[arm] = outcome = trial.execute(self._runs, self._progress, request, arm)
        for change in () if arm else outcome.report.flags:
            earlier, later = change["between"]
            told = f"{change['path']} was {change['expected']} at {earlier} and is {change['actual']} at {later}"
            self._progress.say(f"{trial.title}: {told}; what was built before may not follow it")
        return outcome


def each(means: Means, runs: Runs, items: Iterable[Trial | Row], work: Callable[[Trial | Row], Row]) -> tuple[Row, ...]:
    """The rows that `work` makes of items, in their order; CUDA trials one at a time, others side by side.

    Raises:
        BaseException: the first one that `work` raised. After an interrupt nothing of this command's runs is left.
    """
    try:
        return tuple(
            side_by_side(
                items,
                work,
                jobs=means.jobs or cores(),
                alone=lambda item: isinstance(item, Trial) and item.candidate.device == "cuda",
                stop=runs.end,
            )
        )
    except KeyboardInterrupt:  # nobody learns what was kept before
        shutil.rmtree(runs.folder, ignore_errors=True)
        raise
