"""Reads COCO's format and says what is wrong with it: which file, which annotation."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from PIL import Image

OnError = Literal["raise", "skip"]
SLACK = 1.0  # pixels by which a box may leave its image: tools round
TOLD = 20  # faults told in full


class DataError(ValueError):
    """A data set that cannot be used as it is; the message names each fault."""


@dataclass(frozen=True)
class Fault:
    """Something wrong.

    Attributes:
        kind: "missing file", "corrupt image", "wrong size", "bad box", "unknown category", "unknown image", "twice".
        text: where and what.
    """

    kind: str
    text: str


@dataclass(frozen=True)
class Picture:
    """An image and what is on it.

    Attributes:
        id: in the JSON.
        file: of the image.
        size: width and height in pixels.
        boxes: (m, 4), float32, corners in its own pixels.
        labels: (m,), int64, positions among the categories.
        crowds: (m,), bool, boxes that say "many of these": not trained on, and not held against a prediction.
    """

    id: int
    file: Path
    size: tuple[int, int]
    boxes: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]
    crowds: npt.NDArray[np.bool_]


@dataclass
class Reading:
    """A data set as read.

    Attributes:
        categories: names by their ids, in the order of the ids.
        pictures: those that can be used.
        faults: of everything that was left out.
    """

    categories: dict[int, str]
    pictures: list[Picture] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def settle(self, file: Path, on_error: OnError) -> str:
        """What was left out, as a sentence; empty where nothing was.

        Raises:
            DataError: faults, where they are not to be skipped; or nothing is left.
        """
        if self.faults and on_error == "raise":
            raise DataError(f"{_list(file, self.faults)}\nCorrect them, or leave them out: --data.on_error skip")
        if not self.pictures:
            raise DataError(f"{file}: no image can be used{f': {_list(file, self.faults)}' if self.faults else '. Add some.'}")
        return f"skipped, {_list(file, self.faults)}" if self.faults else ""


def read(file: Path, images: Path) -> Reading:
    """Reads an annotation file and looks at every image that it names, without decoding it.

    Args:
        file: the JSON.
        images: the folder that its file names start from.

    Raises:
        DataError: the file is not there, or not of COCO's format.
    """
    content = _content(file)
    categories = {int(entry["id"]): str(entry["name"]) for entry in sorted(content["categories"], key=lambda entry: int(entry["id"]))}
    reading = Reading(categories)
    labels = {key: i for i, key in enumerate(categories)}
    entries: dict[Any, Mapping[str, Any]] = {}
    for entry in content["images"]:
        if entry["id"] in entries:
            reading.faults.append(Fault("twice", f"{file.name}, image {entry['id']}: the id stands there twice"))
        entries[entry["id"]] = entry
    annotations: dict[Any, list[Mapping[str, Any]]] = {key: [] for key in entries}
    for annotation in content["annotations"]:
        if annotation["image_id"] in annotations:
            annotations[annotation["image_id"]].append(annotation)
        else:
            told = f"{file.name}, annotation {annotation['id']}: there is no image {annotation['image_id']}"
            reading.faults.append(Fault("unknown image", told))
    for key, entry in sorted(entries.items()):
        picture = _picture(entry, images / str(entry["file_name"]), annotations[key], labels, reading.faults)
        reading.pictures.extend([picture] if picture else [])
    return reading


def names(file: Path) -> list[str]:
    """The categories of an annotation file, in the order of their ids. Raises DataError where there are none."""
    found = [str(entry["name"]) for entry in sorted(_content(file)["categories"], key=lambda entry: int(entry["id"]))]
    if not found:
        raise DataError(f"{file}: there are no categories. Name at least one.")
    return found


def _content(file: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{file}: there is no such file. Set --data.root to a folder that holds it.") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: cannot be read as JSON: {error}") from None
    needed = {"categories": ("id", "name"), "images": ("id", "file_name"), "annotations": ("id", "image_id", "category_id", "bbox")}
    for part, keys in needed.items():
        entries = content.get(part) if isinstance(content, dict) else None
        if not isinstance(entries, list):
            raise DataError(f"{file}: is no COCO annotation file: it has no list {part!r}")
        for i, entry in enumerate(entries):
            absent = [key for key in keys if not isinstance(entry, dict) or key not in entry]
            if absent:
                raise DataError(f"{file}: entry {i} of {part!r} has no {absent[0]!r}")
    checked: Mapping[str, Any] = content
    return checked


def _picture(
    entry: Mapping[str, Any], file: Path, annotations: list[Mapping[str, Any]], labels: Mapping[Any, int], faults: list[Fault]
) -> Picture | None:
    try:
        with Image.open(file) as image:
            size = image.size
    except FileNotFoundError:
        faults.append(Fault("missing file", f"{file}, image {entry['id']}: there is no such file"))
        return None
    except OSError as error:
        faults.append(corrupt(file, entry["id"], error))
        return None
    told = (entry.get("width", size[0]), entry.get("height", size[1]))
    if told != size:
        faults.append(Fault("wrong size", f"{file}, image {entry['id']}: is {size[0]}x{size[1]}, and stands there as {told[0]}x{told[1]}"))
        return None
    good = []
    for annotation in annotations:
        wrong = list(_wrong(annotation, size, labels))
        faults.extend(Fault(kind, f"{file}, annotation {annotation['id']}: {text}") for kind, text in wrong)
        good.extend([] if wrong else [annotation])
    boxes = np.array([annotation["bbox"] for annotation in good], np.float32).reshape(-1, 4)
    corners = np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], 1).clip(0, [*size, *size])
    chosen = np.array([labels[annotation["category_id"]] for annotation in good], np.int64)
    crowds = np.array([bool(annotation.get("iscrowd")) for annotation in good], np.bool_)
    return Picture(entry["id"], file, size, corners.astype(np.float32), chosen, crowds)


def corrupt(file: Path, key: int, error: Exception) -> Fault:
    """An image that cannot be decoded."""
    return Fault("corrupt image", f"{file}, image {key}: cannot be decoded: {error}")


def _wrong(annotation: Mapping[str, Any], size: tuple[int, int], labels: Mapping[Any, int]) -> Iterator[tuple[str, str]]:
    """What is wrong with an annotation: kinds and texts."""
    box = annotation["bbox"]
    numbers = isinstance(box, list) and len(box) == 4 and all(isinstance(v, (int, float)) and math.isfinite(v) for v in box)
    if not numbers:
        yield "bad box", f"its box {box} is not four numbers"
    elif box[2] <= 0 or box[3] <= 0:
        yield "bad box", f"its box {box} has no area"
    elif box[0] < -SLACK or box[1] < -SLACK or box[0] + box[2] > size[0] + SLACK or box[1] + box[3] > size[1] + SLACK:
        yield "bad box", f"its box {box} lies outside the image of {size[0]}x{size[1]}"
    if annotation["category_id"] not in labels:
        yield "unknown category", f"there is no category {annotation['category_id']}"


def _list(file: Path, faults: list[Fault]) -> str:
    """The faults, counted by kind and then one a line."""
    counts = Counter(fault.kind for fault in faults)
    head = f"{file}: {len(faults)} fault{'s' * (len(faults) > 1)} ({', '.join(f'{n} {kind}' for kind, n in sorted(counts.items()))})"
    more = [f"  and {len(faults) - TOLD} more"] if len(faults) > TOLD else []
    return "\n".join([head, *(f"  {fault.text}" for fault in faults[:TOLD]), *more])
