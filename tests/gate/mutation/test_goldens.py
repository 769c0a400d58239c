"""Goldens as witnesses of mutants: on a small training whose tests look at little."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gate.mutation.tiny import Answer, Tiny

OPTIMIZER = '''"""Momentum SGD."""

import torch

DAMPING = 0.5


class Momentum:
    def __init__(self, params, lr=0.1, beta=0.9):
        self.params, self.lr, self.beta = list(params), lr, beta
        self.buffers = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self):
        for p, b in zip(self.params, self.buffers):
            b.lerp_(p.grad, 1 - self.beta)
            p.add_(b, alpha=-self.lr * DAMPING)

    def state_dict(self):
        return {"buffers": self.buffers}

    def check(self, lr):
        if lr < 0:
            raise ValueError(lr)
'''
TESTS = """
import pytest
import torch
from shop import Momentum


def test_it_goes_down():
    p = torch.ones(2, requires_grad=True)
    p.grad = torch.ones(2)
    Momentum([p]).step()
    assert p.sum() < 2


def test_check():
    Momentum([]).check(0)
    with pytest.raises(ValueError):
        Momentum([]).check(-1)
"""
SCENARIO = """
import torch

import random

import draws
import golden
from shop import Momentum


def train(record):
    model = torch.nn.Linear(3, 2)
    optimizer = Momentum(model.parameters())
    for _ in range(record.steps):
        loss = model(torch.randn(4, 3)).square().mean()
        loss.backward()
        optimizer.step()
        record(loss=loss, grads=golden.gradients(model), optimizer=optimizer, model=model)
        for p in model.parameters():
            p.grad = None
"""
MORE = """
[tool.gate.scenarios.train]
run = "scenario.py:train"
steps = 3
"""


@pytest.fixture(scope="module", autouse=True)
def draws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A package outside the project whose import draws a random number, as some do: imported beforehand it would change the state."""
    folder = tmp_path_factory.mktemp("installed")
    (folder / "draws.py").write_text("import random\n\nFIRST = random.random()\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        yield


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    tiny = Tiny.new(tmp_path_factory.mktemp("goldens") / "project", OPTIMIZER, TESTS, MORE)
    (tiny.folder / "scenario.py").write_text(SCENARIO)
    done = subprocess.run([sys.executable, "-m", "gate", "record"], cwd=tiny.folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    tiny.commit()
    return tiny


@pytest.fixture(scope="module")
def answer(tiny: Tiny) -> Answer:
    return tiny.mutate("src/shop.py", "--jobs", "1")


def killers(answer: Answer, **wanted: str) -> list[list[str]]:
    return [m["killed_by"] for m in answer.document["mutants"] if all(m[key].strip() == value for key, value in wanted.items())]


def test_tests_alone_goldens_alone_and_both(answer: Answer) -> None:
    """What only the order of magnitude shows in is for the goldens; what no scenario runs is for the tests."""
    assert ["goldens"] in killers(answer, operator="momentum-complement")
    assert killers(answer, operator="comparison-edge", after="if lr <= 0:") == [["tests"]]
    assert ["tests", "goldens"] in killers(answer, operator="statement-dropped")
    assert 0 not in answer.document["killed_by"].values()
    assert answer.document["witnesses"]["goldens"]["scenarios"] == ["train"]


def test_a_scenario_whose_imports_draw_is_run_as_verify_runs_it(tiny: Tiny, answer: Answer) -> None:
    """With its modules imported beforehand its random state would be another."""
    assert answer.document["counts"]["killed"]
    (baseline,) = (tiny.folder / ".gate/mutation/goldens").glob("*.json")
    assert [scene["bare"] for scene in json.loads(baseline.read_text())["scenes"]] == [True]


def test_one_unit_in_the_last_place_is_noticed(answer: Answer) -> None:
    """A coefficient changed by as little as float32 shows, at import time and in a default."""
    assert killers(answer, operator="coefficient-nudged").count(["goldens"]) >= 2


def test_a_golden_that_the_unmutated_tree_does_not_give_is_no_baseline(tiny: Tiny) -> None:
    source = tiny.folder / "src/shop.py"
    source.write_text(OPTIMIZER.replace("DAMPING = 0.5", "DAMPING = 0.25"))
    try:
        found = tiny.mutate("src/shop.py", "--jobs", "1")
    finally:
        source.write_text(OPTIMIZER)
    assert (found.code, found.document["reason"]) == (3, "baseline-failed")
    assert "train" in found.err


def test_a_scenario_without_a_golden_here_is_left_out_and_said_so(tmp_path: Path) -> None:
    found = Tiny.new(tmp_path / "project", more=MORE).mutate("--jobs", "1", "--operator", "comparison-edge")
    (line,) = found.document["witnesses"]["goldens"]["left_out"]
    assert line.startswith("train: ")
    assert "record" in line
    assert "the tests are the only witness" in found.out
