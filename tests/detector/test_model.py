"""The network's size, shapes, and where its boxes are."""

from __future__ import annotations

import pytest
import torch

from detector.model import PRIOR, STRIDES, Network, centres


def test_the_nano_network_has_its_size() -> None:
    """2 to 3 million parameters in at least 150 tensors; twice the width is another network."""
    weights = list(Network(80).parameters())
    assert 2_000_000 <= sum(p.numel() for p in weights) <= 3_000_000
    assert len(weights) >= 150
    wide = list(Network(80, width=2).parameters())
    assert len(wide) == len(weights)
    assert sum(p.numel() for p in wide) > 3 * sum(p.numel() for p in weights)


def test_each_location_says_classes_and_a_box_around_it() -> None:
    """Every level's cells, finest first, in images that need not be square."""
    torch.manual_seed(0)
    output = Network(3, 0.25).eval()(torch.rand(2, 3, 64, 96))
    locations = sum(64 // stride * 96 // stride for stride in STRIDES)
    assert output.logits.shape == (2, locations, 3)
    assert output.boxes.shape == (2, locations, 4)
    assert (output.boxes[..., :2] < output.points).all()
    assert (output.points < output.boxes[..., 2:]).all()
    assert output.points[:2].tolist() == [[4, 4], [12, 4]]
    assert output.points[-1].tolist() == [80, 48]


def test_training_starts_from_the_prior() -> None:
    """Every class scores about 0.01 everywhere, and every box has a side of four strides and a little."""
    torch.manual_seed(0)
    output = Network(3, 0.25)(torch.rand(2, 3, 64, 64))
    assert output.logits.sigmoid().mean().item() == pytest.approx(PRIOR, rel=0.2)
    sides = output.boxes[..., 2:] - output.boxes[..., :2]
    assert sides[:, :64].mean().item() == pytest.approx(2 * 2.127 * 8, rel=0.1)


def test_every_weight_gets_a_gradient() -> None:
    """None is left out of the sum of all outputs."""
    network = Network(3, 0.25)
    output = network(torch.rand(2, 3, 64, 64))
    (output.logits.square().sum() + output.boxes.square().sum()).backward()
    assert [name for name, p in network.named_parameters() if p.grad is None or not p.grad.abs().sum()] == []


def test_centres_are_counted_row_by_row() -> None:
    """x runs first."""
    assert centres(2, 3, 4, torch.device("cpu")).tolist() == [[2, 2], [6, 2], [10, 2], [2, 6], [6, 6], [10, 6]]
