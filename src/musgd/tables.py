"""Tables that tell every program of a kernel which part of which tensor is its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import torch
from torch import Tensor

CHUNK, TILE = 1024, 64


class Column(IntEnum):
    """What stands where in a row of `Tables.meta`; from WIDTH on for matrices alone."""

    NUMEL = 0
    OFFSET = 1  # of the tensor's elements in updates and in u
    WIDTH = 2  # columns of the matrix as it is stored
    TALL = 3  # stored with more rows than columns: X is its transpose
    ROWS = 4  # of X
    LD = 5  # elements from one row of X to the next
    X = 6  # offset of X
    A = 7  # offset of A and B
    COLUMNS = 8  # of X, without padding
    SUMS = 9  # first of its sums of squares
    COUNT = 10  # number of those
    SIDE = 11  # rows and columns of A and B, padding included


@dataclass(frozen=True, eq=False)
class Tables:
    """Where everything lies, for one list of shapes; on the device, but for the sizes.

    Attributes:
        meta: int64 (n, 12), see `Column`.
        scales: float32 (n,), s of each matrix.
        chunks: int32 (N, 2): tensor and first element of each stretch of CHUNK elements; those of the matrices first.
        stretches: The same for X.
        squares: int32 (N, 3): matrix, row and column of each tile of A.
        tiles: The same for X.
        matrix_chunks: How many of the chunks are of matrices.
        offsets: Of each tensor in updates.
        sizes: Elements of updates, u, X and A.
    """

    meta: Tensor
    scales: Tensor
    chunks: Tensor
    stretches: Tensor
    squares: Tensor
    tiles: Tensor
    matrix_chunks: int
    offsets: tuple[int, ...]
    sizes: tuple[int, int, int, int]

    @property
    def behind(self) -> list[int]:
        """Elements of bfloat16 of all that orthogonalising takes beside u: X, A, B, and the sums, which are float32."""
        _, _, x, a = self.sizes
        return [x, a, a, 2 * self.matrix_chunks]


Shapes = tuple[tuple[int, ...], ...]
Key = tuple[Shapes, tuple[float, ...], torch.device]


# Kept for good: a graph of somebody else may have captured launches that read them.
TABLES: dict[Key, Tables] = {}


def tables(shapes: Shapes, s: tuple[float, ...], device: torch.device) -> Tables:
    """The tables for tensors of these shapes, of which the first len(s) are matrices with these scales."""
    key = shapes, s, device
    if key not in TABLES:
        TABLES[key] = _tables(*key)
    return TABLES[key]


def _tables(shapes: Shapes, s: tuple[float, ...], device: torch.device) -> Tables:
    meta: list[list[int]] = []
    chunks: list[tuple[int, int]] = []
    stretches: list[tuple[int, int]] = []
    squares: list[tuple[int, int, int]] = []
    tiles: list[tuple[int, int, int]] = []
    at = u_end = x = a = 0
    matrix_chunks = 0
    for i, shape in enumerate(shapes):
        numel = _product(shape)
        row = [numel, at] + [0] * (len(Column) - 2)
        parts = [(i, start) for start in range(0, numel, CHUNK)]
        if i < len(s):
            width, height = numel // shape[0], shape[0]
            rows, columns = min(height, width), max(height, width)
            ld, side = _padded(columns), _padded(rows)
            row[Column.WIDTH :] = [width, height > width, rows, ld, x, a, columns, len(chunks), len(parts), side]
            stretches += [(i, start) for start in range(0, rows * ld, CHUNK)]
            squares += [(i, m, n) for m in range(side // TILE) for n in range(side // TILE)]
            tiles += [(i, m, n) for m in range(side // TILE) for n in range(ld // TILE)]
            x, a = x + _padded(rows * ld), a + side * side
        meta.append(row)
        chunks += parts
        at += _padded(numel)
        if i < len(s):
            u_end, matrix_chunks = at, len(chunks)
    with torch.inference_mode(False):
        return Tables(
            meta=torch.tensor(meta, dtype=torch.int64).to(device),
            scales=torch.tensor(s, dtype=torch.float32).to(device),
            chunks=_ints(chunks, 2, device),
            stretches=_ints(stretches, 2, device),
            squares=_ints(squares, 3, device),
            tiles=_ints(tiles, 3, device),
            matrix_chunks=matrix_chunks,
            offsets=tuple(row[Column.OFFSET] for row in meta),
            # u is as long as X at least, which takes its place.
            sizes=(at, max(u_end, x), x, a),
        )


def _padded(size: int) -> int:
    return -(-size // TILE) * TILE


def _product(shape: Sequence[int]) -> int:
    result = 1
    for size in shape:
        result *= size
    return result


def _ints(rows: Sequence[Sequence[int]], width: int, device: torch.device) -> Tensor:
    return torch.tensor(rows, dtype=torch.int32).reshape(-1, width).to(device)
