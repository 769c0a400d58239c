"""Where the time of a fit goes: Lightning's Trainer says what it begins and ends, and each moment is its innermost part's."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from lightning.pytorch.profilers import Profiler

SETUP, LOOP, END = "set-up", "Lightning's loop", "end"
# What the name of an action holds, and whose time it then is; the first that fits. What fits none is its surrounding's.
PARTS = (
    ("capture", "capture"),
    ("average", "average"),
    ("Lines.", "logs"),
    ("Curves.", "logs"),
    ("Checkpoint", "checkpoints"),
    ("save_checkpoint", "checkpoints"),
    ("validation", "validation"),
    ("val_next", "validation"),
    ("train_dataloader_next", "data"),
    ("batch_to_device", "transfer, augmentation"),
    ("batch_transfer", "transfer, augmentation"),
    ("Strategy.training_step", "forward, loss"),
    ("Strategy.backward", "backward"),
    ("clipping", "clipping"),
    ("optimizer_step", "optimizer"),
    ("optimizer_zero_grad", "optimizer"),
)
ORDER = (SETUP, *dict.fromkeys(part for _, part in PARTS), LOOP, END)


class Parts(Profiler):
    """Sums up seconds by part, and milliseconds by part for each training step.

    Args:
        device: of the fit.
        is_waited: whether the device is waited for where a part ends, so that its work counts for the part that asked for it; else
            a part has the time that the host spends on it.
    """

    def __init__(self, device: str, is_waited: bool) -> None:
        super().__init__()
        self.is_waited = is_waited and device == "cuda"
        self.seconds: dict[str, float] = defaultdict(float)
        self.steps: list[dict[str, float]] = []
        self._stack = [SETUP]
        self._base = SETUP
        self._last = time.perf_counter()

    def start(self, action_name: str) -> None:
        """Begins an action."""
        self._count()
        if action_name == "run_training_epoch":
            self._base = self._stack[0] = LOOP
        if "on_train_end" in action_name:
            self._stack[0] = END
        if "train_dataloader_next" in action_name:
            self.steps.append(defaultdict(float))
        if "on_validation_start" in action_name and self._stack[0] == LOOP:
            self._stack[0] = "validation"  # the loop's own work in it, too
        top = self._stack[0] if action_name == "run_training_epoch" else self._stack[-1]
        # What happens inside of validation is validation's, but for what is saved and logged there.
        found = next((part for text, part in PARTS if text in action_name), top)
        if self._stack[0] == "validation" and found not in ("checkpoints", "logs"):
            found = "validation"
        self._stack.append(found)

    def stop(self, action_name: str) -> None:
        """Ends it."""
        self._count()
        self._stack.pop()
        if "[LightningModule]" in action_name and "on_validation_end" in action_name:
            self._stack[0] = LOOP

    def finish(self) -> None:
        """Counts what came after the last action."""
        self._count()

    def per_step(self) -> dict[str, float]:
        """Median milliseconds of each part a step, over all steps but the first epoch's first ten, where things are recorded."""
        steps = self.steps[10:] or self.steps
        return {part: statistics.median(step.get(part, 0.0) for step in steps) for part in ORDER if any(part in step for step in steps)}

    def _count(self) -> None:
        if self.is_waited:
            torch.cuda.synchronize()
        now = time.perf_counter()
        part = self._stack[-1] if len(self._stack) > 1 else self._stack[0]
        # `run_training_epoch` lies around all steps: its own time is the loop's, or validation's.
        if len(self._stack) == 2 and part == LOOP:
            part = self._stack[0]
        self.seconds[part] += now - self._last
        if self.steps and part not in ("validation", "checkpoints", END):
            self.steps[-1][part] += 1e3 * (now - self._last)
        self._last = now


@contextmanager
def captures(parts: Parts, device: str) -> Iterator[list[dict[str, Any]]]:
    """Makes a part of the recording of graphs, and notes for each what it took: seconds, bytes of the allocator and of the driver."""
    import detector.captured
    import musgd.optimizer
    import musgd.prepared
    import musgd.recording

    found: list[dict[str, Any]] = []
    original = musgd.recording.record

    def record(*arguments: Any, **options: Any) -> Any:
        parts.start("capture")
        before, start = reserved(device), time.perf_counter()
        try:
            recording = original(*arguments, **options)
            if device == "cuda":
                torch.cuda.synchronize()
        finally:
            parts.stop("capture")
        taken = reserved(device) - before
        of = "step" if arguments[1].__qualname__.startswith("CapturedStep") else "updates"
        found.append({"of": of, "seconds": time.perf_counter() - start, "reserved": taken, "driver": recording.driver_bytes})
        return recording

    places: list[Any] = [detector.captured, musgd.optimizer, musgd.prepared]
    for place in places:
        place.record = record
    try:
        yield found
    finally:
        for place in places:
            place.record = original


def reserved(device: str) -> int:
    """Bytes that torch's allocator holds of the device."""
    return torch.cuda.memory_reserved() if device == "cuda" else 0
