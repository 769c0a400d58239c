"""Sizes on disk."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def size(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; what cannot be read counts as nothing."""
    return sum(_sizes(os.fspath(path)))


def free(path: Path) -> int:
    """Bytes that are free where a path is, or would be."""
    there = next(folder for folder in (path, *path.parents) if folder.exists())
    return shutil.disk_usage(there).free


def shown(count: int) -> str:
    """Bytes as people read them: "3.1 GiB"."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit else f"{count} {_UNITS[0]}"


def _sizes(path: str) -> Iterator[int]:
    """A uv cache holds some 10^5 files: scandir is several times faster than pathlib."""
    try:
        facts = os.lstat(path)
        if not stat.S_ISDIR(facts.st_mode):
            yield facts.st_size
            return
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _sizes(entry.path)
                else:
                    yield entry.stat(follow_symlinks=False).st_size
    except OSError:
        return
