"""What a report says of one difference, and of what moved beside it, as pairs of a label and a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from gate.screen import plain
from gate.typed import lines
from golden.census import reading
from golden.compare import Comparison, Difference, Kind

Fact: TypeAlias = tuple[str, str]
"""A label (empty: that of the line above goes on) and a text without control characters."""

ENVIRONMENT_LINES = 4
SOURCE_LINES = 3


def place(difference: Difference) -> str:
    """Where a difference is and of what kind, shortest first, for lines that may be cut."""
    return plain(f"step {difference.step}, {difference.kind}: {difference.path}")


def first(difference: Difference, owner: str = "") -> list[Fact]:
    """The earliest executed difference: where, of what kind, how much of it, and both sides.

    Args:
        difference: to tell.
        owner: what has it, where it stands for others too.
    """
    where = f"step {difference.step}, phase {difference.phase}, {difference.path}: {difference.kind}"
    facts = [("first", plain(f"{owner}, {where}" if owner else where))]
    if difference.kind is Kind.BITS:
        facts.append(("", _figures(difference)))
    if difference.expected is not None or difference.actual is not None:
        facts.append(("expected", _side(difference.expected, difference)))
        facts.append(("actual", _side(difference.actual, difference)))
    elif difference.kind is Kind.VALUE:
        facts.append(("", "its values are not known: only digests were kept"))
    return facts


def extent(comparison: Comparison | None) -> list[Fact]:
    """How far the differences reach; nothing where there is no more than the first."""
    return [("in all", plain(reach(comparison)))] if comparison and len(comparison.differences) > 1 else []


def reach(comparison: Comparison) -> str:
    """How many leaves differ, in which steps and phases; there is at least one."""
    steps = sorted({difference.step for difference in comparison.differences})
    phases = dict.fromkeys(difference.phase for difference in comparison.differences)
    span = f"step {steps[0]}" if len(steps) == 1 else f"{len(steps)} steps from {steps[0]} to {steps[-1]}"
    return f"{comparison.structure} of structure, {comparison.bits} of bits, in {span}: {listed(phases)}"


def environment(rows: Sequence[Iterable[Mapping[str, Any]]], same: str = "as recorded") -> list[Fact]:
    """Differences of the environments of several rows, each told once, those of all rows first."""
    return _told("environment", map(_changes, rows), ENVIRONMENT_LINES) or [("environment", same)]


def settings(rows: Sequence[Iterable[Mapping[str, Any]]]) -> list[Fact]:
    """Differences of the settings of several rows, told likewise; nothing where there is none."""
    return _told("settings", map(_changes, rows), ENVIRONMENT_LINES)


def sources(rows: Sequence[Iterable[str]], same: str = "as recorded") -> list[Fact]:
    """Changed sources of several rows, each told once, those of all rows first."""
    return _told("sources", rows, SOURCE_LINES) or [("sources", same)]


def listed(names: Iterable[str], most: int = 6) -> str:
    """Names joined by commas, the first few of them."""
    every = list(names)
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")


def count(number: int, noun: str) -> str:
    """`1 golden`, `2 goldens`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _figures(difference: Difference) -> str:
    if difference.differing is None or difference.index is None:
        return "how many elements is not known: only digests were kept"
    verb = "differs" if difference.differing == 1 else "differ"
    apart = "" if difference.max_ulp is None else f", by {difference.max_ulp} ULP at most"
    return f"{difference.differing} of {count(difference.elements or 0, 'element')} {verb}{apart}; the first at {list(difference.index)}"


def _side(text: str | None, difference: Difference) -> str:
    if text is None:
        return "nothing" if difference.kind.structural else "not known: only its digest was kept"
    value = reading(text, difference.dtype) if difference.kind is Kind.BITS and difference.dtype else None
    return plain(text) if value is None else f"{plain(text)} ({value})"


def _changes(changes: Iterable[Mapping[str, Any]]) -> list[str]:
    return [line for change in changes for line in lines(change)]


def _told(label: str, rows: Iterable[Iterable[str]], most: int) -> list[Fact]:
    """The lines of all rows, each once with the number of rows it is true of, the commonest first; cut after a few."""
    several = [dict.fromkeys(row) for row in rows]
    counts = Counter(line for row in several for line in row)  # in order of appearance, where as common
    told = [plain(line) + (f" (in {number} of {len(several)})" if number < len(several) else "") for line, number in counts.most_common()]
    if len(told) > most:
        told[most - 1 :] = [f"{told[most - 1]}, and {len(told) - most} more"]
    return list(zip([label, *[""] * len(told)], told, strict=False))
