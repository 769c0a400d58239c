"""The project's files before a check starts, so that what is written while it runs cannot pass for what it read."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from gate.config import Config
from gate.errors import GoldenError
from gate.evidence.present import Present

LARGE = 1 << 26  # bytes above which a file is told by its stamp alone: a folder of data need not be read for every check
Stamp = tuple[int, int, int]
"""Inode, size, and when it was written last, in nanoseconds."""


class StaleEvidence(GoldenError):  # noqa: N818  (says what is the case, as its family does)
    """What a check read is no longer what it was when the check began; the message names it."""

    reason: ClassVar[str] = "stale-evidence"


@dataclass(frozen=True)
class Snapshot:
    """What the project's files held, and when each was written last: an edit that is undone again is an edit.

    Attributes:
        began: when it was taken, seconds since the epoch.
        files: digest (None of a large file) and stamp of each file by its path relative to the project.
        tracked: the paths of those that git tracks.
    """

    began: float
    files: Mapping[str, tuple[str | None, Stamp | None]]
    tracked: frozenset[str]

    @classmethod
    def take(cls, config: Config) -> Snapshot:
        """Reads every file of the project that git does not ignore, large ones left out."""
        began = time.time()
        present = Present(config)
        stamps = {path: _stamp(config, path) for path in present.files}
        held = {path: (present.digest(path) if stamp and stamp[1] <= LARGE else None, stamp) for path, stamp in stamps.items()}
        return cls(began, held, present.tracked)

    def is_made(self, present: Present, path: str) -> bool:
        """Whether a file of data came while the check ran, or was written then and git ignores it: the check has written it itself."""
        return path not in self.files and not path.endswith(".py") and self._moved(present, path)

    def check(self, present: Present, paths: Iterable[str]) -> None:
        """Holds files to what they were.

        Args:
            present: the project now; digests that it gives later are of the same content.
            paths: what was read, relative to the project.

        Raises:
            StaleEvidence: one was written, appeared or went meanwhile.
        """
        moved = sorted(path for path in set(paths) if self._moved(present, path))
        if moved:
            names = ", ".join(moved[:3]) + (f" and {len(moved) - 3} more" if len(moved) > 3 else "")
            loose = "" if present.tracked.issuperset(moved) else " What the check itself writes git should ignore."
            raise StaleEvidence(
                f"{names} {'was' if len(moved) == 1 else 'were'} written while the check ran, so that no state of the project gave "
                f"its result. Nothing was put on record. Run it again, and leave the sources alone until it ends.{loose}"
            )

    def _moved(self, present: Present, path: str) -> bool:
        digest = present.digest(path)
        stamp = _stamp(present.config, path)
        if path not in self.files:  # ignored by git, or new
            return stamp is None or stamp[2] / 1e9 >= self.began
        before, written = self.files[path]
        return written != stamp or before not in (None, digest)


def _stamp(config: Config, path: str) -> Stamp | None:
    try:
        facts = os.stat(config.root / path)  # noqa: PTH116
    except OSError:
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns
