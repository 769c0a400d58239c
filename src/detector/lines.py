"""Hands what a training says of its steps to the loggers, many steps at a time: reading a number from the device waits for it."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl
import torch

from detector.loss import Loss

MOST = 64  # steps that may be on the way: so many lines after the last checkpoint are missing from the log of a process that was killed


class Lines(pl.Callback):
    """Logs the loss, its parts and the learning rate of each step, or of every n-th as `log_every_n_steps` of the Trainer says.

    The logs hold what they would if each step wrote its own line.
    """

    def __init__(self) -> None:
        self._kept: list[tuple[int, int, Loss, float]] = []
        self._stepped = 0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Counts from where the training is."""
        self._stepped = trainer.global_step

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Keeps a step's line; a batch whose gradients are only summed up has none."""
        if trainer.global_step == self._stepped:
            return
        self._stepped = trainer.global_step
        every: int = trainer.log_every_n_steps  # type: ignore[attr-defined]  # an attribute that Trainer does not declare
        if trainer.loggers and every and self._stepped % every == 0:
            told: tuple[Loss, float] = pl_module.told  # type: ignore[assignment]  # the detector's
            loss, rate = told
            self._kept.append((self._stepped - 1, trainer.current_epoch, loss, rate))
        if len(self._kept) >= MOST:
            self.flush(trainer)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """What comes before validation's lines is written before them."""
        self.flush(trainer)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """So that an epoch's lines can be read while the next one runs."""
        self.flush(trainer)

    def on_save_checkpoint(self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]) -> None:
        """So that the log has no gap before what goes on from the checkpoint."""
        self.flush(trainer)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Writes the rest."""
        self.flush(trainer)

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Writes the rest, as far as it can still be read."""
        self.flush(trainer)

    def flush(self, trainer: pl.Trainer) -> None:
        """Brings all that was kept to the host at once, and writes it."""
        kept, self._kept = self._kept, []
        if not kept:
            return
        values = torch.stack([part for _, _, loss, _ in kept for part in loss]).view(-1, 3).tolist()
        for (step, epoch, _, rate), (total, classes, boxes) in zip(kept, values, strict=True):
            line = {"train/loss": total, "train/classes": classes, "train/boxes": boxes, "train/lr": rate, "epoch": epoch}
            for logger in trainer.loggers:
                logger.log_metrics(line, step)
        for logger in trainer.loggers:
            logger.save()
