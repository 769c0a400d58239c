"""One line of the table of `gate run`, and how an error becomes one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gate.errors import GoldenError, UsageError
from gate.verdict import USAGE, Verdict

LEFT_OUT = "left out"


@dataclass(frozen=True)
class Line:
    """What one part came to.

    Attributes:
        name: "check", "golden changes", ...
        word: its verdict.
        code: its exit code.
        why: in one sentence.
        details: further lines for people.
        result: the part's own JSON.
        seconds: what it took.
    """

    name: str
    word: str
    code: int
    why: str = ""
    details: tuple[str, ...] = ()
    result: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """The line as `--json` writes it."""
        told = {"name": self.name, "verdict": self.word, "code": self.code, "why": self.why, "seconds": round(self.seconds, 3)}
        return {**told, "result": dict(self.result)}


def left_out(name: str, why: str) -> Line:
    """A part that there is no need for; it does not count."""
    return Line(name, LEFT_OUT, 0, why)


def timed(name: str, part: Callable[[], Line]) -> Line:
    """What a part comes to, also where it raises."""
    begun = time.perf_counter()
    try:
        line = part()
    except UsageError as error:
        line = Line(name, "usage", USAGE, str(error))
    except GoldenError as error:
        line = Line(name, Verdict.NOT_JUDGED.value, Verdict.NOT_JUDGED.exit_code, f"{error.reason}: {error}")
    return replace(line, seconds=time.perf_counter() - begun)
