"""A network whose weights are an exponential average of those that another one has had."""

from __future__ import annotations

import copy

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
        self.follow(network)

    def follow(self, network: nn.Module) -> None:
        """Looks up the tensors of both networks, which takes longer than a step's update. To be called again once either has moved."""
        pairs = list(zip(_tensors(self.network), _tensors(network), strict=True))
        floats, counts = ([pair for pair in pairs if pair[0].is_floating_point() == wanted] for wanted in (True, False))
        self._floats, self._counts = (([ours for ours, _ in chosen], [theirs for _, theirs in chosen]) for chosen in (floats, counts))

    @torch.no_grad()
    def update(self, steps: int) -> None:
        """Moves towards the network that is followed, by more while there were few steps.

        Args:
            steps: how many there were, this one included.
        """
        decay = min(self.decay, (1 + steps) / (10 + steps))
        ours, theirs = self._floats
        torch._foreach_lerp_(ours, theirs, 1 - decay)
        ours, theirs = self._counts
        torch._foreach_copy_(ours, theirs)


def _tensors(network: nn.Module) -> list[Tensor]:
    """Its weights and buffers."""
    return [*network.parameters(), *network.buffers()]
