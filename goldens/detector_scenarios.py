"""The detector's training as `python -m detector fit` runs it, on images that it draws first."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.callbacks import ModelCheckpoint

import golden
from detector.data import CocoData
from detector.module import Detector
from detector.synth import write
from golden.lightning import GoldenCallback


@dataclass(frozen=True)
class Form:
    """What a device can do in half a minute.

    Attributes:
        size: side of the images, pixels.
        batch: images a step.
        images: how many there are; not a multiple of the batch, so that an epoch leaves some out.
        width: of the network.
        precision: of the Trainer.
    """

    size: int
    batch: int
    images: int
    width: float
    precision: Any


FORMS = {
    # Under the portable profile the nano network's orthogonalisation alone, in bfloat16, would take minutes a step.
    "cpu": Form(size=64, batch=2, images=9, width=0.25, precision="32-true"),
    "cuda": Form(size=640, batch=4, images=26, width=1.0, precision="bf16-mixed"),
}


class Recorded(GoldenCallback):
    """Records a fit of the detector with its batch first, and its average as a phase of its own."""

    def state(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> dict[str, Any]:
        """Optimizer, networks, schedule."""
        assert isinstance(pl_module, Detector)
        return {
            "optimizer": trainer.optimizers[0],
            "model": pl_module.network,
            "ema": pl_module.average.network,
            "scheduler": trainer.lr_scheduler_configs[0].scheduler,
        }

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Records the step; each batch makes one. The batch is as it was trained on: on the device, and changed."""
        assert isinstance(pl_module, Detector)
        self.record(
            batch=batch._asdict(),
            loss=outputs["loss"],
            grads=golden.gradients(pl_module.network),
            **self.state(trainer, pl_module),
            metrics=dict(trainer.callback_metrics),
        )


def detector(record: golden.Recorder) -> None:
    """Some epochs from the start. Parameters are further options of the module, such as those of its optimizer's replay."""
    fit(record, [])


def detector_resume(record: golden.Recorder) -> None:
    """The same, checkpointed by Lightning after each step; a process that resumes goes on from the checkpoint alone."""
    assert record.folder is not None
    saver = ModelCheckpoint(record.folder, filename="last", every_n_train_steps=1, enable_version_counter=False)
    fit(record, [saver], str(record.folder / "last.ckpt") if record.first > 1 else None)


def fit(record: golden.Recorder, savers: list[pl.Callback], checkpoint: str | None = None) -> None:
    """Fits the detector for `record.steps` steps."""
    form = FORMS[record.device.type]
    with tempfile.TemporaryDirectory(prefix="detector-") as folder:
        write(Path(folder), train=form.images, val=1, size=form.size, seed=record.seed)
        data = CocoData(folder, size=form.size, batch=form.batch, seed=record.seed)
        trainer = pl.Trainer(
            accelerator=record.device.type,
            devices=1,
            precision=form.precision,
            max_epochs=-1,
            max_steps=record.steps,
            gradient_clip_val=10.0,
            limit_val_batches=0,
            callbacks=[Recorded(record), *savers],
            logger=False,
            enable_checkpointing=bool(savers),
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        module = Detector(data.names, size=form.size, width=form.width, **record.parameters)
        record.replays(module)
        trainer.fit(module, data, ckpt_path=checkpoint)
