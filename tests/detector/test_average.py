"""The average: by its formula, buffers too, and never trained."""

from __future__ import annotations

import copy

import torch

from detector.average import Average
from detector.model import Network


def shaken(network: Network, seed: int) -> Network:
    """The network with other weights and statistics."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in (*network.parameters(), *network.buffers()):
            if tensor.is_floating_point():
                tensor.add_(torch.randn(tensor.shape, generator=generator).abs())
            else:
                tensor.add_(3)
    return network


def test_it_moves_by_its_formula() -> None:
    """Each weight and each statistic: old + (1 - decay) (new - old), the decay small at first; counts are copied."""
    network = Network(2, 0.125)
    average = Average(network, 0.5)
    for step, decay in ((1, 2 / 11), (2, 3 / 12), (50, 0.5)):
        before = copy.deepcopy(average.network.state_dict())
        shaken(network, step)
        average.update(step)
        for name, tensor in average.network.state_dict().items():
            new = network.state_dict()[name]
            if tensor.is_floating_point():
                torch.testing.assert_close(tensor, before[name] + (1 - decay) * (new - before[name]))
                assert not torch.equal(tensor, before[name])
            else:
                assert torch.equal(tensor, new)


def test_it_is_a_copy_that_is_not_trained() -> None:
    """It shares no memory with the network, and no gradient reaches it."""
    network = Network(2, 0.125)
    average = Average(network, 0.9)
    assert not any(p.requires_grad for p in average.parameters())
    assert all(p.requires_grad for p in network.parameters())
    before = copy.deepcopy(average.state_dict())
    shaken(network, 0)
    assert all(torch.equal(before[name], tensor) for name, tensor in average.state_dict().items())


def test_networks_that_moved_are_followed_again() -> None:
    """Moving a network replaces its buffers: the average has to be told of them."""
    network = Network(2, 0.125)
    average = Average(network, 0.5)
    network.double()
    average.double()
    average.follow(network)
    before = copy.deepcopy(average.network.state_dict())
    shaken(network, 1)
    average.update(1)
    for name, tensor in average.network.state_dict().items():
        assert not torch.equal(tensor, before[name]), name
