"""Boxes: how large they are, and how far they overlap."""

from __future__ import annotations

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
