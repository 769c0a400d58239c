"""Whether git holds the goldens that are there: what it ignores is in no clone, and nobody notices here."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from gate import git
from gate.errors import BaselineFailed
from gate.facts import count
from golden.manifest import FILE

_SPECIAL, _ESCAPED = re.compile(r"[][*?\\]"), r"\\\g<0>"


def ignored(goldens: Path, root: Path) -> list[str]:
    """Of each golden of which git ignores files that it does not hold what to do; nothing where there is no repository.

    Args:
        goldens: the folder of all of them.
        root: the project's folder, in which the advice is to be followed.
    """
    if not goldens.is_dir():
        return []
    try:
        answer = git.run(goldens, "ls-files", "-z", "--others", "--ignored", "--exclude-standard")
        lost: dict[str, list[str]] = {}
        for path in filter(None, os.fsdecode(answer).split("\0")):
            place = PurePosixPath(path)
            if len(place.parts) == 4 and place.parts[1].startswith("torch-") and (place.name == FILE or place.suffix == ".safetensors"):
                lost.setdefault(place.parent.as_posix(), []).append(path)
        return [_told(goldens, root, place, sorted(paths)) for place, paths in sorted(lost.items())]
    except BaselineFailed:  # no git, or no repository
        return []


def untracked(top: Path, paths: Iterable[str]) -> list[str]:
    """Of paths of a repository those of files that are there and that git does not hold any more. Raises BaselineFailed."""
    held = set(os.fsdecode(git.run(top, "ls-files", "-z")).split("\0"))
    return [path for path in paths if path not in held and (top / path).is_file()]


def _told(goldens: Path, root: Path, place: str, paths: list[str]) -> str:
    """What is ignored, and what to do, with paths as they are from the project's folder."""
    top = Path(os.fsdecode(git.run(goldens, "rev-parse", "--show-toplevel")).removesuffix("\n"))
    folder, here = goldens.resolve(), root.resolve()
    asked = b"\0".join(
        b"./" + os.fsencode(path.relative_to(top)) for path in (folder, folder / paths[0])
    )  # a name may begin like a pattern
    found = git.run(top, "check-ignore", "-v", "-n", "-z", "--no-index", "--stdin", stdin=asked, fine=(0, 1))
    *whole, _, file, line, pattern, _, _ = os.fsdecode(found).split("\0")
    at = os.path.relpath(top / file, here) if (top / file).is_relative_to(top) else file
    called = os.path.relpath(folder, here)
    if whole == [file, line, pattern]:  # below an ignored folder git takes nothing in again
        advice = f"Take that line out of {at}, or write one that leaves {called} alone"
    else:
        base = (top / file).parent if PurePosixPath(file).name == ".gitignore" and (top / file).is_relative_to(top) else top
        inner = folder.relative_to(base).as_posix() if folder.is_relative_to(base) else "."
        advice = f"Write {_again(inner)} at the end of {at}"
    names = ", ".join(PurePosixPath(path).name for path in paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
    return (
        f"git ignores {count(len(paths), 'file')} of {called}/{place} ({names}) by {pattern!r} ({at}:{line}), so that no clone has "
        f"{'it' if len(paths) == 1 else 'them'}. {advice}, then: git add {shlex.quote(called)}"
    )


def _again(folder: str) -> str:
    """The pattern that takes in all of a folder again, its path relative to where the pattern stands."""
    return "!/**" if folder == "." else f"!/{_SPECIAL.sub(_ESCAPED, folder)}/**"
