"""What a focused check has found: a verdict, the tests behind it, and what evidence needs of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from gate.check.harvest import COUNTED, Outcome
from gate.check.since import Since
from gate.verdict import Reason

FORMAT = 1
CUT = 20_000  # characters of a failure's text in a result


class Word(str, Enum):
    """The verdict on a change's tests."""

    PASSED = "passed"
    FAILED = "failed"
    NOTHING = "nothing to check"
    NOT_JUDGED = "not-judged"

    def __str__(self) -> str:
        return str(self.value)


EXIT = {Word.PASSED: 0, Word.NOTHING: 0, Word.FAILED: 1, Word.NOT_JUDGED: 3}


@dataclass(frozen=True)
class Checked:
    """The result of `gate check`.

    Attributes:
        verdict: the verdict.
        reason: why it was not judged; None where it was.
        message: why, and what to do; "" where there is nothing to say.
        reasons: by id, in pytest's order, why each selected test was taken.
        total: how many tests the project has; None where nobody had to look.
        fallback: why more tests were taken than those that are known to be touched.
        outcomes: by id, how each test ended that ran. A first run, which learns what tests run, runs all of them.
        untested: what changed and was run by no test of those that ran.
        base: the commit that the tree was compared with; None where all tests were asked for.
        torch: its full version.
        hardware: the GPU's slug, or the CPU profile's.
        subjects: sha256 by path of what the tests that ran imported, ran or read of the project, as golden.sources digests it.
        listed: folders of the project that the tests that ran listed, with a slash at the end.
        seconds: what all took.
    """

    verdict: Word
    reason: Reason | None = None
    message: str = ""
    reasons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    total: int | None = None
    fallback: tuple[str, ...] = ()
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    untested: tuple[str, ...] = ()
    base: Since | None = None
    torch: str = ""
    hardware: str = ""
    subjects: Mapping[str, str] = field(default_factory=dict)
    listed: frozenset[str] = frozenset()
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """0 passed or nothing to check, 1 failed, 3 not judged."""
        return EXIT[self.verdict]

    def having(self, status: str) -> list[str]:
        """The ids of the tests that ended so: one of gate.check.harvest.COUNTED, or "unfinished"."""
        return [key for key, outcome in self.outcomes.items() if outcome.status == status]

    @property
    def counts(self) -> dict[str, int]:
        """How many tests ended in each way that counts."""
        return {status: len(self.having(status)) for status in COUNTED}

    @property
    def left(self) -> str:
        """What did not pass without having failed, to be read after what did: ", 2 skipped, 1 xfailed"."""
        return "".join(f", {self.counts[status]} {status}" for status in ("skipped", "xfailed", "xpassed") if self.counts[status])

    def as_json(self) -> dict[str, Any]:
        """The result as `--json` writes it: what is called as in gate.check.harvest.COUNTED is a list of ids."""
        return {
            "format": FORMAT,
            "verdict": self.verdict.value,
            "reason": None if self.reason is None else self.reason.value,
            "message": self.message,
            "selected": list(self.reasons),
            "total": self.total,
            "ran": len(self.outcomes),
            "fallback": list(self.fallback),
            "reasons": {key: list(told) for key, told in self.reasons.items()},
            **{status: self.having(status) for status in COUNTED},
            "failures": {key: cut(self.outcomes[key].text) for key in self.having("failed")},
            "untested": list(self.untested),
            "base": None if self.base is None else {"commit": self.base.commit, "title": self.base.title},
            "torch": self.torch,
            "hardware": self.hardware,
            "seconds": round(self.seconds, 3),
        }

    def evidence(self) -> dict[str, Any]:
        """What a record of this check needs: the verdict, counts, ids, where it ran, and digests of everything the tests read."""
        told = {"verdict": self.verdict.value, "reason": None if self.reason is None else self.reason.value, "counts": self.counts}
        ids = {status: self.having(status) for status in COUNTED}
        return {"check": "tests", **told, "tests": ids, "torch": self.torch, "hardware": self.hardware, "subjects": dict(self.subjects)}


def cut(text: str, most: int = CUT) -> str:
    """The text, or its two ends with what was left out between them."""
    return text if len(text) <= most else f"{text[: most // 2]}\n[{len(text) - most} characters left out]\n{text[-(most // 2) :]}"
