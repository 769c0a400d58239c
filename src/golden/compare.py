"""Where two recordings differ: structure and bits apart, in the order in which the golden was executed."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from golden import digest
from golden.census import Bytes, census
from golden.difference import Comparison, Difference, Kind
from golden.leaf import Leaf
from golden.structure import Pair, pairs, structure

if TYPE_CHECKING:
    from golden.store import Golden

__all__ = ["Comparison", "Difference", "Kind", "Recording", "compare", "compare_files"]


class Recording(Protocol):
    """What a comparison reads of a golden, a kept run, or the contents of their step files."""

    @property
    def steps(self) -> Sequence[int]:
        """The steps recorded, ascending."""

    def leaves(self, step: int) -> tuple[Leaf, ...]:
        """The leaves of one step in order of execution, those of one phase adjacent; the same object where nothing changed."""

    def find(self, step: int, full: str) -> int | None:
        """The place of a path among the leaves of a step, None where it has no such leaf."""

    def digests(self, step: int) -> npt.NDArray[np.uint64]:
        """The digests of all leaves of a step, in their order: uint64 [leaves, 2]."""

    def digest(self, step: int, full: str) -> object:
        """The digest of one leaf, equal to that of the same bytes elsewhere."""

    def bytes(self, step: int, full: str) -> Bytes | None:
        """A tensor's logical bytes, None where only the digest was kept."""

    def text(self, step: int, full: str) -> str | None:
        """A scalar's exact value, None where only the digest was kept."""


def compare(expected: Recording, actual: Recording, *, tensors: Sequence[Recording] = (), limit: int | None = None) -> Comparison:
    """Compares two recordings by their structure and digests; bytes are read only of leaves that differ.

    Args:
        expected: the golden, whose order of execution counts.
        actual: what is held against it.
        tensors: further recordings that may hold the bytes which one of the two kept only digests of. They are used for either
            side, wherever their digest of a leaf is the wanted one.
        limit: take the census of so many differences alone, from the first (it reads every byte of both sides).
    """
    found: list[Difference] = []
    alike: dict[tuple[int, int], bool] = {}  # by identity: a layout is one object for as long as it holds
    for step in sorted({*expected.steps, *actual.steps}):
        one, other = _leaves(expected, step), _leaves(actual, step)
        # gate: equivalent [boolean] layouts that are alike give the same when they are paired, only more slowly
        if alike.setdefault((id(one), id(other)), False) or one == other:
            # gate: equivalent it only saves comparing the same layouts again
            alike[id(one), id(other)] = True
            # gate: equivalent [arguments-swapped] which digests differ does not depend on whose they are
            suspects: Iterable[Pair] = ((one[place], other[place]) for place in _unequal(expected, actual, step))
        else:
            suspects = pairs(one, other)
        for left, right in suspects:
            found.extend(structure(step, left, right))
            # gate: equivalent [arguments-swapped] two leaves of one path differ both ways
            if left is not None and _moved(expected, actual, step, left, right):
                counted = limit is None or len(found) < limit
                found.append(_content(step, left, expected, actual, tensors) if counted else _uncounted(step, left))
    return Comparison(tuple(found))


def compare_files(expected: Golden, actual: Golden, *, limit: int | None = None) -> tuple[Comparison, tuple[Path, ...]]:
    """Compares what the step files of two goldens hold, and digests for the steps that have none.

    Returns:
        The comparison, and the step files whose contents do not have the digests recorded beside them. Their differences count.

    Raises:
        CorruptGolden: a step file is not built as its manifest says.
    """
    sides = _Files(expected), _Files(actual)
    return compare(*sides, limit=limit), tuple(path for side in sides for path in side.damaged)


