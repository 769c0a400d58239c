"""The answer of a benchmark: figures of runs, keys of the contract, exit codes, and tables that can be read."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pytest

from gate.benchmark import result
from gate.benchmark.judgement import Speed
from gate.benchmark.proof import Read, Refusal
from gate.benchmark.rendering import markdown, messages, text
from gate.benchmark.result import Result
from gate.benchmark.schedule import PROFILED, Slot
from gate.benchmark.setting import Arm, Bench
from gate.verdict import Reason
from golden.settings import Settings

EAGER, UPDATES, MUON = (Arm(name, Settings(name, f"a.py:{name}", steps=4), name == "muon") for name in ("eager", "updates", "muon"))
BENCH = Bench("musgd-step", (EAGER, UPDATES, MUON), pairs=8, warmup=1)
STEP = {"eager": 20.0, "updates": 0.5, "updates (2)": 0.5, "muon": 190.0}
REPLAYED = {"recordings": 2, "replays": 6, "fallbacks": 0}
MIB = 1 << 20


def figures(arm: Arm, number: int) -> dict[str, Any]:
    """A run on a GPU, whose first step takes long and whose last one is an outlier."""
    step = STEP[arm.name] * (1 + number / 100)
    wall = [1000.0, step, step, step * 3]
    memory = {"allocated": 40 * MIB, "reserved": 64 * MIB, "taken": 70 * MIB + number, "resident": 3 * MIB}
    replay = REPLAYED if arm is UPDATES else None
    return {**memory, "wall": wall, "host": [value / 2 for value in wall], "whole": sum(wall), "device": None, "replay": replay}


def found(bench: Bench = BENCH, strict: bool = False) -> Result:
    runs = {Slot(number, arm).label: figures(arm, number) for number in range(bench.pairs) for arm in bench.arms}
    runs |= {Slot(PROFILED, arm).label: {**figures(arm, 0), "device": STEP[arm.name] / 4} for arm in bench.arms}
    arms, pairs = result.arms(bench, runs, range(bench.pairs))
    read = Read({"a.py": "0"}, bench.resolved(), {"torch": "2.11.0"})
    return Result(bench.name, "h200", "2.11.0", result.concluded(arms), True, arms, pairs, read, strict=strict)


def test_an_arm_has_its_medians_and_its_peaks() -> None:
    """Medians over runs of each run's median step without the warm-up, device time of the profiled run, the most memory of any run."""
    eager, updates, muon = found().as_json()["arms"]
    assert eager["median_ms"] == 20.7
    assert eager["range_ms"] == [20.0, 21.4]
    assert (eager["host_ms"], eager["device_ms"], eager["first_ms"]) == (10.35, 5.0, 1000.0)
    assert (eager["allocated"], eager["reserved"], eager["device"]) == (40 * MIB, 64 * MIB, 70 * MIB + 7)
    assert (eager["resident"], found(replace(BENCH, process="one")).as_json()["arms"][0]["resident"]) == (3 * MIB, None)
    assert (updates["ratio"], updates["verdict"], updates["p"], updates["replay"]) == (0.025, "faster", 2 / 256, REPLAYED)
    assert (muon["role"], muon["ratio"], muon["verdict"], muon["interval"]) == ("beside", 9.5, None, None)
    assert {pair["arm"] for pair in found().as_json()["pairs"]} == {"updates", "muon"}


def test_what_is_beside_has_no_say() -> None:
    """The verdict is that of the judged arm, whose p is the result's; with several arms each has its own."""
    assert (found().verdict, found().p) == (Speed.FASTER, 2 / 256)
    several = replace(BENCH, arms=(EAGER, UPDATES, replace(UPDATES, name="updates (2)")), pairs=9)
    assert (found(several).verdict, found(several).p) == (Speed.FASTER, None)


@pytest.mark.parametrize(
    ("verdict", "code", "strict"),
    [
        (Speed.FASTER, 0, 0),
        (Speed.NO_DIFFERENCE, 0, 0),
        (Speed.INCONCLUSIVE, 0, 3),
        (Speed.SLOWER, 0, 1),
        (Speed.DRIFT, 1, 1),
        (Speed.NOT_JUDGED, 3, 3),
        (Speed.NONDETERMINISTIC, 4, 4),
    ],
)
def test_slower_is_a_failure_where_that_is_asked_for(verdict: Speed, code: int, strict: int) -> None:
    """Then what cannot be told is not judged."""
    assert (replace(found(), verdict=verdict).exit_code, replace(found(), verdict=verdict, strict=True).exit_code) == (code, strict)


@pytest.mark.parametrize("columns", ["160", "60"])
def test_a_terminal_gets_every_arm_with_its_figures(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    shown = " ".join(text(found(), io.StringIO()).split())
    for part in ("eager", "20.7", "20-21.4", "10.35", "40.0 MiB / 64.0 MiB / 70.0 MiB", "0.025", "0.007812", "faster", "beside"):
        assert part in shown
    assert "updates: 2 recordings, 6 replays, 0 fallbacks; first step 1000 ms" in shown
    assert shown.endswith("faster; bits are equal. Next: nothing to do")


def test_markdown_is_a_table_of_all_arms() -> None:
    rows = [line for line in markdown(found()).splitlines() if line.startswith("|")]
    assert len(rows) == 5
    assert {row.count("|") for row in rows} == {11}
    assert rows[3].startswith("| updates | 0.5175 | 0.5-0.535 |")


def test_a_refusal_shows_no_time() -> None:
    """Neither as text, nor as Markdown, nor as JSON."""
    refusal = Refusal(Speed.NOT_JUDGED, "a.py:a raised\nValueError: \x1b[31m", Reason.SCENARIO_FAILED)
    refused = result.refused("speed", "cpu-x", "2.13.0", refusal, False)
    assert (refused.exit_code, refused.bits_equal, refused.as_json()["arms"]) == (3, None, [])
    assert messages(refused) == ["a.py:a raised", "ValueError: \\x1b[31m"]
    assert "not-judged (scenario-failed)" in refused.text()
    assert "|" not in refused.markdown()
    assert json.loads(json.dumps(refused.as_json()))["reason"] == "scenario-failed"
