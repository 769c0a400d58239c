"""What a person is told while work goes on: nothing for short work, lines in a log, bars on a terminal."""

from __future__ import annotations

import io
import os
import pty
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from gate.progress import Bars, Lines, Silent, choose


class Terminal:
    """Both ends of a pseudo terminal; `text()` closes our end and returns what the terminal showed."""

    def __init__(self) -> None:
        self._reader, writer = pty.openpty()
        self.stream = os.fdopen(writer, "w", encoding="utf-8")
        self._shown = bytearray()
        self._thread = threading.Thread(target=self._drain)
        self._thread.start()

    def _drain(self) -> None:
        try:
            while chunk := os.read(self._reader, 4096):
                self._shown += chunk
        except OSError:  # how Linux says that the other end was closed
            os.close(self._reader)

    def text(self) -> str:
        self.stream.close()
        self._thread.join(timeout=10)
        return self._shown.decode()


def test_short_work_leaves_a_log_empty() -> None:
    stream = io.StringIO()
    with Lines(stream, patience=(5.0,)).task("digits"):
        pass
    assert stream.getvalue() == ""


def test_long_work_is_named_in_a_log_with_its_last_detail_and_seconds() -> None:
    stream = io.StringIO()
    with Lines(stream, patience=(0.2, 60.0)).task("installing torch 2.9.1") as tell:
        tell("resolving")
        tell("numpy 2.4.6")
        time.sleep(0.5)
    assert stream.getvalue() == "installing torch 2.9.1 (numpy 2.4.6): 0 s so far\n"


def test_long_work_is_asked_how_far_it_is_when_a_line_is_due() -> None:
    stream = io.StringIO()
    answers = iter(["step 3 of 12", "step 7 of 12"])
    with Lines(stream, patience=(0.1, 0.2, 60.0)).task("digits", lambda: next(answers)):
        time.sleep(0.6)
    assert stream.getvalue() == "digits (step 3 of 12): 0 s so far\ndigits (step 7 of 12): 0 s so far\n"


def test_the_last_patience_repeats() -> None:
    stream = io.StringIO()
    with Lines(stream, patience=(0.05,)).task("digits"):
        time.sleep(0.5)
    assert stream.getvalue().count("digits: ") >= 3


def test_a_task_that_raises_stops_its_lines() -> None:
    stream = io.StringIO()
    before = threading.active_count()
    with pytest.raises(KeyError), Lines(stream).task("digits"):
        raise KeyError
    assert threading.active_count() == before


def test_a_closed_reader_does_not_stop_the_work() -> None:
    stream = io.StringIO()
    stream.close()
    Lines(stream).say("one line")


def test_bars_show_the_text_and_detail_literally_and_vanish(monkeypatch: pytest.MonkeyPatch) -> None:
    """Square brackets are no markup; nothing of the bar is left when the display stops."""
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    with Bars(terminal.stream).task("digits [red]") as tell:
        tell("step [3]")
        time.sleep(0.3)
    shown = terminal.text()
    assert "digits [red]" in shown
    assert "step [3]" in shown
    assert shown.rstrip().endswith("\x1b[2K\x1b[?25h")  # the line erased, the cursor back


def test_bars_ask_how_far_the_work_is() -> None:
    terminal = Terminal()
    with Bars(terminal.stream).task("digits", lambda: "step 3 of 12"):
        time.sleep(0.3)
    assert "step 3 of 12" in terminal.text()


def test_a_line_said_beside_bars_stays() -> None:
    terminal = Terminal()
    progress = Bars(terminal.stream)
    progress.say("before")
    with progress.task("digits"):
        progress.say("between [bold]")
    shown = terminal.text()
    assert "before" in shown
    assert "between [bold]" in shown


def test_tasks_of_several_threads_share_one_display() -> None:
    terminal = Terminal()
    progress = Bars(terminal.stream)

    def work(name: str) -> None:
        with progress.task(name):
            time.sleep(0.3)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, ["digits-a", "digits-b", "text-c", "text-d"]))
    shown = terminal.text()
    assert all(name in shown for name in ("digits-a", "digits-b", "text-c", "text-d"))


def test_silent_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with Silent().task("digits") as tell:
        tell("step 1")
        Silent().say("line")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("term", "kind"), [("xterm", Bars), ("dumb", Lines), ("", Lines)])
def test_bars_need_a_terminal_that_moves_its_cursor(monkeypatch: pytest.MonkeyPatch, term: str, kind: type) -> None:
    monkeypatch.setenv("TERM", term)
    terminal = Terminal()
    assert type(choose(terminal.stream)) is kind
    terminal.text()
    assert type(choose(io.StringIO())) is Lines
