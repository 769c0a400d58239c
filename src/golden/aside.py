"""Folders aside: where a golden is put together before it takes its place, and what is left of them when a process is killed.

A folder aside is locked by the process that made it, and the system lets go of that lock when the process ends, however that happens. The
lock tells who is gone, which a number cannot: numbers are used again, and mean nothing in another container.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from golden.errors import StoreError

PATTERN = re.compile(r"\.aside-(\d+)-[0-9a-f]+")

# What a folder aside holds: the new golden; while two renames replace another, that one and a note where it belongs.
NEW, OLD, NOTE = "new", "old", "target"


@contextmanager
def aside(root: Path) -> Iterator[Path]:
    """A new folder to put a golden together in, on the file system of ``root``; gone afterwards with all that is still in it.

    Raises:
        StoreError: if it cannot be made.
    """
    outer = root / f".aside-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        (outer / NEW).mkdir(parents=True)
        descriptor = os.open(outer, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError.of(error, outer) from error
    try:
        with suppress(OSError):  # a file system without locks: the number of the process has to do
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield outer / NEW
    finally:
        os.close(descriptor)
        shutil.rmtree(outer, ignore_errors=True)


def clear_leftovers(root: Path) -> tuple[Path, ...]:
    """Removes the folders aside of processes that are gone; a golden that one of them had half replaced is put back.

    Returns:
        What was removed.

    Raises:
        StoreError: if something cannot be removed.
    """
    cleared = leftovers(root)
    try:
        for path in cleared:
            put_back(path)
            shutil.rmtree(path)
    except OSError as error:
        raise StoreError.of(error, root) from error
    return cleared


def leftovers(root: Path) -> tuple[Path, ...]:
    """The folders aside of processes that are gone; StoreError where that cannot be told."""
    try:
        found = [path for path in sorted(root.iterdir()) if PATTERN.fullmatch(path.name)] if root.is_dir() else []
        return tuple(path for path in found if path.is_dir() and not path.is_symlink() and not _alive(path))
    except OSError as error:
        raise StoreError.of(error, root) from error


def put_back(outer: Path) -> None:
    """Undoes the first of two renames, if the second did not happen."""
    note = outer / NOTE
    if not (outer / OLD).is_dir() or not note.is_file():
        return
    where = PurePosixPath(note.read_text(encoding="utf-8"))
    target = outer.parent / where
    if not where.is_absolute() and ".." not in where.parts and not target.exists():
        (outer / OLD).rename(target)


def _alive(outer: Path) -> bool:
    """Whether the process that made a folder aside still works in it."""
    descriptor = os.open(outer, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return _running(int(outer.name.split("-")[1]))
    finally:
        os.close(descriptor)
    return False


def _running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
