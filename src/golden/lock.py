"""The lock of a folder in which goldens are recorded: one process at a time."""

from __future__ import annotations

import fcntl
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from golden.errors import Locked, StoreError

FILE = ".lock"


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Holds the lock of a folder, which is made if it is not there.

    The system lets go of it when the process ends, however that happens: a file left behind locks nobody out.

    Raises:
        Locked: if another process holds it, naming that process.
        StoreError: if the folder cannot be written.
    """
    path = folder / FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = _taken(path)
    except OSError as error:
        raise StoreError.of(error, path) from error
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)


def _taken(path: Path) -> int:
    """An open and locked file that is the one at this path, with our number in it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _same(descriptor, path):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, f"process {os.getpid()} on {platform.node()}".encode())
                return descriptor
        except BlockingIOError:
            holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise Locked(path, holder or "another process") from None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _same(descriptor: int, path: Path) -> bool:
    """Whether the file is still there: its holder removes it on leaving, perhaps just after it was opened here."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
