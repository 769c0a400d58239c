"""Files of a golden: written whole or not at all, read without copying, synced."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from golden.errors import CorruptGolden, StoreError
from golden.leaf import Buffer, view


def write(path: Path, parts: Iterable[Buffer]) -> None:
    """Writes a new file; where that fails, nothing is left of it.

    Raises:
        StoreError: if the disk is full, the file may not be written, or is there already.
    """
    try:
        file = path.open("xb")
        try:
            with file:
                for part in parts:
                    file.write(view(part))
        except BaseException:
            path.unlink()
            raise
    except OSError as error:
        raise StoreError.of(error, path) from error


def read(path: Path) -> npt.NDArray[np.uint8]:
    """The bytes of a regular file, mapped and not copied: uint8 [size], read-only.

    Raises:
        CorruptGolden: if there is no such file, or it is a link or anything else that is no file.
        StoreError: if the system does not let it be read.
    """
    try:
        check_regular(path)
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if os.fstat(descriptor).st_size == 0:
                return np.empty(0, dtype=np.uint8)
            return np.frombuffer(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ), dtype=np.uint8)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise CorruptGolden(path, "is missing") from None
    except OSError as error:
        raise StoreError.of(error, path) from error


def check_regular(path: Path) -> None:
    """Refuses what could lead outside or have no end: links, folders, pipes, devices.

    Raises:
        CorruptGolden: naming it.
        OSError: if there is nothing there.
    """
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        raise CorruptGolden(path, "is a symbolic link, which could lead anywhere")
    if not stat.S_ISREG(mode):
        raise CorruptGolden(path, "is no regular file")


def sync(path: Path) -> None:
    """Waits until a file or folder is on the disk.

    Raises:
        OSError: where it cannot get there.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
