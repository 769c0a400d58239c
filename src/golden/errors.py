"""What can go wrong, as one family.

::

    GoldenError
    ├── ScenarioFailed      the scenario raised, recorded nothing, or recorded something else than it should
    │   └── Refused         a value of the training state that cannot be recorded
    ├── CorruptGolden       a golden that does not hold what it says, or cannot be read
    ├── MissingGolden       no golden where one was expected
    ├── Locked              another process is recording here
    ├── StoreError          the disk or its permissions
    └── UsageError          a setting or argument that makes no sense

``reason`` is the word that a verdict gives. Every message says what, where, and what to do. All of them survive pickling.
"""

# ruff: noqa: N818  (the names say what is the case, as a verdict does)

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar


class GoldenError(Exception):
    """Base of the family; ``reason`` is the reason of a verdict."""

    reason: ClassVar[str] = "golden"


class ScenarioFailed(GoldenError):
    """The scenario raised, recorded nothing, or recorded something else than its settings say."""

    reason: ClassVar[str] = "scenario-failed"


class Refused(ScenarioFailed):
    """A value that cannot be recorded.

    Args:
        path: full path of the value, ``model/head/weight``.
        type_name: what it is.
        advice: what to do about it, a clause without its full stop.
    """

    def __init__(self, path: str, type_name: str, advice: str) -> None:
        super().__init__(path, type_name, advice)
        self.path, self.type_name, self.advice = path, type_name, advice

    def __str__(self) -> str:
        return f"{self.path}: {self.type_name} cannot be recorded: {self.advice}"


class CorruptGolden(GoldenError):
    """A golden that does not hold what it says, or that this version cannot read.

    Args:
        path: the file (or folder) at fault.
        why: what is wrong with it.
    """

    reason: ClassVar[str] = "corrupt-golden"

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


class MissingGolden(GoldenError):
    """No golden where one was expected."""

    reason: ClassVar[str] = "no-golden"


class Locked(GoldenError):
    """Another process holds the lock of a folder.

    Args:
        path: the lock.
        holder: who holds it, ``process 4711 on host a``.
    """

    reason: ClassVar[str] = "locked"

    def __init__(self, path: Path, holder: str) -> None:
        super().__init__(path, holder)
        self.path, self.holder = path, holder

    def __str__(self) -> str:
        return f"{self.path}: held by {self.holder}: wait for it to end, or end it"


class StoreError(GoldenError):
    """The disk or its permissions: nothing is wrong with what was recorded.

    Args:
        path: the file or folder.
        why: what the system said.
    """

    reason: ClassVar[str] = "io"

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"

    @classmethod
    def of(cls, error: OSError, path: Path) -> StoreError:
        """The error of the system, told with the path that it names (or, where it names none, ``path``)."""
        named = error.filename2 or error.filename
        told = os.strerror(error.errno) if error.errno else str(error)
        return cls(Path(os.fsdecode(named)) if isinstance(named, str | bytes) else path, told)


class UsageError(GoldenError):
    """A setting or an argument that makes no sense: the caller's mistake."""

    reason: ClassVar[str] = "usage"
