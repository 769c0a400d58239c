"""Whether timed runs that hand back digests have equal ones: in every round, of all arms that are judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gate.benchmark.judgement import Speed
from gate.benchmark.proof import Refusal, Refused
from gate.benchmark.schedule import Slot
from gate.benchmark.setting import Arm, Bench

Figures = Mapping[str, Mapping[str, Any]]


def check(figures: Figures, bench: Bench) -> None:
    """Ends a benchmark as soon as one run has other bits than one that it is compared with.

    Args:
        figures: of the runs so far, by label; a run without digests is passed over where the benchmark asks for none.
        bench: what is timed.

    Raises:
        Refused: drift; or nondeterministic, where one arm differs from itself on the same machine.
    """
    if not bench.digests:
        return
    for one, other, phase in _differences(figures, bench):
        if found := _unsteady(figures, bench):
            first, second, moved = found
            told = f"Two runs of one arm, of the same code on the same machine, differ in {moved}: {first} and {second}."
            raise Refused(Refusal(Speed.NONDETERMINISTIC, told))
        told = f"The timed run {other!r} differs from {one!r} in {phase}: their times would be those of two different things."
        raise Refused(Refusal(Speed.DRIFT, f"{told} --fresh starts anew."))


def summary(figures: Figures, rounds: Sequence[int], bench: Bench) -> dict[str, Any] | None:
    """What the digests of whole rounds say, once `check` has let them pass; None where none were asked for.

    Returns:
        "pairs" (rounds in which all judged arms were equal), "phases", "different" (sets of digests over all rounds: 1 where the rounds are
        equal to one another too), "nodes" (machines), "first" (the digests of the first round, by phase).
    """
    if not bench.digests:
        return None
    runs = [figures[Slot(number, bench.baseline).label] for number in rounds]
    sets = {tuple(run["digests"].items()) for run in runs}
    first = dict(runs[0]["digests"])
    nodes = len({run["node"] for run in runs})
    return {"pairs": len(runs), "phases": list(first), "different": len(sets), "nodes": nodes, "first": first}


def _differences(figures: Figures, bench: Bench) -> Iterator[tuple[str, str, str]]:
    """Two labels of a round and the first phase that differs between them."""
    for number in range(bench.pairs):
        labels = [label for arm in _compared(bench) if (label := Slot(number, arm).label) in figures]
        yield from _against(figures, labels)


def _unsteady(figures: Figures, bench: Bench) -> tuple[str, str, str] | None:
    """Two runs of one arm on one machine that differ."""
    for arm in _compared(bench):
        labels = [label for number in range(bench.pairs) if (label := Slot(number, arm).label) in figures]
        for node in {figures[label]["node"] for label in labels}:
            if found := next(_against(figures, [label for label in labels if figures[label]["node"] == node]), None):
                return found
    return None


def _against(figures: Figures, labels: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Each further run against the first."""
    for label in labels[1:]:
        one, other = figures[labels[0]]["digests"], figures[label]["digests"]
        if one != other:
            phases = [*one, *(phase for phase in other if phase not in one)]
            yield labels[0], label, next(phase for phase in phases if one.get(phase) != other.get(phase))


def _compared(bench: Bench) -> tuple[Arm, ...]:
    return (bench.baseline, *bench.judged)
