"""Fits of the detector, small enough for tests: recorded in this process, or by the command line in one of their own."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import lightning.pytorch as pl

from detector.data import CocoData
from detector.module import Detector
from golden.leaf import Snapshot
from golden.recorder import Recorder
from goldens.detector_scenarios import Recorded

ROOT = Path(__file__).parents[2]
WIDTH = 0.125  # of networks whose training nobody looks at


class Kill(pl.Callback):
    """Ends the process without a word, as a machine does that goes away.

    Args:
        step: after so many batches, before the next.
    """

    def __init__(self, step: int) -> None:
        self.step = step

    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int) -> None:
        if trainer.global_step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


def recorded(folder: Path, steps: int = 10, data: Any = None, module: Any = None, **options: Any) -> list[Snapshot]:
    """What each batch of a fit leaves behind: by default 10 of two, 8 an epoch, so that it goes into a second one."""
    taken: list[Snapshot] = []
    record = Recorder(taken.append, steps=steps, store="digest")
    quiet: dict[str, Any] = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    given: dict[str, Any] = {"accelerator": "cpu", "devices": 1, "max_epochs": 2, "gradient_clip_val": 10.0, "limit_val_batches": 0}
    pl.seed_everything(0)
    source = CocoData(str(folder), **{"size": 64, "batch": 2, **(data or {})})
    trainer = pl.Trainer(**{**quiet, **given, **options}, callbacks=[Until(record)])
    trainer.fit(Detector(source.names, **{"size": 64, "width": WIDTH, **(module or {})}), source)
    record.finish()
    return taken


class Until(Recorded):
    """Records as many batches as the run has, and leaves the rest of the fit alone."""

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self.record.done < self.record.steps:
            super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """`python -m detector` with these arguments, on the CPU."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    given = [sys.executable, "-m", "detector", *map(str, arguments)]
    return subprocess.run(given, check=False, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=300)


def fit(folder: Path, out: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """`python -m detector fit` for two epochs of images of 64 pixels; logs and checkpoints below `out`."""
    trainer = ("--trainer.accelerator", "cpu", "--trainer.max_epochs", 2, "--trainer.enable_progress_bar", "false")
    return command("fit", "--data.root", folder, "--data.size", 64, "--trainer.default_root_dir", out, *trainer, *arguments)


def logged(out: Path, name: str, version: int = 0) -> list[float]:
    """A curve of a fit's CSV log."""
    with (out / "detector" / f"version_{version}" / "metrics.csv").open(encoding="utf-8", newline="") as file:
        return [float(row[name]) for row in csv.DictReader(file) if row.get(name)]


def checkpoint(out: Path, name: str, version: int = 0) -> Path:
    """Where a fit keeps one."""
    return out / "detector" / f"version_{version}" / "checkpoints" / f"{name}.ckpt"
