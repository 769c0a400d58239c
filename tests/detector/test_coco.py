"""Every fault in a data set is named with its file and annotation; skipped where that is asked for, and counted."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from detector import coco
from detector.coco import DataError
from detector.data import CocoData
from tests.detector.folders import CLASSES, coco_folder, load, place, write

Break = Callable[[Path, dict[str, Any]], Any]


def truncate(root: Path, content: dict[str, Any]) -> None:
    file = root / "images" / "train" / "train-001.jpg"
    file.write_bytes(file.read_bytes()[:400])


def garble(root: Path, content: dict[str, Any]) -> None:
    (root / "images" / "train" / "train-001.jpg").write_bytes(b"no image at all")


def remove(root: Path, content: dict[str, Any]) -> None:
    (root / "images" / "train" / "train-001.jpg").unlink()


def box(*values: Any) -> Break:
    return lambda root, content: content["annotations"][4].update(bbox=list(values))


def category(root: Path, content: dict[str, Any]) -> None:
    content["annotations"][4]["category_id"] = 8


def image(root: Path, content: dict[str, Any]) -> None:
    content["annotations"][4]["image_id"] = 99


def fact(part: str, entry: int, key: str, value: Any) -> Break:
    return lambda root, content: content[part][entry].update({key: value})


def bomb(root: Path, content: dict[str, Any]) -> None:
    """Next to nothing, which promises more pixels than Pillow decodes."""
    chunks = (b"IHDR" + struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0), b"IDAT" + zlib.compress(b""), b"IEND")
    made = [struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) for chunk in chunks]
    (root / "images" / "train" / "train-001.jpg").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(made))


def deepen(root: Path, content: dict[str, Any]) -> None:
    Image.fromarray(np.full((64, 72), 40000, np.uint16)).save(root / "images" / "train" / "train-001.jpg", "PNG")


def size(root: Path, content: dict[str, Any]) -> None:
    content["images"][1]["width"] = 64


def twice(root: Path, content: dict[str, Any]) -> None:
    content["images"].append(content["images"][1])


# The fault, what is said of it, and how many images and boxes are left of 4 and 12 where it is skipped.
FAULTS: list[tuple[str, Break, list[str], int, int]] = [
    ("truncated", truncate, ["train-001.jpg, image 11", "cannot be decoded", "1 corrupt image"], 3, 9),
    ("garbled", garble, ["train-001.jpg, image 11", "cannot be decoded", "1 corrupt image"], 3, 9),
    ("missing", remove, ["train-001.jpg, image 11", "no such file", "1 missing file"], 3, 9),
    ("no width", box(5, 5, 0, 9), ["train-001.jpg, annotation 104", "no area", "1 bad box"], 4, 11),
    ("negative height", box(5, 5, 9, -1), ["train-001.jpg, annotation 104", "no area", "1 bad box"], 4, 11),
    ("outside", box(100, 5, 9, 9), ["train-001.jpg, annotation 104", "outside the image of 72x64", "1 bad box"], 4, 11),
    ("partly outside", box(60, 5, 20, 9), ["train-001.jpg, annotation 104", "outside the image of 72x64", "1 bad box"], 4, 11),
    ("above", box(5, -4, 9, 9), ["train-001.jpg, annotation 104", "outside the image of 72x64", "1 bad box"], 4, 11),
    ("not a number", box(5, 5, float("nan"), 9), ["train-001.jpg, annotation 104", "four numbers", "1 bad box"], 4, 11),
    ("three numbers", box(5, 5, 9), ["train-001.jpg, annotation 104", "four numbers", "1 bad box"], 4, 11),
    ("endless number", box(5, 5, 10**400, 9), ["train-001.jpg, annotation 104", "four numbers", "1 bad box"], 4, 11),
    ("only beside the image", box(72, 5, 1, 9), ["train-001.jpg, annotation 104", "no area within the image", "1 bad box"], 4, 11),
    ("thinner than float32", box(50, 5, 1e-7, 9), ["train-001.jpg, annotation 104", "no area within the image", "1 bad box"], 4, 11),
    ("crowd", fact("annotations", 4, "iscrowd", "0"), ["train-001.jpg, annotation 104", "iscrowd is '0'", "1 bad crowd"], 4, 11),
    ("annotation twice", fact("annotations", 4, "id", 100), ["train.json, annotation 100", "twice", "1 twice"], 4, 11),
    ("bomb", bomb, ["train-001.jpg, image 11", "cannot be decoded", "1 corrupt image"], 3, 9),
    ("16 bits", deepen, ["train-001.jpg, image 11", "more than 8 bits", "1 corrupt image"], 3, 9),
    ("no file name", fact("images", 1, "file_name", "a\0b"), ["image 11", "cannot be decoded", "1 corrupt image"], 3, 9),
    ("text as width", fact("images", 1, "width", "72"), ["train-001.jpg, image 11", "72x64", "'72'x64", "1 wrong size"], 3, 9),
    ("no category", fact("annotations", 4, "category_id", None), ["annotation 104", "no category None", "1 unknown category"], 4, 11),
    ("category", category, ["train-001.jpg, annotation 104", "no category 8", "1 unknown category"], 4, 11),
    ("image", image, ["train.json, annotation 104", "no image 99", "1 unknown image"], 4, 11),
    ("size", size, ["train-001.jpg, image 11", "72x64", "64x64", "1 wrong size"], 3, 9),
    ("twice", twice, ["train.json, image 11", "twice", "1 twice"], 4, 12),
]


@pytest.mark.parametrize(("break_", "told", "images", "boxes"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
def test_a_fault_is_named_or_skipped_and_counted(break_: Break, told: list[str], images: int, boxes: int, tmp_path: Path) -> None:
    """Fatal by default, with file and annotation; what is skipped leaves the rest."""
    root = coco_folder(tmp_path / "set", train=4, val=1)
    content = load(root, "train")
    break_(root, content)
    write(root, "train", content)
    with pytest.raises(DataError) as raised:
        CocoData(str(root), size=64, batch=2).setup("fit")
    assert all(part in str(raised.value) for part in told)
    assert "--data.on_error skip" in str(raised.value)
    data = CocoData(str(root), size=64, batch=2, on_error="skip")
    data.setup("fit")
    pictures = data.sets["train"].pictures
    assert (len(pictures), sum(len(picture.labels) for picture in pictures)) == (images, boxes)
    said = coco.read(root / "annotations" / "train.json", root / "images" / "train")
    assert len(said.faults) <= 1


def test_what_is_skipped_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """How many of which kind, and each by name."""
    root = coco_folder(tmp_path / "set", train=4, val=1)
    content = load(root, "train")
    truncate(root, content)
    content["annotations"][0]["bbox"] = [0, 0, 0, 0]
    content["annotations"][7]["category_id"] = 8
    write(root, "train", content)
    with caplog.at_level("INFO"):
        CocoData(str(root), size=64, batch=2, on_error="skip").setup("fit")
    assert "3 faults (1 bad box, 1 corrupt image, 1 unknown category)" in caplog.text
    assert "annotation 100" in caplog.text
    assert "annotation 107" in caplog.text


def test_a_good_set_is_read_as_it_is(folder: Path) -> None:
    """No fault, boxes where they were drawn, labels in the order of the ids; a box may leave its image by a rounding."""
    reading = coco.read(folder / "annotations" / "train.json", folder / "images" / "train")
    assert reading.faults == []
    assert list(reading.categories.values()) == list(CLASSES.values())
    for i, picture in enumerate(reading.pictures):
        drawn = [place(i, j) for j in range(3)]
        assert picture.boxes.tolist() == [[x1, y1, x2 + 1, y2 + 1] for x1, y1, x2, y2 in drawn]
        assert picture.labels.tolist() == [0, 1, 2]


def test_a_box_that_leaves_its_image_by_a_rounding_is_clipped(tmp_path: Path) -> None:
    """By at most a pixel."""
    root = coco_folder(tmp_path / "set", train=2, val=1)
    content = load(root, "train")
    content["annotations"][0]["bbox"] = [-0.5, 2, 73, 9]
    write(root, "train", content)
    reading = coco.read(root / "annotations" / "train.json", root / "images" / "train")
    assert reading.faults == []
    assert reading.pictures[0].boxes[0].tolist() == [0, 2, 72, 11]


def test_a_crowd_is_not_trained_on(tmp_path: Path) -> None:
    """It is read, and no label stands for it."""
    root = coco_folder(tmp_path / "set", train=2, val=1)
    content = load(root, "train")
    content["annotations"][1]["iscrowd"] = 1
    write(root, "train", content)
    data = CocoData(str(root), size=64, batch=2)
    data.setup("fit")
    samples = data.sets["train"]
    assert samples.pictures[0].crowds.tolist() == [False, True, False]
    assert samples[0, 0].labels.tolist() == [0, 2, -1]
    assert samples[0, 1].labels.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "cannot be read as JSON"),
        ("[]", "no list 'categories'"),
        ('{"categories": [], "images": [], "annotations": 3}', "no list 'annotations'"),
        ('{"categories": [{"id": 1}], "images": [], "annotations": []}', "entry 0 of 'categories' has no 'name'"),
        ('{"categories": [], "images": [], "annotations": []}', "no image can be used"),
    ],
)
def test_a_file_of_another_format_is_refused(content: str, told: str, tmp_path: Path) -> None:
    """Whatever is to be skipped: there is nothing to go on with."""
    root = coco_folder(tmp_path / "set", train=2, val=1)
    (root / "annotations" / "train.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=told):
        CocoData(str(root), size=64, batch=2, on_error="skip").setup("fit")


@pytest.mark.parametrize(
    ("break_", "told"),
    [
        (
            fact("annotations", 4, "category_id", [7]),
            "entry 4 of 'annotations' has the category_id \\[7\\], which is not a number or a text",
        ),
        (fact("annotations", 4, "image_id", {}), "entry 4 of 'annotations' has the image_id {}"),
        (fact("images", 1, "id", None), "entry 1 of 'images' has the id null"),
        (fact("images", 1, "file_name", 7), "entry 1 of 'images' has the file_name 7, which is not a text"),
        (fact("categories", 1, "id", "x"), "entry 1 of 'categories' has the id \"x\", which is not a number"),
        (fact("categories", 1, "id", float("nan")), "entry 1 of 'categories' has the id NaN"),
        (fact("categories", 1, "id", 7), "two categories have the id 7: 'circle' and 'bar'"),
    ],
)
def test_what_stands_for_nothing_is_refused(break_: Break, told: str, tmp_path: Path) -> None:
    """Ids and names of other types than the format's: nobody can say what belongs to them."""
    root = coco_folder(tmp_path / "set", train=2, val=1)
    content = load(root, "train")
    break_(root, content)
    write(root, "train", content)
    with pytest.raises(DataError, match=told):
        CocoData(str(root), size=64, batch=2, on_error="skip").setup("fit")


