"""What a benchmark says: arms, pairs, and what they allow to conclude."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gate.benchmark.judgement import Finding, Speed, judge, overall
from gate.benchmark.proof import Read, Refusal
from gate.benchmark.schedule import PROFILED, Slot, pair_order
from gate.benchmark.setting import Arm, Bench
from gate.verdict import Reason
from golden.difference import Difference

FORMAT = 1
LEAST = 1e-6  # milliseconds that a step takes at least: what no clock resolves is no zero to divide by


@dataclass(frozen=True)
class Pair:
    """A run of an arm and one of the baseline in the same round: ratio of their median steps, above 1 where the arm is slower."""

    arm: str
    order: str
    ratio: float

    def as_json(self) -> dict[str, Any]:
        """The pair as it stands in `pairs`."""
        return {"order": self.order, "ratio": round(self.ratio, 6), "arm": self.arm}


@dataclass(frozen=True)
class ArmTimes:
    """One arm's times in milliseconds, and its memory in bytes; None for what this device cannot tell.

    Attributes:
        role: "baseline", "judged" or "beside".
        median_ms: median over its runs of each run's median step.
        range_ms: the least and the most of these medians.
        host_ms: the same as `median_ms`, to where the host was done.
        device_ms: work on the device a step, by the profiler, each kernel counted in full.
        allocated, reserved: peaks of torch's allocator.
        device: what the run took of the device's memory in all, the allocator's reserve included.
        first_ms, whole_ms: medians of the first step, and of the whole run.
        resident: peak of the process's own memory, where it had but one run.
        replay: what the optimizers said of their replay in the last run.
        finding: what its pairs allow to say; None for the baseline and what is beside it, which has a ratio alone.
        ratio: the median of its pairs'.
    """

    name: str
    role: str
    runs: int
    median_ms: float
    range_ms: tuple[float, float]
    host_ms: float
    device_ms: float | None
    allocated: int | None
    reserved: int | None
    device: int | None
    first_ms: float
    whole_ms: float
    resident: int | None
    replay: Mapping[str, int] | None
    ratio: float | None = None
    finding: Finding | None = None

    def as_json(self) -> dict[str, Any]:
        """The arm with the contract's keys first, then the additional ones."""
        found = self.finding
        return {
            "name": self.name,
            "median_ms": _rounded(self.median_ms),
            "range_ms": [_rounded(value) for value in self.range_ms],
            "host_ms": _rounded(self.host_ms),
            "device_ms": self.device_ms,
            "allocated": self.allocated,
            "reserved": self.reserved,
            "device": self.device,
            "role": self.role,
            "verdict": found and found.verdict.value,
            "why": found and (found.why or None),
            "ratio": None if self.ratio is None else round(self.ratio, 6),
            "p": found and found.p,
            "interval": [round(value, 6) for value in found.interval] if found and found.interval else None,
            "runs": self.runs,
            "first_ms": _rounded(self.first_ms),
            "whole_ms": _rounded(self.whole_ms),
            "resident": self.resident,
            "replay": self.replay and dict(self.replay),
        }


@dataclass(frozen=True)
class Result:
    """What `gate bench` gives back.

    Attributes:
        bits_equal: whether what is compared has equal bits; None where that could not be told.
        read: what it stands on; None where nothing could be recorded.
        strict: whether `slower` is a failure, and so what could not be decided is not judged.
        digests: what the timed runs' own digests say, as `bits.summary` has it; None where none were asked for.
    """

    bench: str
    hardware: str
    torch: str
    verdict: Speed
    bits_equal: bool | None
    arms: tuple[ArmTimes, ...] = ()
    pairs: tuple[Pair, ...] = ()
    read: Read | None = None
    reason: Reason | None = None
    message: str | None = None
    first: Difference | None = None
    run: str | None = None
    strict: bool = False
    digests: Mapping[str, Any] | None = None

    @property
    def p(self) -> float | None:
        """Of the one arm that is judged; None where there are several, which have their own."""
        found = [arm.finding.p for arm in self.arms if arm.finding]
        return found[0] if len(found) == 1 else None

    @property
    def exit_code(self) -> int:
        """0; 1 for unequal bits and, where asked, for slower; 3 for what was not judged; 4 for an arm that differs from itself."""
        usual = {Speed.DRIFT: 1, Speed.NONDETERMINISTIC: 4, Speed.NOT_JUDGED: 3}
        return {**usual, **({Speed.SLOWER: 1, Speed.INCONCLUSIVE: 3} if self.strict else {})}.get(self.verdict, 0)

    def as_json(self) -> dict[str, Any]:
        """The result as `--json` writes it: the contract's keys first, then the additional ones."""
        return {
            "format": FORMAT,
            "verdict": self.verdict.value,
            "bits_equal": self.bits_equal,
            "arms": [arm.as_json() for arm in self.arms],
            "pairs": [pair.as_json() for pair in self.pairs],
            "p": self.p,
            "bench": self.bench,
            "hardware": self.hardware,
            "torch": self.torch,
            "reason": self.reason and self.reason.value,
            "message": self.message,
            "first": self.first and self.first.as_json(),
            "run": self.run,
            "read": self.read and self.read.as_json(),
            "digests": self.digests and dict(self.digests),
        }

    def text(self) -> str:
        """What `bench` says on standard output."""
        from gate.benchmark.rendering import text

        return text(self)

    def markdown(self) -> str:
        """The same as Markdown, for documents."""
        from gate.benchmark.rendering import markdown

        return markdown(self)


