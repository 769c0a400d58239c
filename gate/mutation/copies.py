"""Copies of the project that mutants run in, and the folder that holds them: gone when the command ends, or with the next one."""

# ruff: noqa: PTH108, PTH114, PTH116
# Hundreds of files are looked at after each mutant: pathlib takes several times as long.

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from gate import encoding, git
from gate.errors import BaselineFailed
from golden.errors import StoreError

_PREFIX = "gate-mutate-"
_NEVER = {
    ".git",
    ".hg",
    ".gate",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
    ".venv",
    "venv",
    "node_modules",
}


def files(project: Path) -> list[str]:
    """The files of a project, relative to it: what git tracks and what it does not ignore; without git all but caches and environments."""
    try:
        listed = git.run(project, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        names = sorted(set(os.fsdecode(listed).split("\0")) - {""})
    except BaselineFailed:
        names = sorted(_walked(project))
    return [name for name in names if not _NEVER.intersection(name.split("/")) and (project / name).is_file()]


def _walked(project: Path) -> Iterator[str]:
    for folder, below, names in os.walk(project):
        below[:] = [name for name in below if name not in _NEVER and not (Path(folder, name) / "pyvenv.cfg").exists()]
        yield from (Path(folder, name).relative_to(project).as_posix() for name in names)


def digests(project: Path, names: list[str]) -> dict[str, str]:
    """sha256 of each file's content."""
    return {name: hashlib.sha256((project / name).read_bytes()).hexdigest() for name in names}


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for copies, outside the project; those of killed commands are removed first."""
    place = Path(tempfile.gettempdir()).resolve()
    for old in place.glob(f"{_PREFIX}*"):
        _clear(old)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _clear(folder: Path) -> None:
    with suppress(OSError):
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


@dataclass
class Copy:
    """One copy of the project.

    Attributes:
        folder: holds `tree`, the copy, and `scratch`, where what runs may write.
    """

    folder: Path
    _facts: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    _content: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def make(cls, project: Path, names: list[str], folder: Path) -> Copy:
        """Copies the files, links as links where they lead inside."""
        copy = cls(folder)
        try:
            for name in names:
                target = copy.tree / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(project / name, target)
                shutil.copymode(project / name, target)
            copy.scratch.mkdir()
        except OSError as error:
            raise StoreError.of(error, folder) from error
        copy._facts = {name: copy._fact(name) for name in names}
        copy._content = {name: (copy.tree / name).read_bytes() for name in names}
        return copy

    @property
    def tree(self) -> Path:
        """The copy itself."""
        return self.folder / "tree"

    @property
    def scratch(self) -> Path:
        """Emptied after each run."""
        return self.folder / "scratch"

    def write(self, name: str, text: str) -> str:
        """Replaces one file's content, in the encoding that it has and with its byte order mark; returns its digest."""
        content = text.encode(encoding.of(self._content[name]))
        (self.tree / name).write_bytes(content)
        return hashlib.sha256(content).hexdigest()

    def restore(self) -> None:
        """Makes it what it was: changed files written anew, new ones removed, the scratch folder emptied."""
        found = set()
        for folder, below, names in os.walk(self.tree):
            for name in names:
                relative = os.path.relpath(f"{folder}/{name}", self.tree)
                found.add(relative)
                if relative not in self._facts:
                    os.unlink(f"{folder}/{name}")
                elif self._fact(relative) != self._facts[relative]:
                    self._put_back(relative)
            for name in list(below):
                if os.path.islink(f"{folder}/{name}"):
                    os.unlink(f"{folder}/{name}")
        for relative in self._facts.keys() - found:
            self._put_back(relative)
        self.restore_scratch()

    def restore_scratch(self) -> None:
        """Empties the scratch folder."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(exist_ok=True)

    def _put_back(self, name: str) -> None:
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self._content[name])
        self._facts[name] = self._fact(name)

    def _fact(self, name: str) -> tuple[int, int, int]:
        stat = os.stat(f"{self.tree}/{name}")
        return stat.st_size, stat.st_mtime_ns, stat.st_ino


def combined(facts: Mapping[str, str], *more: str) -> str:
    """One digest of many."""
    text = "\n".join([*(f"{name} {digest}" for name, digest in sorted(facts.items())), *more])
    return hashlib.sha256(text.encode()).hexdigest()
