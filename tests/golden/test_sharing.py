"""Which ranges of memory overlap."""

from __future__ import annotations

import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from golden.sharing import Ranges

RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12), st.integers(0, 1)), max_size=30)


def found(ranges: list[tuple[int, int, int]]) -> list[int]:
    columns = np.array(ranges, np.int64).reshape(-1, 3)
    return [int(index) for index in Ranges(columns[:, 1], columns[:, 2]).earliest(columns[:, 0])]


def pairwise(ranges: list[tuple[int, int, int]]) -> list[int]:
    """By comparing each range with each."""

    def overlap(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
        return one[2] == other[2] and max(one[0], other[0]) < min(one[0] + one[1], other[0] + other[1])

    return [min([index, *(before for before, other in enumerate(ranges) if overlap(each, other))]) for index, each in enumerate(ranges)]


@given(RANGES)
def test_the_earliest_overlap_is_that_of_comparing_all_pairs(ranges: list[tuple[int, int, int]]) -> None:
    assert found(ranges) == pairwise(ranges)


def test_ranges_that_touch_or_are_empty_share_nothing() -> None:
    assert found([(0, 4, 0), (4, 4, 0), (2, 0, 0), (8, 1, 0)]) == [0, 1, 2, 3]


def test_ranges_that_overlap_by_a_byte_share() -> None:
    assert found([(0, 5, 0), (4, 4, 0)]) == [0, 0]


def test_a_range_is_found_from_all_that_start_inside_it() -> None:
    """Also from those near its start, which the last power of two that fits into it does not reach."""
    for count in range(1, 20):
        assert found([(0, count, 0), *((start, 1, 0) for start in range(1, count + 1))]) == [0] * count + [count]


def test_a_memory_of_which_nothing_is_used_is_no_trouble() -> None:
    assert found([]) == []
    assert found([(0, 0, 0), (3, 0, 0), (3, 1, 1), (3, 0, 1)]) == [0, 1, 2, 3]


def test_the_same_addresses_in_two_memories_are_two_things() -> None:
    assert found([(0, 4, 0), (0, 4, 1)]) == [0, 1]


def test_a_hundred_thousand_views_of_one_buffer_take_no_quadratic_time() -> None:
    def seconds(count: int) -> float:
        start = np.arange(count, dtype=np.int64)
        began = time.thread_time()
        result = Ranges(np.full(count, count // 2, np.int64), np.zeros(count, np.int64)).earliest(start)
        assert result[-1] == count // 2
        return time.thread_time() - began

    seconds(1000)
    assert seconds(100_000) < 60 * max(seconds(10_000), 0.002)
