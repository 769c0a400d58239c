"""The synthetic set: what it promises, of the files that it writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from detector import coco
from detector.cli import main
from detector.synth import SHAPES, draw, write
from tests.detector.folders import load


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty training images of 160 pixels."""
    folder = tmp_path_factory.mktemp("synth")
    assert main(["data", "synth", str(folder), "--train", "40", "--val", "6", "--size", "160", "--seed", "3"]) == 0
    return folder


def test_the_set_is_of_coco_format_and_without_a_fault(made: Path) -> None:
    """The detector's own reading finds nothing wrong, and all images."""
    for part, count in (("train", 40), ("val", 6)):
        reading = coco.read(made / "annotations" / f"{part}.json", made / "images" / part)
        assert reading.faults == []
        assert len(reading.pictures) == count
        assert all(picture.size == (160, 160) for picture in reading.pictures)


def test_there_are_three_to_twelve_shapes_of_all_classes_and_they_are_small(made: Path) -> None:
    """At least four classes; the mean box takes less than a twentieth of its image."""
    content = load(made, "train")
    counts = [sum(a["image_id"] == image["id"] for a in content["annotations"]) for image in content["images"]]
    assert min(counts) >= 3
    assert max(counts) <= 12
    assert len(set(counts)) > 4
    assert len(SHAPES) >= 4
    assert {a["category_id"] for a in content["annotations"]} == {entry["id"] for entry in content["categories"]}
    assert np.mean([a["area"] for a in content["annotations"]]) < 0.05 * 160 * 160


def test_boxes_are_tight_and_shapes_overlap(made: Path) -> None:
    """Every side of a box touches its shape, no pixel of the shape lies outside; some boxes overlap others."""
    from random import Random

    overlaps = 0
    for seed in range(10):
        _, shapes = draw(Random(seed), 160)
        for shape in shapes:
            x, y, w, h = shape.box
            inside = shape.mask[y : y + h, x : x + w]
            assert inside.sum() == shape.mask.sum() > 0
            assert inside[0].any()
            assert inside[-1].any()
            assert inside[:, 0].any()
            assert inside[:, -1].any()
        overlaps += sum(bool((a.mask & b.mask).any()) for i, a in enumerate(shapes) for b in shapes[:i])
    assert overlaps > 3


def test_shapes_are_textured(made: Path) -> None:
    """Most hold more than one colour."""
    content = load(made, "train")
    several = 0
    for a in content["annotations"]:
        x, y, w, h = a["bbox"]
        with Image.open(made / "images" / "train" / f"{a['image_id']:06}.png") as image:
            middle = np.asarray(image)[y + h // 4 : y + h - h // 4, x + w // 4 : x + w - w // 4]
        several += len(np.unique(middle.reshape(-1, 3), axis=0)) > 1
    assert several > 0.5 * len(content["annotations"])


def test_the_seed_decides_every_byte(tmp_path: Path) -> None:
    """Again: the same files. Another seed: other images. Training and validation share none."""
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder, seed in zip(folders, (1, 1, 2), strict=True):
        write(folder, train=3, val=3, size=64, seed=seed)
    files = [path.relative_to(folders[0]) for path in sorted(folders[0].rglob("*.*"))]
    assert len(files) == 8
    assert all((folders[0] / file).read_bytes() == (folders[1] / file).read_bytes() for file in files)
    assert all((folders[0] / file).read_bytes() != (folders[2] / file).read_bytes() for file in files)
    assert len({(folders[0] / file).read_bytes() for file in files}) == len(files)


@pytest.mark.parametrize("wrong", [["--size", "16"], ["--train", "0"], ["--val", "-1"]])
def test_a_number_too_small_is_refused(wrong: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2, a sentence, and nothing written."""
    assert main(["data", "synth", str(tmp_path / "none"), *wrong]) == 2
    assert "at least" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
