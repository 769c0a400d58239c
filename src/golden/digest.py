"""Digests: xxh3-128 of a leaf's bytes, and root digests of a phase.

A digest is a row of two uint64, the high half first, so that its 32 hexadecimal digits read from left to right as xxhash prints them.
xxh3 is no cryptographic hash: it finds accidents, and whoever can write a golden can write its digests as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
import xxhash

from golden.leaf import Buffer, Leaf

KIND = "xxh3-128"
BYTES = 16


def digest(data: Buffer) -> bytes:
    """The 16 bytes of the digest of ``data`` (any contiguous buffer), high half first."""
    return xxhash.xxh3_128_digest(cast("bytes", data))  # an array is a buffer, which types before Python 3.12 cannot say


EMPTY = digest(b"")


def rows(digests: Iterable[bytes]) -> npt.NDArray[np.uint64]:
    """Digests of 16 bytes each as rows: uint64 [n, 2], high half first."""
    return np.frombuffer(b"".join(digests), dtype=">u8").reshape(-1, 2).astype(np.uint64)


def of(buffers: Iterable[Buffer]) -> npt.NDArray[np.uint64]:
    """Digests of buffers: uint64 [n, 2]."""
    return rows(map(digest, buffers))


def text(row: npt.NDArray[np.uint64]) -> str:
    """A row [2] as 32 hexadecimal digits."""
    return f"{int(row[0]):016x}{int(row[1]):016x}"


class Roots:
    """Root digests of one phase, for any number of steps that have the same leaves.

    The root is the digest of the number of leaves, their lines and then their digests, both sorted by path: the order in which a mapping
    was filled does not matter, which digest stands at which path does. Sorting and encoding happen once, so that a step costs one
    pass over its digests.

    Args:
        leaves: the leaves of one phase, with distinct paths.
        lines: of these leaves, where they are at hand.
    """

    def __init__(self, leaves: Sequence[Leaf], lines: Sequence[str] | None = None) -> None:
        known = [leaf.line() for leaf in leaves] if lines is None else lines
        order = sorted(range(len(leaves)), key=[leaf.path for leaf in leaves].__getitem__)
        self._order = np.array(order, dtype=np.intp)
        self._start = xxhash.xxh3_128("\n".join([f"{len(leaves)}", *(known[index] for index in order), ""]).encode())

    def root(self, digests: npt.NDArray[np.uint64]) -> str:
        """Root of one step, 32 hexadecimal digits.

        Args:
            digests: uint64 [leaves, 2], in the order of the leaves.
        """
        state: xxhash.xxh3_128 = self._start.copy()
        state.update(digests[self._order].astype(">u8").tobytes())
        return state.hexdigest()
