"""Triton kernels: a whole group's preparation in 19 launches, and its write in one, whatever the number and the shapes of its matrices.

Every kernel goes over all tensors of the group at once: a program looks up in tables which part of which tensor is its own. The letters
are update.py's; X, A and B as in `update.orthogonalize`. The tables stand in tables.py, the order of launches in packed.py. Source: P5.

Work is laid out so that the inner loops need no mask: the columns of X are padded with zeros to whole tiles, A and B on both sides.
"""

# Triton takes annotations for types of its own.
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"

from __future__ import annotations

import importlib
from typing import Any

# Optional and untyped, so taken by name: where it is missing, importing this module fails, and the update runs in torch's operations.
triton: Any = importlib.import_module("triton")
tl: Any = importlib.import_module("triton.language")


@triton.jit
def advance(
    pointers,  # int64 (n, 4): addresses of W, g, m (0 for what is no matrix), v
    meta,  # int64 (n, 12): see tables.Column
    chunks,  # int32 (programs, 2): tensor, first element
    c,  # float32 (5,): beta, 1 - beta, decay, muon, sgd
    updates,  # out, flat, in the dtype of W
    u,  # out, flat, bfloat16
    HYBRID: tl.constexpr,
    NESTEROV: tl.constexpr,
    DECAYS: tl.constexpr,
    MAXIMIZE: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Both momenta, the updates of the SGD half and u, element by element in the order of storage."""
    pid = tl.program_id(0)
    i = tl.load(chunks + 2 * pid)
    at = tl.load(chunks + 2 * pid + 1) + tl.arange(0, CHUNK)
    inside = at < tl.load(meta + 12 * i)
    to = tl.load(meta + 12 * i + 1)
    kind = tl.pointer_type(updates.dtype.element_ty)
    beta, rest = tl.load(c), tl.load(c + 1)
    g = tl.load(tl.load(pointers + 4 * i + 1).to(kind) + at, mask=inside, other=0.0).to(tl.float32)
    if MAXIMIZE:
        g = -g
    h = g
    if DECAYS:
        # gate: equivalent [cast-dropped] what it meets is float32, which makes it float32 too
        W = tl.load(tl.load(pointers + 4 * i).to(kind) + at, mask=inside, other=0.0).to(tl.float32)
        h = g + tl.load(c + 2) * W
    place = tl.load(pointers + 4 * i + 3).to(kind) + at
    # gate: equivalent [cast-dropped] what it meets is float32, which makes it float32 too
    v = (beta * tl.load(place, mask=inside, other=0.0).to(tl.float32) + h).to(updates.dtype.element_ty)
    tl.store(place, v, mask=inside)
    q = v.to(tl.float32)  # gate: equivalent [cast-dropped] it is rounded; what follows meets float32, or stores it
    if NESTEROV:
        q = h + beta * q
    if HYBRID:
        q = tl.load(c + 4) * q
    # gate: equivalent [cast-dropped] a store converts to what it points to
    tl.store(updates + to + at, q.to(updates.dtype.element_ty), mask=inside)
    if HYBRID:
        address = tl.load(pointers + 4 * i + 2)
        if address != 0:
            spot = address.to(kind) + at
            # gate: equivalent [cast-dropped] what it meets is float32, which makes it float32 too
            m = (beta * tl.load(spot, mask=inside, other=0.0).to(tl.float32) + rest * g).to(updates.dtype.element_ty)
            tl.store(spot, m, mask=inside)
            ahead = m.to(tl.float32)  # gate: equivalent [cast-dropped] it is rounded; what follows meets float32, or stores it
            if NESTEROV:
                ahead = beta * ahead + rest * g
            # gate: equivalent [cast-dropped] a store converts to what it points to
            tl.store(u + to + at, ahead.to(tl.bfloat16), mask=inside)


@triton.jit
def square(u, meta, chunks, sums, CHUNK: tl.constexpr):
    """The sum of squares of each chunk of u, float32 (programs,)."""
    pid = tl.program_id(0)
    i = tl.load(chunks + 2 * pid)
    at = tl.load(chunks + 2 * pid + 1) + tl.arange(0, CHUNK)
    x = tl.load(u + tl.load(meta + 12 * i + 1) + at, mask=at < tl.load(meta + 12 * i), other=0.0).to(tl.float32)
    tl.store(sums + pid, tl.sum(x * x, axis=0))


@triton.jit
def normalise(u, meta, chunks, sums, X, epsilon: tl.constexpr, CHUNK: tl.constexpr):
    """X <- u / (||u|| + epsilon), transposed where there are more rows than columns, with zeros in the padding."""
    pid = tl.program_id(0)
    i = tl.load(chunks + 2 * pid)
    at = tl.load(chunks + 2 * pid + 1) + tl.arange(0, CHUNK)
    to = tl.load(meta + 12 * i + 1)
    width = tl.load(meta + 12 * i + 2).to(tl.int32)
    tall = tl.load(meta + 12 * i + 3)
    rows = tl.load(meta + 12 * i + 4).to(tl.int32)
    ld = tl.load(meta + 12 * i + 5).to(tl.int32)
    columns = tl.load(meta + 12 * i + 8).to(tl.int32)
    first = tl.load(meta + 12 * i + 9).to(tl.int32)
    count = tl.load(meta + 12 * i + 10).to(tl.int32)
    parts = tl.zeros((256,), dtype=tl.float32)
    for k in range(0, count, 256):
        each = k + tl.arange(0, 256)
        parts += tl.load(sums + first + each, mask=each < count, other=0.0)
    norm = tl.sqrt(tl.sum(parts, axis=0)) + epsilon
    row, column = at // ld, at % ld
    source = tl.where(tall != 0, column * width + row, row * width + column)
    # gate: equivalent [comparison-edge] what is read of the row after the last is stored nowhere
    inside = (row < rows) & (column < columns)
    # gate: equivalent [cast-dropped] what it meets is float32, which makes it float32 too
    x = tl.load(u + to + source, mask=inside, other=0.0).to(tl.float32)
    # gate: equivalent [cast-dropped] a store converts to what it points to
    tl.store(X + tl.load(meta + 12 * i + 6) + at, (x / norm).to(tl.bfloat16), mask=row < rows)


@triton.jit
def gram(X, A, meta, tiles, TILE: tl.constexpr, WIDE: tl.constexpr):
    """A = X X^T, one tile a program; tiles int32 (programs, 3): matrix, row and column of the tile.

    WIDE multiplies in float32: the products of bfloat16 numbers are exact there, and Triton's interpreter has no bfloat16 ones.
    """
    pid = tl.program_id(0)
    i = tl.load(tiles + 3 * pid)
    m = tl.load(tiles + 3 * pid + 1) * TILE + tl.arange(0, TILE)
    n = tl.load(tiles + 3 * pid + 2) * TILE + tl.arange(0, TILE)
    rows = tl.load(meta + 12 * i + 4).to(tl.int32)
    ld = tl.multiple_of(tl.load(meta + 12 * i + 5).to(tl.int32), 64)
    side = tl.multiple_of(tl.load(meta + 12 * i + 11).to(tl.int32), 64)
    start = X + tl.multiple_of(tl.load(meta + 12 * i + 6), 64)
    k = tl.arange(0, TILE)
    left = start + (m[:, None] * ld + k[None, :])
    right = start + (n[:, None] * ld + k[None, :])
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for _ in range(0, ld, TILE):  # gate: equivalent [number] of whole tiles there are as many from one element on
        a = tl.load(left, mask=m[:, None] < rows, other=0.0)
        b = tl.load(right, mask=n[:, None] < rows, other=0.0)
        if WIDE:
            a, b = a.to(tl.float32), b.to(tl.float32)
        total = tl.dot(a, tl.trans(b), total)
        left += TILE
        right += TILE
    out = A + tl.multiple_of(tl.load(meta + 12 * i + 7), 64) + (m[:, None] * side + n[None, :])
    tl.store(out, total.to(tl.bfloat16))  # gate: equivalent [cast-dropped] a store converts to what it points to


@triton.jit
def polynomial(A, B, meta, tiles, b: tl.constexpr, c: tl.constexpr, TILE: tl.constexpr, WIDE: tl.constexpr):
    """B = b A + c A A, tiles and WIDE as in `gram`."""
    pid = tl.program_id(0)
    i = tl.load(tiles + 3 * pid)
    m = tl.load(tiles + 3 * pid + 1) * TILE + tl.arange(0, TILE)
    n = tl.load(tiles + 3 * pid + 2) * TILE + tl.arange(0, TILE)
    side = tl.multiple_of(tl.load(meta + 12 * i + 11).to(tl.int32), 64)
    offset = tl.multiple_of(tl.load(meta + 12 * i + 7), 64)
    k = tl.arange(0, TILE)
    left = A + offset + (m[:, None] * side + k[None, :])
    right = A + offset + (k[:, None] * side + n[None, :])
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for _ in range(0, side, TILE):  # gate: equivalent [number] of whole tiles there are as many from one element on
        x, y = tl.load(left), tl.load(right)
        if WIDE:
            x, y = x.to(tl.float32), y.to(tl.float32)
        total = tl.dot(x, y, total)
        left += TILE
        right += TILE * side
    here = offset + (m[:, None] * side + n[None, :])
    total = b * tl.load(A + here).to(tl.float32) + c * total
    tl.store(B + here, total.to(tl.bfloat16))  # gate: equivalent [cast-dropped] a store converts to what it points to


@triton.jit
def apply(B, X, Y, meta, tiles, a: tl.constexpr, TILE: tl.constexpr, WIDE: tl.constexpr):
    """Y = a X + B X, one tile of X a program; WIDE as in `gram`."""
    pid = tl.program_id(0)
    i = tl.load(tiles + 3 * pid)
    m = tl.load(tiles + 3 * pid + 1) * TILE + tl.arange(0, TILE)
    n = tl.load(tiles + 3 * pid + 2) * TILE + tl.arange(0, TILE)
    rows = tl.load(meta + 12 * i + 4).to(tl.int32)
    ld = tl.multiple_of(tl.load(meta + 12 * i + 5).to(tl.int32), 64)
    side = tl.multiple_of(tl.load(meta + 12 * i + 11).to(tl.int32), 64)
    offset = tl.multiple_of(tl.load(meta + 12 * i + 6), 64)
    k = tl.arange(0, TILE)
    left = B + tl.multiple_of(tl.load(meta + 12 * i + 7), 64) + (m[:, None] * side + k[None, :])
    right = X + offset + (k[:, None] * ld + n[None, :])
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for first in range(0, side, TILE):
        x, y = tl.load(left), tl.load(right, mask=first + k[:, None] < rows, other=0.0)
        if WIDE:
            x, y = x.to(tl.float32), y.to(tl.float32)
        total = tl.dot(x, y, total)
        left += TILE
        right += TILE * ld
    here = offset + (m[:, None] * ld + n[None, :])
    total += a * tl.load(X + here, mask=m[:, None] < rows, other=0.0).to(tl.float32)
    # gate: equivalent [cast-dropped] a store converts to what it points to
    tl.store(Y + here, total.to(tl.bfloat16), mask=m[:, None] < rows)


@triton.jit
def write(pointers, meta, chunks, updates, factor, CHUNK: tl.constexpr):
    """W += factor * updates, as torch's foreach addition with alpha does it: one multiplication and addition, rounded once."""
    pid = tl.program_id(0)
    i = tl.load(chunks + 2 * pid)
    at = tl.load(chunks + 2 * pid + 1) + tl.arange(0, CHUNK)
    inside = at < tl.load(meta + 12 * i)
    place = tl.load(pointers + 4 * i).to(tl.pointer_type(updates.dtype.element_ty)) + at
    update = tl.load(updates + tl.load(meta + 12 * i + 1) + at, mask=inside, other=0.0).to(tl.float32)
    # gate: equivalent [cast-dropped] what it meets is float32, which makes it float32 too
    W = tl.load(place, mask=inside, other=0.0).to(tl.float32)
    # gate: equivalent [cast-dropped] a store converts to what it points to
    tl.store(place, (W + factor * update).to(updates.dtype.element_ty), mask=inside)


@triton.jit
def combine(X, meta, scales, chunks, c, updates, CHUNK: tl.constexpr):
    """Updates += muon s X, in the order of storage; scales float32 (n,)."""
    pid = tl.program_id(0)
    i = tl.load(chunks + 2 * pid)
    at = tl.load(chunks + 2 * pid + 1) + tl.arange(0, CHUNK)
    inside = at < tl.load(meta + 12 * i)
    width = tl.load(meta + 12 * i + 2).to(tl.int32)
    tall = tl.load(meta + 12 * i + 3)
    ld = tl.load(meta + 12 * i + 5).to(tl.int32)
    row, column = at // width, at % width
    source = tl.where(tall != 0, column * ld + row, row * ld + column)
    # gate: equivalent [cast-dropped] what it meets is float32, which makes it float32 too
    o = tl.load(scales + i) * tl.load(X + tl.load(meta + 12 * i + 6) + source, mask=inside, other=0.0).to(tl.float32)
    place = updates + tl.load(meta + 12 * i + 1) + at
    # gate: equivalent [cast-dropped] what it meets is float32, which makes it float32 too
    moved = tl.load(place, mask=inside, other=0.0).to(tl.float32) + tl.load(c + 3) * o
    # gate: equivalent [cast-dropped] a store converts to what it points to
    tl.store(place, moved.to(updates.dtype.element_ty), mask=inside)
