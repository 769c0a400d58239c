"""The recorder of a run: it also says how far the run is, what moved torch's switches, and stops a first half."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from golden.errors import ScenarioFailed
from golden.flags import flag_changes, flags
from golden.recorder import Recorder, Sink
from golden.replay import counts
from golden.settings import Request


class HalfDone(BaseException):
    """Unwinds a scenario that is to go on in another process. No Exception: a scenario that catches those is still stopped."""


class Observed(Recorder):
    """A Recorder made from a request.

    Args:
        sink: as Recorder's.
        request: what is run.
        folder: what the scenario gets as record.folder.
        progress: the file that holds the number of the last step recorded.

    Attributes:
        replay: what the optimizers said of their replay at the last step; None before it, and where none can say it.
    """

    replay: Mapping[str, int] | None = None

    def __init__(self, sink: Sink, request: Request, folder: Path, progress: Path) -> None:
        super().__init__(
            sink,
            steps=request.steps,
            device=request.device,
            seed=request.seed,
            parameters=request.parameters,
            store=request.store,
            keep=request.keep,
            first=request.first,
            folder=folder,
        )
        self._last, self._process = request.end, os.getpid()
        self._progress = os.open(progress, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        self._moments: dict[str, Mapping[str, Any]] = {}

    def start(self, /, **phases: Any) -> None:
        """As Recorder.start."""
        self._here("record.start()")
        self.reach("build")
        super().start(**phases)

    def __call__(self, /, **phases: Any) -> None:
        """As Recorder's. Raises HalfDone for the step after the last one of a first half."""
        self._here("record()")
        if self.done == self._last < self.steps:
            raise HalfDone
        self.reach("build")
        super().__call__(**phases)
        self.reach(f"step {self.first}")
        os.pwrite(self._progress, b"%-20d" % self.done, 0)
        if self.done == self._last:  # later the scenario has returned, and its optimizer is gone
            self.replay = counts(phases, self.others)

    def finish(self) -> None:
        """As Recorder.finish, for the steps that are this process's."""
        self.reach("end")
        if self.done < self._last or self._last == self.steps:
            super().finish()

    def reach(self, moment: str) -> None:
        """Notes the switches at a moment, the first time that it comes."""
        if moment not in self._moments:
            self._moments[moment] = flags()

    @property
    def changes(self) -> list[dict[str, Any]]:
        """How the switches changed between the moments."""
        return flag_changes(list(self._moments.items()))

    def _here(self, call: str) -> None:
        if os.getpid() != self._process:
            raise ScenarioFailed(f"{call} was called in another process, which the scenario forked: record in the first one")
