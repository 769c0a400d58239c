"""The recorder of a timed run: it counts steps and reads clocks, and looks at nothing that it is given before the last step."""

from __future__ import annotations

import platform
import resource
import sys
import time
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any

import torch

from golden.errors import ScenarioFailed
from golden.generators import PHASE, states
from golden.leaf import Snapshot
from golden.phases import digests
from golden.plan import Plan
from golden.recorder import Recorder
from golden.replay import counts
from golden.settings import PROFILED, Turn


class Stopwatch(Recorder):
    """Times the steps of one run. A step begins when the last one has ended on the device, or where the scenario says `mark()`.

    Args:
        turn: what is run.
        device: of the run; "cuda" is waited for at both ends of a step.
        folder: what the scenario gets as record.folder.

    Attributes:
        wall: milliseconds of each step, to the end of its work on the device.
        host: milliseconds of each step until the host was done with it.
        replay: what the optimizers said of their replay at the last step.
        digests: of the last step's phases, by name, where the turn asks for them; taken once the clocks and the memory have been read.
    """

    def __init__(self, turn: Turn, device: str, folder: Path) -> None:
        super().__init__(_nowhere, steps=turn.steps, device=device, seed=turn.seed, parameters=turn.parameters, folder=folder)
        self.wall: list[float] = []
        self.host: list[float] = []
        self.replay: Mapping[str, int] | None = None
        self.digests: Mapping[str, str] | None = None
        self._is_hashed = turn.digests
        self._memory: dict[str, int | None] = dict.fromkeys(("allocated", "reserved", "taken"))
        self._profiler = _profiler() if turn.profiled else None
        self._steps_before_profile = max(turn.steps - PROFILED, 0)
        self._device_ms: float | None = None
        self._is_cuda = self.device.type == "cuda"
        self._free = self._least_free = torch.cuda.mem_get_info()[0] if self._is_cuda else 0
        self._begun_run = self._begun = self._ended = time.perf_counter()

    def start(self, /, **phases: Any) -> None:
        """What comes before it is no step's."""
        self.mark()

    def mark(self) -> None:
        """What comes after it is the step's."""
        self._wait()
        self._begun = time.perf_counter()

    def look(self) -> None:
        """Reads how much of the device's memory is taken, which is more here than it will be at the end."""
        if self._is_cuda:
            self._least_free = min(self._least_free, torch.cuda.mem_get_info()[0])

    def __call__(self, /, **phases: Any) -> None:
        """Ends a step. Raises ScenarioFailed as Recorder does where there are more steps than the run has."""
        host = time.perf_counter()
        self._wait()
        wall = time.perf_counter()
        if self.done == self.steps:
            raise ScenarioFailed(f"record() was called for step {self.done + 1}, and the run has {self.steps}: loop over record.steps")
        self.done, self._ended = self.done + 1, wall
        self.host.append((host - self._begun) * 1e3)
        self.wall.append((wall - self._begun) * 1e3)
        if self._profiler is not None and self.done == self._steps_before_profile:
            self._profiler.start()
        if self.done == self.steps:
            self._end(phases)
        self.mark()

    def figures(self, label: str) -> dict[str, Any]:
        """What is known of the run once it has returned: milliseconds and bytes, None for what this device cannot tell."""
        return {
            "label": label,
            "wall": [round(value, 6) for value in self.wall],
            "host": [round(value, 6) for value in self.host],
            "whole": round((self._ended - self._begun_run) * 1e3, 6),
            "device": self._device_ms,
            **self._memory,
            "resident": resident(),
            "replay": self.replay,
            "digests": self.digests,
            "node": platform.node(),
        }

    def _end(self, phases: Mapping[str, Any]) -> None:
        if self._profiler is not None and self._steps_before_profile:
            self._profiler.stop()
            self._device_ms = _on_device(self._profiler, self.steps - self._steps_before_profile)
        if self._is_cuda:
            self.look()
            self._memory = {
                "allocated": torch.cuda.max_memory_allocated(),
                "reserved": torch.cuda.max_memory_reserved(),
                "taken": self._free - self._least_free,
            }
        self.replay = counts(phases, self.others)
        if self._is_hashed:
            self.digests = digests(Plan().read({**phases, PHASE: states(self.device)}).snapshot(self.done, False))

    def _wait(self) -> None:
        if self._is_cuda:
            torch.cuda.synchronize()


def resident() -> int:
    """Bytes of memory that this process held at most so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _nowhere(snapshot: Snapshot) -> None:
    raise AssertionError("a timed run takes no snapshot")


def _profiler() -> torch.profiler.profile:
    # Where torch offers to keep events over several cycles, it warns of a profiler that does not, though this one has a single cycle.
    keeping: dict[str, Any] = {"acc_events": True} if "acc_events" in signature(torch.profiler.profile).parameters else {}
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], **keeping)


def _on_device(profiler: torch.profiler.profile, steps: int) -> float | None:
    """Milliseconds a step of kernels, copies and fills, each counted in full; None where the profiler saw none."""
    events: Any = profiler.events()  # type: ignore[no-untyped-call]
    microseconds = [event.time_range.elapsed_us() for event in events or () if _is_work(event)]
    return round(sum(microseconds) / steps / 1e3, 6) if microseconds else None


def _is_work(event: Any) -> bool:
    return "CUDA" in str(event.device_type) and not event.name.startswith(("Optimizer.", "ProfilerStep"))
