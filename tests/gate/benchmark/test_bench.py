"""`gate bench` on the CPU, in processes as a shell would start them: bits first, then times, then what they allow to say."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gate import config
from gate.benchmark import place, result, setting
from gate.benchmark.clock import Clock
from gate.benchmark.journal import Journal
from gate.benchmark.judgement import Speed
from gate.benchmark.proof import Read, Refused
from gate.benchmark.setting import Bench
from gate.progress import Silent
from gate.trial import Means
from tests.gate.projects import Answer, Project

SCENARIOS = """
import time
import torch

def train(record):
    weight = torch.nn.Parameter(torch.ones(8))
    optimizer = torch.optim.SGD([weight], lr=record.parameters.get("lr", 0.1))
    for _ in range(record.steps):
        weight.square().sum().backward()
        time.sleep(0.002 + record.parameters.get("added", 0))
        optimizer.step()
        record(weight=weight)
        optimizer.zero_grad()

def chance(record):
    for _ in range(record.steps):
        record(x=time.time_ns())

def late(record):
    for _ in range(record.steps):
        record(x=torch.zeros(2), y=torch.ones(2) if record.parameters.get("late") else torch.zeros(2))

def fails_when_timed(record):
    assert torch.utils.deterministic is not None
    for _ in range(record.steps):
        record(x=1)
    if type(record).__name__ == "Stopwatch":
        raise LookupError("no more")
"""
TABLES = """
[tool.gate.scenarios.plain]
run = "scenarios.py:train"
[tool.gate.scenarios.added]
run = "scenarios.py:train"
same_as = "plain"
parameters = { added = 0.003 }
[tool.gate.scenarios.other]
run = "scenarios.py:train"
same_as = "plain"
parameters = { lr = 0.2 }
[tool.gate.scenarios.chance]
run = "scenarios.py:chance"
[tool.gate.scenarios.failing]
run = "scenarios.py:fails_when_timed"
[tool.gate.scenarios.slow]
run = "scenarios.py:train"
steps = 5
parameters = { added = 0.05 }

