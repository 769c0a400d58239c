"""Numbers in documents that look like counts of checks: `169 tests`, `169 passed`, `tests: 169`, and a table's column of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gate.claims.prose import blank, without_code

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)"
_ALONE = r"(?<![\w.,+/#§-])"
_WORD = r"(?!(?:a|an|and|as|at|by|for|from|how|in|its|of|on|or|per|than|the|this|to|under|what|whether|with)\s)[a-z]+(?:-[a-z]+)*"
_WORDS = rf"(?:of\s+(?:(?:all|its|the|these)\s+)?)?(?:{_WORD}\s+){{0,2}}"
_MORE = rf"(?:(?:\s+{_WORD})?\s*(?:/|,|\band\b|\bor\b|\b(?:out\s+)?of\b|\bto\b)\s*(?:and\s+)?{_NUMBER}){{0,8}}"
_THINGS = r"(?:checks|tests|goldens|mutants)"
_THING = r"(?:(?:checks?|goldens?|mutants?|tests?(?:\s+(?:files?|cases?))?)\b(?!/)(?!\s+(?:a|an|how|its|the|this|what|whether)\b))"
_ENDED = r"(?:passed|passing|failed|failing|skipped|killed|survived|xfailed|deselected)"
_REST = rf"\b(?:,?\s+(?:and\s+)?{_NUMBER}\s+{_ENDED}\b)*(?!\s+to\b)"
_OF_THINGS = re.compile(rf"{_ALONE}{_NUMBER}{_MORE}\s+{_WORDS}{_THING}", re.IGNORECASE)
_OUTCOMES = re.compile(rf"{_ALONE}{_NUMBER}{_MORE}\s+{_ENDED}{_REST}(?!\s+{_WORD})", re.IGNORECASE)
_PASSED = re.compile(rf"{_ALONE}{_NUMBER}{_MORE}\s+(?:passed|killed){_REST}", re.IGNORECASE)
_LABEL = rf"(?:(?:{_WORD}[ ]+){{0,2}}{_THINGS}(?:[ ]+(?:{_ENDED}|run|ran|in all))?|{_ENDED})"
_AFTER = rf"(?:all|and|are|as|at|but|for|from|in|of|on|or|since|were|with|{_THINGS}|{_ENDED})"
_LABELLED = re.compile(
    rf"(?<![\w/.=-]){_LABEL}[ ]*(?::|=|->|→)[ ]*{_NUMBER}{_MORE}(?!\w|[.,/:%-]\w|[ ]*%|[ ]+(?!{_AFTER}\b)[^\W\d])", re.IGNORECASE
)
_NUMBERED = (
    r"(?:batch|chapter|cuda|day|epoch|fig|figure|issue|iteration|level|line|milestone|page|part|phase|python|rank|release|revision"
    r"|round|row|rule|section|seed|stage|step|table|torch|version|week|windows|wp|year)s?\.?"
)
_DATED = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\.?|(?:after|before|by|during|early|from|in|late|mid|since|till|until)"
    r"(?=\s+(?:19|20)\d\d\b))"
)
_RESULT = rf"(?:attempt|check|golden|job|mutant|run|test|worker)(?=\s+\d+\s+{_ENDED}\b)"
_NAMED = re.compile(  # a determiner before it: no name, "in this step 12 tests fail"
    rf"\b(?<!this\s)(?<!that\s)(?<!each\s)(?<!per\s)(?<!one\s)(?<!the\s)(?:{_NUMBERED}|{_DATED}|{_RESULT})(?:[ \t]+|[ \t]*\n[ \t]*)"
    r"\d+(?:\s*(?:and|or|to|[/-])\s*\d+|,?\s+(?:19|20)\d\d)?",
    re.IGNORECASE,
)
_HEAD = re.compile(_LABEL, re.IGNORECASE)
_CELL = re.compile(rf"{_NUMBER}(?:\s*(?:/|of)\s*{_NUMBER})?")
_ROW = re.compile(r"^[^\n|]*\|[^\n]*$", re.MULTILINE)
_RULE = re.compile(r"[\s|:-]*")
_MARKUP = re.compile(
    r"\*+|__+|~~+|&nbsp;|(?<!\w)_(?=\w)|(?<=[^\W_])_(?!\w)|</?[a-z]+\b[^<>\n]*>|\[(?=\d)|(?<=\w)\](?:\([^()\s]*\)|\[[^\[\]\n]*\])",
    re.IGNORECASE,
)
_QUOTED = re.compile(rf"`({_NUMBER})`")


def counts(text: str) -> Iterator[tuple[int, str]]:
    """Place and words of each number that looks like a count of checks, tests, goldens or mutants; of several together, once.

    Args:
        text: a document; its code counts as none, but for a number alone; bold and the like count as nothing. A number that names something
            (step 500, a year) is no count.
    """
    plain = _MARKUP.sub(blank, without_code(_QUOTED.sub(r" \1 ", text)))
    plain = _NAMED.sub(lambda name: re.sub(r"\d", "¦", name[0]), plain)
    known = [
        (span, " ".join(plain[slice(*span)].split()))
        for pattern in (_OF_THINGS, _LABELLED, _PASSED, _OUTCOMES)
        for span in _spans(pattern, plain)
    ]
    known += list(_columns(plain))
    last = -1
    for (start, end), told in sorted(known, key=lambda item: (item[0][0], -item[0][1])):
        if start >= last:
            yield start, told
        last = max(last, end)


def _spans(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    return (found.span() for found in pattern.finditer(text))


def _columns(plain: str) -> Iterator[tuple[tuple[int, int], str]]:
    """Numbers in a row that begins with what is counted, and below a head that says so: of a column the first, with how many follow."""
    for table in _tables(plain):
        heads = [" ".join(cell.split()) for _, cell in table[0]]
        ruled = len(table) > 1 and all(_RULE.fullmatch(cell) for _, cell in table[1])
        for row in table:
            (_, label), *cells = row
            if _HEAD.fullmatch(label.strip()):
                yield from (((place, place + len(cell)), f"{label.strip()} | {cell}") for place, cell in cells if _CELL.fullmatch(cell))
        for column, head in enumerate(heads if ruled else []):
            below = [row[column] for row in table[2:] if column < len(row) and _CELL.fullmatch(row[column][1])]
            if _HEAD.fullmatch(head) and below:
                place, cell = below[0]
                yield (place, place + len(cell)), f"{head} | {cell}" + (f" and {len(below) - 1} more below it" if len(below) > 1 else "")


def _tables(plain: str) -> Iterator[list[list[tuple[int, str]]]]:
    """Rows of neighbouring lines, as cells with the places where their texts begin."""
    table: list[list[tuple[int, str]]] = []
    end = -1
    for row in _ROW.finditer(plain):
        if table and row.start() != end + 1:
            yield table
            table = []
        table.append(list(_cells(row[0], row.start())))
        end = row.end()
    if table:
        yield table


def _cells(row: str, begin: int) -> Iterator[tuple[int, str]]:
    inner = row.strip().removeprefix("|")
    begin += row.index(inner) if inner else 0
    for cell in inner.removesuffix("|").split("|"):
        yield begin + len(cell) - len(cell.lstrip()), cell.strip()
        begin += len(cell) + 1
