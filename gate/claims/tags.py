"""Tags in prose that name the tests which hold a sentence, `[held by tests/test_x.py::test_it]`, and what was meant to be one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gate.claims.prose import blanked, rewritten

FORM = "[held by tests/test_x.py::test_it]"
_TAG = re.compile(r"\[held(?:\s|\n[ \t]*>)+by(?=\s)(?P<ids>(?:[^\[\]\n]|\n(?![ \t]*\n)|\[[^\[\]\n]*\])+)\]")
_MEANT = re.compile(r"(?P<open>[\[({<])\s*(?:is\s+)?h[eo]ld[\s_-]*by\b|\bheld\s+by\b", re.IGNORECASE)
_REST = re.compile(r"(?:[^\])}>\n]|\n(?![ \t]*\n)|\[[^\[\]\n]*\]){0,300}")
_ID = re.compile(r"[\s\"'`:]*\S+\.py`?::")
_LINE = re.compile(r"\s*\n[ \t>]*")
_LINKS = ("](", "][", "]:")


@dataclass(frozen=True)
class Tag:
    """One tag.

    Attributes:
        start, end: where it stands, brackets included.
        tests: the ids that it names; empty ones too.
    """

    start: int
    end: int
    tests: tuple[str, ...]


def tags(text: str, plain: str) -> list[Tag]:
    """The tags of a text, in order. A tag may go on over the end of a line, and its ids may be in code.

    Args:
        text: all of it.
        plain: the same with blanks where no tag can stand: for code, and a document's comments.
    """
    found = (tag for tag in _TAG.finditer(plain) if not _is_link(text, tag))
    return [Tag(tag.start(), tag.end(), tuple(_ids(text[slice(*tag.span("ids"))]))) for tag in found]


def malformed(text: str, plain: str) -> Iterator[tuple[int, str]]:
    """Place and text of what was meant to be a tag: other letters, brackets or punctuation, or no end. Nobody would check it."""
    plain = rewritten(plain, ((tag.start, tag.end, "x" * (tag.end - tag.start)) for tag in tags(text, plain)))
    for meant in _MEANT.finditer(plain):
        rest = _REST.match(plain, meant.end())
        assert rest, "nothing is a rest too"
        named = _ID.match(text, meant.end()) is not None
        link = text[rest.end() : rest.end() + 2] in _LINKS
        if named or (meant["open"] == "[" and not link):
            yield meant.start(), " ".join(text[meant.start() : rest.end() + 1].split())


def shielded(known: Sequence[Tag], plain: str) -> str:
    """A text with letters for what stands in its tags, so that no sentence ends there; places stay what they were."""
    return rewritten(plain, ((tag.start, tag.end, f"[{'x' * (tag.end - tag.start - 2)}]") for tag in known))


def without_tags(known: Sequence[Tag], plain: str) -> str:
    """A text with blanks for its tags."""
    return blanked(plain, ((tag.start, tag.end) for tag in known))


def _ids(text: str) -> Iterator[str]:
    """The parts between commas that stand in no brackets; quotes of code, escapes and ends of lines are not part of an id."""
    depth, begin = 0, 0
    for place, letter in enumerate(f"{text},"):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and (depth == 0 or place == len(text)):
            yield _LINE.sub("", text[begin:place]).replace("`", "").replace("\\_", "_").strip()
            begin = place + 1


def _is_link(text: str, tag: re.Match[str]) -> bool:
    return text[tag.end() - 1 : tag.end() + 1] in _LINKS and "::" not in text[tag.start() : tag.end()]
