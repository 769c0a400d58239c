"""What training makes smaller: the class scores' distance from what the locations are to say, and the boxes' from the truth."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor
from torch.nn import functional as F

from detector.assign import assign
from detector.boxes import overlap
from detector.model import Output

BOX = 2.0  # weight of the boxes' part


class Loss(NamedTuple):
    """Float32, 0-d each.

    Attributes:
        total: what is back-propagated.
        classes: the part of the class scores.
        boxes: the part of the boxes, weighted.
    """

    total: Tensor
    classes: Tensor
    boxes: Tensor


def detection_loss(output: Output, boxes: Tensor, labels: Tensor) -> Loss:
    """The loss of a batch; nothing is brought to the host, and no shape depends on a value.

    Args:
        output: of the network, in any precision.
        boxes: (B, M, 4), of the truth.
        labels: (B, M), int64, -1 for padding.
    """
    logits, predicted = output.logits.float(), output.boxes
    targets = assign(logits.detach().sigmoid(), predicted.detach(), output.points, boxes, labels)
    scale = targets.weights.sum().clamp(min=1)
    # What the best scores would lose is taken off: a perfect answer loses nothing, and gradients are the same.
    least = -(targets.scores.xlogy(targets.scores) + (1 - targets.scores).xlogy(1 - targets.scores)).sum()
    classes = (F.binary_cross_entropy_with_logits(logits, targets.scores, reduction="sum") - least) / scale
    misfit = BOX * ((1 - overlap(predicted, targets.boxes)[1]) * targets.weights).sum() / scale
    return Loss(classes + misfit, classes, misfit)
