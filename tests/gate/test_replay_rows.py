"""Rows say what a run's optimizers say of their replay: in JSON, and on a terminal where there is something to say."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from gate import report
from gate.row import Results, Row
from gate.verdict import Verdict
from tests.cases.projects import project as made

SCENARIOS = """
import types
import torch

class Replaying(torch.optim.SGD):
    steps = 0

    def step(self, closure=None):
        self.steps += 1
        return super().step(closure)

    def replay_status(self):
        return [types.SimpleNamespace(recordings=1, replays=self.steps - 1, fallbacks=0) for _ in self.param_groups]

def train(record, make):
    weights = [torch.nn.Parameter(torch.ones(2)) for _ in range(2)]
    optimizer = make([{"params": [weight]} for weight in weights])
    for _ in range(record.steps):
        sum(weight.square().sum() for weight in weights).backward()
        optimizer.step()
        record(optimizer=optimizer, weights=weights)
        optimizer.zero_grad()

def replaying(record):
    train(record, lambda groups: Replaying(groups, lr=0.1))

def beside(record):
    replaying = Replaying([torch.nn.Parameter(torch.ones(2))], lr=0.1)
    replaying.steps = 4
    record.replays(replaying)
    train(record, lambda groups: Replaying(groups, lr=0.1))

def plain(record):
    train(record, lambda groups: torch.optim.SGD(groups, lr=0.1))

def musgd(record):
    from musgd import MuSGD
    train(record, lambda groups: MuSGD(groups, lr=0.1, **record.parameters))
"""
ELEVEN = {"recordings": 2, "replays": 11, "fallbacks": 0}
ROW = Row("digits", "digits", "h200", "2.11.0", "golden", Verdict.IDENTICAL, steps=12, seconds=2.0)


def test_record_and_verify_sum_up_what_optimizers_say(tmp_path: Path) -> None:
    """An optimizer that replays, one with another beside it that is no phase, one that cannot, MuSGD asked on a CPU, MuSGD not asked."""
    parameters = "\nsame_as = 'musgd'\nparameters = { capture_updates = true }"
    project = made(tmp_path / "p", SCENARIOS, 3, replaying="", beside="", plain="", musgd="", captured=f"musgd{parameters}")
    expected = {
        "replaying": {"recordings": 2, "replays": 4, "fallbacks": 0},
        "beside": {"recordings": 3, "replays": 7, "fallbacks": 0},
        "plain": None,
        "musgd": {"recordings": 0, "replays": 0, "fallbacks": 0},
        "captured": {"recordings": 0, "replays": 0, "fallbacks": 6},
    }
    recorded = project.gate("record", "--jobs", "1")
    assert recorded.code == 0, recorded.err
    assert {row["scenario"]: row["replay"] for row in recorded.rows} == {name: expected[name] for name in expected if name != "captured"}
    verified = project.gate("verify", "--jobs", "1")
    assert verified.code == 0, verified.err
    assert {row["scenario"]: row["replay"] for row in verified.rows} == expected
    assert "4 replays, 2 recordings, 0 fallbacks" in verified.out
    assert "0 replays, 0 recordings, 6 fallbacks" in verified.out


@pytest.mark.parametrize(
    ("columns", "told"), [("160", "11 replays, 2 recordings, 0 fallbacks"), ("80", "11 replays"), ("40", "11 replays,")]
)
def test_a_terminal_shows_it_where_there_is_any(columns: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every width; a report without replays has no word of them."""
    monkeypatch.setenv("COLUMNS", columns)
    assert told in " ".join(report.text(Results((replace(ROW, replay=ELEVEN), ROW)), io.StringIO()).split())
    for none in (None, dict.fromkeys(ELEVEN, 0)):
        assert "replay" not in report.text(Results((replace(ROW, replay=none),)), io.StringIO())
