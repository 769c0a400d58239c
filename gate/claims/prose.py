"""Documents as prose: which files are some, their code blanked out with every other character where it was, their sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

SUFFIXES = (".md", ".markdown", ".rst", ".txt")
_DATA = re.compile(r"(?:requirements|constraints)\b.*|CMakeLists\.txt", re.IGNORECASE)
_FENCE = re.compile(r"^[ ]{0,3}(?P<fence>`{3,}|~{3,})[^\n]*\n.*?(?:^[ ]{0,3}(?P=fence)[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n\s*\n).)+?(?<!`)\1(?!`)", re.DOTALL)
_END = re.compile(r"(?<=[.!?\]])\s+(?=[A-Z`])|\n\s*\n|\n(?=[ \t]*(?:[-*|]|\d+\.)[ \t]|\|)|\n(?=[ \t]+[\w*, ]+:[ \t])|\n(?=#{1,6}[ \t])")
_HEADING = re.compile(r"^[ ]{0,3}(?:#{1,6}[ \t][^\n]*|\S[^\n]*\n[ ]{0,3}(?:={2,}|-{2,}|[~^\"#*+]{3,})[ \t]*)(?P<end>\n)", re.MULTILINE)


def is_prose(path: str) -> bool:
    """Whether people read a file as a document; lists of packages are none, whatever their suffix."""
    place = PurePosixPath(path)
    data = any(_DATA.fullmatch(part) for part in place.parts)
    return place.suffix.lower() in SUFFIXES and not (data and place.suffix.lower() == ".txt")


def without_code(text: str) -> str:
    """The text with blanks for fenced blocks and for code within lines, so that places stay what they were."""
    return _CODE.sub(blank, _FENCE.sub(blank, text))


def line_of(text: str, place: int) -> int:
    """The line, from 1, that a place of a text stands on."""
    return text.count("\n", 0, place) + 1


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Each sentence with the place where it begins; `[...]` after a full stop belongs before it.

    A heading is one, a paragraph ends one, so does the item of a list, the row of a table, and an entry (`name: ...`, indented) of a
    docstring's section.
    """
    begin = 0
    spans = [end.span() for end in _END.finditer(text)] + [heading.span("end") for heading in _HEADING.finditer(text)]
    for stop, after in [*sorted(spans), (len(text), len(text))]:
        found = text[begin:stop]
        if found.strip():
            yield begin + len(found) - len(found.lstrip()), found.strip()
        begin = max(begin, after)


def blank(found: re.Match[str]) -> str:
    """As many blanks as were found, on as many lines."""
    return re.sub(r"[^\n]", " ", found[0])
