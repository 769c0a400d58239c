"""Which location answers for which box: task-aligned assignment, by shapes that never depend on the data."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from detector.boxes import overlap
from detector.model import STRIDES

TOP = 13  # locations a box
TINY = torch.finfo(torch.float32).tiny
SMALLEST = 2 * STRIDES[0]  # pixels: a box is looked for as if it were at least so large, else it might hold no location


class Targets(NamedTuple):
    """What each location is to say.

    Attributes:
        scores: (B, L, C), 0 to 1, of the classes.
        boxes: (B, L, 4), corners; of any box where the weight is 0.
        weights: (B, L), how much a location answers for its box, 0 for most.
    """

    scores: Tensor
    boxes: Tensor
    weights: Tensor


@torch.no_grad()
def assign(scores: Tensor, predicted: Tensor, points: Tensor, boxes: Tensor, labels: Tensor) -> Targets:
    """The locations inside a box that score high for its class and fit it well get its class, as far as they fit it.

    The alignment of a location with a box is t = score * IoU^6. The 13 best a box are its own, a location of several boxes goes to
    the one that it fits best, and t is scaled so that the best of each box has its IoU.

    Args:
        scores: (B, L, C), float32, 0 to 1.
        predicted: (B, L, 4), corners.
        points: (L, 2).
        boxes: (B, M, 4), of the truth.
        labels: (B, M), int64, -1 for padding.
    """
    classes = scores.shape[-1]
    fits = overlap(boxes[:, :, None], predicted[:, None])[0]  # (B, M, L)
    wanted = labels.clamp(min=0)[..., None].expand(-1, -1, len(points))
    aligned = scores.transpose(1, 2).gather(1, wanted) * (fits * fits * fits).square()
    aligned = aligned * (_inside(points, boxes) & (labels >= 0)[..., None])
    kth = aligned.topk(min(TOP, len(points)), -1).values[..., -1:]
    chosen = (aligned >= kth) & (aligned > 0)
    owner = torch.where(chosen, fits, -1.0).argmax(1, keepdim=True)  # (B, 1, L)
    own = chosen & (torch.arange(boxes.shape[1], device=boxes.device)[:, None] == owner)
    aligned, fits = aligned * own, fits * own
    scaled = aligned / aligned.amax(-1, keepdim=True).clamp(min=TINY) * fits.amax(-1, keepdim=True)
    weights = scaled.amax(1)
    owner = owner.squeeze(1)
    of_class = labels.gather(1, owner)[..., None] == torch.arange(classes, device=labels.device)
    return Targets(of_class * weights[..., None], boxes.gather(1, owner[..., None].expand(-1, -1, 4)), weights)


def _inside(points: Tensor, boxes: Tensor) -> Tensor:
    """(L, 2) and (B, M, 4) to (B, M, L): whether a location lies in a box, one that is too small widened."""
    centre, half = (boxes[..., :2] + boxes[..., 2:]) / 2, (boxes[..., 2:] - boxes[..., :2]).clamp(min=SMALLEST) / 2
    return ((points - centre[:, :, None]).abs() < half[:, :, None]).all(-1)
