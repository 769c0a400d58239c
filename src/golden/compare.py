"""Where two recordings differ: structure and bits apart, in the order in which the golden was executed."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from golden.census import Bytes, census

if TYPE_CHECKING:
    from golden.leaf import Leaf

Key = TypeVar("Key", bound=Hashable)
NUMPY = "numpy:"


class Recording(Protocol):
    """What a comparison reads of a golden, a kept run, or the contents of their step files."""

    @property
    def steps(self) -> Sequence[int]:
        """The steps recorded, ascending."""

    def leaves(self, step: int) -> Sequence[Leaf]:
        """The leaves of one step in order of execution, those of one phase adjacent."""

    def digest(self, step: int, full: str) -> Hashable:
        """The digest of a leaf's logical bytes."""

    def bytes(self, step: int, full: str) -> Bytes | None:
        """A tensor's logical bytes, None where only the digest was kept."""

    def text(self, step: int, full: str) -> str | None:
        """A scalar's exact value, None where only the digest was kept."""


class Kind(str, Enum):
    """In what way a leaf differs; those of structure from the weightiest, where only the first that applies is told."""

    MISSING = "missing"
    UNEXPECTED = "unexpected"
    TYPE = "type"
    DTYPE = "dtype"
    SHAPE = "shape"
    LAYOUT = "layout"
    SHARING = "sharing"
    BITS = "bits"
    VALUE = "value"

    def __str__(self) -> str:
        return str(self.value)

    @property
    def structural(self) -> bool:
        """Whether it is a matter of structure, rather than of the bits in it."""
        return self not in (Kind.BITS, Kind.VALUE)


