"""Figures of checks in documents: `<!-- gate: cpu/tests.passed -->169<!-- /gate -->`, and numbers that should stand so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gate.claims.counts import counts
from gate.claims.issue import Issue, Weight
from gate.claims.prose import Lines, blank, rewritten, without_code, without_comments
from gate.claims.witnesses import Witnesses
from gate.evidence.judging import command
from gate.evidence.required import Need
from gate.evidence.statement import CHECKS
from golden.keys import nearest

FORM = "<!-- gate: NAME -->FIGURE<!-- /gate -->"
_MARK = re.compile(r"<!--\s*gate:\s*(?P<name>[^\s>]*)\s*-->(?P<text>[^<]*)<!--\s*/gate\s*-->")
_FIGURE = re.compile(r"[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+|")  # or nothing yet
_HALF = re.compile(r"<!--\s*(?:gate:[^>]*|/gate\s*)-->")
_NAME = re.compile(r"(?P<hardware>[^/\s]+)(?:/torch-(?P<torch>[^/\s]+))?/(?P<check>\w+)\.(?P<field>\w+)")
_MEANT = re.compile(r"<!--\s*(?P<inner>[^<>]*?)\s*-->")
_LIKE = re.compile(r"[/\\]?\s*gate\s*(?:[:=].*)?|(?:end|close)[\s_-]*gate", re.IGNORECASE | re.DOTALL)
_FIELD = r"[.:/](?!(?:md|py|rst|txt|html|json|toml)\b)\w+"
_NAMED = re.compile(rf"(?:\S+\s*[:=]?\s*)?[^/\s:=]+(?:/torch-[^/\s]+)?/(?:{'|'.join(CHECKS)}){_FIELD}", re.IGNORECASE)


@dataclass(frozen=True)
class Figure:
    """A figure between markers.

    Attributes:
        name: "cpu/tests.passed": hardware, perhaps `torch-VERSION`, then the check and a field of its counts.
        text: what the document says.
        start, end: where that stands, blanks around it left out.
        line: from 1.
        whole: whether that is one figure, or nothing yet, on one line with its markers.
    """

    name: str
    text: str
    start: int
    end: int
    line: int
    whole: bool = True

    @property
    def fault(self) -> str:
        """What is wrong where it is not whole."""
        short = " ".join(self.text.split())
        short = short if len(short) <= 60 else f"{short[:57]}..."
        told = f'between the markers of {self.name} stands "{short}", which is not one figure on one line'
        return f"{told}. Put one between them, or close the marker after its figure: <!-- /gate -->"


def figures(text: str) -> list[Figure]:
    """The figures of a document, those in code left out."""
    found, lines = _MARK.finditer(without_code(text)), Lines(text)
    return [_figure(mark, lines.of(mark.start())) for mark in found]


def judged(file: str, text: str, witnesses: Witnesses) -> Iterator[Issue]:
    """What is wrong with the figures of a document."""
    for figure in figures(text):
        value = _value(figure, witnesses) if figure.whole else Issue(Weight.CLAIM, "", 0, figure.fault)
        if isinstance(value, Issue):
            yield Issue(value.weight, file, figure.line, value.message, value.hardware)
        elif figure.text.replace(",", "") != str(value):
            told = f"{figure.name} is {value} in the evidence, and {figure.text or 'nothing'} here. Refresh it: gate status --write"
            yield Issue(Weight.CLAIM, file, figure.line, told)
    rest, lines = _MARK.sub(blank, without_code(text)), Lines(text)
    for half in _HALF.finditer(rest):
        told = f"{' '.join(half[0].split())} has no other half. Write {FORM}, the figure without markup"
        yield Issue(Weight.CLAIM, file, lines.of(half.start()), told)
    for meant in _MEANT.finditer(_HALF.sub(blank, rest)):
        if _LIKE.fullmatch(meant["inner"]) or _NAMED.fullmatch(meant["inner"]):
            told = f"{' '.join(meant[0].split())} looks like a marker, and is none. Write {FORM}"
            yield Issue(Weight.CLAIM, file, lines.of(meant.start()), told)


def unmarked(file: str, text: str) -> Iterator[Issue]:
    """Numbers outside markers that look like counts of checks, tests, goldens or mutants: nothing keeps them true."""
    lines = Lines(text)
    for place, words in counts(without_comments(_MARK.sub(_hidden, text))):
        told = f'"{words}" looks like a count of checks, which goes stale. Mark it, or leave it out'
        yield Issue(Weight.WARNING, file, lines.of(place), told)


def refreshed(text: str, witnesses: Witnesses) -> str:
    """A document with every figure as the evidence says; those that it says nothing of stay. Each has to be whole."""
    pieces = []
    for figure in figures(text):
        value = _value(figure, witnesses)
        if isinstance(value, int) and figure.text.replace(",", "") != str(value):
            pieces.append((figure.start, figure.end, f"{value:,}" if "," in figure.text else str(value)))
    return rewritten(text, pieces)


def _figure(mark: re.Match[str], line: int) -> Figure:
    text = mark["text"].strip()
    start = mark.start("text") + len(mark["text"]) - len(mark["text"].lstrip())
    return Figure(mark["name"], text, start, start + len(text), line, _FIGURE.fullmatch(text) is not None and "\n" not in mark[0])


def _value(figure: Figure, witnesses: Witnesses) -> int | Issue:
    name = _NAME.fullmatch(figure.name)
    if name is None:
        return Issue(
            Weight.CLAIM, "", 0, f"{figure.name!r} names no figure. Write it as cpu/tests.passed or h200/torch-2.11.0/goldens.identical"
        )
    if name["check"] not in CHECKS:
        return Issue(Weight.CLAIM, "", 0, f"{figure.name} names no check, {nearest(name['check'], list(CHECKS))}")
    records = witnesses.of(name["check"], name["hardware"], name["torch"])
    if not records:
        told = f"{figure.name} cannot be told: there is no fresh evidence of {name['check']} on {name['hardware']}"
        ask = command(Need(name["check"], name["hardware"], name["torch"]))
        return Issue(Weight.INCONCLUSIVE, "", 0, f"{told}. Run {ask}", (name["hardware"],))
    known = sorted({field for record in records for field in record.counts})
    if name["field"] not in known:
        return Issue(Weight.CLAIM, "", 0, f"the evidence has no figure {figure.name}, {nearest(name['field'], known)}")
    return sum(record.counts.get(name["field"], 0) for record in records)


def _hidden(mark: re.Match[str]) -> str:
    """A mark for each letter: no number before a figure between markers goes with a word after it."""
    return re.sub(r"[^\n]", "¦", mark[0])
