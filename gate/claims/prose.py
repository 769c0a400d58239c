"""Documents as prose: which files are some, their code blanked out with every other character where it was, their sentences."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from gate.claims.blocks import Form, code

SUFFIXES = (".md", ".markdown", ".rst", ".txt")
_DATA = re.compile(r"(?:requirements|constraints)\b.*|CMakeLists\.txt", re.IGNORECASE)
_INLINE = re.compile(r"(?P<comment><!--(?:(?!<!--).)*?-->)|(?<!`)(?P<ticks>`+)(?!`)(?:(?!\n\s*\n).)+?(?<!`)(?P=ticks)(?!`)", re.DOTALL)
_BEGINS = r"(?=[A-Z`]|(?=[a-f]*\d)[0-9a-f]{6,64}\b)"  # a sentence; the name of a commit, too
_END = re.compile(rf"(?<=[.!?\]])\s+{_BEGINS}|\n\s*\n|\n(?=[ \t]*(?:[-*|]|\d+\.)[ \t]|\|)|\n(?=[ \t]+[\w*, ]+:[ \t])|\n(?=#{{1,6}}[ \t])")
_HEADING = re.compile(r"^[ ]{0,3}(?:#{1,6}[ \t][^\n]*|\S[^\n]*\n[ ]{0,3}(?:={2,}|-{2,}|[~^\"#*+]{3,})[ \t]*)(?P<end>\n)", re.MULTILINE)


def is_prose(path: str) -> bool:
    """Whether people read a file as a document; lists of packages are none, whatever their suffix."""
    place = PurePosixPath(path)
    data = any(_DATA.fullmatch(part) for part in place.parts)
    return place.suffix.lower() in SUFFIXES and not (data and place.suffix.lower() == ".txt")


def without_code(text: str, indented: bool = True) -> str:
    """The text with blanks for blocks of code and for code within lines, so that places stay what they were.

    Args:
        text: a document, or a docstring.
        indented: whether a block that is indented by four is code; in a docstring it is none.
    """
    blocks = (span for form, *span in code(text) if indented or form is Form.FENCE)
    return _INLINE.sub(lambda found: found[0] if found["comment"] else blank(found), blanked(text, blocks))


def without_comments(text: str) -> str:
    """A document with blanks for its comments; what looks like one in code stays."""
    found = _INLINE.finditer(blanked(text, (span for _, *span in code(text))))
    return blanked(text, (comment.span() for comment in found if comment["comment"]))


def blanked(text: str, spans: Iterable[Sequence[int]]) -> str:
    """The text with blanks for what stands in each of some spans, on as many lines."""
    return rewritten(text, ((start, end, re.sub(r"[^\n]", " ", text[start:end])) for start, end in spans))


def rewritten(text: str, pieces: Iterable[tuple[int, int, str]]) -> str:
    """The text with others for some of its pieces, each with its begin and end; none reaches into another."""
    parts, last = [], 0
    for start, end, new in sorted(pieces):
        parts += [text[last:start], new]
        last = end
    return "".join([*parts, text[last:]])


class Lines:
    """On which line of a text a place is; it looks for the ends of lines once."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(end.end() for end in re.finditer("\n", text))]

    def of(self, place: int) -> int:
        """The line, from 1."""
        return bisect_right(self._starts, place)


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