@dataclass(frozen=True)
class Difference:
    """One way in which one leaf of one step differs.

    Attributes:
        path: with its phase ("optimizer/conv.weight/momentum_buffer").
        differing: number of elements with other bits; this and the three that follow are None for kinds other than `bits`, and
            where only digests are at hand.
        max_ulp: largest distance in units of the last place; None for what is no float, and where a NaN is in every pair.
        index: place of the first differing element.
        expected: for `bits` that element in hexadecimal, else the text of what the golden has (None: it has no such leaf).
        actual: the same of the other side.
        dtype: of the tensor, for those who read the hexadecimal; not in the JSON.
    """

    step: int
    phase: str
    path: str
    kind: Kind
    differing: int | None = None
    elements: int | None = None
    max_ulp: int | None = None
    index: tuple[int, ...] | None = None
    expected: str | None = None
    actual: str | None = None
    dtype: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The difference as it stands in a report."""
        return {
            "step": self.step,
            "phase": self.phase,
            "path": self.path,
            "kind": self.kind.value,
            "differing": self.differing,
            "elements": self.elements,
            "max_ulp": self.max_ulp,
            "index": None if self.index is None else list(self.index),
            "expected": self.expected,
            "actual": self.actual,
        }


@dataclass(frozen=True)
class Comparison:
    """All differences, the earliest executed first; a leaf has at most one of structure and one of bits."""

    differences: tuple[Difference, ...] = ()

    @property
    def first(self) -> Difference | None:
        """The earliest executed difference."""
        return self.differences[0] if self.differences else None

    @cached_property
    def structure(self) -> int:
        """Number of leaves, over all steps, that are missing, unexpected or built otherwise."""
        return sum(difference.kind.structural for difference in self.differences)

    @property
    def bits(self) -> int:
        """Number of leaves, over all steps, whose bits or value differ."""
        return len(self.differences) - self.structure

    @property
    def identical(self) -> bool:
        """Whether there is no difference at all."""
        return not self.differences


def compare(expected: Recording, actual: Recording, *, tensors: Sequence[Recording] = (), limit: int | None = None) -> Comparison:
    """Compares two recordings by their structure and digests; bytes are read only of leaves that differ.

    Args:
        expected: the golden, whose order of execution counts.
        actual: what is held against it.
        tensors: further recordings that may hold the bytes which one of the two kept only digests of. They are used for either
            side, wherever their digest of a leaf is the wanted one.
        limit: take the census of so many differences of bits alone, from the first (it reads every byte of both sides).
    """
    found: list[Difference] = []
    left = math.inf if limit is None else limit
    for step in sorted({*expected.steps, *actual.steps}):
        for one, other in _pairs(_leaves(expected, step), _leaves(actual, step)):
            found.extend(_structure(step, one, other))
            if one is None or other is None or not _comparable(one, other):
                continue
            if expected.digest(step, one.full) != actual.digest(step, other.full):
                found.append(_content(step, one, expected, actual, tensors) if left > 0 else _uncounted(step, one))
                left -= 1
    return Comparison(tuple(found))


def _leaves(recording: Recording, step: int) -> Sequence[Leaf]:
    return recording.leaves(step) if step in recording.steps else ()


def _pairs(expected: Sequence[Leaf], actual: Sequence[Leaf]) -> Iterator[tuple[Leaf | None, Leaf | None]]:
    """The leaves of both sides by path, phase by phase; what stands on one side alone is paired with None."""
    if expected is actual:
        yield from zip(expected, actual, strict=True)
        return
    one, other = _by_phase(expected), _by_phase(actual)
    for phase in _merged(list(one), list(other)):
        left, right = one.get(phase, {}), other.get(phase, {})
        for full in _merged(list(left), list(right)):
            yield left.get(full), right.get(full)


def _by_phase(leaves: Sequence[Leaf]) -> dict[str, dict[str, Leaf]]:
    phases: dict[str, dict[str, Leaf]] = {}
    for leaf in leaves:
        phases.setdefault(leaf.phase, {})[leaf.full] = leaf
    return phases


def _merged(expected: Sequence[Key], actual: Sequence[Key]) -> Sequence[Key]:
    """All keys in the order of `expected`; what `actual` alone has follows the key that it follows there."""
    if expected == actual:
        return expected
    known = set(expected)
    anchor: Key | None = None
    extra: dict[Key | None, list[Key]] = {}
    for key in actual:
        if key in known:
            anchor = key
        else:
            extra.setdefault(anchor, []).append(key)
    merged = list(extra.get(None, ()))
    for key in expected:
        merged += (key, *extra.get(key, ()))
    return merged


def _structure(step: int, expected: Leaf | None, actual: Leaf | None) -> Iterator[Difference]:
    """The weightiest difference of structure, if there is one."""
    if expected == actual:
        return
    if expected is None:
        assert actual is not None
        yield Difference(step, actual.phase, actual.full, Kind.UNEXPECTED, actual=_summary(actual))
    elif actual is None:
        yield Difference(step, expected.phase, expected.full, Kind.MISSING, expected=_summary(expected))
    else:
        kind, one, other = _weightiest(expected, actual)
        yield Difference(step, expected.phase, expected.full, kind, expected=one, actual=other)


def _weightiest(expected: Leaf, actual: Leaf) -> tuple[Kind, str, str]:
    """In what way two unequal leaves differ first of all, and the texts of both."""
    owners = [leaf.shape is not None and leaf.type.startswith(NUMPY) for leaf in (expected, actual)]
    if expected.kind != actual.kind or owners[0] != owners[1]:
        return Kind.TYPE, _summary(expected), _summary(actual)
    for (kind, one), (_, other) in zip(_facets(expected), _facets(actual), strict=True):
        if one != other:
            return kind, one, other
    return Kind.TYPE, expected.line(), actual.line()


def _facets(leaf: Leaf) -> Iterator[tuple[Kind, str]]:
    """What a leaf's structure consists of, the weightiest first, as texts."""
    if leaf.shape is None:
        yield Kind.TYPE, leaf.type
    else:
        yield Kind.DTYPE, leaf.type
        yield Kind.SHAPE, str(list(leaf.shape))
        yield Kind.LAYOUT, f"strides {list(_contiguous(leaf.shape) if leaf.strides is None else leaf.strides)}"
    yield Kind.SHARING, leaf.shares or "nothing"


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a row-major tensor, in elements."""
    return tuple(math.prod(shape[place + 1 :]) for place in range(len(shape)))


def _summary(leaf: Leaf) -> str:
    return leaf.type if leaf.shape is None else f"{leaf.type}{list(leaf.shape)}"


def _comparable(expected: Leaf, actual: Leaf) -> bool:
    """Whether the bytes of both mean the same, so that they can be held against each other."""
    return (expected.kind, expected.type, expected.shape) == (actual.kind, actual.type, actual.shape)


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
        if step in other.steps and other.digest(step, full) == own.digest(step, full):
            yield other


def _kept(holders: list[Recording], step: int, full: str) -> Bytes | None:
    """The bytes of a tensor from the first recording that has them."""
    for holder in holders:
        data = holder.bytes(step, full)
        if data is not None:
            return data
    return None
