"""What long work tells a person, on standard error: moving bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

PATIENCE = (10.0, 20.0, 30.0, 60.0)  # seconds of silence before the first, second, ... line of a task; the last one repeats

Tell = Callable[[str], None]
"""Says what a running task does at the moment, such as the package that is being installed."""

Ask = Callable[[], str]
"""Gives what a running task does at the moment, such as the step that a scenario has reached."""


class Progress(Protocol):
    """Where work reports to. Every method may be called from several threads."""

    def say(self, line: str) -> None:
        """Shows a line that stays."""

    def task(self, text: str, ask: Ask | None = None) -> AbstractContextManager[Tell]:
        """Shows `text` for as long as the block runs; the block may tell details, or `ask` gives them when they are shown."""


class Silent:
    """Says nothing: for callers that are no terminal session, such as tests."""

    def say(self, line: str) -> None:
        """Drops the line."""

    @contextlib.contextmanager
    def task(self, text: str, ask: Ask | None = None) -> Iterator[Tell]:
        """Drops the text and its details."""
        yield lambda detail: None


class Lines:
    """Plain lines: a task is named only once it has taken long, so that short work stays quiet."""

    def __init__(self, stream: TextIO, patience: tuple[float, ...] = PATIENCE) -> None:
        self._stream = stream
        self._patience = patience

    def say(self, line: str) -> None:
        """Writes the line. A reader that went away is no reason to stop judging."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(line + "\n")
            self._stream.flush()

    @contextlib.contextmanager
    def task(self, text: str, ask: Ask | None = None) -> Iterator[Tell]:
        """Names the task, its seconds and its last detail after each stretch of silence."""
        told = [""]
        done = threading.Event()
        teller = threading.Thread(target=self._repeat, args=(text, ask or (lambda: told[0]), done), daemon=True)
        teller.start()
        try:
            yield lambda detail: told.__setitem__(0, detail)
        finally:
            done.set()
            teller.join()

    def _repeat(self, text: str, ask: Ask, done: threading.Event) -> None:
        begun = time.monotonic()
        silences = list(self._patience)
        while not done.wait(silences.pop(0) if len(silences) > 1 else silences[0]):
            detail = ask()
            self.say(f"{text}{f' ({detail})' if detail else ''}: {time.monotonic() - begun:.0f} s so far")


class Bars:
    """One moving line a task on a terminal, gone when the task is done."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._running = 0
        self._display: RichProgress | None = None

    def say(self, line: str) -> None:
        """Writes the line above the bars."""
        with contextlib.suppress(OSError, ValueError):
            display = self._display
            if display is None:
                self._stream.write(line + "\n")
                self._stream.flush()
            else:
                display.console.print(line, markup=False, highlight=False, soft_wrap=True)

    @contextlib.contextmanager
    def task(self, text: str, ask: Ask | None = None) -> Iterator[Tell]:
        """Shows a spinner, the text with its last detail, and the time taken."""
        display = self._enter()
        told = [""]
        bar = display.add_task(text, ask=ask or (lambda: told[0]), total=None)
        try:
            yield lambda detail: told.__setitem__(0, detail)
        finally:
            display.remove_task(bar)
            self._leave()

    def _enter(self) -> RichProgress:
        with self._lock:
            self._running += 1
            if self._display is None:
                self._display = _display(self._stream)
                self._display.start()
            return self._display

    def _leave(self) -> None:
        with self._lock:
            self._running -= 1
            if self._running == 0 and self._display is not None:
                self._display.stop()
                self._display = None


def _display(stream: TextIO) -> RichProgress:
    from rich.console import Console  # tenths of a second, paid only where bars are drawn
    from rich.progress import Progress as RichProgress
    from rich.progress import ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class Detail(ProgressColumn):
        """What a task does at the moment."""

        def render(self, task: Task) -> Text:
            return Text(task.fields["ask"](), style="dim")

    columns = (SpinnerColumn("line"), TextColumn("{task.description}", markup=False), Detail(), TimeElapsedColumn())  # ASCII only
    return RichProgress(*columns, console=Console(file=stream), transient=True)


def choose(stream: TextIO) -> Progress:
    """Bars when `stream` is a terminal that can move its cursor, plain lines otherwise."""
    if stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb"):
        return Bars(stream)
    return Lines(stream)
