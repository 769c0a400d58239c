"""The further runs that look for a cause: the scenario again, and as its base has it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from gate.checkout import checked_out
from gate.errors import BaselineFailed
from gate.history import Repository
from gate.row import Arm
from gate.runs import Outcome
from golden import manifest
from golden.compare import Comparison, compare
from golden.store import Golden

Run = Callable[[str, Path | None, Sequence[int]], Outcome]
"""Runs the scenario once more in the same environment: the arm's name, where project files come from (None: the project), and the steps
whose tensors are to be kept."""


class Said(Enum):
    """What the base's run says."""

    GOLDEN = "equals the golden"
    HEAD = "equals this run"
    NEITHER = "equals neither the golden nor this run"
    VOID = "void"
    FAILED = "failed"
    ABSENT = "not to be had"


@dataclass(frozen=True)
class Again:
    """A second run.

    Attributes:
        golden: what it recorded; None where it failed.
        arm: the arm as a report has it.
        comparison: how it differs from the first; None where it does not.
    """

    golden: Golden | None
    arm: Arm
    comparison: Comparison | None = None


@dataclass(frozen=True)
class BaseRun:
    """The base's run.

    Attributes:
        golden: what it recorded; None where it is void, failed or was not to be had.
        said: how it ended; `NEITHER` until it has been held against something.
        title: its commit, for people; empty where there is none.
        why: why there is no golden.
        seconds: what it took, with finding and writing out the commit.
    """

    golden: Golden | None
    said: Said
    title: str
    why: str
    seconds: float

    @property
    def arm(self) -> Arm:
        """The arm as a report has it."""
        told = f"{self.said.value}, {self.title}" if self.title else self.said.value
        return Arm("base", told if self.golden else f"{told}: {self.why}", self.seconds)


def run_again(head: Golden, run: Run, keep: Sequence[int], limit: int | None) -> Again:
    """Runs the scenario once more as it is, and holds it against the first run.

    Args:
        head: the first run.
        run: runs the scenario.
        keep: steps whose tensors are to be kept.
        limit: the number of differences whose elements are counted.
    """
    begun = time.perf_counter()
    outcome = run("again", None, keep)
    seconds = time.perf_counter() - begun
    if not outcome.ok:
        return Again(None, Arm("again", f"failed: {outcome.report.message}", seconds))
    again = outcome.open()
    repeated = compare(head, again, limit=limit)
    if repeated.identical:
        return Again(again, Arm("again", "identical", seconds))
    return Again(again, Arm("again", "differs", seconds), repeated)


def run_base(project: Path, golden: Golden | None, head: Golden, run: Run, revision: str | None, keep: Sequence[int] = ()) -> BaseRun:
    """Runs the scenario as a commit has it, from a folder outside the project; golden and gate stay the head's.

    Args:
        project: the project's folder.
        golden: whose sources the commit has to have; not asked where a revision is named.
        head: this run, whose sources tell what to bring along that git does not hold.
        run: runs the scenario.
        revision: the one that the user names.
        keep: steps whose tensors are to be kept.

    Raises:
        UsageError: the named revision does not exist.
    """
    begun = time.perf_counter()

    def ended(golden: Golden | None, said: Said, title: str, why: str = "") -> BaseRun:
        return BaseRun(golden, said, title, why, time.perf_counter() - begun)

    with ExitStack() as stack:
        try:
            repository = Repository.of(project)
            if revision is None:
                assert golden is not None, "without a golden there is no manifest to find a commit by"
                base = repository.base(golden.manifest.sources, golden.folder / manifest.FILE)
            else:
                base = repository.named(revision, head.manifest.sources)
            root = stack.enter_context(checked_out(repository, base))
        except BaselineFailed as error:
            return ended(None, Said.ABSENT, "", str(error))
        outcome = run("base", root, keep)
        if not outcome.ok:
            return ended(None, Said.FAILED, base.title, outcome.report.message)
        if outcome.report.foreign:
            return ended(None, Said.VOID, base.title, f"{', '.join(outcome.report.foreign[:3])} came from elsewhere than the base")
        return ended(outcome.open(), Said.NEITHER, base.title)
