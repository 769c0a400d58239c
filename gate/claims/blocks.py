"""A page of Markdown cut into its blocks: headings, paragraphs, lists, tables, code that is fenced or indented."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?:[-*+]|\d+[.)])(?:[ \t]{1,4}(?=\S)|[ \t])")
_UNDERLINE = re.compile(r"[ ]{0,3}(?:={2,}|-{2,}|[~^\"#]{3,})\s*")
_INDENTED = re.compile(r"(?:[ ]{4}|[ ]{0,3}\t)[ \t]*\S")
_CELLS = re.compile(r"[ \t]*\||[^\n|]*\|[ \t]*:?-")


class Form(Enum):
    """What a block is."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST = "list"
    TABLE = "table"
    FENCE = "fence"
    CODE = "code"  # indented by four


@dataclass(frozen=True)
class Line:
    """One line, its end included; `start` is its place in the page."""

    start: int
    text: str


@dataclass(frozen=True)
class Block:
    """Neighbouring lines of one form."""

    form: Form
    lines: tuple[Line, ...]

    @property
    def start(self) -> int:
        """Its place in the page."""
        return self.lines[0].start

    @property
    def end(self) -> int:
        """The place after it."""
        return self.lines[-1].start + len(self.lines[-1].text)

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(line.text for line in self.lines)

    def items(self) -> list[Block]:
        """Of a list: each item with those that are indented below it."""
        found: list[list[Line]] = []
        least = len(indent(self.lines[0]) or "")
        for line in self.lines:
            own = indent(line)
            if not found or (own is not None and len(own) <= least):
                found.append([])
            found[-1].append(line)
        return [Block(Form.PARAGRAPH, tuple(lines)) for lines in found]


def indent(line: Line) -> str | None:
    """What stands before the mark of an item; None of a line that begins none."""
    item = _ITEM.match(line.text)
    return item["indent"] if item else None


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a page, in order; blank lines are in none but those of code and lists."""
    return _blocks(_lines(text))


def code(text: str) -> Iterator[tuple[Form, int, int]]:
    """Form, begin and end of each block of code, those within the items of lists too; in no order."""
    waiting = [list(_lines(text))]
    while waiting:
        for block in _blocks(waiting.pop()):
            if block.form in (Form.FENCE, Form.CODE):
                yield block.form, block.start, block.end
            waiting += [list(_within(item)) for item in block.items()] if block.form is Form.LIST else []


def _blocks(lines: Iterable[Line]) -> Iterator[Block]:
    block: list[Line] = []
    form: Form | None = None
    for line in lines:
        found = _form(line, form, block)
        if block and form and (found is not form or form is Form.HEADING):
            # the head of a table without a bar in front is known by the rule below it
            kept = [block.pop()] if (form, found) == (Form.PARAGRAPH, Form.TABLE) and "|" in block[-1].text else []
            yield from [Block(form, tuple(block))] if block else []
            block = kept
        form = found
        block += [line] if form else []
        if form is Form.PARAGRAPH and len(block) > 1 and _UNDERLINE.fullmatch(line.text):
            form = Form.HEADING
        if form is Form.FENCE and len(block) > 1 and _closes(block[0], line):
            yield Block(form, tuple(block))
            block, form = [], None
    if form and block:
        yield Block(form, tuple(block))


def _form(line: Line, now: Form | None, block: list[Line]) -> Form | None:
    if now is Form.FENCE or (_FENCE.match(line.text) and not (now is Form.LIST and _is_within(line, block[0]))):
        return Form.FENCE
    if now in (None, Form.HEADING, Form.CODE) and _INDENTED.match(line.text):
        return Form.CODE
    if re.match(r"[ ]{0,3}#{1,6}[ \t]", line.text):
        return Form.HEADING
    if indent(line) is not None and (now is Form.LIST or not _UNDERLINE.fullmatch(line.text)):
        return Form.LIST
    blank = not line.text.strip()
    if now is Form.LIST and (blank or line.text[0] in " \t" or block[-1].text.strip()):
        return Form.LIST
    if blank:
        return now if now is Form.CODE else None
    return Form.TABLE if _CELLS.match(line.text) or (now is Form.TABLE and "|" in line.text) else Form.PARAGRAPH


def _closes(first: Line, line: Line) -> bool:
    fence = _FENCE.match(first.text)
    return fence is not None and re.fullmatch(rf"[ ]{{0,3}}{re.escape(fence[1])}[`~]*\s*", line.text) is not None


def _is_within(line: Line, item: Line) -> bool:
    """Whether a line is indented as far as the text of an item."""
    mark = _ITEM.match(item.text)
    return mark is not None and not line.text[: mark.end()].strip()


def _within(item: Block) -> Iterator[Line]:
    """The lines of an item without its mark, and without what indents them so far."""
    first, *rest = item.lines
    mark = _ITEM.match(first.text)
    width = mark.end() if mark else 0
    yield Line(first.start + width, first.text[width:])
    for line in rest:
        blanks = len(line.text[:width]) - len(line.text[:width].lstrip(" "))
        blanks += blanks < width and line.text[blanks : blanks + 1] == "\t"
        yield Line(line.start + blanks, line.text[blanks:])


def _lines(text: str) -> Iterator[Line]:
    start = 0
    for text_line in text.splitlines(keepends=True):
        yield Line(start, text_line)
        start += len(text_line)
