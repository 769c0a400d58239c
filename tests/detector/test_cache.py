"""Decoded images: once, the same in memory and in a file, as large as they go."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from detector import coco
from detector.cache import GREY, Pixels, decode, fit, square
from detector.data import Samples
from tests.detector.folders import coco_folder


def pictures(folder: Path) -> list[coco.Picture]:
    return coco.read(folder / "annotations" / "train.json", folder / "images" / "train").pictures


def backed(pixels: Pixels) -> bool:
    """Whether an array, or what it is a view of, is a mapped file."""
    return isinstance(pixels, np.memmap) or isinstance(pixels.base, np.memmap)


def test_memory_and_file_hold_the_same(folder: Path, tmp_path: Path) -> None:
    """With no limit, within it and beyond it; the file has no name that could stay behind."""
    several = pictures(folder) * 8  # 1.5 MiB
    whole, within, beyond = (decode(several, 64, limit, tmp_path)[1] for limit in (None, 2, 1))
    assert np.array_equal(whole, within)
    assert np.array_equal(whole, beyond)
    assert [backed(pixels) for pixels in (whole, within, beyond)] == [False, False, True]
    assert list(tmp_path.iterdir()) == []


def test_an_image_is_decoded_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading samples twice opens no file again."""
    opened: list[Path] = []
    real = Image.open

    def watched(file: Path) -> Image.Image:
        opened.append(file)
        return real(file)

    monkeypatch.setattr(Image, "open", watched)
    several = pictures(folder)
    opened.clear()
    good, pixels, _ = decode(several, 64, None)
    samples = Samples(good, pixels, seed=0)
    for _ in range(2):
        for number in range(len(samples)):
            _ = samples[0, number]
    assert sorted(opened) == sorted(picture.file for picture in several)


def test_what_cannot_be_decoded_leaves_no_gap(tmp_path: Path) -> None:
    """Two of six, the first among them: the others come one after the other, each in its own place."""
    root = coco_folder(tmp_path, train=6, val=1)
    several = pictures(root)
    whole = decode(several, 64, None)[1].copy()
    for bad in (0, 3):
        several[bad].file.write_bytes(b"nothing")
    good, pixels, faults = decode(several, 64, None)
    assert [picture.id for picture in good] == [several[i].id for i in (1, 2, 4, 5)]
    assert np.array_equal(pixels, whole[[1, 2, 4, 5]])
    assert not np.array_equal(pixels, whole[:4])
    assert [fault.kind for fault in faults] == ["corrupt image"] * 2


@pytest.mark.parametrize(
    ("size", "place"), [((100, 50), (0.64, 0, 16)), ((50, 100), (0.64, 16, 0)), ((64, 64), (1, 0, 0)), ((16, 8), (4, 0, 16))]
)
def test_an_image_fills_its_square_and_grey_the_rest(size: tuple[int, int], place: tuple[float, int, int]) -> None:
    """As large as it goes, in the middle."""
    assert fit(size, 64) == place
    pixels = square(Image.new("RGB", size, (255, 0, 0)), 64)
    red = (pixels == np.array([255, 0, 0])[:, None, None]).all(0)
    assert red.sum() == round(size[0] * place[0]) * round(size[1] * place[0])
    assert red[place[2], place[1]]
    assert (pixels[:, ~red] == GREY).all()


def test_boxes_go_with_their_image(tmp_path: Path) -> None:
    """In a wide image brought to a smaller square: the box holds the shape's bright pixels, to a pixel."""
    root = coco_folder(tmp_path, train=2, val=1, size=(128, 64), suffix=".png")
    good, pixels, _ = decode(pictures(root), 64, None)
    sample = Samples(good, pixels, seed=0)[0, 0]
    yellow = (sample.images[0] > 180) & (sample.images[1] > 180)
    rows, columns = yellow.any(1).nonzero().flatten(), yellow.any(0).nonzero().flatten()
    x1, y1, x2, y2 = sample.boxes[2].tolist()
    assert [columns[0].item(), rows[0].item(), columns[-1].item() + 1, rows[-1].item() + 1] == pytest.approx([x1, y1, x2, y2], abs=1)


def test_every_kind_of_image_becomes_three_channels() -> None:
    """Grey, with a palette, with transparency."""
    for mode in ("L", "P", "RGBA", "CMYK", "1"):
        assert square(Image.new(mode, (8, 8)), 32).shape == (3, 32, 32)
