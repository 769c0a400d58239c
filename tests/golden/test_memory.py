"""Bytes where they lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from golden import memory
from golden.digest import digest
from tests.golden.states import read


@st.composite
def spread(draw: st.DrawFn) -> npt.NDArray[Any]:
    """Arrays of any layout: permuted, sliced, reversed, broadcast, empty."""
    dtype = draw(st.sampled_from(["u1", "i2", "f4", "c8", "c16", "V3", "U5"]))
    sizes = draw(st.lists(st.integers(0, 4), max_size=4))
    count = int(np.prod(sizes))
    array = np.frombuffer(np.random.default_rng(0).bytes(max(count, 1) * np.dtype(dtype).itemsize), dtype)[:count].reshape(sizes)
    array = array.transpose(draw(st.permutations(range(array.ndim))))
    steps = [draw(st.sampled_from([1, 2, -1, -2])) for _ in range(array.ndim)]
    array = array[tuple(slice(None, None, step) for step in steps)]
    if draw(st.booleans()):
        array = np.broadcast_to(array, (draw(st.integers(1, 3)), *array.shape))
    return array


def view(array: npt.NDArray[Any]) -> memory.View:
    return memory.strided(array.__array_interface__["data"][0], array.shape, array.strides, array.itemsize)


@given(spread())
def test_a_view_reads_the_logical_bytes_of_any_layout(array: npt.NDArray[Any]) -> None:
    expected = array.tobytes()
    assert bytes(memory.whole(view(array))) == expected
    assert memory.digest_of(view(array)) == digest(expected)


def test_a_view_of_another_layout_reads_other_bytes() -> None:
    array = np.arange(6).reshape(2, 3)
    assert memory.digest_of(view(array)) != memory.digest_of(view(array.T))


def test_contiguous_memory_is_viewed_where_it_lies_and_read_only() -> None:
    array = np.arange(6).reshape(2, 3)
    seen = view(array)
    array[0] = 9
    assert isinstance(seen, memoryview)
    assert seen.readonly
    assert bytes(seen) == array.tobytes()


@pytest.mark.parametrize("shape", [(3000, 1000), (2, 3, 700, 500), (1, 1 << 21)])
def test_large_views_are_gathered_in_pieces_that_stay_small(shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape[::-1]).T
    pieces = list(memory.pieces(array))
    assert max(piece.nbytes for piece in pieces) <= 1 << 20
    assert b"".join(piece.tobytes() for piece in pieces) == array.tobytes()
    assert memory.digest_of(view(array)) == digest(array.tobytes())


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((), (), None),
        ((2, 3), (3, 1), None),
        ((2, 3), (1, 2), (1, 2)),
        ((2, 3), (5, 1), (5, 1)),
        ((16, 1, 3, 3), (9, 77, 3, 1), None),
        ((16, 1, 3, 3), (9, 1, 1, 3), (9, 1, 1, 3)),
        ((16, 1, 3, 3), (9, 77, 1, 3), (9, 1, 1, 3)),
        ((0, 3), (7, 7), None),
        ((5,), (0,), (0,)),
        ((1, 1), (5, 0), None),
        ((4,), (2,), (2,)),
    ],
)
def test_strides_count_as_layout_except_those_of_dimensions_of_size_one(
    shape: tuple[int, ...], strides: tuple[int, ...], expected: tuple[int, ...] | None
) -> None:
    assert memory.canonical(shape, strides) == expected


@given(spread())
def test_strides_are_none_exactly_for_contiguous_arrays(array: npt.NDArray[Any]) -> None:
    strides = tuple(stride // array.itemsize for stride in array.strides)
    assert (memory.canonical(array.shape, strides) is None) == bool(array.flags.c_contiguous)


@given(spread())
def test_a_span_goes_from_the_first_byte_to_the_last(array: npt.NDArray[Any]) -> None:
    low, high = np.lib.array_utils.byte_bounds(array) if hasattr(np.lib, "array_utils") else np.byte_bounds(array)  # type: ignore[attr-defined]
    below, span = memory.reach(array.shape, array.strides, array.itemsize)
    if array.size:
        assert (array.__array_interface__["data"][0] + below, span) == (low, high - low)
    else:
        assert (below, span) == (0, 0)


def test_a_tensor_can_still_be_resized_after_its_memory_was_viewed_and_could_not_after_numpy() -> None:
    tensor, spread, other = torch.ones(4), torch.ones(4, 2).T, torch.ones(4)
    assert bytes(memory.whole(memory.strided(tensor.data_ptr(), tensor.shape, [4], 4))) == other.numpy().tobytes()
    read(a=[tensor, spread])
    tensor.resize_(100)
    spread.resize_(100)
    other.numpy()
    with pytest.raises(RuntimeError, match="not resizable"):
        other.resize_(100)
