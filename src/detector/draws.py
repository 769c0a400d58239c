"""Random numbers that depend on nothing but what they are for: the seed, the epoch, the image."""

from __future__ import annotations

import torch
from torch import Tensor

_MASK = 0xFFFFFFFF


def uniform(keys: Tensor, count: int) -> Tensor:
    """Numbers in [0, 1), the same on every device.

    Args:
        keys: (B, K), int64, at least 0; each row names a draw of its own.
        count: how many numbers a row.

    Returns:
        (B, count), float32, multiples of 2^-24.
    """
    state = torch.zeros(len(keys), 1, dtype=torch.int64, device=keys.device)
    for column in keys.unbind(1):
        state = _mix(state ^ _mix(column[:, None] & _MASK) + 0x9E3779B9 & _MASK)
    numbers = torch.arange(1, count + 1, device=keys.device)
    return (_mix(state + numbers * 0x9E3779B9 & _MASK) >> 8).float() * 2.0**-24


def _mix(x: Tensor) -> Tensor:
    """Each of 32 bits moves about half of the others (MurmurHash3's last steps); int64 holds them, whose products wrap as wanted."""
    x = (x ^ x >> 16) * 0x85EBCA6B & _MASK
    x = (x ^ x >> 13) * 0xC2B2AE35 & _MASK
    return x ^ x >> 16
