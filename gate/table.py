"""Tables: rows by verdict, differences by step and phase, differences one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from rich.table import Table
from rich.text import Text

from gate.facts import Fact, place
from gate.row import Row
from gate.screen import plain
from gate.verdict import Verdict
from golden.compare import Comparison, Difference

STYLES = {
    Verdict.DRIFT: "bold red",
    Verdict.NONDETERMINISTIC: "bold magenta",
    Verdict.NOT_JUDGED: "bold yellow",
    Verdict.UPDATED: "green",
    Verdict.RECORDED: "green",
    Verdict.IDENTICAL: "green",
}
LONG = ("first", "path", "differences", "expected", "actual")  # columns that give way where a line is too long,
LEAST = 12  # down to so many characters
MOST = 20  # lines of a table of steps or differences
WIDE = 72  # columns below which a table would be cut into letters
ROOMY = 110  # columns from which paths have room


def facts(some: Iterable[Fact]) -> Table:
    """Facts below each other, their labels in a column of their own."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in some:
        grid.add_row(Text(f"  {label}"), Text(text))
    return grid


def rows(some: Sequence[Row], width: int) -> Table:
    """One line a row: what was judged, and what came of it."""
    if width < WIDE:
        return _stacked((f"{_named(row)} {row.hardware or '-'} {row.torch or '-'}", row.verdict, _why_and_replay(row)) for row in some)
    roomy = width >= ROOMY
    replayed = any(map(_replay, some))
    more = [*(["replay"] if replayed else []), *(["seconds"] if roomy else [])]
    table = _table(("scenario", "hardware", "torch", "verdict", "why", "first", *more))
    for row in some:
        who = map(_cell, (_named(row), row.hardware or "-", row.torch or "-"))
        seconds = [_cell("" if row.seconds is None else f"{row.seconds:.1f}")] if roomy else []
        replay = [_cell(_replay(row, roomy))] if replayed else []
        table.add_row(*who, _verdict(row.verdict), _cell(_why(row)), _cell(_first(row.first, roomy)), *replay, *seconds)
    return table


def pairs(some: Sequence[tuple[str, Verdict, str]], width: int) -> Table:
    """One line a pair of goldens: name, verdict, and how much differs."""
    if width < WIDE:
        return _stacked(some)
    table = _table(("golden", "verdict", "differences"))
    for name, verdict, counts in some:
        table.add_row(_cell(name), _verdict(verdict), _cell(counts))
    return table


def steps(comparison: Comparison) -> Table:
    """How many leaves differ in each step and phase, for the first steps that have some."""
    phases = list(dict.fromkeys(difference.phase for difference in comparison.differences))
    counts: dict[int, dict[str, int]] = {}
    for difference in comparison.differences:
        found = counts.setdefault(difference.step, dict.fromkeys(phases, 0))
        found[difference.phase] += 1
    table = _table(("step", *map(plain, phases)))
    for step, found in islice(counts.items(), MOST):
        table.add_row(_cell(str(step)), *(_cell(str(number or "")) for number in found.values()))
    if len(counts) > MOST:
        table.add_row(_cell("..."), *[_cell("")] * len(phases))
    return table


def differences(some: Sequence[Difference], width: int) -> Table:
    """The first differences one by one, with their figures; both sides of each where there is room."""
    if width < WIDE:
        return _plain_lines([place(difference) for difference in some[:MOST]])
    sides = ("expected", "actual") if width >= ROOMY else ()
    table = _table(("step", "path", "kind", "differing", "max ULP", "first at", *sides))
    for found in some[:MOST]:
        part = "" if found.differing is None else f"{found.differing}/{found.elements}"
        figures = (part, _figure(found.max_ulp), _figure(None if found.index is None else list(found.index)))
        texts = (found.expected or "", found.actual or "") if sides else ()
        table.add_row(*map(_cell, (str(found.step), found.path, found.kind.value, *figures, *texts)))
    return table


def _table(headings: Sequence[str]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    for heading in headings:
        table.add_column(Text(heading), no_wrap=heading not in LONG, min_width=LEAST if heading in LONG else None)
    return table


def _stacked(some: Iterable[tuple[str, Verdict, str]]) -> Table:
    """Lines without columns, for narrow screens."""
    grid = Table.grid()
    grid.add_column(overflow="fold")
    for name, verdict, why in some:
        grid.add_row(Text.assemble(f"{plain(name)}: ", _verdict(verdict), f" ({plain(why)})" if why else ""))
    return grid


def _plain_lines(lines: Iterable[str]) -> Table:
    grid = Table.grid()
    grid.add_column(overflow="fold")
    for line in lines:
        grid.add_row(Text(line))
    return grid


def _cell(text: str) -> Text:
    return Text(plain(text), no_wrap=True, overflow="crop")


def _figure(figure: object) -> str:
    return "" if figure is None else str(figure)


def _verdict(verdict: Verdict) -> Text:
    return Text(str(verdict), STYLES[verdict])


def _named(row: Row) -> str:
    return row.scenario if row.golden in (None, row.scenario) else f"{row.scenario} (as {row.golden})"


def _first(difference: Difference | None, roomy: bool) -> str:
    if difference is None:
        return ""
    return place(difference) if roomy else f"step {difference.step}, {difference.kind}: {difference.phase}"


def _replay(row: Row, roomy: bool = True) -> str:
    """`11 replays, 2 recordings, 0 fallbacks`; empty where nothing was replayed, nor asked to be."""
    found = row.replay or {}
    if not any(found.values()):
        return ""
    names = ("replays", "recordings", "fallbacks") if roomy else ("replays", *(["fallbacks"] if found["fallbacks"] else []))
    return ", ".join(f"{found[name]} {name}" for name in names)


def _why_and_replay(row: Row) -> str:
    return ", ".join(filter(None, (_why(row), _replay(row))))


def _why(row: Row) -> str:
    return str(row.cause or row.reason or "")
