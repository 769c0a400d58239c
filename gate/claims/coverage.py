"""Which places of a page name what one run covers: in a sentence, in the list, table or text that it announces, in a table's column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gate.claims.blocks import Block, Form, blocks, indent
from gate.claims.prose import sentences
from gate.claims.speech import COVERS, affirmed, clauses, says, speaks_of_a_run, speaks_of_several

Span = tuple[int, int]

_NAMES = re.compile(r"(?<![\w-])(?=[0-9a-f]*[0-9])[0-9a-f]{7,64}(?![\w-])", re.IGNORECASE)
_SHORT = re.compile(r"(?<![\w-])(?=[0-9a-f]*[0-9])[0-9a-f]{4,64}(?![\w-])", re.IGNORECASE)
_BELOW = re.compile(r"\b(?:commits?|revisions?|sources|following|below|these)\b", re.IGNORECASE)
_RUN = re.compile(r"\W*runs?\W*", re.IGNORECASE)
_CODE = (Form.FENCE, Form.CODE)


@dataclass(frozen=True)
class Claim:
    """What a page says of one run.

    Attributes:
        spans: the places that name what it covers.
        words: the sentence or the head of the table, and all that it announces.
    """

    spans: tuple[Span, ...]
    words: str


@dataclass(frozen=True)
class Lead:
    """The sentence before a block, which may announce it; nothing where `says` is wrong."""

    text: str = ""
    start: int = 0
    says: bool = False
    heads: bool = False


def covered(page: str) -> Iterator[Claim]:
    """What a page says that each run of which it speaks covers.

    It has to say that it is a run, or what else is evidence: tests cover lines, and a page its subject.
    """
    lead = Lead()
    for block in blocks(page):
        if block.form is Form.TABLE:
            yield from _table(page, block, lead)
        elif lead.says and (block.form in (Form.LIST, *_CODE) or (_goes_on(lead.text) and block.form is not Form.HEADING)):
            yield from _announced(page, block, lead)
        if block.form is Form.LIST:
            yield from _nested(page, block)
        yield from _sentences(page, block) if block.form not in _CODE else ()
        lead = _lead(block)


def _sentences(page: str, block: Block) -> Iterator[Claim]:
    before = ""
    for place, sentence in sentences(block.text):
        for begin, end in clauses(sentence, before):
            start = block.start + place
            yield from _claims(page, [(start + begin, start + end)], sentence[begin:end])
        before = sentence


def _lead(block: Block) -> Lead:
    """The last sentence of a block."""
    if block.form in (Form.TABLE, *_CODE):
        return Lead()
    told = list(sentences(block.text))
    place, text = told[-1]
    before = told[-2][1] if len(told) > 1 else ""
    announces = block.form is Form.HEADING or _goes_on(text) or (_BELOW.search(text) is not None and not _NAMES.search(text))
    return Lead(text, block.start + place, announces and any(clauses(text, before)), block.form is Form.HEADING or _goes_on(text))


def _goes_on(text: str) -> bool:
    return text.rstrip(" *_`\r\n").endswith(":")


def _announced(page: str, block: Block, lead: Lead) -> Iterator[Claim]:
    """What a sentence announces: all of it of one run, or each item of its own where it speaks of several."""
    items = block.items() if block.form is Form.LIST else [block]
    spans = [(item.start, item.end) for item in items]
    own = (lead.start, lead.start + len(lead.text))
    if speaks_of_several(lead.text):
        for span in spans if block.form is Form.LIST else []:
            yield from _claims(page, [span], lead.text)
    else:
        yield from _claims(page, [own, *spans], lead.text)


def _table(page: str, block: Block, lead: Lead) -> Iterator[Claim]:
    """Of a table that a sentence announces all, or each row where there is a run to each; else the columns headed as covered."""
    head, *rows = _rows(block)
    words = "|".join(cell for _, cell in head)
    whole = [_span(row) for row in rows]
    columns = [number for number, (_, cell) in enumerate(head) if COVERS.search(cell)]
    if not columns and (lead.says or (lead.heads and says(f"{lead.text} {words}"))):
        by_run = any(_RUN.fullmatch(cell) for _, cell in head)
        groups = [[span] for span in whole] if by_run or speaks_of_several(lead.text) else [whole]
        for group in groups:
            yield from _claims(page, group, f"{lead.text} {words}")
    elif columns and (speaks_of_a_run(words) or (lead.heads and speaks_of_a_run(lead.text))):
        for row, span in zip(rows, whole, strict=True):
            cells = [_span([row[number]]) for number in columns if number < len(row)]
            named = any(_SHORT.search(page[slice(*cell)]) for cell in cells)
            yield from _claims(page, cells if named else [span], words)


def _nested(page: str, block: Block) -> Iterator[Claim]:
    """Items that announce those which are indented below them."""
    waiting = block.items()
    while waiting:
        item = waiting.pop()
        first, *rest = item.lines
        if rest and _goes_on(first.text) and says(first.text):
            yield from _claims(page, [(item.start, item.end)], first.text)
        elif any(indent(line) is not None for line in rest):
            waiting += Block(Form.LIST, tuple(rest)).items()


def _claims(page: str, spans: list[Span], words: str) -> Iterator[Claim]:
    """One claim of what is named in some spans and not denied; one of each piece where the words speak of several runs."""
    pieces = [piece for span in spans for piece in _affirmed(page, span)]
    words += "".join(page[slice(*span)] for span in spans)
    if len(spans) == 1 and speaks_of_several(words):
        yield from (Claim((piece,), words) for piece in pieces)
    else:
        yield Claim(tuple(pieces), words)


def _affirmed(page: str, span: Span) -> list[Span]:
    text = page[slice(*span)]
    return [(span[0] + begin, span[0] + end) for begin, end in affirmed(text)]


def _rows(block: Block) -> list[list[tuple[int, str]]]:
    """Cells with their places, of each line."""
    return [list(_cells(line.text, line.start)) for line in block.lines]


def _span(cells: list[tuple[int, str]]) -> Span:
    return cells[0][0], cells[-1][0] + len(cells[-1][1])


def _cells(text: str, begin: int) -> Iterator[tuple[int, str]]:
    inner = text.strip().removeprefix("|").removesuffix("|")
    begin += text.index(inner) if inner else 0
    for cell in inner.split("|"):
        yield begin, cell
        begin += len(cell) + 1
