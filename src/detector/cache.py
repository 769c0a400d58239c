"""Decoded images: each is read once, and kept as uint8 in memory, or in a file where they are too many."""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from detector.coco import UNREADABLE, Fault, Picture, corrupt

GREY = 128  # beside an image that is no square
MIB = 1 << 20
THREADS = 16

Pixels = npt.NDArray[np.uint8]


def fit(size: tuple[int, int], side: int) -> tuple[float, int, int]:
    """How an image of a width and a height comes into a square: the factor, and the columns left and the rows above it."""
    scale = side / max(size)
    width, height = (max(1, round(extent * scale)) for extent in size)
    return scale, (side - width) // 2, (side - height) // 2


def square(image: Image.Image, side: int) -> Pixels:
    """(3, side, side), the image as large as it goes, grey beside it. Raises ValueError as `rgb` does."""
    scale, left, above = fit(image.size, side)
    width, height = (max(1, round(extent * scale)) for extent in image.size)
    image = rgb(image)
    if image.size != (width, height):
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    pixels = np.full((side, side, 3), GREY, np.uint8)
    pixels[above : above + height, left : left + width] = np.asarray(image)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def rgb(image: Image.Image) -> Image.Image:
    """The image in three channels. Raises ValueError for more than 8 bits a channel, of which Pillow would make white from 256 on."""
    if image.mode.startswith(("I", "F")):
        raise ValueError(f"its pixels have more than 8 bits (Pillow's mode {image.mode}): convert it")
    return image.convert("RGB")


def decode(pictures: list[Picture], side: int, limit: int | None, folder: Path | None = None) -> tuple[list[Picture], Pixels, list[Fault]]:
    """Decodes every image.

    Args:
        pictures: in the order of the result.
        side: of the squares.
        limit: MiB of memory that they may take, None for no limit; beyond it they go to a file that ends with the process.
        folder: where to keep that file, the system's place for temporary ones by default.

    Returns:
        The pictures that could be decoded, their pixels (N, 3, side, side), and the faults of the others.
    """
    pixels = _room((len(pictures), 3, side, side), limit, folder)
    good: list[Picture] = []
    faults: list[Fault] = []
    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as several:  # Pillow and numpy let others run while they work
        for i, (picture, error) in enumerate(zip(pictures, several.map(_read, pictures, pixels), strict=True)):
            if error is not None:
                faults.append(corrupt(picture.file, picture.id, error))
                continue
            if len(good) < i:  # close the gaps that faults have left
                pixels[len(good)] = pixels[i]
            good.append(picture)
    return good, pixels[: len(good)], faults


def _read(picture: Picture, place: Pixels) -> Exception | None:
    """Decodes into a place (3, side, side); what went wrong."""
    try:
        with Image.open(picture.file) as image:
            place[:] = square(image, place.shape[-1])
    except UNREADABLE as error:
        return error
    return None


def _room(shape: tuple[int, ...], limit: int | None, folder: Path | None) -> Pixels:
    size = int(np.prod(shape))
    if not size or limit is None or size <= limit * MIB:
        return np.empty(shape, np.uint8)
    with tempfile.TemporaryFile(prefix="detector-", dir=folder) as file:  # has no name: gone with the last process that maps it
        file.truncate(size)
        return np.memmap(file, np.uint8, "r+", shape=shape)