class _Files:
    """A golden as its step files have it, right or wrong."""

    def __init__(self, golden: Golden) -> None:
        self._golden = golden
        self.steps, self.leaves, self.find = golden.steps, golden.leaves, golden.find
        kept = [step for step in golden.steps if golden.kept(step)]
        self._wrong = {step: {leaf.full: self._found(step, leaf.full) for leaf in golden.differing(step)} for step in kept}

    @property
    def damaged(self) -> list[Path]:
        """The step files that hold something else than what was recorded."""
        return [self._golden.file(step) for step, wrong in self._wrong.items() if wrong]

    def digests(self, step: int) -> npt.NDArray[np.uint64]:
        """Digests of what is in the file."""
        found = self._golden.digests(step)
        for full, wrong in self._wrong.get(step, {}).items():
            found[self.find(step, full)] = digest.rows([wrong])[0]
        return found

    def digest(self, step: int, full: str) -> object:
        """Digest of what is in the file."""
        return self._wrong.get(step, {}).get(full) or self._golden.digest(step, full)

    def bytes(self, step: int, full: str) -> Bytes | None:
        """Bytes as they are in the file."""
        return self._golden.bytes(step, full, check=False)

    def text(self, step: int, full: str) -> str | None:
        """Text as it is in the file."""
        return self._golden.text(step, full, check=False)

    def _found(self, step: int, full: str) -> builtins.bytes:
        content = self._golden.bytes(step, full, check=False)
        assert content is not None, "a step that is kept has its file"
        return digest.digest(content)


def _leaves(recording: Recording, step: int) -> tuple[Leaf, ...]:
    return recording.leaves(step) if step in recording.steps else ()


def _unequal(expected: Recording, actual: Recording, step: int) -> list[int]:
    """The places of the leaves whose digests differ, in a step that is laid out alike on both sides."""
    unequal: list[int] = np.flatnonzero((expected.digests(step) != actual.digests(step)).any(axis=1)).tolist()
    return unequal


def _moved(expected: Recording, actual: Recording, step: int, one: Leaf | None, other: Leaf | None) -> bool:
    """Whether two leaves have other bytes, where the bytes of both mean the same."""
    if one is None or other is None or (one.kind, one.type, one.shape) != (other.kind, other.type, other.shape):
        return False
    return expected.digest(step, one.full) != actual.digest(step, other.full)


def _content(step: int, leaf: Leaf, expected: Recording, actual: Recording, others: Sequence[Recording]) -> Difference:
    """A difference of bits or of a value, with its figures where the contents of both sides can be had."""
    holders = [list(_holders(side, others, step, leaf.full)) for side in (expected, actual)]
    if leaf.shape is None:
        texts = [next(filter(None, (holder.text(step, leaf.full) for holder in side)), None) for side in holders]
        return Difference(step, leaf.phase, leaf.full, Kind.VALUE, expected=texts[0], actual=texts[1])
    one, other = [_kept(side, step, leaf.full) for side in holders]
    if one is None or other is None:
        return _uncounted(step, leaf)
    c = census(one, other, leaf.type, leaf.shape)
    figures = (c.differing, c.elements, c.max_ulp, c.index, c.expected, c.actual)
    return Difference(step, leaf.phase, leaf.full, Kind.BITS, *figures, dtype=leaf.type)


def _uncounted(step: int, leaf: Leaf) -> Difference:
    """A difference that is known by its digests alone."""
    if leaf.shape is None:
        return Difference(step, leaf.phase, leaf.full, Kind.VALUE)
    return Difference(step, leaf.phase, leaf.full, Kind.BITS, dtype=leaf.type)


def _holders(own: Recording, others: Sequence[Recording], step: int, full: str) -> Iterator[Recording]:
    """The recordings that may have kept what `own` has at a leaf, itself first."""
    yield own
    for other in others:
        if step in other.steps and other.find(step, full) is not None and other.digest(step, full) == own.digest(step, full):
            yield other


def _kept(holders: list[Recording], step: int, full: str) -> Bytes | None:
    """The bytes of a tensor from the first recording that has them."""
    for holder in holders:
        data = holder.bytes(step, full)
        if data is not None:
            return data
    return None
