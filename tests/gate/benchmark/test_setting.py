"""What a benchmark's table says, and how each mistake in one is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate import config
from gate.benchmark import setting
from gate.errors import ConfigurationError, UsageError

ROOT = Path(__file__).parents[3]
SCENARIOS = """
[tool.gate.scenarios.plain]
run = "a.py:a"
steps = 12
[tool.gate.scenarios.quick]
run = "a.py:b"
steps = 12
same_as = "plain"
[tool.gate.scenarios.other]
run = "a.py:c"
steps = 12
"""
TABLE = '[tool.gate.bench.speed]\nscenarios = ["plain", "quick", "plain"]\n'


def configured(folder: Path, text: str) -> config.Config:
    (folder / "pyproject.toml").write_text(SCENARIOS + text)
    return config.find(folder)


def test_a_table_gives_arms_in_order_each_by_a_name_of_its_own(tmp_path: Path) -> None:
    more = 'beside = ["other"]\npairs = 12\nwarmup = 0\nprocess = "one"\nmargin = 0.05\nsteps = 30\n'
    bench = setting.find(configured(tmp_path, TABLE + more), "speed")
    assert [(arm.name, arm.beside, arm.settings.steps) for arm in bench.arms] == [
        ("plain", False, 30), ("quick", False, 30), ("plain (2)", False, 30), ("other", True, 30)
    ]  # fmt: skip
    assert [arm.name for arm in bench.judged] == ["quick", "plain (2)"]
    assert (bench.pairs, bench.warmup, bench.process, bench.margin) == (12, 0, "one", 0.05)
    usual = setting.find(configured(tmp_path, TABLE), "speed")
    assert (usual.pairs, usual.warmup, usual.process, usual.margin, usual.arms[0].settings.steps) == (10, 3, "each", 0.02, 12)
    assert setting.find(configured(tmp_path, TABLE), "speed", pairs=3).pairs == 3


def test_scenarios_of_a_benchmark_alone_are_known_to_it_alone(tmp_path: Path) -> None:
    """No golden is asked for them."""
    found = configured(tmp_path, '[tool.gate.bench.own]\nscenarios = ["mine", "mine"]\n[tool.gate.bench.own.define.mine]\nrun = "a.py:d"\n')
    assert [arm.settings.run for arm in setting.find(found, "own").arms] == ["a.py:d"] * 2
    assert "mine" not in found.scenarios


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pair = 3", "unknown key 'pair', did you mean 'pairs'?"),
        ("procces = 'one'", "unknown key 'procces', did you mean 'process'?"),
        ("digests = 1", "digests = 1"),
        ("proof = { epochs = 1 }", "Set digests = true"),
        ("pairs = 0", "pairs = 0: has to be a whole number, 1 or more"),
        ("pairs = true", "pairs = True"),
        ("warmup = -1", "warmup = -1"),
        ("warmup = 12", "warmup is 12, and plain has 12 steps, so that none would count"),
        ("steps = 3", "warmup is 3, and plain has 3 steps"),
        ("process = 'two'", "process = 'two': has to be \"each\""),
        ("margin = 1", "margin = 1"),
        ("margin = nan", "margin = nan"),
        ("beside = 'other'", "beside = 'other'"),
        ("beside = ['othre']", "beside names no scenario: 'othre', did you mean 'other'?"),
        ("define = 3", "define is 3"),
        ("[tool.gate.bench.speed.define.plain]\nrun = 'a.py:a'", "define holds 'plain', which is a scenario of the project already"),
        ("[tool.gate.bench.speed.define.x]\nrnu = 'a.py:a'", "[tool.gate.bench.speed.define.x]: unknown key 'rnu', did you mean 'run'?"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_key(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        setting.find(configured(tmp_path, TABLE + text + "\n"), "speed")
    assert told in str(raised.value)
    assert str(tmp_path / "pyproject.toml") in str(raised.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[tool.gate.bench.speed]\npairs = 3", "the key scenarios is missing"),
        ('[tool.gate.bench.speed]\nscenarios = ["plain"]', "a list of two or more names"),
        ('[tool.gate.bench.speed]\nscenarios = ["plain", "quik"]', "'quik', did you mean 'quick'?"),
        ('[tool.gate.bench.speed]\nscenarios = ["plain", "other"]', "other is not same_as plain"),
        ('[tool.gate.bench."../speed"]\nscenarios = ["plain", "quick"]', "a benchmark's name is"),
        ("[tool.gate.bench]\nspeed = 3", "[tool.gate.bench.speed] = 3"),
        ("[tool.gate]\nbench = 3", "holds no benchmark"),
        ("", "holds no benchmark"),
    ],
)
def test_a_table_that_is_none_is_refused(text: str, told: str, tmp_path: Path) -> None:
    found = configured(tmp_path, text + "\n")
    with pytest.raises(ConfigurationError) as raised:
        setting.find(found, (setting.names(found) or ["speed"])[0])
    assert told in str(raised.value)


def test_a_name_that_is_none_is_told_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown benchmark 'sped'.*did you mean 'speed'"):
        setting.find(configured(tmp_path, TABLE), "sped")


def test_this_project_s_own_benchmark_compares_what_replays_with_what_does_not() -> None:
    """Three arms of one function, judged; torch's own optimizers beside them."""
    found = config.find(ROOT)
    bench = setting.find(found, "musgd-step")
    assert [arm.name for arm in bench.arms] == ["eager", "orthogonalization", "updates", "muon", "sgd-fused"]
    assert [arm.name for arm in bench.judged] == ["orthogonalization", "updates"]
    assert len({arm.settings.run for arm in bench.arms if not arm.beside}) == 1
    assert all(arm.settings.parameters["on_fallback"] == "raise" for arm in bench.judged)
    assert not {arm.settings.name for arm in bench.arms} & set(found.scenarios)
