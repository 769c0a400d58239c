"""Text for terminals, pipes and files of any width and encoding."""

from __future__ import annotations

import io
import os
import pty

import pytest
from rich.text import Text

from gate.screen import NARROWEST, UNLIMITED, colours, columns, lines, plain, rendered


class Terminal(io.StringIO):
    """A stream that says it is a terminal; it has no descriptor."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("model/weight", "model/weight"),
        ("größe/重み", "größe/重み"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("a\u202eb\u2028c", "a\\u202eb\\u2028c"),
        ("lone \ud800", "lone \\ud800"),
        ("\x00\x7f\x9b", "\\x00\\x7f\\x9b"),
    ],
)
def test_what_cannot_be_seen_is_written_as_an_escape(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_the_lines_of_a_longer_text_stay_lines() -> None:
    assert lines("Traceback:\n\tx = 1\x1b[0m\nKeyError") == ["Traceback:", "        x = 1\\x1b[0m", "KeyError"]


def test_colours_are_for_terminals_that_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    red = [Text("drift", "red")]
    assert "\x1b[31m" in rendered(red, Terminal())
    assert rendered(red, io.StringIO()) == "drift\n"
    monkeypatch.setenv("TERM", "dumb")
    assert rendered(red, Terminal()) == "drift\n"


def test_no_color_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colours(Terminal())
    assert rendered([Text("drift", "bold red")], Terminal()) == "drift\n"


def test_an_empty_no_color_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    assert colours(Terminal())


def test_what_is_no_terminal_keeps_a_fact_on_one_line() -> None:
    assert columns(io.StringIO()) == UNLIMITED
    assert rendered([Text("word " * 500)], io.StringIO()).count("\n") == 1


def test_columns_are_those_of_the_terminal() -> None:
    import fcntl
    import struct
    import termios

    main, other = pty.openpty()
    try:
        with os.fdopen(other, "w") as stream:
            fcntl.ioctl(stream, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 61, 0, 0))
            assert columns(stream) == 61
            fcntl.ioctl(stream, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 3, 0, 0))
            assert columns(stream) == NARROWEST
    finally:
        os.close(main)


def test_a_terminal_that_does_not_tell_its_width_has_eighty_columns() -> None:
    assert columns(Terminal()) == 80


@pytest.mark.parametrize(("value", "expected"), [("33", 33), ("1", NARROWEST), ("0", UNLIMITED), ("wide", UNLIMITED), ("-5", UNLIMITED)])
def test_columns_can_be_set(monkeypatch: pytest.MonkeyPatch, value: str, expected: int) -> None:
    monkeypatch.setenv("COLUMNS", value)
    assert columns(io.StringIO()) == expected


def test_markup_and_emoji_codes_in_names_are_names() -> None:
    assert rendered([Text("[red]:smile:[/red]"), "[bold]:smile:"], io.StringIO()) == "[red]:smile:[/red]\n[bold]:smile:\n"
