"""What a run of gate can say, and the exit code that says it to a shell."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

USAGE = 2
FAULT = 70
INTERRUPTED = 130
BISECT_SKIP = 125
SEVERITY = (FAULT, INTERRUPTED, USAGE, 1, 4, 3, 0)  # worst first


class _Word(str, Enum):
    """An enum whose members print as their value on every Python (3.11 changed what `format` gives)."""

    def __str__(self) -> str:
        return str(self.value)


class Verdict(_Word):
    """What is said of one scenario, worst first."""

    DRIFT = "drift"
    NONDETERMINISTIC = "nondeterministic"
    NOT_JUDGED = "not-judged"
    UPDATED = "updated"
    RECORDED = "recorded"
    IDENTICAL = "identical"

    @property
    def exit_code(self) -> int:
        """The exit code of a run in which this is the worst."""
        return _EXIT.get(self, 0)


_EXIT = {Verdict.DRIFT: 1, Verdict.NONDETERMINISTIC: 4, Verdict.NOT_JUDGED: 3}


class Cause(_Word):
    """Why bits drifted."""

    CODE = "code"
    ENVIRONMENT = "environment"
    UNKNOWN = "unknown"


class Reason(_Word):
    """Why something was not judged."""

    NO_GOLDEN = "no-golden"
    NO_ACCELERATOR = "no-accelerator"
    NO_TORCH = "no-torch"
    CORRUPT_GOLDEN = "corrupt-golden"
    SETTINGS = "settings"
    SCENARIO_FAILED = "scenario-failed"
    STALE_EVIDENCE = "stale-evidence"
    NOTHING_CHECKED = "nothing-checked"
    BASELINE_FAILED = "baseline-failed"
    IO = "io"
    LOCKED = "locked"


def worst(codes: Iterable[int]) -> int:
    """The worst of several exit codes: 70, 130, 2, 1, 4, 3, 0. Of none: 3, for zero work is never success.

    Raises:
        ValueError: a code that gate never gives.
    """
    return min(codes, key=SEVERITY.index, default=Verdict.NOT_JUDGED.exit_code)


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of several verdicts, in the order in which `Verdict` lists them. Of none: not judged."""
    return min(verdicts, key=list(Verdict).index, default=Verdict.NOT_JUDGED)


def for_bisect(code: int) -> int:
    """The exit code for `git bisect run`: what could not be judged is skipped (125)."""
    return BISECT_SKIP if code in (3, 4) else code
