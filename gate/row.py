"""One judged scenario as data, and the rows of a command as one result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gate.verdict import Cause, Reason, Verdict, worst, worst_verdict

if TYPE_CHECKING:
    from gate.evidence.verified import Basis
    from golden.compare import Comparison, Difference

FORMAT = 1


@dataclass(frozen=True)
class Arm:
    """One more run that looked for the cause: `again`, `base`, ...

    `verdict` is what it said, in a few words ("identical", "equals the golden", "void: model.py came from /src").
    """

    name: str
    verdict: str
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """The arm as it stands in `arms`; seconds to the millisecond."""
        return {"name": self.name, "verdict": self.verdict, "seconds": round(self.seconds, 3)}


@dataclass(frozen=True)
class Row:
    """What is known of one scenario on one hardware under one torch.

    Attributes:
        golden: name of the golden it was held against (another scenario's where `same_as` says so).
        torch: the version that decides the folder ("2.13.0" on CPUs, the full one on GPUs).
        against: "golden" or "base".
        environment_changes: {"path", "expected", "actual"} each, the weightiest first.
        changed_sources: project paths, the scenario's own file first.
        first: the earliest executed difference.
        run: where the produced side is kept, openable by `gate diff`.
        message: why it was not judged, or its cause is unknown, and what to do.
        seconds: wall time of everything this row took.
        honoured: whether this machine gives the portable profile's known answers; None when not asked.
        comparison: all differences, for the terminal; not in the JSON.
        replay: sums of what the run's optimizers say of their replay ("recordings", "replays", "fallbacks"); None where none can say it.
        basis: what evidence of it rests on; None where it leaves none. Not in the JSON.
    """

    scenario: str
    golden: str | None
    hardware: str | None
    torch: str | None
    against: str
    verdict: Verdict
    cause: Cause | None = None
    reason: Reason | None = None
    steps: int | None = None
    environment_changes: tuple[Mapping[str, Any], ...] = ()
    changed_sources: tuple[str, ...] = ()
    first: Difference | None = None
    run: str | None = None
    message: str | None = None
    arms: tuple[Arm, ...] = ()
    seconds: float | None = None
    honoured: bool | None = None
    comparison: Comparison | None = None
    replay: Mapping[str, int] | None = None
    basis: Basis | None = None

    def as_json(self) -> dict[str, Any]:
        """The row with the contract's keys in the contract's order, then the additional ones."""
        return {
            "scenario": self.scenario,
            "golden": self.golden,
            "hardware": self.hardware,
            "torch": self.torch,
            "against": self.against,
            "verdict": self.verdict.value,
            "cause": self.cause and self.cause.value,
            "reason": self.reason and self.reason.value,
            "steps": self.steps,
            "environment_changes": [dict(change) for change in self.environment_changes],
            "changed_sources": list(self.changed_sources),
            "first": self.first and self.first.as_json(),
            "run": self.run,
            "message": self.message,
            "arms": [arm.as_json() for arm in self.arms],
            "seconds": None if self.seconds is None else round(self.seconds, 3),
            "honoured": self.honoured,
            "replay": None if self.replay is None else dict(self.replay),
        }


@dataclass(frozen=True)
class Results:
    """What `verify` and `record` give back.

    Attributes:
        rows: one a scenario, hardware and torch, in the order judged.
        left_out: one line for what was neither named nor judged; gives no row and does not count.
    """

    rows: tuple[Row, ...]
    left_out: str | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst of the rows; not judged when there is none."""
        return worst_verdict(row.verdict for row in self.rows)

    @property
    def exit_code(self) -> int:
        """The worst of the rows' exit codes; 3 when there is none."""
        return worst(row.verdict.exit_code for row in self.rows)

    def as_json(self) -> dict[str, Any]:
        """The result as `--json` writes it."""
        return {"format": FORMAT, "verdict": self.verdict.value, "results": [row.as_json() for row in self.rows]}
