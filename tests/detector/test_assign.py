"""Task-aligned assignment: against a loop that follows the paper word by word, and by cases that can be seen."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from detector import assign as assignment
from detector.assign import Targets, assign
from detector.boxes import overlap
from detector.model import centres

POINTS = centres(8, 8, 8, torch.device("cpu"))  # 64 pixels of stride 8


def guesses(seed: int, images: int = 2) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scores (B, 64, 3), boxes around the locations (B, 64, 4), truth (B, 5, 4) and labels (B, 5), the last one padding."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(images, 64, 3, generator=generator)
    sides = 4 + 16 * torch.rand(images, 64, 4, generator=generator)
    predicted = torch.cat([POINTS - sides[..., :2], POINTS + sides[..., 2:]], -1)
    corner = 40 * torch.rand(images, 5, 2, generator=generator)
    boxes = torch.cat([corner, corner + 6 + 18 * torch.rand(images, 5, 2, generator=generator)], -1)
    labels = torch.randint(3, (images, 5), generator=generator)
    labels[:, 4] = -1
    return scores, predicted, boxes, labels


def by_the_book(scores: Tensor, predicted: Tensor, boxes: Tensor, labels: Tensor) -> Targets:
    """One image, one box, one location at a time, in float64."""
    images, locations, classes = scores.shape
    wanted, weights, corners = torch.zeros(images, locations, classes), torch.zeros(images, locations), torch.zeros(images, locations, 4)
    for b in range(images):
        owner: dict[int, tuple[float, int]] = {}
        metric: dict[int, dict[int, float]] = {}
        for m in range(len(labels[b])):
            if labels[b, m] < 0:
                continue
            x1, y1, x2, y2 = boxes[b, m].tolist()
            middle, half = ((x1 + x2) / 2, (y1 + y2) / 2), (max(x2 - x1, 16) / 2, max(y2 - y1, 16) / 2)
            metric[m] = {}
            for i in range(locations):
                x, y = POINTS[i].tolist()
                u = overlap(predicted[b, i].double(), boxes[b, m].double())[0].item()
                if abs(x - middle[0]) < half[0] and abs(y - middle[1]) < half[1]:
                    metric[m][i] = scores[b, i, labels[b, m]].item() * u**6
            metric[m] = dict(sorted(metric[m].items(), key=lambda item: -item[1])[:13])
            for i in metric[m]:
                u = overlap(predicted[b, i].double(), boxes[b, m].double())[0].item()
                if i not in owner or u > owner[i][0]:
                    owner[i] = (u, m)
        for m, values in metric.items():
            own = {i: t for i, t in values.items() if owner[i][1] == m}
            for i, t in own.items():
                weights[b, i] = t / max(own.values()) * max(owner[j][0] for j in own)
                wanted[b, i, labels[b, m]] = weights[b, i]
                corners[b, i] = boxes[b, m]
    return Targets(wanted, corners, weights)


@pytest.mark.parametrize("seed", range(6))
def test_the_tensors_do_what_the_loop_does(seed: int) -> None:
    """Scores, weights and the boxes that count, of every location."""
    scores, predicted, boxes, labels = guesses(seed)
    got, expected = assign(scores, predicted, POINTS, boxes, labels), by_the_book(scores, predicted, boxes, labels)
    assert (expected.weights > 0).sum() > 20
    torch.testing.assert_close(got.weights, expected.weights, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(got.scores, expected.scores, rtol=1e-4, atol=1e-6)
    counts = expected.weights > 0
    torch.testing.assert_close(got.boxes[counts], expected.boxes[counts])


@pytest.mark.parametrize(("name", "value"), [("TOP", 5), ("SMALLEST", 40)])
def test_the_loop_notices_another_rule(name: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer locations a box, or wider small boxes, are not what the loop does."""
    scores, predicted, boxes, labels = guesses(0)
    monkeypatch.setattr(assignment, name, value)
    got, expected = assign(scores, predicted, POINTS, boxes, labels), by_the_book(scores, predicted, boxes, labels)
    assert not torch.allclose(got.weights, expected.weights)


def test_padding_asks_for_nothing() -> None:
    """An image without boxes has no weight anywhere, and padding moves no bit of what the others get."""
    scores, predicted, boxes, labels = guesses(1)
    assert assign(scores, predicted, POINTS, boxes, torch.full_like(labels, -1)).weights.abs().sum() == 0
    more = torch.cat([boxes, boxes], 1), torch.cat([labels, torch.full_like(labels, -1)], 1)
    for one, other in zip(assign(scores, predicted, POINTS, boxes, labels), assign(scores, predicted, POINTS, *more), strict=True):
        assert torch.equal(one, other)
    again = assign(scores, predicted, POINTS, torch.cat([boxes, boxes[:, :1] + 3], 1), torch.cat([labels, labels[:, :1]], 1))
    assert not torch.equal(again.weights, assign(scores, predicted, POINTS, boxes, labels).weights)


def test_a_box_smaller_than_a_cell_still_has_a_location() -> None:
    """Two pixels wide and between the centres of all cells."""
    scores, predicted, _, _ = guesses(2, images=1)
    tiny = torch.tensor([[[15.0, 15.0, 17.0, 17.0]]])
    assert (assign(scores, predicted, POINTS, tiny, torch.tensor([[1]])).weights > 0).sum() >= 1
