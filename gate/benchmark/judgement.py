"""What paired times allow to say.

A pair is a run of an arm and one of the baseline beside it; its ratio is the arm's median step by the baseline's, above 1 where the arm is
slower. From the ratios alone, without a word about how they are distributed:

- p: the exact two-sided sign test of "as often slower as faster"; ratios of exactly 1 do not count.
- interval: of the median ratio, at 95 % or more, from the order of the ratios. Five pairs or fewer give none, whatever they say.
- `slower`, `faster`: p is at most 1 % (by the number of arms that are judged), and the whole interval lies beyond the margin. That takes
  eight pairs or more.
- `no-difference`: the whole interval lies within the margin.
- `inconclusive`: neither; says which more it would take.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import comb

ALPHA = 0.01
CONFIDENCE = 0.95


class Speed(str, Enum):
    """What is said of an arm, or of a benchmark, worst first."""

    DRIFT = "drift"
    NONDETERMINISTIC = "nondeterministic"
    NOT_JUDGED = "not-judged"
    SLOWER = "slower"
    INCONCLUSIVE = "inconclusive"
    NO_DIFFERENCE = "no-difference"
    FASTER = "faster"

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Finding:
    """What is said of one arm.

    Attributes:
        ratio: the median of its pairs', None without any.
        p: of the sign test.
        interval: of the median ratio, None where there are too few pairs.
        why: why no more can be said; empty where it can.
    """

    verdict: Speed
    ratio: float | None = None
    p: float | None = None
    interval: tuple[float, float] | None = None
    why: str = ""


def judge(ratios: Sequence[float], margin: float, judged: int = 1) -> Finding:
    """What the pairs of one arm allow to say.

    Args:
        ratios: the arm's time by the baseline's, above 0, one a pair.
        margin: by how much the ratio may be off 1 and still make no difference, 0 or more.
        judged: how many arms are judged together.
    """
    if not ratios:
        return Finding(Speed.NOT_JUDGED, why="no pair was timed")
    ratio, p, found = statistics.median(ratios), sign_test(ratios), interval(ratios)
    if found is None:
        few = f"{_pairs(len(ratios))} cannot give an interval at {CONFIDENCE:.0%}: {fewest_for_interval()} are the fewest"
        return Finding(Speed.INCONCLUSIVE, ratio, p, None, few)
    low, high = found
    if 1 / (1 + margin) <= low and high <= 1 + margin:
        return Finding(Speed.NO_DIFFERENCE, ratio, p, found)
    beyond = Speed.SLOWER if low > 1 + margin else Speed.FASTER if high < 1 / (1 + margin) else None
    if beyond and p <= ALPHA / judged:
        return Finding(beyond, ratio, p, found)
    return Finding(Speed.INCONCLUSIVE, ratio, p, found, _why(len(ratios), p, judged, beyond, margin))


def overall(verdicts: Iterable[Speed]) -> Speed:
    """What is said of several arms together: the worst. Of none: not judged."""
    return min(verdicts, key=list(Speed).index, default=Speed.NOT_JUDGED)


def sign_test(ratios: Sequence[float]) -> float:
    """The exact two-sided p of ratios as often above 1 as below; 1 where none is either."""
    above, below = sum(ratio > 1 for ratio in ratios), sum(ratio < 1 for ratio in ratios)
    return min(1.0, 2 * _tail(min(above, below), above + below))


def interval(ratios: Sequence[float]) -> tuple[float, float] | None:
    """The narrowest interval of order statistics that holds the median ratio at 95 % or more; None for fewer than six."""
    ordered, left_out = sorted(ratios), -1
    while 1 - 2 * _tail(left_out + 1, len(ordered)) >= CONFIDENCE:
        left_out += 1
    return (ordered[left_out], ordered[-1 - left_out]) if left_out >= 0 else None


def fewest_for_interval() -> int:
    """The smallest number of pairs that gives an interval."""
    return next(count for count in range(1, 100) if interval([1.0] * count))


def fewest_for_verdict(judged: int = 1) -> int:
    """The smallest number of pairs whose p can be small enough for `slower` or `faster`."""
    return next(count for count in range(fewest_for_interval(), 100) if 2 * _tail(0, count) <= ALPHA / judged)


def _tail(most: int, count: int) -> float:
    """The probability of at most so many heads in `count` tosses of a fair coin."""
    return float(sum(comb(count, heads) for heads in range(most + 1)) / 2**count)


def _why(pairs: int, p: float, judged: int, beyond: Speed | None, margin: float) -> str:
    if beyond is None:
        return f"the interval reaches across the margin of {margin:.1%}: more pairs, longer runs or a quieter machine would narrow it"
    needed = fewest_for_verdict(judged)
    if pairs < needed:
        return f"it looks {beyond}, and {_pairs(pairs)} cannot show it: {needed} are the fewest"
    return f"it looks {beyond}, and p is {p:.3g}, above {ALPHA / judged:.3g}: more pairs would tell"


def _pairs(count: int) -> str:
    return f"{count} pair{'s' if count != 1 else ''}"
