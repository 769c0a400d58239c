"""Bytes of tensors on a device, brought to the host.

All copies of a round are queued before any is waited for: into one buffer of pinned memory, on the device's current stream, with one
synchronisation. A round is at most 256 MiB, or one tensor: more state than that comes in several rounds, so that it is never whole in the
host's memory. [held by tests/golden/test_staging.py::test_a_round_holds_no_more_than_it_may]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from golden import memory
from golden.memory import View

ROUND = 1 << 28  # bytes
_ALIGNED = 64  # bytes; more than any element needs


class Staging:
    """A buffer in the host's memory that is kept from step to step.

    Args:
        most: bytes of a round.
    """

    def __init__(self, most: int = ROUND) -> None:
        self._most = most
        self._buffer = _buffer(0, pinned=False)

    def fetch(self, found: Iterable[tuple[int, Tensor]]) -> Iterator[tuple[int, View]]:
        """The bytes of plain tensors on any devices.

        Args:
            found: a number of the caller's for each tensor.

        Yields:
            The number, and a view of the logical bytes that is valid until the next round: until the iterator goes on.
        """
        batch: list[tuple[int, Tensor]] = []
        total = 0
        for number, tensor in found:
            span = _reserved(tensor)
            if batch and total + span > self._most:
                yield from self._round(batch, total)
                batch, total = [], 0
            batch.append((number, tensor))
            total += span
        if batch:
            yield from self._round(batch, total)

    def _round(self, batch: Sequence[tuple[int, Tensor]], total: int) -> Iterator[tuple[int, View]]:
        if self._buffer.numel() < total:
            self._buffer = _buffer(total, pinned=any(tensor.is_cuda for _, tensor in batch))
        places = []
        start = 0
        for _, tensor in batch:
            places.append(self._queue(tensor, start))
            start += _reserved(tensor)
        for device in {tensor.device for _, tensor in batch if tensor.is_cuda}:
            torch.cuda.current_stream(device).synchronize()
        for (number, tensor), address in zip(batch, places, strict=True):
            item = tensor.dtype.itemsize
            yield number, memory.strided(address, tensor.shape, [stride * item for stride in tensor.stride()], item)

    def _queue(self, tensor: Tensor, start: int) -> int:
        """Queues the copy of all bytes from a tensor's first element to its last; where in the host's memory they will be."""
        span = _span(tensor)
        target = self._buffer[start : start + span]
        if span:
            begin = tensor.storage_offset() * tensor.dtype.itemsize
            # gate: equivalent [number] set_ gives it the size of the storage
            source = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
            # gate: equivalent [truth] it decides about speed alone: all copies of a round are waited for
            target.copy_(source[begin : begin + span], non_blocking=True)
        return target.data_ptr()


def _buffer(nbytes: int, *, pinned: bool) -> Tensor:
    with torch.inference_mode(mode=False):  # a buffer made in inference mode could be written nowhere else
        return torch.empty(nbytes, dtype=torch.uint8, device="cpu", pin_memory=pinned)


def _span(tensor: Tensor) -> int:
    item = tensor.dtype.itemsize
    return memory.reach(tensor.shape, [stride * item for stride in tensor.stride()], item)[1]


def _reserved(tensor: Tensor) -> int:
    """Bytes in the buffer, so that the next tensor is aligned."""
    return -(-_span(tensor) // _ALIGNED) * _ALIGNED
