"""Who runs when: in rounds of all arms, every other one backwards (ABBA), so that what drifts with time falls on all alike."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from gate.benchmark.setting import Arm, Bench
from golden.settings import PROFILED as FEWEST
from golden.settings import Turn

WARM, PROFILED = "warm-up", "device"


@dataclass(frozen=True)
class Slot:
    """One run: an arm's in a round, or one that does not count ("warm-up"), or one whose work on the device is summed up ("device")."""

    round: int | str
    arm: Arm

    @property
    def label(self) -> str:
        """What stands beside its figures: `3 eager`."""
        return f"{self.round} {self.arm.name}"

    @property
    def turn(self) -> Turn:
        """What its process is asked for."""
        settings = self.arm.settings
        return Turn(self.label, settings.run, settings.steps, settings.seed, settings.parameters, self.round == PROFILED)


def order(bench: Bench, number: int) -> Sequence[Arm]:
    """The arms of a round, from 0 on, as they come."""
    return bench.arms if number % 2 == 0 else bench.arms[::-1]


def pair_order(number: int) -> str:
    """In which order a round has the baseline, A, and another arm, B."""
    return "AB" if number % 2 == 0 else "BA"


def slots(bench: Bench, done: Collection[str], device: str) -> Iterator[Slot]:
    """The runs that are missing, in order.

    Args:
        bench: what is timed.
        done: labels of those that are there; a round of which one is missing is run as a whole.
        device: "cuda" has one more run an arm, whose work on the device is summed up, where a run has steps enough.
    """
    rounds = [number for number in range(bench.pairs) if not is_whole(bench, number, done)]
    profiled = [Slot(PROFILED, arm) for arm in bench.arms if device == "cuda" and arm.settings.steps > FEWEST]
    missing = [slot for slot in profiled if slot.label not in done]
    if bench.process == "one" and (rounds or missing):
        yield from (Slot(WARM, arm) for arm in bench.arms)
    for number in rounds:
        yield from (Slot(number, arm) for arm in order(bench, number))
    yield from missing


def is_whole(bench: Bench, number: int, done: Collection[str]) -> bool:
    """Whether every run of a round is there."""
    return all(Slot(number, arm).label in done for arm in bench.arms)
