"""Whether git holds the goldens that are there: what it ignores is in no clone, and nobody notices here."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from gate import git
from gate.errors import BaselineFailed
from gate.facts import count
from golden.manifest import FILE


def ignored(goldens: Path) -> list[str]:
    """Of each golden of which git ignores files that it does not hold what to do; nothing where there is no repository.

    Args:
        goldens: the folder of all of them.
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
        return [_told(goldens, place, sorted(paths)) for place, paths in sorted(lost.items())]
    except BaselineFailed:  # no git, or no repository
        return []


def untracked(top: Path, paths: Iterable[str]) -> list[str]:
    """Of paths of a repository those of files that are there and that git does not hold any more. Raises BaselineFailed."""
    held = set(os.fsdecode(git.run(top, "ls-files", "-z")).split("\0"))
    return [path for path in paths if path not in held and (top / path).is_file()]


def _told(goldens: Path, place: str, paths: list[str]) -> str:
    asked = b"\0".join(b"./" + os.fsencode(path) for path in paths[:1])  # a name may begin like a pattern
    file, line, pattern, *_ = os.fsdecode(git.run(goldens, "check-ignore", "-v", "-z", "--stdin", stdin=asked, fine=(0, 1))).split("\0")
    names = ", ".join(PurePosixPath(path).name for path in paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
    return (
        f"git ignores {count(len(paths), 'file')} of {goldens.name}/{place} ({names}) by {pattern!r} ({file}:{line}), so that no clone has "
        f"{'it' if len(paths) == 1 else 'them'}. Write !{goldens.name}/** below that line, or take it out, then: git add {goldens.name}"
    )
