"""The log of provenance: each source once, under the day on which it was first used, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from gate.check.lines import split
from gate.trailers import source

_DAY = re.compile(r"^##\s+(?P<day>\S.*?)\s*$")
_ROW = re.compile(r"^\|(?P<cells>.*)\|\s*$")
_RULE = re.compile(r"^[\s|:-]+$")
_ID = re.compile(r"(?P<letters>[A-Za-z]+)(?P<number>[0-9]{1,9})")
_WRITTEN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")  # date.fromisoformat takes other ways of writing a day, too


@dataclass(frozen=True)
class Entry:
    """One row of the log.

    Attributes:
        id: "P1".
        source: as written.
        day: the heading that it stands under, None without one.
        line: from 1.
    """

    id: str
    source: str
    day: str | None
    line: int

    @property
    def marks(self) -> frozenset[str]:
        """What tells the row: its id, and its source."""
        return source.marks(self.source) | {f"id {self.id.casefold()}"}


def entries(text: str) -> list[Entry]:
    """The rows of the log's tables; headings of tables are none."""
    found: list[Entry] = []
    day: str | None = None
    lines = split(text)
    for number, line in enumerate(lines, 1):
        heading, row = _DAY.match(line), _ROW.match(line)
        if heading:
            day = heading["day"]
        elif row and not _RULE.match(line) and not (number < len(lines) and _RULE.match(lines[number]) and "-" in lines[number]):
            cells = [cell.strip() for cell in row["cells"].split("|")]
            found.append(Entry(cells[0], cells[1] if len(cells) > 1 else "", day, number))
    return found


def wrong(text: str, used: Mapping[str, tuple[str, str]]) -> Iterator[tuple[int, str]]:
    """What is wrong with a log, each with its line.

    Args:
        text: the log.
        used: for each id the first day on which a commit names it, and that commit's title.
    """
    yield from _days(text)
    known = entries(text)
    seen: dict[str, Entry] = {}
    before: dict[str, int] = {}
    for entry in known:
        name = _ID.fullmatch(entry.id)
        if name is None or not entry.source:
            yield entry.line, f"{entry.id!r} names no source: a row begins with an id, such as P1, and the source"
            continue
        if entry.day is None:
            yield entry.line, f"{entry.id} stands under no day: put it under a heading such as ## 2026-11-29"
        for mark in sorted(entry.marks):
            if mark in seen:
                other = seen[mark]
                told = "is a source that stands already, as"
                yield entry.line, f"{entry.id} {told} {other.id} in line {other.line}: each stands once, under its first day"
                break
        if int(name["number"]) <= before.get(name["letters"], 0):
            yield entry.line, f"{entry.id} is out of order: it stands after {name['letters']}{before[name['letters']]}"
        before[name["letters"]] = max(before.get(name["letters"], 0), int(name["number"]))
        seen |= {mark: entry for mark in entry.marks if mark not in seen}
        if entry.day is not None and _is_day(entry.day) and entry.id in used and used[entry.id][0] < entry.day:
            day, commit = used[entry.id]
            yield entry.line, f"{entry.id} stands under {entry.day}, but {commit} of {day} uses it: a source stands under its first day"


def _days(text: str) -> Iterator[tuple[int, str]]:
    last = ""
    for number, line in enumerate(split(text), 1):
        heading = _DAY.match(line)
        if heading is None:
            continue
        day = heading["day"]
        if not _is_day(day):
            yield number, f"{day!r} is no day, so that the rows under it cannot be held to one: write headings as ## 2026-11-29"
            continue
        if day <= last:
            yield number, f"{day} stands after {last}: days stand in order, each once"
        last = max(day, last)


def _is_day(text: str) -> bool:
    try:
        return _WRITTEN.fullmatch(text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False
