"""Overlaps by numbers worked out by hand."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from detector.boxes import area, overlap


def box(*corners: float) -> Tensor:
    return torch.tensor(corners, dtype=torch.float32)


@pytest.mark.parametrize(
    ("a", "b", "iou", "giou"),
    [
        ((0, 0, 2, 2), (0, 0, 2, 2), 1, 1),
        ((0, 0, 2, 2), (1, 0, 3, 2), 1 / 3, 1 / 3),
        ((0, 0, 1, 1), (2, 2, 3, 3), 0, -7 / 9),
        ((0, 0, 4, 4), (1, 1, 2, 2), 1 / 16, 1 / 16),
        ((0, 0, 2, 1), (1, 0, 2, 3), 1 / 4, 1 / 4 - 2 / 6),
    ],
)
def test_overlaps_are_what_paper_and_pencil_give(a: tuple[float, ...], b: tuple[float, ...], iou: float, giou: float) -> None:
    """Both measures, either way round."""
    for one, other in ((a, b), (b, a)):
        got = overlap(box(*one), box(*other))
        assert got[0].item() == pytest.approx(iou, abs=1e-6)
        assert got[1].item() == pytest.approx(giou, abs=1e-6)


def test_boxes_apart_are_told_apart_by_the_generalised_measure_alone() -> None:
    """Farther is worse, though both overlap by nothing: what a loss can follow."""
    near, far = (overlap(box(0, 0, 1, 1), box(d, 0, d + 1, 1)) for d in (2.0, 9.0))
    assert near[0] == far[0] == 0
    assert near[1] > far[1]


def test_a_box_turned_inside_out_has_no_area() -> None:
    """Neither in one direction nor in both."""
    assert area(torch.stack([box(2, 0, 1, 1), box(2, 2, 1, 1), box(0, 0, 3, 2)])).tolist() == [0, 0, 6]
