"""Draws what a training logged, and what a detector found."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.utilities import rank_zero_only
from PIL import Image, ImageDraw

from detector.score import Found

CURVES = ("train/loss", "train/classes", "train/boxes", "train/lr", "val/mAP", "val/mAP50")
COLOURS = ("#e6194b", "#3cb44b", "#4363d8", "#f58231", "#911eb4", "#008080", "#9a6324", "#808000")


class Curves(pl.Callback):
    """Writes the curves beside the CSV log once the training has ended, however it ended."""

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Draws what was logged."""
        self._draw(trainer)

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """As on_train_end."""
        self._draw(trainer)

    @rank_zero_only
    def _draw(self, trainer: pl.Trainer) -> None:
        for logger in trainer.loggers:
            if isinstance(logger, CSVLogger):
                logger.save()
                table = Path(logger.log_dir) / "metrics.csv"
                if table.is_file():
                    curves(table, table.with_name("curves.png"))


def curves(table: Path, picture: Path) -> None:
    """Draws each logged curve over the steps into a PNG file.

    Args:
        table: metrics.csv, as Lightning's CSVLogger writes it.
        picture: the file to write.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # no screen, and no global state of pyplot
    from matplotlib.figure import Figure

    series = read(table)
    width, height = 4 * max(1, len(series)), 3  # inches, as the margins; a layout by what the texts take costs twice the time
    figure = Figure(figsize=(width, height))
    figure.subplots_adjust(left=0.6 / width, right=1 - 0.2 / width, bottom=0.5 / height, top=1 - 0.4 / height, wspace=0.25)
    FigureCanvasAgg(figure)
    for i, (name, points) in enumerate(series.items(), 1):
        axes = figure.add_subplot(1, len(series), i, title=name, xlabel="step")
        axes.plot(*zip(*points, strict=True), marker="." if len(points) < 30 else "")
    figure.savefig(picture, format="png")


def read(table: Path) -> dict[str, list[tuple[int, float]]]:
    """The curves of a metrics.csv: steps and values by name, those that hold any."""
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = {name: [(int(row["step"]), float(row[name])) for row in rows if row.get(name)] for name in CURVES}
    return {name: points for name, points in found.items() if points}


def boxes(image: Image.Image, several: list[Found], names: list[str]) -> Image.Image:
    """A copy of an image with boxes, their classes and scores drawn on it."""
    drawn = image.convert("RGB")
    pen: Any = ImageDraw.Draw(drawn)
    for one in reversed(several):  # the best is drawn last, over the others
        colour = COLOURS[one.label % len(COLOURS)]
        x, y = one.box[:2]
        pen.rectangle(one.box, outline=colour, width=2)
        text = f"{names[one.label]} {one.score:.2f}"
        pen.rectangle(pen.textbbox((x + 2, y), text), fill=colour)
        pen.text((x + 2, y), text, fill="white")
    return drawn
