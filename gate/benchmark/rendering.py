"""A benchmark's result as text for a terminal and as Markdown for a document."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from gate import disk, facts
from gate.benchmark.judgement import CONFIDENCE, Speed, fewest_for_interval
from gate.benchmark.result import ArmTimes, Result
from gate.screen import columns, lines, plain, rendered

if TYPE_CHECKING:
    from rich.console import RenderableType

STYLES = {Speed.SLOWER: "bold red", Speed.DRIFT: "bold red", Speed.NONDETERMINISTIC: "bold magenta", Speed.NOT_JUDGED: "bold yellow"}
WIDE = 100  # columns below which each arm gets lines of its own
HEADINGS = ("arm", "ms a step", "range", "host ms", "device ms", "memory", "ratio", "interval", "p", "verdict")
NEXT = {
    Speed.SLOWER: "find what was added, or take it as the price",
    Speed.FASTER: "nothing to do",
    Speed.NO_DIFFERENCE: "nothing to do",
    Speed.INCONCLUSIVE: "more pairs (--pairs), more steps, or a quieter machine",
    Speed.DRIFT: "make the bits equal first (gate diff shows where they part)",
    Speed.NONDETERMINISTIC: "find what is drawn anew each time, and seed it",
    Speed.NOT_JUDGED: "do what the message on standard error says",
}


def text(result: Result, stream: TextIO | None = None) -> str:
    """What standard output gets; nothing is written.

    Args:
        result: of a benchmark.
        stream: that it is made for (width, colours); standard output where it is left out.
    """
    stream = stream or sys.stdout
    return rendered(_parts(result, columns(stream)), stream)


def messages(result: Result) -> list[str]:
    """What standard error is to hold: why nothing was timed, and why no more can be said."""
    told = [result.message] if result.message else []
    told += [f"{arm.name}: {arm.finding.verdict}: {arm.finding.why}" for arm in result.arms if arm.finding and arm.finding.why]
    return [line for message in told for line in lines(message)]


def markdown(result: Result) -> str:
    """The result as a document holds it."""
    head = [f"### {plain(result.bench)} on {result.hardware}, torch {result.torch}", "", f"{_closing(result)}", ""]
    if not result.arms:
        return "\n".join([*head, *(plain(line) for line in messages(result)), ""])
    rule = ["---", *["---:"] * (len(HEADINGS) - 2), "---"]
    rows = [HEADINGS, rule, *map(_row, result.arms)]
    table = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([*head, *table, "", *(f"- {line}" for line in _notes(result)), ""])


def _parts(result: Result, width: int) -> Iterator[RenderableType]:
    from rich.text import Text

    from gate import table

    yield Text(plain(f"{result.bench} on {result.hardware}, torch {result.torch}"))
    if result.first:
        yield table.facts(facts.first(result.first))
    if result.arms:
        yield Text()
        yield from _wide(result.arms) if width >= WIDE else _narrow(result.arms)
        yield Text()
        for line in _notes(result):
            yield Text(line)
    yield Text()
    yield Text(_closing(result), STYLES.get(result.verdict, "green"))


def _wide(arms: Sequence[ArmTimes]) -> Iterator[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    for heading in HEADINGS:
        table.add_column(Text(heading), justify="left" if heading in ("arm", "verdict") else "right")
    for arm in arms:
        table.add_row(*map(Text, _row(arm)))
    yield table


def _narrow(arms: Sequence[ArmTimes]) -> Iterator[RenderableType]:
    from rich.text import Text

    for arm in arms:
        told = [f"{heading} {cell}" for heading, cell in zip(HEADINGS[1:], _row(arm)[1:], strict=True) if cell]
        yield Text(f"{plain(arm.name)}: {', '.join(told)}")


def _row(arm: ArmTimes) -> tuple[str, ...]:
    found = arm.finding
    return (
        plain(arm.name),
        _figure(arm.median_ms),
        f"{_figure(arm.range_ms[0])}-{_figure(arm.range_ms[1])}",
        _figure(arm.host_ms),
        _figure(arm.device_ms),
        _memory(arm),
        _figure(arm.ratio),
        f"{_figure(found.interval[0])}-{_figure(found.interval[1])}" if found and found.interval else "none" if found else "",
        _figure(found.p) if found else "",
        str(found.verdict) if found else arm.role,
    )


def _notes(result: Result) -> list[str]:
    """What explains the table: how the figures came about, and what is not to be read into them."""
    runs, equal = result.arms[0].runs, result.digests
    settings = result.read.settings if result.read else {}
    process = "a fresh process for each run" if settings.get("process") == "each" else "one process for all runs"
    told = f"{facts.count(runs, 'pair')} in ABBA order, {process}; figures are medians over runs of each run's median step"
    notes = [f"{told}, the first {settings.get('warmup')} left out; ratio is by the baseline's time in the same round"]
    if equal:
        rounds = "and all rounds are equal" if equal["different"] == 1 else f"and rounds have {equal['different']} different sets"
        machines = f"; on {equal['nodes']} machines" if equal["nodes"] > 1 else ""
        told = f"digests of {', '.join(equal['phases'])} were equal in each of {facts.count(equal['pairs'], 'pair')}, {rounds}{machines}"
        notes.append(f"{told}; taken after the clocks had stopped")
    if runs < fewest_for_interval():
        notes.append(f"{facts.count(runs, 'pair')}: no interval, {CONFIDENCE:.0%} takes {fewest_for_interval()} or more")
    if runs % 2:
        notes.append("an odd number of pairs: one order came once more than the other")
    if any(arm.role == "beside" for arm in result.arms):
        notes.append("what is beside has other bits: its times are there for scale, and are not judged")
    if any(arm.device is not None for arm in result.arms):
        notes.append("memory: allocated / reserved by torch's allocator / taken of the device in all, the driver's part included; peaks")
    notes += [f"{plain(arm.name)}: {_replayed(arm)}" for arm in result.arms if any((arm.replay or {}).values())]
    return notes


def _replayed(arm: ArmTimes) -> str:
    return ", ".join(f"{number} {name}" for name, number in (arm.replay or {}).items()) + f"; first step {_figure(arm.first_ms)} ms"


def _closing(result: Result) -> str:
    judged = [f"{plain(arm.name)} {arm.finding.verdict}" for arm in result.arms if arm.finding]
    several = f" ({', '.join(judged)})" if len(judged) > 1 else ""
    why = f" ({result.reason})" if result.reason else ""
    bits = {True: "; bits are equal", False: "; bits differ, no time is shown", None: ""}[result.bits_equal]
    return f"{result.verdict}{why}{several}{bits}. Next: {NEXT[result.verdict]}"


def _memory(arm: ArmTimes) -> str:
    """The device's where there is one, else the process's own."""
    if arm.device is not None:
        return f"{disk.shown(arm.allocated or 0)} / {disk.shown(arm.reserved or 0)} / {disk.shown(arm.device)}"
    return disk.shown(arm.resident) if arm.resident else ""


def _figure(value: float | None) -> str:
    """Four digits that count."""
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