def test_ids_may_be_texts_and_numbers(tmp_path: Path) -> None:
    """Of images, even in one file; numbers come first."""
    root = coco_folder(tmp_path / "set", train=3, val=1)
    content = load(root, "train")
    content["images"][0]["id"] = "a"
    for annotation in content["annotations"][:3]:
        annotation["image_id"] = "a"
    write(root, "train", content)
    reading = coco.read(root / "annotations" / "train.json", root / "images" / "train")
    assert reading.faults == []
    assert [(picture.id, len(picture.labels)) for picture in reading.pictures] == [(11, 3), (12, 3), ("a", 3)]


def test_labels_of_validation_are_those_of_training(tmp_path: Path) -> None:
    """A file that names some of the classes alone has the labels of all; one that gives an id to another class is refused."""
    root = coco_folder(tmp_path / "set", train=2, val=1)
    content = load(root, "val")
    del content["categories"][0], content["annotations"][0]
    write(root, "val", content)
    data = CocoData(str(root), size=64, batch=2)
    data.setup("fit")
    assert data.sets["val"].pictures[0].labels.tolist() == [1, 2]
    content["categories"][0]["name"] = "circle"
    write(root, "val", content)
    with pytest.raises(DataError, match=r"val.json: category 11 is 'circle', and 'bar' among those that are trained"):
        CocoData(str(root), size=64, batch=2).setup("fit")
    content["categories"][0] = {"id": 8, "name": "bar"}
    write(root, "val", content)
    with pytest.raises(DataError, match=r"category 8 is 'bar', and not there among those that are trained"):
        CocoData(str(root), size=64, batch=2).setup("fit")


def test_where_there_is_nothing_the_place_is_named(tmp_path: Path) -> None:
    """No folder at all, and too few images for a batch."""
    with pytest.raises(DataError, match="no such file"):
        CocoData(str(tmp_path / "none"), size=64).setup("fit")
    root = coco_folder(tmp_path / "set", train=2, val=1)
    with pytest.raises(DataError, match="2 training images do not fill a batch of 3"):
        CocoData(str(root), size=64, batch=3).setup("fit")
    with pytest.raises(DataError, match="multiple of 32"):
        CocoData(str(root), size=50)


def test_many_faults_are_counted_and_some_told(tmp_path: Path) -> None:
    """Twenty in full, the rest by number."""
    root = coco_folder(tmp_path / "set", train=16, val=1)
    content = load(root, "train")
    for annotation in content["annotations"]:
        annotation["category_id"] = 0
    write(root, "train", content)
    with pytest.raises(DataError) as raised:
        CocoData(str(root), size=64, batch=2).setup("fit")
    assert "48 faults (48 unknown category)" in str(raised.value)
    assert "and 28 more" in str(raised.value)
    assert np.sum(["annotation 1" in line for line in str(raised.value).splitlines()]) == 20
