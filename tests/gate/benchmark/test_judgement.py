"""What pairs allow to say: literal values, the edges of the rules, and how often chance alone would decide."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from gate.benchmark.judgement import Speed, fewest_for_interval, fewest_for_verdict, interval, judge, overall, sign_test

UP, DOWN = 1.1, 0.9


@pytest.mark.parametrize(
    ("ratios", "p"),
    [
        ([], 1.0),
        ([1.0, 1.0], 1.0),
        ([UP], 1.0),
        ([UP, DOWN], 1.0),
        ([UP] * 3, 0.25),
        ([UP] * 5, 0.0625),
        ([UP] * 6, 0.03125),
        ([DOWN] * 6, 0.03125),
        ([UP] * 8, 2 / 256),
        ([UP] * 9 + [DOWN], 22 / 1024),
        ([UP] * 6 + [1.0] * 4, 0.03125),
    ],
)
def test_the_sign_test_is_exact_and_two_sided(ratios: list[float], p: float) -> None:
    """Ratios of 1 do not count, and small chances are sums of fractions, not approximations."""
    assert sign_test(ratios) == p


@pytest.mark.parametrize(
    ("count", "found"),
    [(0, None), (1, None), (3, None), (5, None), (6, (1, 6)), (8, (1, 8)), (9, (2, 8)), (10, (2, 9)), (12, (3, 10)), (20, (6, 15))],
)
def test_an_interval_is_made_of_order_statistics_and_takes_six(count: int, found: tuple[int, int] | None) -> None:
    """The ranks that every table of the sign test's intervals has for 95 %, whatever the order of the ratios."""
    ratios = [float(value) for value in range(1, count + 1)]
    random.Random(count).shuffle(ratios)
    assert interval(ratios) == found


def test_the_fewest_pairs() -> None:
    assert fewest_for_interval() == 6
    assert [fewest_for_verdict(judged) for judged in (1, 2, 3, 5)] == [8, 9, 10, 10]


@pytest.mark.parametrize(
    ("ratios", "judged", "verdict", "why"),
    [
        ([], 1, Speed.NOT_JUDGED, "no pair"),
        ([2.0] * 5, 1, Speed.INCONCLUSIVE, "5 pairs cannot give an interval"),
        ([2.0] * 7, 1, Speed.INCONCLUSIVE, "it looks slower, and 7 pairs cannot show it: 8 are the fewest"),
        ([2.0] * 8, 1, Speed.SLOWER, ""),
        ([2.0] * 8, 2, Speed.INCONCLUSIVE, "9 are the fewest"),
        ([2.0] * 9, 2, Speed.SLOWER, ""),
        ([0.5] * 8, 1, Speed.FASTER, ""),
        ([0.5] * 9 + [1.5], 1, Speed.INCONCLUSIVE, "it looks faster, and p is 0.0215"),
        ([1.0] * 6, 1, Speed.NO_DIFFERENCE, ""),
        ([1.02] * 8, 1, Speed.NO_DIFFERENCE, ""),
        ([1.021] * 8, 1, Speed.SLOWER, ""),
        ([1.01] * 4 + [1.05] * 4, 1, Speed.INCONCLUSIVE, "across the margin"),
        ([0.97] * 4 + [1.03] * 4, 1, Speed.INCONCLUSIVE, "across the margin"),
    ],
)
def test_a_verdict_takes_enough_pairs_a_small_p_and_an_interval_beyond_the_margin(
    ratios: list[float], judged: int, verdict: Speed, why: str
) -> None:
    found = judge(ratios, 0.02, judged)
    assert (found.verdict, why in found.why, bool(found.why)) == (verdict, True, bool(why))


def test_an_arm_against_itself_is_slower_or_faster_less_than_once_in_a_hundred_times() -> None:
    """Two thousand times ten pairs of a noise far above the margin; the same noise on a step that takes half more is noticed mostly."""
    draw = random.Random(1)

    def verdicts(factor: float) -> Counter[Speed]:
        return Counter(judge([factor * draw.gauss(1, 0.1) / draw.gauss(1, 0.1) for _ in range(10)], 0.02).verdict for _ in range(2000))

    same, more = verdicts(1.0), verdicts(1.5)
    assert same[Speed.SLOWER] + same[Speed.FASTER] <= 20
    assert same[Speed.INCONCLUSIVE] > 1900
    assert more[Speed.SLOWER] > 1900
    assert more[Speed.FASTER] == 0


def test_the_worst_of_several_arms_is_said_of_all() -> None:
    assert overall([Speed.FASTER, Speed.NO_DIFFERENCE]) is Speed.NO_DIFFERENCE
    assert overall([Speed.FASTER, Speed.SLOWER, Speed.INCONCLUSIVE]) is Speed.SLOWER
    assert overall([]) is Speed.NOT_JUDGED
