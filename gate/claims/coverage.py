"""What a page says that each run covers: in a clause, in the list, table or text that a line announces, in a table's column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from gate.claims.blocks import Block, Form, blocks, indent
from gate.claims.prose import sentences
from gate.claims.speech import (
    COVERS,
    Named,
    clauses,
    enumerated,
    is_enumeration,
    is_key,
    is_on_a_run,
    made_at,
    refers,
    speaks_of_a_run,
    speaks_of_several,
)

Claim = tuple[Named, ...]  # what one run is said to cover, in the order of the page's words
Cells = list[Named]  # each text after its place

_MARK = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_YES = re.compile(r"[\W_]*(?:yes|y|x|ok|done|[\u2611\u2705\u2713\u2714])[\W_]*", re.IGNORECASE)
_NO = re.compile(r"\W*(?:no|none|not\b.*)\W*", re.IGNORECASE)
_NOT = re.compile(r"\bnot\b", re.IGNORECASE)
_PIECE = re.compile(r"[,;&/+]|\band\b|<br */?>")
_RUN_NAME = re.compile(r"\W*(?:run\W{0,3})?(?P<number>\d+)(?![\w.:-]).*|(?P<name>.*\brun\b.*)", re.IGNORECASE | re.DOTALL)
_ONE = re.compile(r"\b(?:the|this|that|one)\s+(?:\w+\s+)?run\b|\brun\W{1,3}\d", re.IGNORECASE)
_BY = re.compile(r"\bcovered\s+by\b|\bruns?\s+that\s+covers?\b", re.IGNORECASE)
_AT = re.compile(r"\b(?:run|made|recorded|measured)\s+at\b", re.IGNORECASE)
_BELOW = re.compile(r"\b(?:commits?|revisions?|sources|following|below|these)\b", re.IGNORECASE)
_WHAT = re.compile(r"\W*what\s+is\s+covered\b", re.IGNORECASE)
_RUN = re.compile(r"\W*runs?\W*", re.IGNORECASE)
_THE_RUN = re.compile(r"(?:the |this |same )*run|")
_CODE = (Form.FENCE, Form.CODE)


@dataclass(frozen=True)
class Lead:
    """The sentence before a block, which may announce it; nothing where `says` is wrong."""

    text: str = ""
    start: int = 0
    says: bool = False
    heads: bool = False
    names: Claim = ()


def covered(page: str) -> Iterator[Claim]:
    """What a page says that each run of which it speaks covers.

    It has to say that it is a run, or what else is evidence: tests cover lines, and a page its subject.
    """
    lead = heading = Lead()
    below: list[Named] = []  # what a heading that says so lists
    for block in blocks(page):
        if _heads(block):
            yield from _of(heading.text, below)
            below = []
        if block.form is Form.TABLE:
            yield from _table(block, lead if lead.says else heading if heading.says else lead, heading.text)
        elif heading.says and not _heads(block) and (lead.start == heading.start or not lead.says):
            found = [] if _goes_on(lead.text) and _NOT.search(lead.text) else _listed(block)
            heading = replace(heading, says=bool(found or not below))  # other words after a list speak of something else
            below += found
        elif lead.says and not _heads(block) and (block.form is not Form.PARAGRAPH or _goes_on(lead.text)):
            yield from _of(lead.text, [*lead.names, *_listed(block)])
        if block.form is Form.LIST:
            yield from _nested(block)
        yield from _sentences(block, heading.text) if block.form not in _CODE else ()
        lead = _lead(block, "" if _heads(block) else heading.text)
        heading = lead if _heads(block) else heading
    yield from _of(heading.text, below)


def _of(words: str, names: Iterable[Named]) -> Iterator[Claim]:
    """One claim, or one of each name where the words speak of several runs."""
    if speaks_of_several(words):
        yield from ((name,) for name in names)
    else:
        yield tuple(names)


def _heads(block: Block) -> bool:
    """Whether a block is a heading, or a line in bold, which stands for one."""
    bold = block.form is Form.PARAGRAPH and re.fullmatch(r"\s*(\*\*|__)[^*_\n]+\1\s*", block.text) is not None
    return bold or block.form is Form.HEADING


def _listed(block: Block) -> list[Named]:
    """Of items and of lines of code the enumerations with which they begin, of other text all if it is one."""
    if block.form is Form.PARAGRAPH:
        return _at(block.start, enumerated(block.text)) if is_enumeration(block.text) else []
    lines = [line for item in block.items() for line in item.lines[:1]] if block.form is Form.LIST else list(block.lines)
    return [name for line in lines for name in _begun(line.start, line.text)]


def _begun(start: int, text: str) -> list[Named]:
    mark = _MARK.match(text)
    return _at(start, enumerated(text, mark.end() if mark else 0))


def _at(start: int, names: Iterable[Named]) -> list[Named]:
    return [(start + place, name) for place, name in names]


def _sentences(block: Block, heading: str) -> Iterator[Claim]:
    """What the clauses of a block say, together of each run: of the one that they name, or of the last one in a paragraph or an item."""
    items = block.items() if block.form is Form.LIST else [block] if block.form is not Form.TABLE else []
    runs: dict[str, list[Named]] = {}
    before, made = "" if _heads(block) else heading, list[Named]()
    for item in items:
        said, last = False, ""
        for place, sentence in sentences(item.text):
            begins, found = item.start + place, list(clauses(sentence, before, said, heading))
            for clause in found:
                names = _at(begins, clause.names)
                if speaks_of_several(clause.words):
                    yield from ((name,) for name in names)
                    continue
                if not last or (clause.run and clause.run not in last.lstrip("#").split()):
                    last = clause.run if clause.run[:1] == "#" else f"{clause.run} {begins if clause.alone else item.start}"
                runs.setdefault(last, []).extend([*(made if names and _THE_RUN.fullmatch(clause.run) else []), *names])
            said = said or bool(found) if refers(sentence) else bool(found)
            if not refers(sentence):
                before, made = sentence, _at(begins, made_at(sentence)) if is_on_a_run(sentence) else []
    yield from (tuple(names) for names in runs.values())


def _lead(block: Block, before: str) -> Lead:
    """The last sentence of a block; before it stands what precedes it there, or else its heading."""
    if block.form in (Form.TABLE, *_CODE):
        return Lead()
    told = list(sentences(block.text))
    place, text = told[-1]
    found = list(clauses(text, told[-2][1] if len(told) > 1 else before))
    names = tuple(_at(block.start + place, (name for clause in found[-1:] for name in clause.names)))
    heads = _heads(block) or _goes_on(text)
    announces = heads or (_BELOW.search(text) is not None and not names)
    return Lead(text, block.start + place, announces and bool(found), heads, names)


def _goes_on(text: str) -> bool:
    return text.rstrip(" *_`\r\n").endswith(":")


def _nested(block: Block) -> Iterator[Claim]:
    """Items that announce those which are indented below them."""
    waiting = block.items()
    while waiting:
        first, *rest = waiting.pop().lines
        if not any(indent(line) is not None for line in rest):
            continue
        inner = Block(Form.LIST, tuple(rest))
        found = list(clauses(first.text)) if _goes_on(first.text) else []
        if found:
            yield from _of(first.text, [*_at(first.start, found[-1].names), *_listed(inner)])
        else:
            waiting += inner.items()


def _table(block: Block, lead: Lead, heading: str) -> Iterator[Claim]:
    """Of a table that a line announces all, or each row where there is a run to each; else the columns headed as covered."""
    head, *rows = table = [list(_cells(line.text, line.start)) for line in block.lines]
    yield from _keyed(table, f"{heading} {block.text}")
    words = "|".join(cell for _, cell in head)
    columns = [number for number, (_, cell) in enumerate(head) if COVERS.search(cell)]
    by_run = [number for number, (_, cell) in enumerate(head) if _RUN.fullmatch(cell)]
    if columns and speaks_of_a_run(f"{words} {lead.text if lead.heads else ''} {_cells_of(rows, columns)}"):
        yield from _columns(head, rows, columns, by_run)
    elif not columns and (lead.says or (by_run and _WHAT.match(lead.text))):
        if by_run or speaks_of_several(lead.text):
            yield from _grouped(rows, [_row(row) for row in rows], by_run, "")
        else:
            yield tuple(name for row in rows for name in _row(row))


def _keyed(table: list[Cells], words: str) -> Iterator[Claim]:
    """Rows such as `| commits covered | A, B |` where something speaks of a run."""
    if speaks_of_a_run(words):
        yield from (tuple(_row(row[1:])) for row in table if is_key(row[0][1]))


def _columns(head: Cells, rows: list[Cells], columns: list[int], by_run: list[int]) -> Iterator[Claim]:
    """What columns headed as covered name, and those of what it was run at; else what stands beside them."""
    naming = [number for number in columns if any(_row(row[number : number + 1]) for row in rows)]
    naming = [number for number, (_, cell) in enumerate(head) if naming and (number in naming or _AT.search(cell))]
    beside = [[cell for number, cell in enumerate(row) if (number in naming if naming else number not in by_run)] for row in rows]
    by = [number for number in columns if _BY.search(head[number][1])]
    words = " ".join(head[number][1] for number in by)
    yield from _grouped(rows, [_row(cells) for cells in beside], by_run or [number for number in by if number not in naming], words)


def _grouped(rows: list[Cells], names: list[list[Named]], columns: list[int], words: str) -> Iterator[Claim]:
    """Rows by the run that a column of theirs names, each on its own where none does; one that names several is of each."""
    groups: dict[str, list[Named]] = {}
    for row, own in zip(rows, names, strict=True):
        told = ", ".join(row[number][1] for number in columns if number < len(row)).lower()
        runs = {match["number"] or match["name"].strip(" *_`") for piece in _PIECE.split(told) if (match := _RUN_NAME.fullmatch(piece))}
        if _YES.fullmatch(told) and _ONE.search(words):
            runs = {"yes"}
        for run in sorted(runs) or [f"row {row[0][0]}"]:
            groups.setdefault(run, []).extend(own)
    yield from (tuple(found) for found in groups.values())


def _row(cells: Cells) -> list[Named]:
    """What the cells of a row enumerate; nothing where one says no."""
    return [] if any(_NO.fullmatch(text) for _, text in cells) else [name for place, text in cells for name in _at(place, enumerated(text))]


def _cells_of(rows: list[Cells], columns: list[int]) -> str:
    return " ".join(row[number][1] for row in rows for number in columns if number < len(row))


def _cells(text: str, begin: int) -> Iterator[Named]:
    inner = text.strip().removeprefix("|").removesuffix("|")
    begin += text.index(inner) if inner else 0
    for cell in inner.split("|"):
        yield begin, cell
        begin += len(cell) + 1
