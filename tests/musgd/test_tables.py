"""The tables that tell each program of a kernel its part: every number of a few, worked out by hand."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Tensor

from musgd.tables import TABLES, Column, tables

CPU = torch.device("cpu")


def rows(table: Tensor) -> list[tuple[int, ...]]:
    assert table.dtype in (torch.int32, torch.int64)
    return [tuple(row) for row in table.tolist()]


def test_a_tall_and_a_wide_matrix_and_what_is_none() -> None:
    """Lines of X are padded to 64, its rows are the shorter side; chunks hold 1024 elements."""
    t = tables(((70, 5), (3, 20, 20), (7,), (0,), ()), (2.0, 0.5), CPU)
    assert rows(t.meta) == [
        (350, 0, 5, 1, 5, 128, 0, 0, 70, 0, 1, 64),
        (1200, 384, 400, 0, 3, 448, 640, 4096, 400, 1, 2, 64),
        (7, 1600, *[0] * 10),
        (0, 1664, *[0] * 10),
        (1, 1664, *[0] * 10),
    ]
    assert t.meta.dtype == torch.int64
    assert t.meta.shape == (5, len(Column))
    assert rows(t.chunks) == [(0, 0), (1, 0), (1, 1024), (2, 0), (4, 0)]
    assert rows(t.stretches) == [(0, 0), (1, 0), (1, 1024)]
    assert rows(t.squares) == [(0, 0, 0), (1, 0, 0)]
    assert rows(t.tiles) == [(0, 0, 0), (0, 0, 1), *((1, 0, n) for n in range(7))]
    assert {x.dtype for x in (t.chunks, t.stretches, t.squares, t.tiles)} == {torch.int32}
    assert (t.scales.tolist(), t.scales.dtype) == ([2.0, 0.5], torch.float32)
    assert (t.matrix_chunks, t.offsets, t.sizes) == (3, (0, 384, 1600, 1664, 1664), (1728, 1984, 1984, 8192))


def test_a_matrix_of_several_tiles_each_way() -> None:
    t = tables(((65, 70),), (1.0,), CPU)
    assert rows(t.meta) == [(4550, 0, 70, 0, 65, 128, 0, 0, 70, 0, 5, 128)]
    assert rows(t.chunks) == [(0, start) for start in range(0, 4550, 1024)]
    assert rows(t.stretches) == [(0, start) for start in range(0, 65 * 128, 1024)]
    assert rows(t.squares) == [(0, m, n) for m in (0, 1) for n in (0, 1)]
    assert rows(t.tiles) == [(0, m, n) for m in (0, 1) for n in (0, 1)]
    assert (t.matrix_chunks, t.offsets, t.sizes) == (5, (0,), (4608, 8320, 8320, 16384))


def test_columns_are_numbered_as_the_kernels_read_them() -> None:
    assert [column.value for column in Column] == list(range(12))


def test_a_square_matrix_is_not_turned() -> None:
    """As in torch's operations, which turn what has more rows than columns."""
    assert rows(tables(((4, 4), (5, 4)), (1.0, 1.0), CPU).meta[:, Column.TALL :][:, :1]) == [(0,), (1,)]


def test_without_a_matrix_all_but_the_chunks_is_empty() -> None:
    t = tables(((7,),), (), CPU)
    assert [tuple(x.shape) for x in (t.scales, t.chunks, t.stretches, t.squares, t.tiles)] == [(0,), (1, 2), (0, 2), (0, 3), (0, 3)]
    assert (t.matrix_chunks, t.sizes) == (0, (64, 0, 0, 0))


def test_equal_shapes_and_scales_have_the_same_tables_and_others_have_their_own() -> None:
    one = tables(((3, 3),), (1.0,), CPU)
    assert tables(((3, 3),), (1.0,), CPU) is one is TABLES[((3, 3),), (1.0,), CPU]
    other = tables(((3, 3),), (2.0,), CPU)
    assert one not in (other, tables(((3, 4),), (1.0,), CPU)), "no table is told from others by its numbers"
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.matrix_chunks = 2  # type: ignore[misc]


def test_they_are_no_inference_tensors_wherever_they_are_made() -> None:
    """A graph's launches read them in every later mode."""
    with torch.inference_mode():
        t = tables(((2, 9),), (1.5,), CPU)
    assert not any(x.is_inference() for x in (t.meta, t.scales, t.chunks, t.stretches, t.squares, t.tiles))
