"""C18: what benchmarks made of too few pairs, and of a machine that grew slower while they ran."""

from __future__ import annotations

from typing import Any

import pytest

from gate.benchmark import result, setting
from gate.benchmark.judgement import Speed, interval, judge
from gate.benchmark.rendering import markdown
from gate.benchmark.result import Result
from gate.benchmark.schedule import Slot, order
from gate.benchmark.setting import Arm, Bench
from golden.settings import Settings

ARMS = tuple(Arm(name, Settings(name, f"a.py:{name}", steps=3)) for name in ("a", "b"))


def times(bench: Bench, ordered: bool = True, drift: float = 0.0) -> Result:
    """A benchmark of two equal arms, on a machine that gets slower with each run by a part of the first."""
    figures: dict[str, dict[str, Any]] = {}
    run = 0
    for number in range(bench.pairs):
        for arm in order(bench, number) if ordered else bench.arms:
            took = 1.0 + drift * run
            run += 1
            unknown = dict.fromkeys(("allocated", "reserved", "taken", "resident", "replay", "device"))
            figures[Slot(number, arm).label] = {**unknown, "wall": [took] * 3, "host": [took] * 3, "whole": 3 * took}
    arms, pairs = result.arms(bench, figures, range(bench.pairs))
    return Result("c18", "cpu-x", "2.13.0", result.concluded(arms), True, arms, pairs)


@pytest.mark.case("C18")
@pytest.mark.parametrize("ratios", [[2.0, 2.0, 2.0], [2.0, 2.1, 1.9], [1.0, 1.0, 1.0]])
def test_three_pairs_give_no_interval_and_no_verdict(ratios: list[float]) -> None:
    """Not even where all of them say the same; with eight of the same the very rule gives both."""
    found = judge(ratios, 0.02)
    assert (found.interval, found.verdict) == (None, Speed.INCONCLUSIVE)
    assert found.why == "3 pairs cannot give an interval at 95%: 6 are the fewest"
    assert judge([2.0] * 8, 0.02).verdict is Speed.SLOWER
    assert judge([2.0] * 8, 0.02).interval == (2.0, 2.0)


@pytest.mark.case("C18")
def test_a_report_of_three_pairs_says_that_they_give_no_interval() -> None:
    bench = Bench("c18", ARMS, pairs=3, warmup=1)
    found = times(bench)
    assert [pair.order for pair in found.pairs] == ["AB", "BA", "AB"]
    assert found.as_json()["arms"][1]["interval"] is None
    assert "3 pairs: no interval, 95% takes 6 or more" in found.text()
    assert "3 pairs: no interval, 95% takes 6 or more" in markdown(found)
    assert "no interval" not in times(Bench("c18", ARMS, pairs=6, warmup=1)).text()


@pytest.mark.case("C18")
def test_a_machine_that_grows_slower_makes_no_arm_slower() -> None:
    """Every run takes 3 % of the first more than the one before: in ABBA order two equal arms stay equal, in one order they would not."""
    bench = Bench("c18", ARMS, pairs=10, warmup=1)
    assert times(bench, drift=0.03).verdict in (Speed.INCONCLUSIVE, Speed.NO_DIFFERENCE)
    assert times(bench, ordered=False, drift=0.08).verdict is Speed.SLOWER
    assert times(bench, drift=0.08).verdict in (Speed.INCONCLUSIVE, Speed.NO_DIFFERENCE)


def test_the_bench_of_these_cases_is_one_that_can_be_configured() -> None:
    assert (setting.CHECKS["pairs"]("pairs", 3), interval([1.0] * 5)) == (3, None)
