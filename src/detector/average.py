"""A network whose weights are an exponential average of those that another one has had."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor, nn


class Average(nn.Module):
    """The average of a network's weights and statistics, itself a network that is not trained.

    To be put into eval mode before it is asked, as Lightning does for validation.

    Args:
        network: the one to follow; copied.
        decay: how much of the average a step leaves, once there were many.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        super().__init__()
        self.network = copy.deepcopy(network).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, network: nn.Module, steps: int) -> None:
        """Moves towards the network, by more while there were few steps.

        Args:
            network: the one that is followed.
            steps: how many there were, this one included.
        """
        decay = min(self.decay, (1 + steps) / (10 + steps))
        ours, theirs = list(_floats(self.network)), list(_floats(network))
        torch._foreach_lerp_(ours, theirs, 1 - decay)
        for mine, other in zip(self.network.buffers(), network.buffers(), strict=True):
            if not mine.is_floating_point():
                mine.copy_(other)


def _floats(network: nn.Module) -> Iterable[Tensor]:
    """Its floating-point weights and buffers."""
    for tensors in (network.parameters(), network.buffers()):
        yield from (tensor for tensor in cast("Iterable[Tensor]", tensors) if tensor.is_floating_point())
