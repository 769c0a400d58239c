"""A command's result as text: what explains most comes first, a table after it, and what to do next in the last line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from gate import account, contrast
from gate.screen import columns, lines, plain, rendered
from gate.verdict import Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gate.diff import Diff
    from gate.row import Results
    from golden.compare import Comparison

DETAILED = (Verdict.DRIFT, Verdict.NONDETERMINISTIC)
BLOCKS = 5  # pairs of goldens that are told in full


def text(results: Results, stream: TextIO | None = None) -> str:
    """What `verify` and `record` say on standard output.

    Args:
        results: of any command that judges rows.
        stream: that it is made for (width, colours); standard output where it is left out. Nothing is written to it.
    """
    stream = stream or sys.stdout
    return rendered(_results(results, columns(stream)), stream)


def messages(results: Results) -> list[str]:
    """What standard error is to hold: why rows could not be judged, line by line."""
    return [line for message in account.messages(results) for line in lines(message)]


def diff_text(result: Diff, stream: TextIO | None = None) -> str:
    """What `diff` says on standard output; arguments as for `text`."""
    stream = stream or sys.stdout
    return rendered(_diff(result, columns(stream)), stream)


def diff_messages(result: Diff) -> list[str]:
    """What standard error is to hold: damaged files, goldens that nothing stands for, and what could not be read."""
    return [line for message in contrast.messages(result) for line in lines(message)]


def _results(results: Results, width: int) -> Iterator[RenderableType]:
    from rich.text import Text

    from gate import table

    for group in account.groups(results.rows):
        if group.verdict in DETAILED:
            yield Text(account.headline(group), table.STYLES[group.verdict])
            yield table.facts(account.told(group))
            yield Text()
    if results.rows:
        yield table.rows(results.rows, width)
    yield from _closing(results.left_out, account.closing(results), results.verdict)


def _diff(result: Diff, width: int) -> Iterator[RenderableType]:
    from rich.text import Text

    from gate import table

    drifted = [pair for pair in result.pairs if pair.verdict is Verdict.DRIFT]
    for pair in drifted[:BLOCKS]:
        yield Text(contrast.headline(pair), table.STYLES[pair.verdict])
        yield table.facts(contrast.told(pair))
        yield Text()
    if len(result.pairs) == 1 and drifted:
        yield from _alone(drifted[0].comparison, width)
    else:
        yield table.pairs([(pair.name, pair.verdict, contrast.counts(pair)) for pair in result.pairs], width)
    yield from _closing(None, contrast.closing(result), result.verdict)


def _alone(comparison: Comparison, width: int) -> Iterator[RenderableType]:
    """Tables of one pair of goldens: by step and phase, then one by one."""
    from rich.text import Text

    from gate import table

    if len(comparison.differences) > 1:
        yield table.steps(comparison)
        yield Text()
    yield table.differences(comparison.differences, width)
    if len(comparison.differences) > table.MOST:
        yield Text(f"and {len(comparison.differences) - table.MOST} more (--json lists them)")


def _closing(left_out: str | None, line: str, verdict: Verdict) -> Iterator[RenderableType]:
    from rich.text import Text

    from gate import table

    yield Text()
    if left_out:
        yield Text(plain(left_out))
    yield Text(line, table.STYLES[verdict])
