"""Scores by COCO's measure: a perfect answer has 1, others less."""

from __future__ import annotations

import contextlib
import inspect
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from detector import coco, score
from detector.boxes import overlap
from detector.cache import fit
from detector.coco import Picture
from detector.model import Output, centres
from detector.score import Found, average_precision, candidates, found
from tests.detector.folders import CLASSES

NAMES = list(CLASSES.values())
Leave = Callable[[torch.Tensor, torch.Tensor, float], list[int]]


@pytest.fixture(scope="module")
def truth(folder: Path) -> list[Picture]:
    return coco.read(folder / "annotations" / "val.json", folder / "images" / "val").pictures


def answer(truth: list[Picture], dx: float = 0, turn: int = 0) -> dict[int, list[Found]]:
    """The truth, moved to the right, its classes exchanged."""
    return {
        picture.id: [
            Found((box[0] + dx, box[1], box[2] + dx, box[3]), (int(label) + turn) % len(NAMES), 0.9)
            for box, label in zip(picture.boxes.tolist(), picture.labels, strict=True)
        ]
        for picture in truth
    }


def test_the_truth_scores_one_and_less_is_less(truth: list[Picture], capsys: pytest.CaptureFixture[str]) -> None:
    """Moved a little: less over all overlaps, all of it at 0.5. Other classes, or nothing: 0. Nothing is printed."""
    perfect = average_precision(truth, NAMES, answer(truth))
    assert perfect == pytest.approx({"mAP": 1, "mAP50": 1})
    moved = average_precision(truth, NAMES, answer(truth, dx=2))
    assert moved["mAP"] < 0.9
    assert moved["mAP50"] == pytest.approx(1)
    assert average_precision(truth, NAMES, answer(truth, turn=1))["mAP50"] == 0
    assert average_precision(truth, NAMES, {})["mAP50"] == 0
    some = dict(list(answer(truth).items())[:2])
    assert 0.3 < average_precision(truth, NAMES, some)["mAP50"] < 0.8
    assert capsys.readouterr().out == ""


def test_false_alarms_cost(truth: list[Picture]) -> None:
    """A box in an empty corner that scores higher than the right ones."""
    alarmed = {key: [*several, Found((1, 1, 4, 4), 0, 0.99)] for key, several in answer(truth).items()}
    assert average_precision(truth, NAMES, alarmed)["mAP50"] < 0.95


def test_candidates_are_the_best_of_all_classes() -> None:
    """Sorted, each with its class and its location's box."""
    points = centres(4, 4, 8, torch.device("cpu"))
    logits = torch.full((1, 16, 3), -5.0)
    logits[0, 6, 2], logits[0, 3, 0], logits[0, 6, 1] = 2.0, 1.0, 0.5
    distances = torch.arange(1.0, 65).reshape(1, 16, 4)
    scores, labels, boxes = candidates(Output(logits, distances, points))
    assert labels[0, :3].tolist() == [2, 0, 1]
    assert scores[0, :3].tolist() == pytest.approx(torch.tensor([2.0, 1.0, 0.5]).sigmoid().tolist())
    x, y = points[6].tolist()
    assert boxes[0, 0].tolist() == boxes[0, 2].tolist() == [x - 25, y - 26, x + 27, y + 28]


def test_boxes_come_back_into_their_images_own_pixels() -> None:
    """From the square to an image of 100x50, clipped to it; the one that says the same is left out."""
    scale, left, above = fit((100, 50), 64)
    boxes = torch.tensor([[10.0, 5.0, 40.0, 30.0], [11.0, 5.0, 40.0, 30.0], [-20.0, 5.0, 40.0, 90.0]])
    square = boxes * scale + torch.tensor([left, above, left, above])
    several = found(torch.tensor([0.9, 0.8, 0.7]), torch.tensor([1, 1, 1]), square, (100, 50), 64)
    assert [one.score for one in several] == pytest.approx([0.9, 0.7])
    assert several[0].box == pytest.approx((10, 5, 40, 30), abs=1e-4)
    assert several[1].box == pytest.approx((0, 5, 40, 50), abs=1e-4)


def guesses(seed: int, number: int = 300) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Scores, labels and boxes of a square of 64, crowded: many clash, some are the same, turned inside out or without area."""
    random = torch.Generator().manual_seed(seed)
    corner, extent = 40 * torch.rand(number, 2, generator=random), 6 + 14 * torch.rand(number, 2, generator=random)
    boxes = torch.cat([corner, corner + extent], -1)
    boxes[1::7] = boxes[::7][: len(boxes[1::7])]
    boxes[2::50] = boxes[2::50].flip(-1)
    boxes[3::50, 2] = boxes[3::50, 0]
    return torch.rand(number, generator=random).sort(descending=True).values, torch.randint(3, (number,), generator=random), boxes


def distinct(boxes: torch.Tensor, labels: torch.Tensor, threshold: float) -> list[int]:
    """By torch, and with the loss's overlap: which boxes, best first, overlap no kept one of their class by more than the threshold."""
    clash = (overlap(boxes[:, None], boxes[None, :])[0] > threshold) & (labels[:, None] == labels[None, :])
    kept: list[int] = []
    for i in range(len(boxes)):
        if not clash[kept, i].any():
            kept.append(i)
    return kept


