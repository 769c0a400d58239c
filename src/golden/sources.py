"""The project files that a run read, and what was in them: its sources.

A source is a project file that the run imported or opened for reading, in its own process or in one that it forked or spawned
through multiprocessing. Its digest is of what it held when it was read first. What the run wrote itself is no source; a file that
somebody else edits while the run goes on is an error, for no state of the project ever gave those bits.

What a library opens by itself, without Python (safetensors, HDF5, Arrow), is not seen.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from golden.tree import Place, Tree

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Content:
    """What a file held.

    Attributes:
        digest: sha256 as hex digits, line ends as git keeps them (LF).
        binary: whether a NUL byte occurs in it; such a file is digested byte by byte.
    """

    digest: str
    binary: bool


def digest_text(data: bytes) -> str:
    """The sha256 of a source's content as hex digits: line ends CR LF count as LF, unless a NUL byte occurs in it."""
    return hashlib.sha256(data if b"\0" in data else data.replace(b"\r\n", b"\n")).hexdigest()


def read_content(path: str | Path) -> Content | None:
    """What a file holds, read a chunk at a time; None for what is no regular file or cannot be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116  (opening a pipe would wait for its writer)
            return None
        with open(path, "rb") as file:  # noqa: PTH123
            return _content(iter(lambda: file.read(_CHUNK), b""))
    except OSError:
        return None


def _content(chunks: Iterable[bytes]) -> Content:
    raw, text, binary, held = hashlib.sha256(), None, False, b""
    for chunk in chunks:
        binary = binary or b"\0" in chunk
        if text is None and b"\r" in chunk:
            text = raw.copy()
        raw.update(chunk)
        if text is not None:
            chunk = held + chunk
            held = b"\r" if chunk.endswith(b"\r") else b""  # its LF may begin the next chunk
            text.update(chunk[: len(chunk) - len(held)].replace(b"\r\n", b"\n"))
    if binary or text is None:
        return Content(raw.hexdigest(), binary)
    text.update(held)
    return Content(text.hexdigest(), binary)


class Watcher:
    """Sees, by an audit hook, what a process reads and writes in the project.

    Args:
        tree: which files are the project's.
        journal: a file beside the report in which the processes that the run starts note what they saw; made by `install`.
    """

    def __init__(self, tree: Tree, journal: Path) -> None:
        self.tree, self.journal = tree, journal
        self._read: dict[str, tuple[int, Content]] = {}  # when, by a clock that all processes share, and what was in it
        self._written: dict[str, int] = {}
        self._foreign: set[str] = set()
        self._torn: set[str] = set()
        self._began = 0
        self._note: int | None = None
        self._inside = threading.local()
        self._on = False
        self._seen: dict[str, Callable[..., None]] = {
            "open": self._opened,
            "import": self._imported,
            "ctypes.dlopen": self._input,
            "sqlite3.connect": self._input,
            "os.rename": lambda old, new, *_: self._outputs(old, new),
            "os.link": lambda _old, new, *_: self._outputs(new),
            "os.symlink": lambda _old, new, *_: self._outputs(new),
            "os.remove": lambda path, *_: self._outputs(path),
            "os.truncate": lambda path, *_: self._outputs(path),
        }

    def install(self) -> None:
        """Begins to watch. An audit hook stays for the life of the process; `close` makes it deaf."""
        self.journal.write_bytes(b"")
        self._began = self.journal.stat().st_ctime_ns  # by the clock of the file system that most likely holds the project
        self.journal.write_text(f"{self._began}\n", encoding="ascii")
        os.register_at_fork(after_in_child=self._forked)
        self._begin()

    def join(self) -> None:
        """Begins to watch in a process that a watched one has spawned."""
        with self.journal.open(encoding="ascii") as lines:
            self._began = int(lines.readline())
        self._take_notes()
        self._begin()

    def close(self) -> None:
        """Ends watching."""
        self._on = False

    def sources(self) -> dict[str, str]:
        """Path below the root (forward slashes) to digest, of everything that this process and those it started have read."""
        return {path: content.digest for path, content in sorted(self._inputs().items())}

    def foreign(self) -> tuple[str, ...]:
        """Project files that were read or imported from the project although the root is another folder; empty where all is well."""
        self._merge()
        self._scan()
        return tuple(sorted(self._foreign))

    def edited(self) -> tuple[str, ...]:
        """Sources that no longer hold what was read, and that the run did not write.

        Binary files are taken for the run's own: libraries write them without Python, unseen.
        """
        kept = {path: content for path, content in self._inputs().items() if path not in self._written and not content.binary}
        with self._deaf():
            touched = [path for path in kept if self._changed(self.tree.root / path) >= self._began]
            changed = {path for path in touched if read_content(self.tree.root / path) != kept[path]}
        return tuple(sorted(changed | (self._torn & kept.keys())))

    def _inputs(self) -> dict[str, Content]:
        self._merge()
        never = float("inf")
        return {path: content for path, (when, content) in self._read.items() if when < self._written.get(path, never)}

    def _begin(self) -> None:
        self._on = True
        self._scan()
        sys.addaudithook(self._hear)

    def _scan(self) -> None:
        """Counts modules that were imported without the hook hearing of it: before it began, or by a path of their own."""
        files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        with self._deaf():
            for file in files:
                self._input(file)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        seen = self._seen.get(event)
        if seen is None or not self._on or getattr(self._inside, "hook", False):
            return
        with self._deaf():  # reading a file to digest it is heard as well
            seen(*arguments)

    @contextmanager
    def _deaf(self) -> Iterator[None]:
        self._inside.hook = True
        try:
            yield
        finally:
            self._inside.hook = False

    def _opened(self, path: object, _mode: object, flags: int) -> None:
        access = flags & os.O_ACCMODE
        if access != os.O_WRONLY and not flags & os.O_TRUNC:
            self._input(path)
        if access != os.O_RDONLY:
            self._outputs(path)

    def _imported(self, _name: object, file: object, *_: object) -> None:
        if file is not None:  # an extension module
            self._input(file)

    def _input(self, path: object) -> None:
        place = self._place(path)
        if place is None or place.path in (self._foreign if place.foreign else self._read) or place.path in self._written:
            return
        file = (self.tree.project if place.foreign else self.tree.root) / place.path
        content = read_content(file)
        if content is None:
            return
        when = time.monotonic_ns()
        if place.foreign:
            self._foreign.add(place.path)
        elif content.binary and self._changed(file) > self._began:
            self._written[place.path] = when
            content = None
        else:
            self._read[place.path] = when, content
        self._tell(place, when, content)

    def _outputs(self, *paths: object) -> None:
        for path in paths:
            place = self._place(path)
            if place is not None and not place.foreign and place.path not in self._written:
                self._written[place.path] = when = time.monotonic_ns()
                self._tell(place, when, None)

    def _place(self, path: object) -> Place | None:
        if not isinstance(path, (str, bytes, os.PathLike)):  # a descriptor, or what the call itself will refuse
            return None
        try:
            return self.tree.place(path)
        except ValueError:
            return None

    @staticmethod
    def _changed(file: Path) -> float:
        """When a file, or anything the system knows of it, changed last: a time that nothing but a clock can set. Gone: now."""
        try:
            return file.stat().st_ctime_ns
        except FileNotFoundError:
            return float("inf")

    def _forked(self) -> None:
        if self._on:
            self._take_notes()

    def _take_notes(self) -> None:
        """In a process that the run started: what it sees goes to the journal, for its memory is not the run's."""
        self._note = os.open(self.journal, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def _tell(self, place: Place, when: int, content: Content | None) -> None:
        if self._note is not None:
            line = [place.path, place.foreign, when, content and content.digest, content is not None and content.binary]
            os.write(self._note, f"{json.dumps(line)}\n".encode())

    def _merge(self) -> None:
        """Takes in what the processes that the run started have noted."""
        with self._deaf():
            _, *lines = self.journal.read_text(encoding="ascii").splitlines()
        for line in lines:
            path, foreign, when, digest, binary = json.loads(line)
            if foreign:
                self._foreign.add(path)
            elif digest is None:
                self._written[path] = min(when, self._written.get(path, when))
            else:
                content = Content(digest, binary)
                earlier = self._read.setdefault(path, (when, content))
                if earlier[1] != content:
                    self._torn.add(path)
                self._read[path] = min(earlier, (when, content), key=lambda seen: seen[0])
