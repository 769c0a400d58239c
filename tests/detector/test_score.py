"""Scores by COCO's measure: a perfect answer has 1, others less."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from detector import coco
from detector.cache import fit
from detector.coco import Picture
from detector.model import Output, centres
from detector.score import Found, average_precision, candidates, found
from tests.detector.folders import CLASSES

NAMES = list(CLASSES.values())


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
