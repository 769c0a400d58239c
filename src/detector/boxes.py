"""Boxes: how far they overlap, and which of many say the same."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

EPSILON = 1e-7


def area(boxes: Tensor) -> Tensor:
    """Of corners (..., 4), 0 where they are turned inside out."""
    width, height = (boxes[..., 2:] - boxes[..., :2]).clamp(min=0).unbind(-1)
    return width * height  # the gradient of prod() would ask the host whether there are zeros


def overlap(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Intersection over union and generalised intersection over union of corners that broadcast: (..., 4), (..., 4) to (...), (...)."""
    shared = area(torch.cat([torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])], -1))
    around = area(torch.cat([torch.minimum(a[..., :2], b[..., :2]), torch.maximum(a[..., 2:], b[..., 2:])], -1))
    union = area(a) + area(b) - shared
    iou = shared / (union + EPSILON)
    return iou, iou - (around - union) / (around + EPSILON)


def distinct(boxes: Tensor, labels: Tensor, threshold: float) -> list[int]:
    """Which boxes to keep, where they come best first: none that overlaps a kept one of its class by more than the threshold.

    Args:
        boxes: (N, 4), on the CPU.
        labels: (N,).
        threshold: of intersection over union.
    """
    same = labels[:, None] == labels[None, :]
    clash = ((overlap(boxes[:, None], boxes[None, :])[0] > threshold) & same).numpy()
    alive = np.ones(len(boxes), np.bool_)  # of numpy, which asks for a single value in no time
    kept = []
    for i in range(len(boxes)):
        if alive[i]:
            kept.append(i)
            alive &= ~clash[i]
    return kept
