"""Columns and lines for the terminal, of results that are words rather than bits."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gate.screen import columns, plain, rendered

if TYPE_CHECKING:
    from rich.console import RenderableType

STYLES = {
    **dict.fromkeys(("fresh", "passed", "identical", "held", "recorded"), "green"),
    **dict.fromkeys(("stale", "missing", "inconclusive", "not-judged", "warning", "allowed"), "bold yellow"),
    **dict.fromkeys(("claim", "trailer", "drift", "failed", "survived", "slower"), "bold red"),
}
WIDE = 72  # columns below which a table would be cut into letters


def lines(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for standard output, the last column folded where it is too long; below each other on narrow screens."""
    return rendered(_parts(headings, rows, columns(sys.stdout)), sys.stdout)


def _parts(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    if width < WIDE:
        yield from (Text(plain(", ".join(filter(None, row)))) for row in rows)
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    for heading in headings:
        table.add_column(Text(heading), no_wrap=heading != headings[-1], overflow="fold")
    for row in rows:
        table.add_row(*(Text(plain(cell), STYLES.get(cell, "")) for cell in row))
    yield table
