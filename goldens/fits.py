"""Complete fits of the detector, for `gate bench detector-fit`; no golden is recorded of them.

One fit is one step: what is timed begins where `python -m detector fit` has imported what it needs and finds its data set, and ends where
the last file is written and the device idle. In between lies all of it: the command line, set-up, decoding, augmentation, forward and
backward, optimizer, average, validation, checkpoints, logs, the curves' picture. The data set is drawn once a machine, before.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import matplotlib.backends.backend_agg
import matplotlib.figure
import pycocotools.cocoeval
import torch
import torch.utils.tensorboard

import golden
from detector.module import Detector
from detector.training import Command, run

# A fit imports these as it goes; here they are there before the clock starts, for all arms.
IMPORTED = (matplotlib.backends.backend_agg, matplotlib.figure, pycocotools.cocoeval, torch.utils.tensorboard)


@dataclass(frozen=True)
class Form:
    """The fit that is timed, the same one for every arm.

    Attributes:
        train, val: images.
        size: their side, pixels.
        epochs: of the training.
        batch: images a step.
        width: of the network.
    """

    train: int = 256
    val: int = 32
    size: int = 640
    epochs: int = 10
    batch: int = 4
    width: float = 1.0

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> tuple[Form, dict[str, Any]]:
        """The form that parameters ask for, and those that are left: options of the module."""
        own = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in parameters.items() if key in own}), {
            key: value for key, value in parameters.items() if key not in own
        }

    def arguments(self, data: Path, out: Path, device: str, options: Mapping[str, Any]) -> list[str]:
        """The command line, after `python -m detector`."""
        asked = {
            "data.root": data,
            "data.size": self.size,
            "data.batch": self.batch,
            "model.width": self.width,
            "trainer.max_epochs": self.epochs,
            "trainer.accelerator": device,
            "trainer.devices": 1,
            "trainer.precision": "bf16-mixed" if device == "cuda" else "32-true",
            "trainer.default_root_dir": out,
            "trainer.enable_progress_bar": False,
            **{f"model.{key}": value for key, value in options.items()},
        }
        return ["fit", *(f"--{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in asked.items())]


class Looks(pl.Callback):
    """Has the device's memory read at the end of the training, before it is given back."""

    def __init__(self, record: golden.Recorder) -> None:
        self.record = record

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """What is recorded has not been released yet."""
        self.record.look()


def detector_fit(record: golden.Recorder) -> None:
    """One fit. Parameters are the form's, and further options of the module, such as those of its replay."""
    form, options = Form.of(record.parameters)
    data = data_set(form, record.seed)
    if record.device.type == "cuda":
        torch.zeros(1, device="cuda")  # the driver's start is no part of a fit
    with quiet(), tempfile.TemporaryDirectory(prefix="fit-") as out:
        record.mark()
        command = run(form.arguments(data, Path(out), record.device.type, options), [Looks(record)])
        record.replays(command.model)
        record(**state(command, Path(out)))


def state(command: Command, out: Path) -> dict[str, Any]:
    """What a fit has left: the loss of each step, what was logged, and everything that a checkpoint holds."""
    module, trainer = command.model, command.trainer
    assert isinstance(module, Detector)
    log = (out / "detector" / "version_0" / "metrics.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(log.splitlines()))
    return {
        "loss": [float(row["train/loss"]) for row in rows if row["train/loss"]],
        "optimizer": trainer.optimizers[0],
        "model": module.network,
        "ema": module.average.network,
        "scheduler": trainer.lr_scheduler_configs[0].scheduler,
        "metrics": {"last": dict(trainer.callback_metrics), "log": log},
    }


def data_set(form: Form, seed: int) -> Path:
    """The folder of the synthetic set, drawn where this machine has none yet."""
    folder = Path(tempfile.gettempdir()) / f"detector-set-{os.getuid()}-{form.train}-{form.val}-{form.size}-{seed}"
    if not folder.exists():
        part = Path(tempfile.mkdtemp(prefix="detector-set-"))
        numbers = {"train": form.train, "val": form.val, "size": form.size, "seed": seed}
        given = ["-m", "detector", "data", "synth", str(part), *(f"--{key}={value}" for key, value in numbers.items())]
        subprocess.run(
            [sys.executable, *given], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        )
        try:
            part.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(part)
    return folder


@contextmanager
def quiet() -> Iterator[None]:
    """Without this process's own arguments, which are no fit's."""
    given, sys.argv = sys.argv, sys.argv[:1]
    try:
        yield
    finally:
        sys.argv = given
