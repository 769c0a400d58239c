"""Commits, and their trailers as git itself parses them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gate import git

_FORMAT = "%H%x1f%h%x1f%aI%x1f%B%x1f%(trailers:only=true,unfold=true)"
_DIVIDER = re.compile(r"^---", re.MULTILINE)  # where tools that mail patches end a message
_LINE = re.compile(r"^(?P<key>[A-Za-z][A-Za-z0-9-]*)[ \t]*:[ \t]*(?P<value>.*?)[ \t]*$")


@dataclass(frozen=True)
class Trailer:
    """A trailer: its key as written, its value on one line."""

    key: str
    value: str

    def named(self, key: str) -> bool:
        """Whether it is this one; git does not mind the case of a key."""
        return self.key.casefold() == key.casefold()


@dataclass(frozen=True)
class Message:
    """A commit and what it says.

    Attributes:
        id: the full id.
        short: the short one.
        date: the author's, "2026-11-29".
        text: the whole message.
        trailers: those that git sees, whether or not it takes a line of dashes for the end of the message.
    """

    id: str
    short: str
    date: str
    text: str
    trailers: tuple[Trailer, ...]

    @property
    def title(self) -> str:
        """Short id and subject, for people."""
        return f"{self.short} ({self.text.partition(chr(10))[0]})"

    def values(self, key: str) -> list[str]:
        """The values of a trailer."""
        return [trailer.value for trailer in self.trailers if trailer.named(key)]

    def hidden(self, keys: Sequence[str]) -> list[str]:
        """Lines that look like one of these trailers and that git does not see."""
        seen = {(trailer.key.casefold(), trailer.value) for trailer in self.trailers}
        wanted = {key.casefold() for key in keys}
        found = [
            line for text in self.text.splitlines()[1:] if (line := _LINE.match(text.strip(" \t*>"))) and line["key"].casefold() in wanted
        ]
        return [
            line[0] for line in found if not any(key == line["key"].casefold() and value.startswith(line["value"]) for key, value in seen)
        ]


def messages(root: Path, revisions: str) -> list[Message]:
    """The commits of a range, oldest first; merges are left out, for they say nothing of their own.

    Args:
        root: the project's folder.
        revisions: "REV..HEAD" or "HEAD".

    Raises:
        BaselineFailed: git cannot tell.
    """
    options = ["-z", "--reverse", "--no-merges", "--no-show-signature", f"--format={_FORMAT}"]
    answer = git.run(root, "log", *options, revisions)
    return [_message(root, record) for record in os.fsdecode(answer).split("\0") if record.strip()]


def changing(root: Path, revisions: str, paths: Sequence[str]) -> frozenset[str]:
    """Ids of the commits of a range, without merges, that change one of the paths. Raises BaselineFailed."""
    answer = git.run(root, *git.LITERAL, "rev-list", "--no-merges", "--full-history", revisions, "--", *paths)
    return frozenset(answer.decode().split())


def _message(root: Path, record: str) -> Message:
    name, short, date, text, block = record.lstrip("\n").split("\x1f")
    trailers = _parsed(block)
    if _DIVIDER.search(text):
        mailed = _parsed(os.fsdecode(git.run(root, "interpret-trailers", "--parse", stdin=os.fsencode(text))))
        trailers = [trailer for trailer in trailers if trailer in mailed]
    return Message(name, short, date[:10], text, tuple(trailers))


def _parsed(block: str) -> list[Trailer]:
    found = (line.partition(":") for line in block.splitlines() if line.strip())
    return [Trailer(key.strip(), value.strip()) for key, colon, value in found if colon]
