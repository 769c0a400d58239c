"""Times runs of scenarios in this process: no snapshot is taken, nothing is hashed before the clocks stop, no audit hook listens."""

from __future__ import annotations

import gc
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from golden.errors import ScenarioFailed, StoreError
from golden.launch import beside
from golden.process import Process, module_name
from golden.scenario import Execution, load
from golden.settings import Turn

SUFFIX = ".turns"  # of the file beside the report that gets a line of JSON for each turn, as soon as it has ended


class Timing(Execution):
    """The execution of a request with turns."""

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._functions: dict[str, Callable[[Any], object]] = {}

    def run(self) -> None:
        """Times the turns, one after the other; fails as a recording does."""
        self._check_profile()
        self._import_torch()
        request = self.request
        os.chdir(request.root)
        for turn in request.turns:
            self.request = replace(request, run=turn.run)
            self._write(self._timed_turn(turn))
        from golden.hardware import slug, torch_cuda

        gpu = torch_cuda() if request.device == "cuda" else None
        self.report = replace(self.report, status="ok", hardware=slug(request.device, request.profile, gpu))

    def _timed_turn(self, turn: Turn) -> dict[str, Any]:
        from golden.flags import flag_changes, flags
        from golden.seeding import prepare
        from golden.stopwatch import Stopwatch

        request = self.request
        with tempfile.TemporaryDirectory(prefix="golden-", ignore_cleanup_errors=True) as folder:
            with self._scenario():
                function = self._function(turn.run)
                prepare(turn.seed, request.profile, request.fill)
                before = flags()
                _tidy(request.device)
                record = Stopwatch(turn, request.device, Path(folder))
                self._call(function, record)
            record.finish()
        if len(request.turns) > 1 and (changes := flag_changes([("start", before), ("end", flags())])):
            told = ", ".join(f"{change['path']} {change['expected']} -> {change['actual']}" for change in changes)
            raise ScenarioFailed(f'it leaves {told} behind, which reaches the other runs of its process: set process = "each"')
        return record.figures(turn.label)

    def _function(self, run: str) -> Callable[[Any], object]:
        """The scenario's function, loaded once."""
        if run not in self._functions:
            process = Process(self.request, module_name(self.request))
            process.finder().install()
            self._functions[run] = load(process)
        return self._functions[run]

    def _write(self, figures: dict[str, Any]) -> None:
        path = beside(self.request.report, SUFFIX)
        try:
            with path.open("a", encoding="ascii") as file:
                file.write(json.dumps(figures) + "\n")
        except OSError as error:
            raise StoreError.of(error, path) from error


def _tidy(device: str) -> None:
    """Gives up what earlier turns have left, so that each begins alike."""
    gc.collect()
    if device == "cuda":
        import torch

        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
