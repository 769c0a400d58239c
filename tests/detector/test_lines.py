"""The log of a training that writes many steps at a time is the one that it would have step by step."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
from lightning.pytorch.loggers import CSVLogger

from detector import lines
from detector.data import CocoData
from detector.lines import Lines
from detector.module import Detector
from tests.detector.fits import WIDTH


class Single(pl.Callback):
    """What each batch said, read at once: the truth."""

    def __init__(self) -> None:
        self.found: list[float] = []

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.found.append(outputs["loss"].item() * trainer.accumulate_grad_batches)  # by which Lightning has divided it


class Saved(pl.Callback):
    """Saves a checkpoint after some batches, and looks at the log before the next."""

    def __init__(self, table: Path, batches: int) -> None:
        self.table, self.batches = table, batches
        self.lines: list[int] = []

    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int) -> None:
        if batch_idx == self.batches:
            self.lines.append(len(self.table.read_text().splitlines()) if self.table.exists() else 0)
            trainer.save_checkpoint(self.table.with_suffix(".ckpt"))
            self.lines.append(len(self.table.read_text().splitlines()))


def logged(folder: Path, out: Path, *callbacks: pl.Callback, **options: Any) -> tuple[list[dict[str, str]], list[float]]:
    pl.seed_everything(0)
    data, single = CocoData(str(folder), size=64, batch=2), Single()
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=1,
        limit_val_batches=0,
        logger=CSVLogger(out, "", ""),
        callbacks=[Lines(), single, *callbacks],
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **{"log_every_n_steps": 1, **options},
    )
    trainer.fit(Detector(data.names, size=64, width=WIDTH), data)
    return list(csv.DictReader((out / "metrics.csv").read_text().splitlines())), single.found


@pytest.mark.filterwarnings("ignore")  # Lightning's, of what a fit so small leaves out
@pytest.mark.parametrize(
    ("options", "steps"), [({}, range(8)), ({"log_every_n_steps": 3}, [2, 5]), ({"accumulate_grad_batches": 2}, range(4))]
)
def test_each_step_has_its_line(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, int], steps: Any) -> None:
    """Three lines at a time, the last ones at the end; of summed up batches the one that stepped."""
    monkeypatch.setattr(lines, "MOST", 3)
    rows, losses = logged(folder, tmp_path, **options)
    each = options.get("accumulate_grad_batches", 1)
    assert [int(row["step"]) for row in rows] == list(steps)
    assert [float(row["train/loss"]) for row in rows] == pytest.approx([losses[each * step + each - 1] for step in steps], rel=1e-6)
    assert all(float(row["train/classes"]) + float(row["train/boxes"]) == pytest.approx(float(row["train/loss"])) for row in rows)


@pytest.mark.filterwarnings("ignore")
def test_a_checkpoint_finds_its_log_whole(folder: Path, tmp_path: Path) -> None:
    """So that a fit that goes on from it leaves no gap: the lines that were on their way are written first."""
    saved = Saved(tmp_path / "metrics.csv", 5)
    logged(folder, tmp_path, saved)
    assert saved.lines == [0, 1 + 5]