@pytest.mark.parametrize(
    "leave", [distinct, lambda boxes, labels, _: score._distinct(boxes.numpy(), labels.numpy())], ids=["torch", "numpy"]
)
def test_of_boxes_that_say_the_same_the_best_is_kept(leave: Leave, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is the first again; of another class, or elsewhere, it is a box of its own. A dropped box drops no other."""
    corners = [[0, 0, 10, 10], [1, 0, 11, 10], [0, 0, 10, 10], [30, 0, 40, 10], [4, 0, 14, 10]]
    boxes, same = torch.tensor(corners, dtype=torch.float32), torch.zeros(5, dtype=torch.int64)
    for labels, threshold, kept in ((torch.tensor([0, 0, 1, 0, 0]), 0.5, [0, 2, 3, 4]), (same, 0.5, [0, 3, 4]), (same, 0.9, [0, 1, 3, 4])):
        monkeypatch.setattr(score, "CLASH", threshold)
        assert leave(boxes, labels, threshold) == kept


@pytest.mark.parametrize("number", [0, 1, 90, 300])
def test_what_is_left_is_what_torch_leaves(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the bit, the first hundred; under another threshold something else is."""
    for seed in range(3):
        scores, labels, boxes = guesses(seed, number)
        kept = distinct(boxes, labels, score.CLASH)[:100]
        some = found(scores, labels, boxes, (64, 64), 64)
        assert len(kept) == (100 if number == 300 else len(kept))
        assert [one.score for one in some] == scores[kept].tolist()
        assert [one.label for one in some] == labels[kept].tolist()
        assert [one.box for one in some] == [tuple(row) for row in boxes[kept].double().clamp(0, 64).tolist()]
        with monkeypatch.context() as patch:
            patch.setattr(score, "CLASH", 0.5)
            assert (found(scores, labels, boxes, (64, 64), 64) != some) == (number > 1)


def test_numbers_that_are_none_leave_what_torch_leaves() -> None:
    """Infinite corners and none at all, without a warning, which there is where nobody silences it. Boxes that were left out stay."""
    scores, labels, boxes = guesses(0, 60)
    boxes[5], boxes[9], labels[5], labels[9] = boxes[4], boxes[8], labels[4], labels[8]
    finite = boxes.clone()
    boxes[5, 0], boxes[9], boxes[12, 2], boxes[13] = float("nan"), float("nan"), float("inf"), float("inf")
    some, without = ([one.score for one in found(scores, labels, x, (64, 64), 64)] for x in (boxes, finite))
    assert some == scores[distinct(boxes, labels, score.CLASH)].tolist()
    assert {scores[5].item(), scores[9].item()} <= set(some) - set(without)
    with pytest.raises(RuntimeWarning, match="invalid value"):
        inspect.unwrap(score._distinct)(boxes.numpy(), labels.numpy())


def summed(truth: list[Picture], results: dict[int, list[Found]], **limits: Any) -> list[float]:
    """The first two of COCO's numbers, by all that pycocotools does unless it is told otherwise."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    rows = [
        {"image_id": key, "category_id": x.label, "bbox": [*x.box[:2], x.box[2] - x.box[0], x.box[3] - x.box[1]], "score": x.score}
        for key, several in results.items()
        for x in several
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        known = COCO()
        known.dataset = score._dataset(truth, NAMES)
        known.createIndex()
        judge = COCOeval(known, known.loadRes(rows), "bbox")
        vars(judge.params).update(limits)
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    return [float(number) for number in judge.stats[:2]]


def test_the_measure_is_cocos_to_the_bit(truth: list[Picture]) -> None:
    """Of the truth among random boxes; with other overlaps it is another one."""
    random = np.random.RandomState(0)
    results: dict[int, list[Found]] = {}
    for key, several in answer(truth, dx=1).items():
        others = found(*guesses(key), (64, 64), 64)[:60]
        results[key] = [Found(one.box, one.label, float(random.rand())) for one in [*several, *others]]
    told = list(average_precision(truth, NAMES, results).values())
    assert 0.01 < told[0] < told[1] < 0.99
    assert told == summed(truth, results)
    assert told[0] != summed(truth, results, iouThrs=np.linspace(0.5, 0.9, 9))[0]
