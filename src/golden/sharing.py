"""Which leaves lie in the same memory: for each range of addresses the earliest leaf whose range overlaps with it.

A range overlaps with all ranges that start inside it, and with all that contain its start. Both questions are answered for every range at
once by tables of minima over powers of two: n log n, without a loop over pairs, so that ten thousand views of one buffer are no trouble.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Ranges:
    """Ranges of memory, but for where they start.

    Args:
        span: int64 [n], number of bytes; an empty range overlaps with nothing.
        space: int64 [n], which memory the range is in; ranges of two spaces never overlap.
            [held by tests/golden/test_sharing.py::test_the_same_addresses_in_two_memories_are_two_things]
    """

    def __init__(self, span: Ints, space: Ints) -> None:
        self._span = span
        self._groups = [np.flatnonzero((space == each) & (span > 0)) for each in np.unique(space)]

    def earliest(self, start: Ints) -> Ints:
        """For each range [n] the lowest index of a range that overlaps with it: its own index where none before it does.

        Args:
            start: int64 [n], address of the first byte.
        """
        found = np.arange(len(start), dtype=np.int64)
        for members in self._groups:
            found[members] = _space(start[members], start[members] + self._span[members], members)
        return found


def _space(start: Ints, end: Ints, index: Ints) -> Ints:
    """Lowest index that overlaps, for non-empty ranges [n] of one space."""
    order = np.argsort(start, kind="stable")
    # gate: equivalent [comparison-edge] ranges that only touch come to the same below, more slowly
    if (start[order][1:] >= np.maximum.accumulate(end[order])[:-1]).all():
        return index  # the usual case: nothing overlaps
    points = np.unique(start)
    first = np.searchsorted(points, start)
    last = np.searchsorted(points, end)  # one beyond the last start that lies inside
    at_point = np.full(len(points), np.iinfo(np.int64).max, np.int64)
    np.minimum.at(at_point, first, index)
    return np.minimum(_minima(at_point, first, last), _spread(len(points), first, last, index)[first])


def _levels(lengths: Ints) -> Ints:
    """Floor of the binary logarithm, for lengths >= 1."""
    return np.frexp(lengths.astype(np.float64))[1].astype(np.int64) - 1


def _minima(values: Ints, first: Ints, last: Ints) -> Ints:
    """Minimum of values[first:last] for each of many windows, none empty."""
    level = _levels(last - first)
    result = np.empty(len(first), np.int64)
    table = values
    for power in range(int(level.max()) + 1):  # gate: equivalent [number] no window is so long that it reads one table more
        at = level == power
        result[at] = np.minimum(table[first[at]], table[last[at] - (1 << power)])
        table = np.minimum(table[: -(1 << power)], table[1 << power :])
    return result


def _spread(size: int, first: Ints, last: Ints, index: Ints) -> Ints:
    """For each of ``size`` places the lowest index of a window that covers it."""
    level = _levels(last - first)
    table = np.full(size, np.iinfo(np.int64).max, np.int64)
    for power in range(int(level.max()), -1, -1):
        at = level == power
        np.minimum.at(table, first[at], index[at])
        np.minimum.at(table, last[at] - (1 << power), index[at])
        if power:
            half = 1 << (power - 1)
            lower = table.copy()
            np.minimum(lower[half:], table[:-half], out=lower[half:])
            table = lower
    return table
