"""Reads COCO's format and says what is wrong with it: which file, which annotation."""

from __future__ import annotations

import json
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
LEAST = 0.01  # pixels of a box that have to be in its image, across and down: float32 tells them apart anywhere in it
FAR = 1e9  # pixels, which no image has
TOLD = 20  # faults told in full
UNREADABLE = (OSError, SyntaxError, ValueError, Image.DecompressionBombError)  # what Pillow raises for bytes, or a name, that are no image
NAME, NUMBER, ID, KEY = (str,), (int, float), (int, float, str), (int, float, str, type(None))
NEEDED: dict[str, dict[str, tuple[type, ...]]] = {  # keys of each part's entries, and of which types they are
    "categories": {"id": NUMBER, "name": NAME},
    "images": {"id": ID, "file_name": NAME},
    "annotations": {"id": ID, "image_id": KEY, "category_id": KEY, "bbox": (object,)},
}


class DataError(ValueError):
    """A data set that cannot be used as it is; the message names each fault."""


@dataclass(frozen=True)
class Fault:
    """Something wrong.

    Attributes:
        kind: "missing file", "corrupt image", "wrong size", "bad box", "bad crowd", "unknown category", "unknown image", "twice".
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


def read(file: Path, images: Path, trained: Mapping[int, str] | None = None) -> Reading:
    """Reads an annotation file and looks at every image that it names, without decoding it.

    Args:
        file: the JSON.
        images: the folder that its file names start from.
        trained: the categories that labels stand for, where they are another file's. Those of this file have to be among them.

    Raises:
        DataError: the file is not there, or not of COCO's format, or has other categories.
    """
    content = _content(file)
    reading = Reading(dict(_categories(file, content) if trained is None else trained))
    for key, name in _categories(file, content).items():
        if reading.categories.get(key) != name:
            known = f"{reading.categories[key]!r}" if key in reading.categories else "not there"
            raise DataError(f"{file}: category {key} is {name!r}, and {known} among those that are trained. Give both files the same.")
    labels = {key: i for i, key in enumerate(reading.categories)}
    entries = _once(file, "image", content["images"], reading.faults)
    annotations: dict[Any, list[Mapping[str, Any]]] = {key: [] for key in entries}
    for key, annotation in _once(file, "annotation", content["annotations"], reading.faults).items():
        if annotation["image_id"] in annotations:
            annotations[annotation["image_id"]].append(annotation)
        else:
            reading.faults.append(Fault("unknown image", f"{file.name}, annotation {key}: there is no image {annotation['image_id']}"))
    for key, entry in sorted(entries.items(), key=lambda item: (isinstance(item[0], str), item[0])):
        picture = _picture(entry, images / entry["file_name"], annotations[key], labels, reading.faults)
        reading.pictures.extend([picture] if picture else [])
    return reading


def categories(file: Path) -> dict[int, str]:
    """The names of an annotation file's categories by their ids, in the order of the ids. Raises DataError where there are none."""
    found = _categories(file, _content(file))
    if not found:
        raise DataError(f"{file}: there are no categories. Name at least one.")
    return found


def _categories(file: Path, content: Mapping[str, Any]) -> dict[int, str]:
    found: dict[int, str] = {}
    for entry in sorted(content["categories"], key=lambda entry: float(entry["id"])):
        if entry["id"] in found:
            raise DataError(f"{file}: two categories have the id {entry['id']}: {found[entry['id']]!r} and {entry['name']!r}")
        found[entry["id"]] = entry["name"]
    return found


def _once(file: Path, what: str, entries: list[Mapping[str, Any]], faults: list[Fault]) -> dict[Any, Mapping[str, Any]]:
    """Entries by their ids; of those that share one, the first."""
    found: dict[Any, Mapping[str, Any]] = {}
    for entry in entries:
        if found.setdefault(entry["id"], entry) is not entry:
            faults.append(Fault("twice", f"{file.name}, {what} {entry['id']}: the id stands there twice"))
    return found


def _content(file: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{file}: there is no such file. Set --data.root to a folder that holds it.") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: cannot be read as JSON: {error}") from None
    for part, keys in NEEDED.items():
        entries = content.get(part) if isinstance(content, dict) else None
        if not isinstance(entries, list):
            raise DataError(f"{file}: is no COCO annotation file: it has no list {part!r}")
        for i, entry in enumerate(entries):
            for key, types in keys.items():
                if not isinstance(entry, dict) or key not in entry:
                    raise DataError(f"{file}: entry {i} of {part!r} has no {key!r}")
                if not isinstance(entry[key], types) or entry[key] != entry[key]:
                    expected = "a text" if types is NAME else "a number" if types is NUMBER else "a number or a text"
                    raise DataError(f"{file}: entry {i} of {part!r} has the {key} {json.dumps(entry[key])}, which is not {expected}")
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
    except UNREADABLE as error:
        faults.append(corrupt(file, entry["id"], error))
        return None
    told = (entry.get("width", size[0]), entry.get("height", size[1]))
    if told != size:
        faults.append(
            Fault("wrong size", f"{file}, image {entry['id']}: is {size[0]}x{size[1]}, and stands there as {told[0]!r}x{told[1]!r}")
        )
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
    numbers = isinstance(box, list) and len(box) == 4 and all(isinstance(v, (int, float)) and abs(v) < FAR for v in box)
    if not numbers:
        yield "bad box", f"its box {box} is not four numbers"
    elif box[2] <= 0 or box[3] <= 0:
        yield "bad box", f"its box {box} has no area"
    elif box[0] < -SLACK or box[1] < -SLACK or box[0] + box[2] > size[0] + SLACK or box[1] + box[3] > size[1] + SLACK:
        yield "bad box", f"its box {box} lies outside the image of {size[0]}x{size[1]}"
    elif min(min(box[i] + box[i + 2], size[i]) - max(box[i], 0) for i in (0, 1)) < LEAST:
        yield "bad box", f"its box {box} has no area within the image of {size[0]}x{size[1]}"
    if annotation.get("iscrowd") not in (None, 0, 1):
        yield "bad crowd", f"its iscrowd is {annotation['iscrowd']!r}, and neither 0 nor 1"
    if annotation["category_id"] not in labels:
        yield "unknown category", f"there is no category {annotation['category_id']}"


def _list(file: Path, faults: list[Fault]) -> str:
    """The faults, counted by kind and then one a line."""
    counts = Counter(fault.kind for fault in faults)
    head = f"{file}: {len(faults)} fault{'s' * (len(faults) > 1)} ({', '.join(f'{n} {kind}' for kind, n in sorted(counts.items()))})"
    more = [f"  and {len(faults) - TOLD} more"] if len(faults) > TOLD else []
    return "\n".join([head, *(f"  {fault.text}" for fault in faults[:TOLD]), *more])
