"""Sets of a file's lines as numbers (line n is bit n), how they differ between two contents, and where they went."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_END = re.compile(r"\r\n|\r|\n")  # Python's own ends of lines; str.splitlines knows more of them


@dataclass(frozen=True)
class Hunk:
    """A stretch that differs: lines of the old content, and those that stand in their place. Either may be empty."""

    old: range
    new: range


def split(text: str) -> list[str]:
    """The lines of a source, as Python numbers them (the first one is 1)."""
    return _END.split(text)


def hunks(old: str, new: str) -> tuple[Hunk, ...]:
    """Where two contents differ, in order; line numbers begin with 1."""
    matcher = difflib.SequenceMatcher(None, split(old), split(new), autojunk=False)
    changed = (code for code in matcher.get_opcodes() if code[0] != "equal")
    return tuple(Hunk(range(a + 1, b + 1), range(c + 1, d + 1)) for _, a, b, c, d in changed)


def mask(numbers: Iterable[int]) -> int:
    """The set of some lines."""
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def stretch(lines: range) -> int:
    """The set of consecutive lines."""
    return ((1 << len(lines)) - 1) << lines.start if lines else 0


def numbers(found: int) -> Iterator[int]:
    """The lines of a set, in order."""
    while found:
        lowest = found & -found
        yield lowest.bit_length() - 1
        found ^= lowest


def carried(found: int, differences: Iterable[Hunk], heirs: Iterable[tuple[int, int]]) -> int:
    """Which lines of a new content those who ran `found` of the old one have to be taken to run.

    Lines that stayed are followed to where they stand now.

    Args:
        found: lines of the old content.
        differences: what became of it.
        heirs: sets of old lines, each with the new lines that whoever ran one of them is taken to run.
    """
    result, start, shift = 0, 0, 0
    for hunk in differences:
        result |= _moved(found & stretch(range(start, hunk.old.start)), shift)
        start, shift = hunk.old.stop, hunk.new.stop - hunk.old.stop
    for old, new in heirs:
        result |= new if found & old else 0
    return result | _moved(found >> start << start, shift)


def shown(found: Iterable[int]) -> str:
    """Lines for people: "3, 7-9"."""
    ends: list[list[int]] = []
    for number in sorted(found):
        if ends and ends[-1][1] == number - 1:
            ends[-1][1] = number
        else:
            ends.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ends)


def _moved(found: int, by: int) -> int:
    return found << by if by >= 0 else found >> -by
