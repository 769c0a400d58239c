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

    @torch.no_grad()
    def update(self, network: nn.Module, steps: int) -> None:
        """Moves towards the network, by more while there were few steps.

        Args:
            network: the one that is followed.
            steps: how many there were, this one included.
        """
        decay = min(self.decay, (1 + steps) / (10 + steps))
        pairs = list(zip(_tensors(self.network), _tensors(network), strict=True))
        floats, counts = ([pair for pair in pairs if pair[0].is_floating_point() == wanted] for wanted in (True, False))
        torch._foreach_lerp_([ours for ours, _ in floats], [theirs for _, theirs in floats], 1 - decay)
        torch._foreach_copy_([ours for ours, _ in counts], [theirs for _, theirs in counts])


def _tensors(network: nn.Module) -> list[Tensor]:
    """Its weights and buffers."""
    return [*network.parameters(), *network.buffers()]
