"""Commits, and their trailers as git itself parses them, whatever bytes a message holds."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gate import git
from gate.errors import BaselineFailed

# What stands between fields is the one byte that no commit holds.
_FIELDS = ("%H", "%h", "%aI", "%P", "%B", "%(trailers:only=true,unfold=true)")
_DIVIDER = re.compile(r"^---(?=[ \t\n\v\f\r])", re.MULTILINE)  # where tools that mail patches end a message
_LINE = re.compile(r"^(?P<key>[A-Za-z][A-Za-z0-9-]*)[ \t]*:[ \t]*(?P<value>.*?)[ \t]*$")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?=T)")
_SPACE = " \t\r"  # what git trims; Python's own strip and splitlines take other bytes for space and ends of lines, too


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
        date: the author's, "2026-11-29"; None where the commit holds none that git can read.
        merge: whether it has several parents.
        text: the whole message; bytes that are not UTF-8 as surrogates.
        trailers: those that git sees, whether or not it takes a line of dashes for the end of the message.
    """

    id: str
    short: str
    date: str | None
    merge: bool
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
        matches = (_LINE.match(text.strip(f"{_SPACE}*>")) for text in self.text.split("\n")[1:])
        found = [line for line in matches if line and line["key"].casefold() in wanted]
        return [
            line[0] for line in found if not any(key == line["key"].casefold() and value.startswith(line["value"]) for key, value in seen)
        ]


def messages(root: Path, *revisions: str) -> list[Message]:
    """The commits of a range, oldest first.

    Args:
        root: the project's folder.
        revisions: "REV..HEAD", or "HEAD", which "^REV" may follow.

    Raises:
        BaselineFailed: git cannot tell.
    """
    options = ["-z", "--reverse", "--no-show-signature", "--encoding=UTF-8", f"--format={'%x00'.join(_FIELDS)}"]
    fields = os.fsdecode(git.run(root, "log", *options, *revisions)).split("\0")[:-1]
    records = [fields[start : start + len(_FIELDS)] for start in range(0, len(fields), len(_FIELDS))]
    return [_message(*record) for record in records]


def changing(root: Path, revisions: Sequence[str], paths: Sequence[str]) -> frozenset[str]:
    """Ids of the commits of a range that change one of the paths; of merges those that hold what the merge alone does not explain.

    Raises:
        BaselineFailed: git cannot tell.
    """
    answer = git.run(root, *git.LITERAL, "rev-list", "--no-merges", "--full-history", *revisions, "--", *paths)
    merges = list(_meddling(root, revisions, paths))
    like = _like_a_parent(root, merges, paths) if merges else frozenset()
    return frozenset([*answer.decode().split(), *merges]) - like


def _meddling(root: Path, revisions: Sequence[str], paths: Sequence[str]) -> Iterator[str]:
    """Merges that under the paths are not what git makes of their parents by itself."""
    try:
        yield from _differing(root, revisions, paths, "--max-parents=2", "--remerge-diff")
    except BaselineFailed:  # a git before 2.35, or one that cannot write what it needs to merge once more
        yield from _differing(root, revisions, paths, "--max-parents=2", "--cc")
    yield from _differing(root, revisions, paths, "--min-parents=3", "--cc")


def _differing(root: Path, revisions: Sequence[str], paths: Sequence[str], *options: str) -> list[str]:
    # The full history: without it git leaves out a branch whose work came to nothing. After a byte 0 nothing but a commit looks like an id.
    command = ("log", "--merges", "--full-history", "--no-show-signature", "--no-ext-diff", "--no-textconv", "--format=%x00%H", *options)
    chunks = git.run(root, *git.LITERAL, *command, *revisions, "--", *paths).split(b"\0")
    parts = (chunk.partition(b"\n") for chunk in chunks)
    return [name.decode() for name, _, patch in parts if re.fullmatch(rb"[0-9a-f]{40,64}", name) and patch.strip()]


def _like_a_parent(root: Path, names: Sequence[str], paths: Sequence[str]) -> frozenset[str]:
    """Merges that took one side as it is."""
    lines = git.run(root, "rev-list", "--no-walk", "--parents", "--stdin", stdin="\n".join(names).encode()).decode().splitlines()
    pairs = [(name, parent) for name, *parents in map(str.split, lines) for parent in parents]
    # A pair that does not differ is left out of the answer.
    asked = "".join(f"{name} {parent}\n" for name, parent in pairs).encode()
    command = ("diff-tree", "-r", "--name-only", "--no-renames", "--format=%x00%H", "--stdin", "--", *paths)
    differing = Counter(chunk.partition("\n")[0] for chunk in os.fsdecode(git.run(root, *git.LITERAL, *command, stdin=asked)).split("\0"))
    return frozenset(name for name, parents in Counter(name for name, _ in pairs).items() if differing[name] < parents)


def _message(name: str, short: str, date: str, parents: str, text: str, block: str) -> Message:
    trailers = _parsed(block)
    divider = _DIVIDER.search(text)
    if divider:
        mailed = _last_paragraph(text[: divider.start()])
        trailers = [trailer for trailer in trailers if trailer in mailed]
    day = _DAY.match(date)
    return Message(name, short, day[0] if day else None, " " in parents, text, tuple(trailers))


def _last_paragraph(text: str) -> list[Trailer]:
    """What may be trailers where the message ends with the text; its title is none."""
    paragraphs = re.split(r"\n[ \t\r]*\n", text.strip("\n"))
    return _parsed(re.sub(r"\n[ \t]+", " ", paragraphs[-1])) if len(paragraphs) > 1 else []


def _parsed(block: str) -> list[Trailer]:
    found = (line.partition(":") for line in block.split("\n"))
    return [Trailer(key.strip(_SPACE), value.strip(_SPACE)) for key, colon, value in found if colon]
