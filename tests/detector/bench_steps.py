"""Measures the parts of a training step and of validation: `python -m tests.detector.bench_steps` on a CUDA machine.

Batches of 4 images of 640 pixels under bfloat16, eager. On CUDA, forward and loss first run where torch makes every wait for the device an
error. Prints a table; writes figures to $OUT/bench_steps.json where OUT is set. Nothing else here fails on a number. To try it elsewhere:
`--size 64 --batch 2 --steps 2 --width 0.25`.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from detector.augment import Batch, augment, plain
from detector.average import Average
from detector.data import CocoData
from detector.loss import detection_loss
from detector.model import Network
from detector.score import average_precision, candidates, found
from detector.synth import write
from musgd import MuSGD, param_groups

WARM = 3


class Clock:
    """Milliseconds of each part, the device waited for before and after."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.parts = device, defaultdict[str, list[float]](list)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        self._wait()
        start = time.perf_counter()
        yield
        self._wait()
        self.parts[name].append(1000 * (time.perf_counter() - start))

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def moved(batch: Batch, device: torch.device) -> Batch:
    return Batch(*(part.to(device, non_blocking=True) for part in batch))


def never_waits(device: torch.device, step: Callable[[], object]) -> str:
    """Runs a step where torch raises for whatever makes the host wait; says so, or that nothing could be seen here."""
    if device.type != "cuda":
        return "not seen here: no CUDA device"
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return "none"


def train(data: CocoData, device: torch.device, options: argparse.Namespace, clock: Clock, **flags: Any) -> tuple[Network, Average, str]:
    """Steps of one arm, timed part by part."""
    torch.manual_seed(0)
    network = Network(len(data.names), options.width).to(device)
    average = Average(network, 0.998)
    optimizer = MuSGD(param_groups(network, weight_decay=5e-4), lr=0.1, momentum=0.9, nesterov=True, **flags)
    batches = cycle(data)
    waits = ""
    for step in range(WARM + options.steps):
        timed = clock if step >= WARM else Clock(device)
        with timed.part("data: read"):
            batch = next(batches)
        with timed.part("data: transfer and augmentation"):
            batch = augment(moved(batch, device))
        if step == WARM - 1:
            waits = never_waits(device, lambda batch=batch: lost(network, batch, device))  # type: ignore[misc]
        with timed.part("forward and loss"):
            loss = lost(network, batch, device)
        with timed.part("backward"):
            loss.backward()  # type: ignore[no-untyped-call]
        with timed.part("clipping"):
            nn.utils.clip_grad_norm_(network.parameters(), 10.0)
        with timed.part("optimizer"):
            optimizer.step()
        with timed.part("average"):
            average.update(step + 1)
        optimizer.zero_grad()
    return network, average, waits


def lost(network: Network, batch: Batch, device: torch.device) -> torch.Tensor:
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        return detection_loss(network(batch.images), batch.boxes, batch.labels).total


def cycle(data: CocoData) -> Iterator[Batch]:
    while True:
        yield from data.train_dataloader()


@torch.no_grad()
def validate(data: CocoData, average: Average, device: torch.device, side: int, clock: Clock) -> None:
    """Every validation image once, then COCO's evaluation."""
    average.eval()
    pictures, results = data.sets["val"].pictures, {}
    for batch in data.val_dataloader():
        with clock.part("validation: forward, a batch"), torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            best = candidates(average.network(plain(moved(batch, device)).images))
        with clock.part("validation: boxes, a batch"):
            rows = zip(batch.keys[:, 2].tolist(), *(part.cpu() for part in best), strict=True)
            for number, scores, labels, boxes in rows:
                picture = pictures[number]
                results[picture.id] = found(scores, labels, boxes, picture.size, side)
    with clock.part("validation: COCO's evaluation, all"):
        average_precision(pictures, data.names, results)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, default in (("size", 640), ("batch", 4), ("steps", 30), ("images", 32)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--width", type=float, default=1.0)
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    figures: dict[str, Any] = {"device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu", "torch": torch.__version__}
    figures["options"] = vars(options)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), train=options.images, val=8, size=options.size)
        data = CocoData(folder, size=options.size, batch=options.batch)
        data.setup("fit")
        for arm, flags in (("eager", {}), ("capture_updates", {"capture_updates": True})):
            if flags and device.type != "cuda":
                continue
            clock = Clock(device)
            _, average, waits = train(data, device, options, clock, **flags)
            validate(data, average, device, options.size, clock)
            figures[arm] = {name: {"median": statistics.median(ms), "range": [min(ms), max(ms)]} for name, ms in clock.parts.items()}
            figures[arm]["host waits in forward and loss"] = waits
    print(json.dumps({key: value for key, value in figures.items() if not isinstance(value, dict)}))
    for arm in ("eager", "capture_updates"):
        for name, value in figures.get(arm, {}).items():
            shown = value if isinstance(value, str) else f"{value['median']:.3f} ms ({value['range'][0]:.3f} to {value['range'][1]:.3f})"
            print(f"{arm:16} {name:36} {shown}")
    if out := os.environ.get("OUT"):
        (Path(out) / "bench_steps.json").write_text(json.dumps(figures, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
