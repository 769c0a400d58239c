"""Puts a golden in its place, whole or not at all.

It is copied into a folder aside, synced, and takes its place in one rename; what stood there is removed afterwards. Whoever reads, and
whenever the process is killed: there is the old golden or the new one. Where the system cannot exchange two folders at once, two renames
do it, and the one moment in which neither stands there is noted, so that the next run can put the old one back.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import shutil
from contextlib import suppress
from enum import Enum
from pathlib import Path

from golden import files, manifest, table
from golden.aside import NOTE, OLD, PATTERN, put_back
from golden.errors import StoreError
from golden.manifest import Reason
from golden.store import Golden
from golden.writer import explain

_OURS = re.compile(rf"{re.escape(manifest.FILE)}|{re.escape(table.FILE)}|step-\d+\.safetensors")

_HERE = -100  # AT_FDCWD
_EXCHANGE = 2  # RENAME_EXCHANGE
# What a kernel, a file system or a sandbox says that does not have it. A real lack of permission shows again in the fallback.
_LACKING = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM}


class How(str, Enum):
    """How a golden took its place."""

    RENAME = "rename"
    EXCHANGE = "renameat2"
    TWO_RENAMES = "two renames"


def stage(golden: Golden, folder: Path, reason: Reason | None = None) -> Golden:
    """Copies a golden into a folder aside, and reads every byte of the copy.

    Args:
        golden: a run's.
        folder: of :func:`aside`, or any empty one.
        reason: why it is to replace another; None leaves what the manifest says.

    Returns:
        The copy.

    Raises:
        CorruptGolden: if it is not whole.
        StoreError: if it cannot be copied.
    """
    try:
        for path in sorted(golden.folder.iterdir()):
            shutil.copyfile(path, folder / path.name, follow_symlinks=False)
    except OSError as error:
        raise StoreError.of(error, folder) from error
    if reason is not None:
        explain(folder, golden.manifest, reason)
    copy = Golden.open(folder)
    copy.check()
    return copy


def publish(folder: Path, target: Path) -> How:
    """Moves a golden into its place, and waits until it is on the disk.

    Args:
        folder: of :func:`aside`, complete; what stood at the target is left there for removal.
        target: below the root of the folder aside. Folders above it are made.

    Raises:
        StoreError: if the disk or its permissions prevent it, or what stands there is no golden. The old golden is whole then.
        ValueError: if the target lies elsewhere.
    """
    root = folder.parent.parent
    if not PATTERN.fullmatch(folder.parent.name) or root not in target.parents or ".." in target.relative_to(root).parts:
        raise ValueError(f"{folder} is no folder aside of {target}")
    try:
        _check_replaceable(target)
        for path in (*folder.iterdir(), folder):
            files.sync(path)
        made = [path for path in (target.parent, *target.parent.parents) if not path.exists()]
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            how = _place(folder, target)
        except OSError:
            _unmade(made)
            raise
        for path in {folder.parent, target.parent, *(new.parent for new in made)}:
            files.sync(path)
    except OSError as error:
        raise StoreError.of(error, target) from error
    return how


def _check_replaceable(target: Path) -> None:
    """Only a golden is ever replaced: what else stands there belongs to somebody."""
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise StoreError(target, "is in the way: no folder that a golden could replace")
    for path in sorted(target.iterdir()) if target.exists() else ():
        if not _OURS.fullmatch(path.name):
            raise StoreError(path, "is in the way: no file of a golden, and replacing the golden would remove it")


def _place(folder: Path, target: Path) -> How:
    if not target.exists():
        folder.rename(target)
        return How.RENAME
    if exchange(folder, target):
        return How.EXCHANGE
    two_renames(folder, target)
    return How.TWO_RENAMES


def exchange(one: Path, other: Path) -> bool:
    """Exchanges two folders at once; False where the system or the file system cannot.

    Raises:
        OSError: if it can, but something else is in the way.
    """
    call = _renameat2()
    if call is None:
        return False
    if call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _LACKING:
        return False
    raise OSError(number, os.strerror(number), str(other))


def two_renames(folder: Path, target: Path) -> None:
    """Replaces a golden where the system cannot exchange two folders at once.

    Between the two renames no golden stands there; the note says where the old one belongs, for :func:`clear_leftovers`.

    Raises:
        OSError: with the old golden in its place.
    """
    outer = folder.parent
    (outer / NOTE).write_text(target.relative_to(outer.parent).as_posix(), encoding="utf-8")
    files.sync(outer / NOTE)
    files.sync(outer)
    try:
        target.rename(outer / OLD)
        folder.rename(target)
    except BaseException:
        put_back(outer)
        raise


def _renameat2() -> ctypes._NamedFuncPointer | None:
    """The system's call, None where there is none."""
    if platform.system() != "Linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    with suppress(AttributeError):
        call = libc.renameat2
        call.argtypes = arguments
        return call
    return None


def _unmade(folders: list[Path]) -> None:
    """Removes folders that were made for nothing, the lowest first."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()
