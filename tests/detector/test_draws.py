"""Numbers by keys: spread evenly, and each row's own."""

from __future__ import annotations

import pytest
import torch

from detector.draws import uniform


def test_a_row_depends_on_its_key_alone() -> None:
    """Alone, in company or in another place: the same numbers; another seed, epoch or image: others."""
    keys = torch.tensor([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 2]])
    together = uniform(keys, 5)
    for i in range(len(keys)):
        assert torch.equal(uniform(keys[i : i + 1], 5)[0], together[i])
    assert torch.equal(uniform(keys.flip(0), 5), together.flip(0))
    assert len({tuple(row) for row in together.tolist()}) == len(keys)
    assert torch.equal(uniform(keys, 3), together[:, :3])


def test_the_numbers_are_spread_evenly() -> None:
    """Over images, over epochs and along a row, in [0, 1), each sixteenth gets its share."""
    images = torch.stack([torch.zeros(4096), torch.zeros(4096), torch.arange(4096)], 1).long()
    epochs = images[:, [0, 2, 1]]
    for numbers in (uniform(images, 1), uniform(epochs, 1), uniform(images[:4], 1024)):
        assert numbers.min().item() >= 0
        assert numbers.max().item() < 1
        shares = torch.histc(numbers, 16, 0, 1) / numbers.numel()
        assert shares.tolist() == pytest.approx([1 / 16] * 16, abs=0.016)
    columns = uniform(images, 2)
    assert abs(torch.corrcoef(columns.T)[0, 1].item()) < 0.05


def test_the_numbers_are_these() -> None:
    """The same on every machine and under every torch: they decide what a golden's images are."""
    numbers = uniform(torch.tensor([[0, 0, 0], [7, 3, 2**31]]), 2)
    assert (numbers * 2**24).long().tolist() == [[10440304, 15862617], [10594181, 11889307]]
