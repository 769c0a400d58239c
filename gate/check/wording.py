"""What `gate check` tells people: failures first, then a table, and one line that says what happened and what to do."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from gate.check import harvest
from gate.check.result import Checked, Word
from gate.screen import lines, plain

_SHOWN = 10  # failures that are told in full
_TAIL = 12  # lines of each


def text(checked: Checked, *, explain: bool = False) -> str:
    """What standard output is to hold; with `explain` the reason for each test."""
    return "".join(f"{line}\n" for line in _lines(checked, explain))


def messages(checked: Checked) -> list[str]:
    """What standard error is to hold."""
    told = [f"fallback: {why}" for why in checked.fallback]
    told += [f"untested: no test has run {title}" for title in checked.untested]
    told += [f"{key}: {harvest.DISTURBED}" for key, outcome in checked.outcomes.items() if outcome.text == harvest.DISTURBED]
    return [line for message in told for line in lines(message)]


def _lines(checked: Checked, explain: bool) -> Iterator[str]:
    for key, reasons in checked.reasons.items() if explain else ():
        yield plain(key)
        yield from (f"    {plain(reason)}" for reason in reasons)
    if explain and checked.reasons:
        yield ""
    failed = checked.having("failed")
    for key in failed[:_SHOWN]:
        yield f"failed {plain(key)}"
        yield from (f"    {line}" for line in lines(checked.outcomes[key].text)[-_TAIL:])
        yield ""
    if len(failed) > _SHOWN:
        yield f"and {len(failed) - _SHOWN} more failed (--json lists them)"
    if checked.outcomes:
        yield from _table(checked)
        yield ""
    yield plain(_closing(checked))


def _table(checked: Checked) -> Iterator[str]:
    counts = {status: number for status, number in checked.counts.items() if number or not status.startswith("x")}
    names = ("selected", "of", *counts, "torch", "seconds")
    values = [len(checked.reasons), checked.total, *counts.values(), checked.torch, f"{checked.seconds:.0f}"]
    cells = [str(value) for value in values]
    widths = [max(len(name), len(cell)) for name, cell in zip(names, cells, strict=True)]
    for row in (names, cells):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _closing(checked: Checked) -> str:
    since = f" since {checked.base.title}" if checked.base else ""
    if checked.verdict is Word.FAILED:
        failed = checked.having("failed")
        return f"failed: {_tests(len(failed))} failed{since}. See one alone: python -m pytest {shlex.quote(failed[0])}"
    if checked.verdict is Word.NOTHING:
        return f"nothing to check{since}: {checked.message}"
    if checked.verdict is Word.NOT_JUDGED:
        return f"not judged ({checked.reason}){since}: {checked.message}"
    left = f"{checked.left} and shown nothing" if checked.left else ""
    first = "" if len(checked.outcomes) <= len(checked.reasons) else f" (all {len(checked.outcomes)} ran, to learn what each of them runs)"
    return f"passed: {_tests(len(checked.having('passed')))} passed{left}{since}{first}."


def _tests(count: int) -> str:
    return f"{count} test{'s' * (count != 1)}"
