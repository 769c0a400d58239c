"""`gate run`: all parts in order, a table, the worst exit code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from gate.check import since as revisions
from gate.errors import UsageError
from gate.evidence.display import lines
from gate.evidence.status import View
from gate.history import Repository
from gate.landing import words
from gate.landing.line import LEFT_OUT, Line, timed
from gate.landing.work import Work
from gate.screen import plain
from gate.trial import Means
from gate.verdict import Verdict, worst
from golden.keys import nearest

FORMAT = 1
MOST = 200  # lines that a part tells
WORDS = {0: "passed", 1: "failed", 2: "usage", 3: Verdict.NOT_JUDGED.value, 4: Verdict.NONDETERMINISTIC.value}


@dataclass(frozen=True)
class Landing:
    """What `gate run` gives back.

    Attributes:
        lines: one a part, in the order in which they were done.
    """

    lines: tuple[Line, ...]

    @property
    def exit_code(self) -> int:
        """The worst of the parts that were not left out; 3 where all were."""
        return worst(line.code for line in self.lines if line.word != LEFT_OUT)

    @property
    def verdict(self) -> str:
        """One word for it."""
        return WORDS[self.exit_code]

    def as_json(self) -> dict[str, Any]:
        """The result as `--json` writes it."""
        return {"format": FORMAT, "verdict": self.verdict, "lines": [line.as_json() for line in self.lines]}

    def text(self) -> str:
        """What standard output is to hold: what the parts have to tell, the table, one line."""
        return "".join(
            [
                *(f"{line}\n" for line in self._details()),
                lines(("part", "verdict", "seconds", "what"), self._rows()),
                "\n",
                f"{self._closing()}\n",
            ]
        )

    def warnings(self) -> list[str]:
        """What standard error is to hold: what was allowed though it should not be."""
        return [plain(f"ALLOWED by --allow-stale: {detail}") for line in self.lines for detail in line.details if "(ALLOWED)" in detail]

    def _details(self) -> Iterator[str]:
        for line in self.lines:
            if line.details:
                yield f"{line.name}:"
                yield from (f"  {plain(detail)}" for detail in line.details[:MOST])
                if len(line.details) > MOST:
                    yield f"  ... and {len(line.details) - MOST} more lines: --json FILE has them all"
                yield ""

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [(line.name, line.word, f"{line.seconds:.1f}", line.why) for line in self.lines]

    def _closing(self) -> str:
        if self.exit_code == 0:
            return "passed: nothing here speaks against a merge. Next: nothing to do"
        wrong = [line.name for line in self.lines if line.code and line.word != LEFT_OUT]
        return f"{self.verdict}: {', '.join(wrong)}. Next: what the lines above say"


def run(means: Means, since: str | None = None, allowed: tuple[str, ...] = ()) -> Landing:
    """Does all that a merge needs and is not there yet, and judges the rest.

    Args:
        means: with what.
        since: the revision that the change begins with; None where the whole tree is the change.
        allowed: hardware whose evidence may be stale or missing.

    Raises:
        UsageError: the configuration is wrong, there is no such revision, or nothing is required of an allowed hardware.
        BaselineFailed: a shallow clone does not hold the revision.
        StoreError: records cannot be read.
    """
    config = means.config
    base = revisions.named(Repository.of(config.root), since).commit if since is not None else None
    work = Work(means, View.of(config), base)
    _check_allowed(work.view, allowed)
    done = [timed("check", work.check), timed("mutate", work.mutate), timed("verify", work.verify)]
    view, begun = View.of(config), frozenset([base] if base else [])
    done += [
        timed("status", partial(words.status, view, begun, allowed)),
        timed("golden changes", partial(words.golden_changes, config, base)),
        timed("claims", partial(words.claimed, view, begun, allowed)),
        timed("trailers", partial(words.trailed, config, base)),
    ]
    return Landing(tuple(done))


def _check_allowed(view: View, allowed: tuple[str, ...]) -> None:
    known = list(dict.fromkeys(need.hardware for need in view.required.needs))
    for hardware in allowed:
        if hardware not in known:
            raise UsageError(f"--allow-stale {hardware}: nothing is required of it, {nearest(hardware, known)}")
