"""Which places of a page name what one run covers: in a sentence, in the list, table or text that it announces, in a table's column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gate.claims.blocks import Block, Form, blocks, indent
from gate.claims.prose import sentences
from gate.claims.speech import COVERS, affirmed, clauses, denies, refers, says, speaks_of_a_run, speaks_of_several

Span = tuple[int, int]
Cells = list[tuple[int, str]]  # each with its place

_NAMES = re.compile(r"(?<![\w-])(?=[0-9a-f]*[0-9])[0-9a-f]{7,64}(?![\w-])", re.IGNORECASE)
_SHORT = re.compile(r"(?<![\w-])(?=[0-9a-f]*[0-9])[0-9a-f]{4,64}(?![\w-])", re.IGNORECASE)
_FIRST = re.compile(
    rf"\W*(?:(?:the\s+)?(?:following\s+)?(?:commits?|revisions?|sources)\b\W*(?:(?:of|at)\b\W*)?)?{_SHORT.pattern}", re.IGNORECASE
)
_YES = re.compile(r"[\W_]*(?:yes|y|x|ok|done|[\u2611\u2705\u2713\u2714])[\W_]*", re.IGNORECASE)
_PIECE = re.compile(r"[,;&/+]|\band\b|<br */?>")
_ONE = re.compile(r"\b(?:the|this|that|one)\s+(?:\w+\s+)?run\b|\brun\W{1,3}\d", re.IGNORECASE)
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
    lead = heading = Lead()
    below: list[Span] = []  # what a heading that says so lists
    for block in blocks(page):
        if _heads(block):
            yield from _headed(page, heading, below)
            below = []
        if block.form is Form.TABLE:
            yield from _table(page, block, lead if lead.says else heading if heading.says else lead)
        elif heading.says and not _heads(block) and (lead.start == heading.start or not lead.says):
            found = [] if _goes_on(lead.text) and denies(lead.text) else _listed(block)
            heading = replace(heading, says=bool(found or not below))  # other words after a list speak of something else
            below += found
        elif lead.says and (block.form in (Form.LIST, *_CODE) or (_goes_on(lead.text) and block.form is not Form.HEADING)):
            yield from _announced(page, block, lead)
        if block.form is Form.LIST:
            yield from _nested(page, block)
        yield from _sentences(page, block, heading.text) if block.form not in _CODE else ()
        lead = _lead(block, "" if _heads(block) else heading.text)
        heading = lead if _heads(block) else heading
    yield from _headed(page, heading, below)


def _heads(block: Block) -> bool:
    """Whether a block is a heading, or a line in bold, which stands for one."""
    bold = block.form is Form.PARAGRAPH and re.fullmatch(r"\s*(\*\*|__)[^*_\n]+\1\s*", block.text) is not None
    return bold or block.form is Form.HEADING


def _listed(block: Block) -> list[Span]:
    """Of a list its items, of code all, of other text the sentences that begin with a name."""
    if block.form is Form.PARAGRAPH:
        found = ((block.start + place, text) for place, text in sentences(block.text) if _FIRST.match(text))
        return [(place, place + len(text)) for place, text in found]
    items = block.items() if block.form is Form.LIST else [block]
    return [(item.start, item.end) for item in items]


def _headed(page: str, heading: Lead, below: list[Span]) -> Iterator[Claim]:
    """What stands below a heading that says what a run covers."""
    if below and not speaks_of_several(heading.text):
        yield from _claims(page, [(heading.start, heading.start + len(heading.text)), *below], heading.text)
    else:
        for span in below:
            yield from _claims(page, [span], heading.text)


def _sentences(page: str, block: Block, heading: str) -> Iterator[Claim]:
    """What the sentences of a block say, together of each run: of the one that they name, or of the last one in a paragraph or an item."""
    items = block.items() if block.form is Form.LIST else [block]
    items = [Block(Form.PARAGRAPH, (line,)) for line in block.lines] if block.form is Form.TABLE else items
    runs: dict[str, list[Span]] = {}
    before = "" if _heads(block) else heading
    for item in items:
        said, last = False, ""
        for place, sentence in sentences(item.text):
            start, found = item.start + place, list(clauses(sentence, before, said))
            for clause in found:
                span = (start + clause.begin, start + clause.end)
                words = page[slice(*span)]
                if speaks_of_several(words):
                    yield from _claims(page, [span], words)
                    continue
                if not last or (clause.run and clause.run not in last.lstrip("#").split()):
                    last = clause.run if clause.run[:1] == "#" else f"{clause.run} {span[0] if clause.alone else item.start}"
                runs.setdefault(last, []).append(span)
            said = bool(found) and found[-1].end == len(sentence)
            before = before if refers(sentence) else sentence
    for spans in runs.values():
        yield from _claims(page, spans, " ".join(page[slice(*span)] for span in spans))


def _lead(block: Block, before: str) -> Lead:
    """The last sentence of a block; before it stands what precedes it there, or else its heading."""
    if block.form in (Form.TABLE, *_CODE):
        return Lead()
    told = list(sentences(block.text))
    place, text = told[-1]
    before = told[-2][1] if len(told) > 1 else before
    announces = _heads(block) or _goes_on(text) or (_BELOW.search(text) is not None and not _NAMES.search(text))
    return Lead(text, block.start + place, announces and any(clauses(text, before)), _heads(block) or _goes_on(text))


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
    by_run = [number for number, (_, cell) in enumerate(head) if _RUN.fullmatch(cell)]
    if not columns and (lead.says or (lead.heads and says(f"{lead.text} {words}"))):
        several = by_run or speaks_of_several(lead.text)
        groups = _grouped(rows, [[span] for span in whole], by_run, lead.text) if several else [whole]
        for group in groups:
            yield from _claims(page, group, f"{lead.text} {words}")
    elif columns:
        yield from _columns(page, (words, lead.text if lead.heads else ""), rows, columns, by_run)


def _columns(page: str, words: tuple[str, str], rows: list[Cells], columns: list[int], by_run: list[int]) -> Iterator[Claim]:
    """What columns headed as covered name, or the rows do where they name runs instead."""
    cells = {number: [_span(row[number : number + 1]) for row in rows if number < len(row)] for number in columns}
    if not speaks_of_a_run(" ".join([*words, *(page[slice(*cell)] for column in cells.values() for cell in column)])):
        return
    naming = [number for number in columns if any(_SHORT.search(page[slice(*cell)]) for cell in cells[number])]
    named = [[_span(row[number : number + 1]) for number in naming if number < len(row)] for row in rows]
    spans = [
        found if any(_SHORT.search(page[slice(*cell)]) for cell in found) else [_span(row)] for row, found in zip(rows, named, strict=True)
    ]
    for group in _grouped(rows, spans, by_run or [number for number in columns if number not in naming], " ".join(words)):
        yield from _claims(page, group, words[0])


def _grouped(rows: list[Cells], spans: list[list[Span]], columns: list[int], words: str) -> list[list[Span]]:
    """Rows by the run that a column of theirs names, each on its own where none does; one that names several is of each."""
    groups: dict[str, list[Span]] = {}
    for row, own in zip(rows, spans, strict=True):
        told = ", ".join(row[number][1] for number in columns if number < len(row)).lower()
        runs = {" ".join(re.findall(r"\b(?!runs?\b)[^\W_]+", piece)) for piece in _PIECE.split(told)} - {""}
        if _YES.fullmatch(told):
            runs = {"yes"} if _ONE.search(words) else set()
        for run in sorted(runs) or [f"row {own[0][0]}"]:
            groups.setdefault(run, []).extend(own)
    return list(groups.values())


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


def _rows(block: Block) -> list[Cells]:
    """Cells with their places, of each line."""
    return [list(_cells(line.text, line.start)) for line in block.lines]


def _span(cells: Cells) -> Span:
    return cells[0][0], cells[-1][0] + len(cells[-1][1])


def _cells(text: str, begin: int) -> Iterator[tuple[int, str]]:
    inner = text.strip().removeprefix("|").removesuffix("|")
    begin += text.index(inner) if inner else 0
    for cell in inner.split("|"):
        yield begin, cell
        begin += len(cell) + 1
