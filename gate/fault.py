"""What a person pastes into a report when gate itself is at fault: versions, command, traceback."""

from __future__ import annotations

import platform
import shlex
import sys
import time
import traceback
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from gate import __version__
from gate.config import find
from gate.errors import GoldenError

PACKAGES = ("torch", "numpy", "safetensors", "xxhash", "click", "rich", "deepdiff", "uv")


def describe(error: BaseException, arguments: Sequence[str]) -> str:
    """The report's text. Holds no variable of the environment: a report is pasted in public."""
    return "\n".join(
        [
            f"gate {__version__} on Python {platform.python_version()} ({sys.executable}), {platform.platform()}",
            ", ".join(f"{name} {_version(name)}" for name in PACKAGES),
            f"command: {shlex.join(['gate', *arguments])}",
            f"folder: {Path.cwd()}",
            f"time: {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}",
            "",
            "".join(traceback.format_exception(type(error), error, error.__traceback__)),
        ]
    )


def save(text: str) -> Path | None:
    """Writes a report below `.gate/` of the project and returns its path; None without a project, or where the disk does not let it."""
    try:
        folder = find(Path.cwd()).root / ".gate"
        folder.mkdir(exist_ok=True)
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
        path = folder / f"fault-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.txt"
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except (OSError, GoldenError):
        return None
    return path


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing"
