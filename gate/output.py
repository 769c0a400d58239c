"""Standard output and error that cannot break a verdict, and the file or stream that `--json` names."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from gate.errors import UsageError
from golden.errors import StoreError


def prepare() -> None:
    """Lets both streams take every character: what their encoding lacks is written as an escape (ASCII pipes, cp1252 consoles).

    A stream that the shell closed (`>&-`) becomes one that leads nowhere.
    """
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def put(text: str) -> None:
    """Writes to standard output at once. A reader that went away (`| head`) is none of our business.

    Raises:
        StoreError: the file behind it does not take it; nothing more is written there.
    """
    try:
        _write(sys.stdout, text)
    except OSError as error:
        _silence(sys.stdout)
        raise StoreError.of(error, Path("standard output")) from error


def say(text: str) -> None:
    """Writes a line to standard error; where that takes nothing, there is nobody left to tell."""
    try:
        _write(sys.stderr, text if text.endswith("\n") else text + "\n")
    except OSError:
        _silence(sys.stderr)


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - the stream lives as long as the process


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        _silence(stream)


def _silence(stream: TextIO) -> None:
    """Points a broken stream at nothing, or the interpreter would complain about it once more when it ends."""
    with contextlib.suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)


@dataclass(frozen=True)
class Target:
    """Where `--json` writes, or another option: a file, or standard output for "-"; None writes nowhere."""

    name: str | None = None
    option: str = "--json"

    @classmethod
    def of(cls, arguments: Sequence[str]) -> Target:
        """What raw arguments name, for errors that come before they are parsed; the last counts, as it does for the parser."""
        name = None
        for place, argument in enumerate(arguments):
            if argument == "--":
                break
            if argument.startswith("--json="):
                name = argument.removeprefix("--json=")
            if argument == "--json" and place + 1 < len(arguments):
                name = arguments[place + 1]
        return cls(name)

    @property
    def standard(self) -> bool:
        """Whether it is standard output, which then holds nothing else."""
        return self.name == "-"

    def check(self) -> None:
        """Raises UsageError where the file cannot be written, before the work is done whose result it shall hold."""
        if self.name is None or self.standard:
            return
        path = Path(self.name)
        if not self.name or path.is_dir() or not path.parent.is_dir():
            raise UsageError(
                f"{self.option} {self.name!r}: cannot be written. Name a file in a folder that exists, or - for standard output."
            )
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise UsageError(f"{self.option} {self.name!r}: no permission to write it. Name another file, or - for standard output.")

    def write(self, document: Mapping[str, Any]) -> None:
        """Writes the document whole or not at all. Raises what `write_text` does."""
        self.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n")

    def write_text(self, text: str) -> None:
        """Writes the text whole or not at all.

        Raises:
            StoreError: the disk or its permissions.
        """
        if self.name is None:
            return
        if self.standard:
            put(text)
            return
        path = Path(self.name)
        try:
            if path.exists() and not path.is_file():  # a pipe or a device, which must not be replaced
                path.write_text(text, encoding="utf-8")
            else:
                replace(path.resolve(), text)
        except OSError as error:
            raise StoreError.of(error, path) from error


def replace(path: Path, text: str) -> None:
    """Writes a file whole or not at all, with the permissions that it had; surrogates go out as the bytes they were. Raises OSError."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    there = path.exists()
    try:
        if there:
            aside.touch(0o600)  # what is private is so from the first byte on
        aside.write_bytes(text.encode("utf-8", "surrogateescape"))
        if there:
            shutil.copymode(path, aside)
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
