"""Which leaves of two states stand for each other, and how they are built: everything but their bits."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from golden.difference import Difference, Kind
from golden.leaf import Leaf

Key = TypeVar("Key", bound=Hashable)
Pair: TypeAlias = "tuple[Leaf | None, Leaf | None]"

NUMPY = "numpy:"


def pairs(expected: Sequence[Leaf], actual: Sequence[Leaf]) -> Iterator[Pair]:
    """The leaves of both sides by path, phase by phase; what stands on one side alone is paired with None."""
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


def structure(step: int, expected: Leaf | None, actual: Leaf | None) -> Iterator[Difference]:
    """The weightiest difference of structure between the two sides of one path, if there is one."""
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
    if _family(expected) != _family(actual) and _summary(expected) != _summary(actual):
        return Kind.TYPE, _summary(expected), _summary(actual)
    for (kind, one), (_, other) in zip(_facets(expected), _facets(actual), strict=False):
        if one != other:
            return kind, one, other
    return Kind.TYPE, expected.line(), actual.line()  # told apart by nothing else: a scalar and a container of one type


def _family(leaf: Leaf) -> str:
    """What a leaf is: a tensor, a numpy array, a scalar or a container."""
    return f"{NUMPY}{leaf.kind}" if leaf.shape is not None and leaf.type.startswith(NUMPY) else leaf.kind


def _facets(leaf: Leaf) -> Iterator[tuple[Kind, str]]:
    """How a leaf of one family is built, the weightiest first, as texts."""
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