[tool.gate.bench.work]
scenarios = ["plain", "added", "plain"]
process = "one"
[tool.gate.bench.unequal]
scenarios = ["plain", "other"]
[tool.gate.bench.chance]
scenarios = ["chance", "chance"]
[tool.gate.bench.failing]
scenarios = ["failing", "failing"]
process = "one"
[tool.gate.bench.each]
scenarios = ["plain", "plain"]
pairs = 1
[tool.gate.bench.parts]
scenarios = ["plain", "plain"]
pairs = 2
digests = true
proof = { added = 0 }
[tool.gate.bench.moved]
scenarios = ["late", "later"]
pairs = 1
digests = true
proof = { late = false }
[tool.gate.bench.moved.define.late]
run = "scenarios.py:late"
[tool.gate.bench.moved.define.later]
run = "scenarios.py:late"
same_as = "late"
parameters = { late = true }
[tool.gate.bench.long]
scenarios = ["slow", "slow"]
process = "one"
pairs = 3
"""
KEYS = ["format", "verdict", "bits_equal", "arms", "pairs", "p"]
ARM_KEYS = ["name", "median_ms", "range_ms", "host_ms", "device_ms", "allocated", "reserved", "device"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("bench") / "project"
    folder.mkdir()
    (folder / "scenarios.py").write_text(SCENARIOS)
    (folder / "pyproject.toml").write_text(TABLES)
    return Project(folder)


def arms(answer: Answer) -> dict[str, dict[str, Any]]:
    return {arm["name"]: arm for arm in answer.document["arms"]}


def test_added_work_is_slower_and_an_arm_against_itself_is_not(project: Project) -> None:
    """Ten pairs of each in one process; slower is a failure because that is asked for."""
    answer = project.gate("bench", "work", "--fail-slower", "--markdown", "speed.md")
    assert (answer.code, answer.document["verdict"], answer.document["bits_equal"]) == (1, "slower", True), answer.err
    found = arms(answer)
    assert list(answer.document)[: len(KEYS)] == KEYS
    assert [list(arm)[: len(ARM_KEYS)] for arm in answer.document["arms"]] == [ARM_KEYS] * 3
    assert found["added"]["verdict"] == "slower"
    assert found["added"]["interval"][0] > 1.02
    assert found["plain (2)"]["verdict"] in ("inconclusive", "no-difference")
    assert found["added"]["median_ms"] >= 5
    assert found["plain"]["median_ms"] >= 2
    assert [found["plain"][key] for key in ("device_ms", "allocated", "reserved", "device", "verdict")] == [None] * 5
    assert [pair["order"] for pair in answer.document["pairs"]] == ["AB", "BA"] * 10
    assert [pair["arm"] for pair in answer.document["pairs"]] == ["added"] * 10 + ["plain (2)"] * 10
    assert list(answer.document["read"]["sources"]) == ["scenarios.py"]
    assert answer.document["read"]["environment"]["flags"]["torch.utils.deterministic.fill_uninitialized_memory"] is False
    assert answer.document["read"]["environment"]["hardware"] == answer.document["hardware"]
    assert re.search(r"added .*slower", answer.out)
    assert "| added |" in (project.folder / "speed.md").read_text()
    assert sorted(path.name for path in (project.folder / ".gate/bench/work").iterdir()) == ["result.json"]


def test_unequal_bits_exit_1_and_show_no_time(project: Project) -> None:
    """The first difference is told with its census, and both runs are kept for `gate diff`."""
    answer = project.gate("bench", "unequal")
    assert (answer.code, answer.document["verdict"], answer.document["bits_equal"]) == (1, "drift", False)
    assert (answer.document["arms"], answer.document["pairs"], answer.document["p"]) == ([], [], None)
    first = answer.document["first"]
    assert (first["step"], first["path"], first["kind"], first["differing"]) == (1, "weight", "bits", 8)
    assert not re.search(r"\d ms", answer.out + answer.err)
    assert "bits differ, no time is shown" in answer.out
    one, other = re.search(r"gate diff (\S+) (\S+)", answer.err).groups()  # type: ignore[union-attr]
    assert project.gate("diff", one, other).document["first"]["path"] == "weight"
    assert not (project.folder / ".gate/bench/unequal/result.json").exists()


def test_an_arm_that_differs_from_itself_exits_4(project: Project) -> None:
    answer = project.gate("bench", "chance")
    assert (answer.code, answer.document["verdict"], answer.document["bits_equal"]) == (4, "nondeterministic", None)
    assert answer.document["first"]["path"] == "x"


def timed(project: Project, name: str) -> tuple[Bench, Clock]:
    """The clock of a benchmark whose proof is taken for granted."""
    means = Means(config.find(project.folder), None, None, Silent())
    bench = setting.find(means.config, name)
    journal = Journal.of(project.folder, name)
    journal.begin(Read({}, bench.resolved(), {}), {})
    return bench, Clock(bench, place.choose(means, bench, "cpu"), journal, Silent())


def test_a_scenario_that_fails_while_it_is_timed_is_not_judged(project: Project) -> None:
    _, clock = timed(project, "failing")
    with pytest.raises(Refused, match="LookupError: no more") as raised:
        clock.run()
    assert (raised.value.refusal.verdict, raised.value.refusal.reason) == (Speed.NOT_JUDGED, "scenario-failed")


def test_a_fresh_process_for_each_run_knows_its_memory(project: Project) -> None:
    """One pair, and no interval; a second call finds nothing that is missing."""
    bench, clock = timed(project, "each")
    clock.run()
    figures = clock.journal.figures()
    arms, pairs = result.arms(bench, figures, clock.rounds())
    assert list(figures) == ["0 plain", "0 plain (2)"]
    assert all(arm.resident and arm.resident > 1 << 24 for arm in arms)
    assert [pair.order for pair in pairs] == ["AB"]
    assert (result.concluded(arms), arms[1].finding and arms[1].finding.interval) == (Speed.INCONCLUSIVE, None)
    clock.run()
    assert clock.journal.figures() == figures


def test_a_device_that_a_scenario_is_not_configured_for_is_a_mistake_of_usage(project: Project) -> None:
    answer = project.gate("bench", "each", "--device", "cuda")
    assert (answer.code, "not configured for cuda" in answer.err) == (2, True)


def test_a_benchmark_goes_on_where_it_was_stopped(project: Project) -> None:
    """Interrupted after a round, it proves nothing again, and times no whole round again."""
    folder = project.folder / ".gate/bench/long"
    stop(project, folder / "time.turns", 4)
    begun = [json.loads(line)["label"] for line in (folder / "time.turns").read_text().splitlines()]
    assert begun[:4] == ["warm-up slow", "warm-up slow (2)", "0 slow", "0 slow (2)"]
    recorded = set((project.folder / ".gate/runs").iterdir())
    answer = project.gate("bench", "long")
    assert (answer.code, answer.document["verdict"]) == (0, "inconclusive"), answer.err
    assert f"going on with {len(begun)} runs that were timed before" in answer.err
    assert set((project.folder / ".gate/runs").iterdir()) == recorded
    assert [arm["runs"] for arm in answer.document["arms"]] == [3, 3]
    assert [path.name for path in folder.iterdir()] == ["result.json"]


def test_in_parts_and_from_place_to_place(project: Project, tmp_path: Path) -> None:
    """No round is begun that ends too late; the journal lies where it was asked for, and what was proven is not proven again."""
    first = project.gate("bench", "parts", "--journal", str(tmp_path), "--seconds", "1")
    assert (first.code, first.document["verdict"]) == (3, "not-judged"), first.err
    assert "0 of 2 pairs are timed, and stay" in first.err
    assert json.loads((tmp_path / "parts" / "state.json").read_text())["machine"]["node"] is None
    recorded = set((project.folder / ".gate/runs").iterdir())
    answer = project.gate("bench", "parts", "--journal", str(tmp_path))
    assert (answer.code, [arm["runs"] for arm in answer.document["arms"]]) == (0, [2, 2]), answer.err
    assert set((project.folder / ".gate/runs").iterdir()) == recorded
    found = answer.document["digests"]
    assert (found["pairs"], found["different"], found["nodes"], found["phases"][0]) == (2, 1, 1, "weight")
    assert "were equal in each of 2 pairs" in answer.out
    assert [path.name for path in (tmp_path / "parts").iterdir()] == ["result.json"]


def test_bits_that_part_in_the_timed_runs_alone_are_found(project: Project) -> None:
    """What is recorded first is equal, by other parameters; what is timed is not, and no time is shown."""
    answer = project.gate("bench", "moved")
    assert (answer.code, answer.document["verdict"], answer.document["arms"]) == (1, "drift", []), answer.err
    assert "differs from '0 late' in y" in answer.err


def test_seconds_for_a_single_process_are_refused(project: Project) -> None:
    answer = project.gate("bench", "work", "--seconds", "60")
    assert (answer.code, "between rounds" in answer.err) == (2, True)


def stop(project: Project, turns: Path, runs: int) -> None:
    """Starts the long benchmark and interrupts it once so many runs were timed."""
    process = subprocess.Popen([sys.executable, "-m", "gate", "bench", "long"], cwd=project.folder, env=os.environ, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not turns.exists() or len(turns.read_text().splitlines()) < runs:
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130, told
