"""Changes images as they come to the device: colours, flip, scale and crop, drawn for each sample by itself."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from detector.boxes import area
from detector.draws import uniform

HUE, SATURATION, VALUE = 0.015, 0.5, 0.3  # largest shift of the first, a turn being 1; largest relative change of the others
SCALE = 0.4  # largest relative change of size
VISIBLE = 0.3  # part of a box that has to be left in the image
SMALLEST = 2.0  # pixels


class Batch(NamedTuple):
    """Images and what is on them.

    Attributes:
        images: (B, 3, S, S), uint8 as read, float32 in 0 to 1 once prepared.
        boxes: (B, M, 4), corners.
        labels: (B, M), int64, -1 for padding.
        keys: (B, 3), int64: seed, epoch, number of the image.
    """

    images: Tensor
    boxes: Tensor
    labels: Tensor
    keys: Tensor


def plain(batch: Batch) -> Batch:
    """The images as float32 in 0 to 1."""
    return batch._replace(images=batch.images.float() / 255)


def sent(batch: Batch, device: torch.device) -> Batch:
    """The batch on a device; nothing waits where that is CUDA, which has copied small things by then and knows pinned memory."""
    return Batch(*(part.to(device, non_blocking=device.type == "cuda") for part in batch))


def augment(batch: Batch, device: torch.device | None = None) -> Batch:
    """Prepared images, changed; which way depends on a sample's keys alone. A box of which too little is left becomes padding.

    Args:
        batch: of `Batch.images` as read.
        device: where the result is to be; by default where the batch is. What is drawn, and where boxes go, is computed where the batch is:
            of such small tensors a device spends more time on being asked than on its work.
    """
    u = uniform(batch.keys, 7)
    size = batch.images.shape[-1]
    scale = 1 + SCALE * (2 * u[:, 0] - 1)
    shift = u[:, 1:3] * (size * (1 - scale))[:, None]  # pixels; below 0 where the image has become larger than the frame
    flipped = u[:, 3] < 0.5
    boxes, labels = _move_boxes(batch.boxes, batch.labels, scale, shift, flipped, size)
    moved = sent(batch._replace(boxes=boxes, labels=labels), device or batch.images.device)
    there = moved.images.device
    scale, shift, flipped, u = (x.to(there, non_blocking=there.type == "cuda") for x in (scale, shift, flipped, u))
    return moved._replace(images=recolour(_move(plain(moved).images, scale, shift, flipped), u[:, 4:]))


def _move(images: Tensor, scale: Tensor, shift: Tensor, flipped: Tensor) -> Tensor:
    """Flips, scales, then shifts (B, 3, S, S); grey where nothing comes to lie."""
    size = images.shape[-1]
    # In grid_sample's coordinates, -1 to 1, the input's place of an output's x is (x - offset) / scale.
    offset = scale[:, None] - 1 + 2 * shift / size
    mirror = torch.where(flipped, -1.0, 1.0)
    zero = torch.zeros_like(scale)
    rows = [
        torch.stack([mirror / scale, zero, -mirror * offset[:, 0] / scale], -1),
        torch.stack([zero, 1 / scale, -offset[:, 1] / scale], -1),
    ]
    grid = F.affine_grid(torch.stack(rows, 1), list(images.shape), align_corners=False)
    return F.grid_sample(images - 0.5, grid, align_corners=False) + 0.5


def _move_boxes(boxes: Tensor, labels: Tensor, scale: Tensor, shift: Tensor, flipped: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The boxes as their images were moved, clipped; padding is left where it was."""
    x1, y1, x2, y2 = boxes.unbind(-1)
    turned = torch.stack([size - x2, y1, size - x1, y2], -1)
    moved = torch.where(flipped[:, None, None], turned, boxes) * scale[:, None, None] + shift.repeat(1, 2)[:, None]
    clipped = moved.clamp(0, size)
    large = (clipped[..., 2:] - clipped[..., :2]).amin(-1) >= SMALLEST
    seen = large & (area(clipped) >= VISIBLE * area(moved)) & (labels >= 0)
    return torch.where(seen[..., None], clipped, 0.0), torch.where(seen, labels, -1)


def recolour(images: Tensor, u: Tensor) -> Tensor:
    """Moves hue, saturation and value of (B, 3, H, W) in 0 to 1 by (B, 3) numbers in 0 to 1, of which a half moves nothing."""
    turn, saturation, value = (((2 * u[:, i] - 1) * most)[:, None, None] for i, most in enumerate((HUE, SATURATION, VALUE)))
    red, green, blue = images.unbind(1)
    top = images.amax(1)
    chroma = top - images.amin(1)
    safe = torch.where(chroma > 0, chroma, 1.0)
    sixth = torch.where(top == red, (green - blue) / safe, torch.where(top == green, 2 + (blue - red) / safe, 4 + (red - green) / safe))
    sixth = sixth + 6 * turn  # hue, a turn being 6
    part = (chroma / top.clamp(min=1e-6) * (1 + saturation)).clamp(0, 1)  # saturation
    top = (top * (1 + value)).clamp(0, 1)
    hues = torch.stack([sixth + n for n in (5, 3, 1)], 1).remainder(6)  # HSV back to RGB, a channel at a time
    return top[:, None] * (1 - part[:, None] * torch.minimum(hues, 4 - hues).clamp(0, 1))
