"""Bytes where they lie: views of memory by address, and the logical bytes of what is not contiguous.

Views are made from addresses, never by ``Tensor.numpy()``: that marks the storage as not resizable, and a recorder leaves a run as it is.
[held by tests/golden/test_memory.py::test_a_tensor_can_still_be_resized_after_its_memory_was_viewed_and_could_not_after_numpy]
A view keeps nothing alive. Whoever reads one holds its owner, and has checked that the owner still lies there.

Legend: address in bytes; strides in bytes; span is the number of bytes from the first byte to the last, zero for what is empty.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import xxhash

from golden.digest import digest

View: TypeAlias = "memoryview | npt.NDArray[Any]"  # contiguous bytes, or an array that strides over memory

_READ_ONLY = 0x100  # PyBUF_READ  # gate: equivalent [number] to CPython everything but PyBUF_WRITE is
_PIECE = 1 << 20  # bytes gathered at once from what is not contiguous: it stays in the cache, and a large tensor is never copied whole
_from_memory = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)(
    ("PyMemoryView_FromMemory", ctypes.pythonapi)
)
# All addresses from 1 on, none of them read: to cut a slice from it is three times as fast as to ask for another view.
_all: memoryview = _from_memory(1, sys.maxsize, _READ_ONLY)


def at(address: int, nbytes: int) -> memoryview:
    """The bytes at an address, read-only; nothing for no bytes, wherever they are."""
    return _all[address - 1 : address - 1 + nbytes] if nbytes else _all[:0]


def canonical(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...] | None:
    """Strides as part of a layout, in elements: None where contiguous, 1 for dimensions of size 1, whose own say nothing."""
    dense, contiguous, written = 1, True, []
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 0:
            return None
        written.append(stride if size > 1 else 1)
        contiguous = contiguous and (size == 1 or stride == dense)
        dense *= size
    return None if contiguous else tuple(reversed(written))


def reach(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """Where the bytes start, relative to the first element (at or below zero), and their span."""
    if 0 in shape:
        return 0, 0
    steps = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    below = sum(min(step, 0) for step in steps)
    return below, sum(map(abs, steps)) + itemsize


def strided(address: int, shape: Sequence[int], strides: Sequence[int], itemsize: int) -> View:
    """A view of elements of any type: ``address`` is the first element's."""
    if canonical(shape, [stride // itemsize for stride in strides]) is None:
        return at(address, math.prod(shape) * itemsize)
    below, span = reach(shape, strides, itemsize)
    kept = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]  # numpy has at most 32 dimensions
    sizes, steps = [size for size, _ in kept], [stride for _, stride in kept]
    view: npt.NDArray[Any] = np.ndarray(sizes, f"V{itemsize}", buffer=at(address + below, span), offset=-below, strides=steps)
    return view


def pieces(view: npt.NDArray[Any]) -> Iterator[npt.NDArray[np.uint8]]:
    """Logical bytes of a strided view, uint8 [bytes] each, in row-major order and small enough to stay in the cache."""
    if view.nbytes <= _PIECE:
        yield np.ascontiguousarray(view).reshape(-1).view(np.uint8)
        return
    rows = _PIECE // view[0].nbytes
    if not rows:
        for inner in view:
            yield from pieces(inner)
        return
    for start in range(0, len(view), rows):
        yield from pieces(view[start : start + rows])


def digest_of(view: View) -> bytes:
    """Digest of the logical bytes, 16 bytes; copies a piece at a time."""
    if isinstance(view, memoryview):
        return digest(view)
    state = xxhash.xxh3_128()
    for piece in pieces(view):
        state.update(piece.data)
    return state.digest()


def whole(view: View) -> memoryview | npt.NDArray[np.uint8]:
    """Logical bytes in one buffer: the memory itself where it is contiguous, else a copy."""
    if isinstance(view, memoryview):
        return view
    return np.ascontiguousarray(view).reshape(-1).view(np.uint8)
