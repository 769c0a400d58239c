"""Rows of the tables of a page in each form of GitHub's Markdown: with or without bars around, indented, with bars in cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gate.check.lines import split
from gate.claims.blocks import code
from gate.claims.prose import blanked, without_comments

_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\s*:?-+:?\s*")
_ENDS = re.compile(r"\s*\Z|[ ]{4}|[ ]{0,3}(?:\t|#{1,6}(?:\s|\Z)|[-*+>]\s|\d+[.)]\s|<|>)")  # what begins another block, or nothing


@dataclass(frozen=True)
class Page:
    """What stands in a page, by line from 1.

    Attributes:
        rows: cells of the rows below the heads of tables.
        rest: the lines that are no such row.
    """

    rows: dict[int, list[str]]
    rest: dict[int, str]

    @classmethod
    def of(cls, text: str) -> Page:
        """Of a text, without its comments and code."""
        shown = without_comments(text)
        lines = split(blanked(shown, (span for _, *span in code(shown))))
        rows: dict[int, list[str]] = {}
        below = 0  # the line that may be the first row, or the next one
        for number, line in enumerate(lines, 1):
            if number > 1 and _is_rule(lines[number - 2], line):
                below = number
            elif below == number - 1 and below and not _ENDS.match(line):
                below = number
                if _BAR.search(line):
                    rows[number] = cells(line)
        return cls(rows, {number: line for number, line in enumerate(lines, 1) if number not in rows})


def cells(line: str) -> list[str]:
    """The cells of a row; `\\|` is a bar within one."""
    inner = re.sub(r"(?<!\\)\|\Z", "", line.strip().removeprefix("|"))
    return [cell.strip().replace("\\|", "|") for cell in _BAR.split(inner)]


def _is_rule(head: str, line: str) -> bool:
    """Whether a line is what stands between the head of a table, the line before it, and its rows."""
    marks: Sequence[str] = cells(line)
    bars = _BAR.search(line) and not re.match(r"[ ]{4}|[ ]{0,3}\t", line) and not _ENDS.match(head)
    return bool(bars) and all(map(_RULE.fullmatch, marks)) and len(marks) == len(cells(head))
