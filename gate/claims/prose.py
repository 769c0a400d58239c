"""Markdown as prose: its code blanked out, every other character where it was."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FENCE = re.compile(r"^[ ]{0,3}(?P<fence>`{3,}|~{3,})[^\n]*\n.*?(?:^[ ]{0,3}(?P=fence)[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n\s*\n).)+?(?<!`)\1(?!`)", re.DOTALL)
_END = re.compile(r"(?<=[.!?\]])\s+(?=[A-Z`])|\n\s*\n|\n(?=[ \t]*(?:[-*|]|\d+\.)[ \t]|\|)|\n(?=[ \t]+[\w*, ]+:[ \t])")


def without_code(text: str) -> str:
    """The text with blanks for fenced blocks and for code within lines, so that places stay what they were."""
    return _CODE.sub(_blank, _FENCE.sub(_blank, text))


def line_of(text: str, place: int) -> int:
    """The line, from 1, that a place of a text stands on."""
    return text.count("\n", 0, place) + 1


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Each sentence with the place where it begins; `[...]` after a full stop belongs before it.

    A paragraph ends one, so does the item of a list, the row of a table, and an entry (`name: ...`, indented) of a docstring's section.
    """
    begin = 0
    for end in [*_END.finditer(text), None]:
        stop = end.start() if end else len(text)
        found = text[begin:stop]
        if found.strip():
            yield begin + len(found) - len(found.lstrip()), found.strip()
        begin = end.end() if end else stop


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])
