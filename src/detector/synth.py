"""Makes a data set: textured shapes that overlap, as PNG files with annotations in COCO's format.

Only integers, and floats that are added, multiplied, divided and compared: the same seed gives the same pixels on every machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

Pixels = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Colour = tuple[int, int, int]
Fact = tuple[int, list[int]]  # a shape's label and its box

FEWEST, MOST = 3, 12  # shapes an image
SMALLEST, LARGEST = 0.04, 0.15  # half of a shape's side, as a part of the image's
COVERED = 0.5  # part of an earlier shape's area that later ones may cover

# What is inside, by coordinates of -1 to 1.
SHAPES: dict[str, Callable[[Floats, Floats], Mask]] = {
    "disc": lambda x, y: x * x + y * y <= 1,
    "square": lambda x, y: np.maximum(abs(x), abs(y)) <= 0.8,
    "triangle": lambda x, y: (y <= 0.7) & (y >= 2 * abs(x) - 1),
    "cross": lambda x, y: (np.minimum(abs(x), abs(y)) <= 0.3) & (np.maximum(abs(x), abs(y)) <= 1),
    "ring": lambda x, y: (x * x + y * y <= 1) & (x * x + y * y >= 0.3),
}
# Which of two colours, by pixels.
TEXTURES: dict[str, Callable[[Any, Any, int], Any]] = {
    "plain": lambda x, y, step: x < 0,
    "stripes": lambda x, y, step: (x + y) // step % 2 == 0,
    "checks": lambda x, y, step: (x // step + y // step) % 2 == 0,
    "dots": lambda x, y, step: (x % (2 * step) - step) ** 2 + (y % (2 * step) - step) ** 2 < step * step // 2,
}


@dataclass(frozen=True)
class Shape:
    """One that was drawn.

    Attributes:
        label: its place in SHAPES.
        mask: (S, S), all of it, covered or not.
    """

    label: int
    mask: Mask

    @property
    def box(self) -> list[int]:
        """Corner, width, height, in pixels."""
        rows, columns = np.flatnonzero(self.mask.any(1)), np.flatnonzero(self.mask.any(0))
        return [int(columns[0]), int(rows[0]), int(columns[-1] - columns[0]) + 1, int(rows[-1] - rows[0]) + 1]


def write(folder: Path, train: int = 256, val: int = 32, size: int = 640, seed: int = 0, workers: int = 1) -> None:
    """Writes images/train, images/val, annotations/train.json and annotations/val.json below a folder.

    Args:
        folder: made where it is not there; files in it of the same names are replaced.
        train: training images.
        val: validation images.
        size: their side in pixels, at least 32.
        seed: of everything.
        workers: processes that draw.

    Raises:
        ValueError: a number is too small.
    """
    if size < 32 or train < 1 or val < 1:
        raise ValueError(f"size has to be at least 32, train and val at least 1; they are {size}, {train}, {val}")
    for part, number in (("train", train), ("val", val)):
        images = folder / "images" / part
        images.mkdir(parents=True, exist_ok=True)
        tasks = [(images / f"{i:06}.png", f"{seed}/{part}/{i}", size) for i in range(number)]  # a text, so that no two streams are the same
        if workers > 1:
            with ProcessPoolExecutor(workers) as several:
                pictures = list(several.map(_make, tasks, chunksize=4))
        else:
            pictures = list(map(_make, tasks))
        file = folder / "annotations" / f"{part}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(_annotations(pictures, size)), encoding="utf-8")


def _make(task: tuple[Path, str, int]) -> list[Fact]:
    """Draws an image into its file; says what is on it."""
    file, stream, size = task
    pixels, shapes = draw(Random(stream), size)
    Image.fromarray(pixels).save(file, compress_level=1)
    return [(shape.label, shape.box) for shape in shapes]


def draw(random: Random, size: int) -> tuple[Pixels, list[Shape]]:
    """An image (size, size, 3) and its shapes, later ones over earlier ones."""
    canvas = _paint(random, size)
    shapes: list[Shape] = []
    visible: list[Mask] = []
    for _ in range(random.randint(FEWEST, MOST)):
        while True:
            shape = _shape(random, size)
            left = [mask & ~shape.mask for mask in visible]
            if all(mask.sum() >= (1 - COVERED) * one.mask.sum() for mask, one in zip(left, shapes, strict=True)):
                break
        shapes.append(shape)
        visible = [*left, shape.mask]
        canvas[shape.mask] = _paint(random, size)[shape.mask]
    return canvas, shapes


def _shape(random: Random, size: int) -> Shape:
    """One of a random class, size, place and turn, not cut off by the image's edge."""
    label, half = random.randrange(len(SHAPES)), max(3.0, size * random.uniform(SMALLEST, LARGEST))
    reach = half * 1.42
    x, y = (random.uniform(reach, size - reach) for _ in range(2))
    t = random.uniform(-1, 1)
    cosine, sine = (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)  # of a turn by up to 90 degrees to either side
    columns, rows = np.arange(size)[None, :] + 0.5 - x, np.arange(size)[:, None] + 0.5 - y
    inside = list(SHAPES.values())[label]
    return Shape(label, inside((columns * cosine + rows * sine) / half, (rows * cosine - columns * sine) / half))


def _paint(random: Random, size: int) -> Pixels:
    """(size, size, 3) of two colours in a texture."""
    texture, step = random.choice(list(TEXTURES.values())), max(2, size // random.randint(24, 80))
    one, other = ([random.randrange(256) for _ in range(3)] for _ in range(2))
    chosen = texture(np.arange(size)[None, :], np.arange(size)[:, None], step)
    return np.where(chosen[..., None], np.array(one, np.uint8), np.array(other, np.uint8)) * np.ones((size, size, 1), np.uint8)


def _annotations(pictures: list[list[Fact]], size: int) -> dict[str, Any]:
    """What the JSON holds."""
    annotations: list[dict[str, Any]] = []
    for image, shapes in enumerate(pictures):
        for label, (x, y, w, h) in shapes:
            facts = {"bbox": [x, y, w, h], "area": w * h, "iscrowd": 0}
            annotations.append({"id": len(annotations) + 1, "image_id": image, "category_id": label + 1, **facts})
    images = [{"id": i, "file_name": f"{i:06}.png", "width": size, "height": size} for i in range(len(pictures))]
    categories = [{"id": i, "name": name} for i, name in enumerate(SHAPES, 1)]
    return {"images": images, "annotations": annotations, "categories": categories}
