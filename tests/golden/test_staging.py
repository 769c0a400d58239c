"""Copies from a device, shown with tensors of the host."""

from __future__ import annotations

import pytest
import torch

from golden.memory import whole
from golden.staging import Staging

TENSORS = [
    torch.arange(5, dtype=torch.int16),
    torch.arange(12.0).reshape(3, 4).t(),
    torch.arange(100.0)[7:9],
    torch.ones(1, dtype=torch.float64).expand(3),
    torch.zeros(0, 2),
    torch.tensor(7, dtype=torch.uint8),
    torch.arange(3, dtype=torch.uint8).view(torch.float8_e4m3fn),
]


def logical(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.contiguous().view(-1).view(torch.uint8).tolist()) if tensor.numel() else b""


@pytest.mark.parametrize("most", [1, 64, 100, 1 << 20])
def test_copies_are_the_logical_bytes_in_rounds_of_any_size(most: int) -> None:
    staging = Staging(most)
    for _ in range(2):
        seen = {number: bytes(whole(view)) for number, view in staging.fetch(enumerate(TENSORS))}
        assert seen == {number: logical(tensor) for number, tensor in enumerate(TENSORS)}


def test_a_round_holds_no_more_than_it_may() -> None:
    staging = Staging(4096)
    list(staging.fetch(enumerate([torch.ones(256)] * 100)))
    assert staging._buffer.numel() <= 4096


def test_nothing_is_copied_where_nothing_is_asked_for() -> None:
    assert list(Staging().fetch([])) == []
