"""One planted fault, and what came of it."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Status(str, Enum):
    """What came of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    PARDONED = "pardoned"

    def __str__(self) -> str:
        return str(self.value)


def lines_of(source: str) -> list[str]:
    """The lines of a source with their ends, as Python counts them: a form feed or another separator within a line ends none."""
    return io.StringIO(source, newline="").readlines()


@dataclass(frozen=True)
class Mutant:
    """A fault planted in one file.

    Attributes:
        file: relative to the project, with forward slashes.
        line: the first of the lines that it replaces, from 1.
        end: the last one.
        operator: the name of what made it.
        before: the lines as they are, without the last one's end; starts at the start of `line`.
        after: the lines that replace them.
        hits: the lines, first and last, whose execution shows that a test runs the mutated code.
        scope: the innermost function's name with its classes ("MuSGD.step"); empty where there is none.
        loaded: whether the code runs when the module is imported: class bodies, defaults, decorators, module level.
        hidden: whether tools hide its execution from coverage: compiled or traced functions, backward functions.
        pardon: the reason why it is pardoned; None where it is not.
    """

    file: str
    line: int
    end: int
    operator: str
    before: str
    after: str
    hits: tuple[int, int]
    scope: str = ""
    loaded: bool = False
    hidden: bool = False
    pardon: str | None = None

    def apply(self, source: str) -> str:
        """The whole file with the fault in it."""
        lines = lines_of(source)
        ending = lines[self.end - 1][len(lines[self.end - 1].rstrip("\r\n")) :]
        return "".join([*lines[: self.line - 1], self.after + ending, *lines[self.end :]])

    @property
    def key(self) -> str:
        """What tells it from all others of the same file's content."""
        return hashlib.sha256(f"{self.line}\0{self.end}\0{self.after}".encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Judgement:
    """What the witnesses said of a mutant.

    Attributes:
        mutant: the fault.
        status: what came of it.
        killed_by: "tests", "goldens": those that noticed.
        reason: the test or the first difference that noticed it, why nobody could, or the pardon's reason.
        tests: the ids of the tests that are known to notice it: mostly one, since the first ends the asking.
        asked: of the tests that a promise names, those that were asked about it, whatever others had noticed.
    """

    mutant: Mutant
    status: Status
    killed_by: tuple[str, ...] = ()
    reason: str = ""
    tests: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As `--json` has it."""
        mutant = self.mutant
        return {
            "file": mutant.file,
            "line": mutant.line,
            "operator": mutant.operator,
            "before": mutant.before,
            "after": mutant.after,
            "status": self.status.value,
            "killed_by": list(self.killed_by),
            "reason": self.reason,
        }
