"""Digests that timed runs hand back: equal in every round, or the benchmark ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gate import config
from gate.benchmark import bits, setting
from gate.benchmark.judgement import Speed
from gate.benchmark.proof import Refused
from gate.benchmark.setting import Bench

TABLES = """
[tool.gate.scenarios.plain]
run = "a.py:a"
steps = 1
[tool.gate.bench.b]
scenarios = ["plain", "plain"]
pairs = 2
warmup = 0
digests = true
"""


def made(folder: Path, text: str = TABLES) -> Bench:
    (folder / "pyproject.toml").write_text(text)
    return setting.find(config.find(folder), "b")


def figures(*runs: tuple[str, str, str, str]) -> dict[str, Any]:
    """Label, node, loss, model."""
    return {label: {"node": node, "digests": {"loss": loss, "model": model}} for label, node, loss, model in runs}


BASE = ("0 plain", "n", "1", "2")


def test_equal_rounds_pass_and_are_summed_up(tmp_path: Path) -> None:
    bench = made(tmp_path)
    found = figures(BASE, ("0 plain (2)", "n", "1", "2"), ("1 plain (2)", "m", "1", "3"), ("1 plain", "m", "1", "3"))
    bits.check(found, bench)
    told = bits.summary(found, [0, 1], bench)
    assert told == {"pairs": 2, "phases": ["loss", "model"], "different": 2, "nodes": 2, "first": {"loss": "1", "model": "2"}}


def test_other_bits_in_a_round_are_drift_and_the_phase_is_named(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"'0 plain \(2\)' differs from '0 plain' in model") as raised:
        bits.check(figures(BASE, ("0 plain (2)", "n", "1", "3")), made(tmp_path))
    assert raised.value.refusal.verdict is Speed.DRIFT


def test_an_arm_that_differs_from_itself_on_a_machine_is_nondeterministic(tmp_path: Path) -> None:
    found = figures(BASE, ("0 plain (2)", "n", "1", "2"), ("1 plain (2)", "n", "9", "2"), ("1 plain", "n", "1", "2"))
    with pytest.raises(Refused, match="differ in loss") as raised:
        bits.check(found, made(tmp_path))
    assert raised.value.refusal.verdict is Speed.NONDETERMINISTIC


def test_where_no_digests_are_asked_for_none_are_looked_at(tmp_path: Path) -> None:
    bench = made(tmp_path, TABLES.replace("digests = true", ""))
    bits.check(figures(BASE, ("0 plain (2)", "n", "1", "3")), bench)
    assert bits.summary({}, [0], bench) is None
