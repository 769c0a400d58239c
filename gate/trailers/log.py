"""The log of provenance: each source once, under the day on which it was first used, in order."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from gate.trailers import source
from gate.trailers.rows import Page

_HEADING = re.compile(r"[ ]{0,3}##[ \t]+(?P<day>\S.*?)(?:[ \t]+#+)?\s*")
_UNDERLINE = re.compile(r"[ ]{0,3}-+\s*")
_EMPTY = re.compile(r"[\s|:-]*")
_ID = re.compile(r"(?P<letters>[A-Za-z]+)(?P<number>[0-9]{1,9})")
_WRITTEN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")  # date.fromisoformat takes other ways of writing a day, too
_MARKS = r"[\s>*_`\[(~\\]*"  # emphasis, quotes, brackets
_LIKE = re.compile(  # an id at the beginning of an item, a heading or cells; of other text with a colon, or the like, behind it
    rf"(?:{_MARKS}(?:[-+*|]|\d+[.)]|#{{1,6}}\s|(?:<[^>]*>\s*)+)+(?:\s*\[[ x]\]\s)?{_MARKS}(?P<id>[A-Za-z]+[0-9]+)(?!\w)"
    rf"|{_MARKS}(?P<bare>[A-Za-z]+[0-9]+)[*_`\])]*(?:[:|=\t\u2013\u2014]|[.)]\s|\s+[-|=\u2013\u2014]))"
)


@dataclass(frozen=True)
class Entry:
    """One row of the log.

    Attributes:
        id: "P1".
        source: as written.
        day: the heading that it stands under, None without one.
        heading: the line of that, 0 without one.
        line: from 1.
    """

    id: str
    source: str
    day: str | None
    heading: int
    line: int

    @property
    def marks(self) -> frozenset[str]:
        """What tells the row: its id, and its source."""
        return source.marks(self.source) | {f"id {self.id.casefold()}"}


def entries(text: str) -> list[Entry]:
    """The rows of the log's tables; heads of tables are none, nor is what stands in comments and code."""
    return _entries(Page.of(text))


def _entries(page: Page) -> list[Entry]:
    headings = _headings(page)
    found: list[Entry] = []
    for number, cells in page.rows.items():
        if not all(map(_EMPTY.fullmatch, cells)):
            heading = max((line for line in headings if line < number), default=0)
            found.append(Entry(cells[0], cells[1] if len(cells) > 1 else "", headings.get(heading), heading, number))
    return found


def wrong(text: str, used: Mapping[str, tuple[str, str]]) -> Iterator[tuple[int, str]]:
    """What is wrong with a log, each with its line.

    Args:
        text: the log.
        used: for each id the first day on which a commit names it, and that commit's title.
    """
    page = Page.of(text)
    known = _entries(page)
    yield from _days(_headings(page), {entry.heading for entry in known})
    yield from _stray(page, known)
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


def _headings(page: Page) -> dict[int, str]:
    """Headings of the second order by their lines."""
    found = {number: match["day"] for number, line in page.rest.items() if (match := _HEADING.fullmatch(line))}
    for number, line in page.rest.items():
        alone = line.strip() and not page.rest.get(number - 1, "").strip()
        if alone and number not in found and _UNDERLINE.fullmatch(page.rest.get(number + 1, "")):
            found[number] = line.strip()
    return dict(sorted(found.items()))


def _days(headings: Mapping[int, str], used: Collection[int]) -> Iterator[tuple[int, str]]:
    """What is wrong with the days; a heading that is none is free where no row stands under it."""
    last = ""
    for number, day in headings.items():
        if not _is_day(day):
            if number in used:
                yield number, f"{day!r} is no day, so that the rows under it cannot be held to one: write headings as ## 2026-11-29"
            continue
        if day <= last:
            yield number, f"{day} stands after {last}: days stand in order, each once"
        last = max(day, last)


def _stray(page: Page, known: Collection[Entry]) -> Iterator[tuple[int, str]]:
    """Lines that look like entries and are none, so that nobody would read them; without bars those of an id that has a row are notes."""
    rows = {entry.id for entry in known}
    letters = {"P", *(name["letters"] for entry in known if (name := _ID.fullmatch(entry.id)))}
    for number, line in page.rest.items():
        like = _LIKE.match(line)
        told = (like["id"] or like["bare"]) if like else ""
        if told.rstrip("0123456789") in letters and (told not in rows or "|" in line):
            yield number, f"{told} looks like an entry, and is no row of a table: put it below a table's head and the line of dashes there"


def _is_day(text: str) -> bool:
    try:
        return _WRITTEN.fullmatch(text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False
