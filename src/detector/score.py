"""From the network's output to boxes, and from boxes to COCO's mean average precision."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from detector.boxes import EPSILON
from detector.cache import fit
from detector.coco import Picture
from detector.model import Output

CANDIDATES, KEPT = 300, 100  # boxes an image: looked at, and left
CLASH = 0.6  # overlap from which two boxes of a class are one


@dataclass(frozen=True)
class Found:
    """A box in an image.

    Attributes:
        box: corners in pixels of the image itself, clipped to it.
        label: of its class.
        score: 0 to 1.
    """

    box: tuple[float, float, float, float]
    label: int
    score: float


def candidates(output: Output) -> tuple[Tensor, Tensor, Tensor]:
    """The best boxes of each image, best first: scores (B, K), labels (B, K), corners (B, K, 4)."""
    scores = output.logits.float().sigmoid()
    classes = scores.shape[-1]
    best, place = scores.flatten(1).topk(min(CANDIDATES, scores[0].numel()), -1)
    boxes = output.boxes.gather(1, (place // classes)[..., None].expand(-1, -1, 4))
    return best, place % classes, boxes


def found(scores: Tensor, labels: Tensor, boxes: Tensor, size: tuple[int, int], side: int) -> list[Found]:
    """What is left of one image's candidates, in the image's own pixels.

    Args:
        scores: (K,), on the CPU as are the others, best first.
        labels: (K,).
        boxes: (K, 4), in pixels of the square.
        size: width and height of the image.
        side: of the square that it was brought to.
    """
    scale, left, above = fit(size, side)
    kept = _distinct(boxes.numpy(), labels.numpy())
    corners = (boxes.numpy()[kept].astype(np.float64) - [left, above, left, above]) / scale
    corners = corners.clip(0, [*size, *size])
    rows = zip(corners.tolist(), labels.numpy()[kept].tolist(), scores.numpy()[kept].tolist(), strict=True)
    return [Found((x1, y1, x2, y2), label, score) for (x1, y1, x2, y2), label, score in rows]


@np.errstate(all="ignore")  # a training that has come apart is no fault of the boxes
def _distinct(boxes: npt.NDArray[np.float32], labels: npt.NDArray[np.int64]) -> list[int]:
    """The first KEPT boxes, which come best first, that overlap no kept one of their class by more than CLASH.

    With `boxes.overlap`'s bits, but by numpy: torch shares such small work out among its threads, and waits for the last of them.
    """
    x1, y1, x2, y2 = boxes.T
    size = np.maximum(x2 - x1, 0) * np.maximum(y2 - y1, 0)
    width = np.minimum(x2[:, None], x2) - np.maximum(x1[:, None], x1)
    shared = np.maximum(width, 0) * np.maximum(np.minimum(y2[:, None], y2) - np.maximum(y1[:, None], y1), 0)
    clash = shared / (size[:, None] + size - shared + np.float32(EPSILON)) > np.float32(CLASH)
    free = ~(clash & (labels[:, None] == labels))
    alive = np.ones(len(boxes), np.bool_)
    kept: list[int] = []
    for i in range(len(boxes)):
        if alive[i]:
            kept.append(i)
            if len(kept) == KEPT:
                break
            alive &= free[i]
    return kept


def average_precision(pictures: list[Picture], names: list[str], results: dict[int, list[Found]]) -> dict[str, float]:
    """COCO's mean average precision, over overlaps of 0.5 to 0.95 ("mAP") and at 0.5 ("mAP50"); 0 where nothing was found.

    Args:
        pictures: the truth.
        names: of the classes.
        results: what was found, by the images' ids.
    """
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    rows = [_annotation(key, one.label, one.box, False) | {"score": one.score} for key, several in results.items() for one in several]
    if not rows:
        return {"mAP": 0.0, "mAP50": 0.0}
    with contextlib.redirect_stdout(io.StringIO()):  # pycocotools prints
        truth, told = COCO(), COCO()
        truth.dataset = _dataset(pictures, names)
        told.dataset = {**truth.dataset, "annotations": _numbered(rows)}  # as its own `loadRes`, which draws each box's outline as well
        truth.createIndex()
        told.createIndex()
        judge = COCOeval(truth, told, "bbox")
        judge.params.areaRng, judge.params.areaRngLbl = (
            judge.params.areaRng[:1],
            judge.params.areaRngLbl[:1],
        )  # no box is looked at by its size
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    return {"mAP": max(0.0, float(judge.stats[0])), "mAP50": max(0.0, float(judge.stats[1]))}


def _dataset(pictures: list[Picture], names: list[str]) -> dict[str, Any]:
    """The truth as COCO has it; a category's id is its label."""
    annotations = [
        _annotation(picture.id, int(label), box.tolist(), bool(crowd))
        for picture in pictures
        for box, label, crowd in zip(picture.boxes, picture.labels, picture.crowds, strict=True)
    ]
    images = [{"id": picture.id, "width": picture.size[0], "height": picture.size[1]} for picture in pictures]
    categories = [{"id": i, "name": name} for i, name in enumerate(names)]
    return {"info": {}, "images": images, "annotations": _numbered(annotations), "categories": categories}


def _annotation(image: int, label: int, box: Iterable[float], crowd: bool) -> dict[str, Any]:
    """A box, given by its corners, as COCO has it."""
    extent = _extent(box)
    return {"image_id": image, "category_id": label, "bbox": extent, "area": extent[2] * extent[3], "iscrowd": int(crowd)}


def _numbered(annotations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With ids, from 1 on: pycocotools takes 0 for none."""
    return [{**entry, "id": number} for number, entry in enumerate(annotations, 1)]


def _extent(box: Iterable[float]) -> list[float]:
    """Corner, width, height, of corners."""
    x1, y1, x2, y2 = box
    return [x1, y1, x2 - x1, y2 - y1]
