"""What a comparison finds, as data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any


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
