"""Text for a terminal, a pipe or a file, whatever they can show: width, colours, and names that could move a cursor."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import RenderableType

UNLIMITED = 100_000  # columns of what is no terminal: one fact stays one line
NARROWEST = 20


def plain(text: str) -> str:
    r"""The text on one line, with what cannot be seen written as an escape (`\x1b`, `\n`, `\u202e`)."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else character.encode("unicode_escape").decode() for character in text)


def lines(text: str) -> list[str]:
    """The lines of a longer text (an error of another program), each as `plain` gives it."""
    return [plain(line.expandtabs()) for line in text.splitlines()]


def columns(stream: TextIO) -> int:
    """Columns that a line may take: of the terminal, or of COLUMNS where it is set."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked):
        return max(int(asked), NARROWEST)
    if not stream.isatty():
        return UNLIMITED
    try:
        return max(os.get_terminal_size(stream.fileno()).columns or 80, NARROWEST)
    except (OSError, ValueError):  # a terminal that does not tell, or a stream without a descriptor
        return 80


def colours(stream: TextIO) -> bool:
    """Whether to use colours: on a terminal that has them, unless NO_COLOR is set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("", "dumb")


def rendered(parts: Iterable[RenderableType], stream: TextIO) -> str:
    """The parts below each other, as `stream` shows them best; nothing is written."""
    from rich.console import Console  # a tenth of a second, paid where a report is made

    coloured = colours(stream)
    console = Console(
        file=io.StringIO(),
        width=columns(stream),
        force_terminal=coloured,
        color_system="standard" if coloured else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())