def refused(bench: str, hardware: str, torch: str, refusal: Refusal, strict: bool) -> Result:
    """The result of a benchmark that ended before there were times to compare."""
    equal = False if refusal.verdict is Speed.DRIFT else None
    return Result(
        bench, hardware, torch, refusal.verdict, equal, (), (), None, refusal.reason, refusal.message, refusal.first, refusal.run, strict
    )


def arms(bench: Bench, figures: Mapping[str, Mapping[str, Any]], rounds: Sequence[int]) -> tuple[tuple[ArmTimes, ...], tuple[Pair, ...]]:
    """The arms and the pairs that figures give.

    Args:
        bench: what was timed.
        figures: of each run, by its label.
        rounds: the numbers of those that are whole, at least one.
    """
    medians = {arm.name: [_median(bench, figures[Slot(number, arm).label], "wall") for number in rounds] for arm in bench.arms}
    base = medians[bench.baseline.name]
    pairs = tuple(
        Pair(arm.name, pair_order(number), max(own, LEAST) / max(other, LEAST))
        for arm in bench.arms[1:]
        for number, own, other in zip(rounds, medians[arm.name], base, strict=True)
    )
    found = []
    for arm in bench.arms:
        ratios = [pair.ratio for pair in pairs if pair.arm == arm.name]
        finding = judge(ratios, bench.margin, len(bench.judged)) if arm in bench.judged else None
        found.append(_times(bench, arm, figures, rounds, medians[arm.name], ratios, finding))
    return tuple(found), pairs


def concluded(found: Sequence[ArmTimes]) -> Speed:
    """What is said of all arms that were judged: the worst."""
    return overall(arm.finding.verdict for arm in found if arm.finding)


def _times(
    bench: Bench,
    arm: Arm,
    figures: Mapping[str, Mapping[str, Any]],
    rounds: Sequence[int],
    medians: Sequence[float],
    ratios: Sequence[float],
    finding: Finding | None,
) -> ArmTimes:
    runs = [figures[Slot(number, arm).label] for number in rounds]
    memory = {key: _most(runs, key) for key in ("allocated", "reserved", "taken", "resident")}
    return ArmTimes(
        name=arm.name,
        role="baseline" if arm is bench.baseline else "beside" if arm.beside else "judged",
        runs=len(runs),
        median_ms=statistics.median(medians),
        range_ms=(min(medians), max(medians)),
        host_ms=statistics.median(_median(bench, run, "host") for run in runs),
        device_ms=figures.get(Slot(PROFILED, arm).label, {}).get("device"),
        allocated=memory["allocated"],
        reserved=memory["reserved"],
        device=memory["taken"],
        first_ms=statistics.median(run["wall"][0] for run in runs),
        whole_ms=statistics.median(run["whole"] for run in runs),
        resident=memory["resident"] if bench.process == "each" else None,
        replay=runs[-1]["replay"],
        ratio=statistics.median(ratios) if ratios else None,
        finding=finding,
    )


def _median(bench: Bench, run: Mapping[str, Any], clock: str) -> float:
    """Of the steps of a run that count."""
    return float(statistics.median(run[clock][bench.warmup :]))


def _most(runs: Sequence[Mapping[str, Any]], key: str) -> int | None:
    known = [run[key] for run in runs if run[key] is not None]
    return max(known, default=None)


def _rounded(milliseconds: float) -> float:
    return round(milliseconds, 6)
