"""Which places of a page name what one run covers: in a sentence, in the list, table or text that it announces, in a table's column."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gate.claims.blocks import Block, Form, blocks, indent
from gate.claims.prose import sentences

Span = tuple[int, int]

COVERS = re.compile(r"\bcover(?:s|ed|ing|age)?\b", re.IGNORECASE)
_NAMES = re.compile(r"(?<![\w-])(?=[0-9a-f]*[0-9])[0-9a-f]{7,64}(?![\w-])", re.IGNORECASE)
_BELOW = re.compile(r"\b(?:commits?|revisions?|sources|following|below|these)\b", re.IGNORECASE)
_SEVERAL = re.compile(r"\bruns\b|\b(?:each|every)\s+(?:\w+\s+)?run\b", re.IGNORECASE)
_RUN = re.compile(r"\W*runs?\W*", re.IGNORECASE)


def covered(page: str) -> Iterator[tuple[Span, ...]]:
    """For each run that a page speaks of, the spans of text that name what it covers."""
    announced: tuple[str, Span] | None = None
    for block in blocks(page):
        if announced and (block.form in (Form.LIST, Form.TABLE, Form.FENCE) or (_goes_on(announced[0]) and block.form is not Form.HEADING)):
            yield from _announced(block, *announced)
        announced = None
        yield from _columns(block) if block.form is Form.TABLE else _nested(block) if block.form is Form.LIST else ()
        text = block.text
        end = block.start + len(text.rstrip())
        for place, sentence in sentences(text):
            span = (block.start + place, block.start + place + len(sentence))
            covers = COVERS.search(sentence) is not None
            if covers:
                yield (span,)
            announced = (sentence, span) if covers and span[1] >= end and _announces(sentence, block.form) else None


def _announces(sentence: str, form: Form) -> bool:
    """Whether what is below a sentence goes on with it."""
    if form is Form.HEADING or _goes_on(sentence):
        return True
    return _BELOW.search(sentence) is not None and not _NAMES.search(sentence)


def _goes_on(text: str) -> bool:
    return text.rstrip(" *_`\r\n").endswith(":")


def _announced(block: Block, sentence: str, head: Span) -> Iterator[tuple[Span, ...]]:
    """What a sentence announces: all of it of one run, or each item of its own where it speaks of several."""
    rows = _rows(block)[1:] if block.form is Form.TABLE else []
    by_run = block.form is Form.TABLE and any(_RUN.fullmatch(cell) for _, cell in _rows(block)[0])
    if _SEVERAL.search(sentence) or by_run:
        each = [(item.start, item.start + len(item.text)) for item in block.items()] if block.form is Form.LIST else []
        each += [(row[0][0], row[-1][0] + len(row[-1][1])) for row in rows if row]
        yield from ((span,) for span in each)
    else:
        yield head, (block.start, block.start + len(block.text))


def _columns(block: Block) -> Iterator[tuple[Span, ...]]:
    """Each row of a table one of whose columns is headed as covered: that column, or all of a row that names nothing there."""
    head, *rows = _rows(block)
    columns = [number for number, (_, cell) in enumerate(head) if COVERS.search(cell)]
    for row in rows if columns else []:
        spans = tuple((row[number][0], row[number][0] + len(row[number][1])) for number in columns if number < len(row))
        named = any(re.search(r"[0-9a-f]{4}", row[number][1], re.IGNORECASE) for number in columns if number < len(row))
        yield spans if named else ((row[0][0], row[-1][0] + len(row[-1][1])),)


def _nested(block: Block) -> Iterator[tuple[Span, ...]]:
    """Items that announce those which are indented below them."""
    for item in block.items():
        first, *rest = item.lines
        if rest and COVERS.search(first.text) and _goes_on(first.text):
            yield ((item.start, item.start + len(item.text)),)
        elif any(indent(line) is not None for line in rest):
            yield from _nested(Block(Form.LIST, tuple(rest)))


def _rows(block: Block) -> list[list[tuple[int, str]]]:
    """Cells with their places, of each line."""
    return [list(_cells(line.text, line.start)) for line in block.lines]


def _cells(text: str, begin: int) -> Iterator[tuple[int, str]]:
    inner = text.strip().removeprefix("|").removesuffix("|")
    begin += text.index(inner) if inner else 0
    for cell in inner.split("|"):
        yield begin, cell
        begin += len(cell) + 1
