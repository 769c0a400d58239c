"""A script as it is, recorded behind each step of its optimizer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim import Optimizer

import golden
from golden.errors import ScenarioFailed
from golden.leaf import Snapshot
from golden.recorder import Recorder
from golden.script import MODULE, Variables, follow

FLAT = """
import sys
import torch
from factor import FACTOR

torch.manual_seed(3)
net = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for step in range(6):
    optimizer.zero_grad()
    loss = FACTOR * net(torch.randn(4, 3)).square().mean()
    loss.backward()
    optimizer.step()
done = step
"""

GUARDED = """
import torch


class Trainer:
    def __init__(self):
        self.net = torch.nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def epoch(self, batches):
        for batch in range(batches):
            error = self.net(torch.ones(4, 3)).square().mean()
            error.backward()
            self.optimizer.step()


def other(net):
    torch.optim.SGD(net.parameters(), lr=0.1).step()


if __name__ == "__main__":
    trainer = Trainer()
    other(trainer.net)
    trainer.epoch(2)
    trainer.epoch(2)
"""


def followed(folder: Path, text: str, function: str, after_step: Any = None, **settings: Any) -> tuple[Recorder, list[Snapshot]]:
    """A script written into a folder and recorded; by default loss, gradients, optimizer and model of FLAT."""
    (folder / "train.py").write_text(text)
    (folder / "factor.py").write_text("FACTOR = 1.0\n")
    sys.modules.pop("factor", None)
    taken: list[Snapshot] = []
    record = Recorder(taken.append, **{"steps": 3, **settings})

    def usual(here: Variables, optimizer: Optimizer) -> None:
        record(loss=here["loss"], grads=golden.gradients(here["net"]), optimizer=optimizer, model=here["net"])

    follow(record, folder / "train.py", function, (lambda here, optimizer: after_step(record, here, optimizer)) if after_step else usual)
    return record, taken


def digests(taken: list[Snapshot], phase: str) -> list[list[int]]:
    return [[int(n) for leaf, pair in zip(s.leaves, s.digests, strict=True) if leaf.phase == phase for n in pair] for s in taken]


def test_a_flat_script_gives_the_same_bits_as_its_loop_written_by_hand(tmp_path: Path) -> None:
    """Loss, gradients, optimizer and model, recorded behind each step; another factor gives others."""
    _, taken = followed(tmp_path, FLAT, MODULE)
    by_hand: list[Snapshot] = []
    for factor in (1.0, 1.5):
        record = Recorder(by_hand.append, steps=3)
        torch.manual_seed(3)
        net = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for _ in range(3):
            optimizer.zero_grad()
            loss = factor * net(torch.randn(4, 3)).square().mean()
            loss.backward()
            optimizer.step()
            record(loss=loss, grads=golden.gradients(net), optimizer=optimizer, model=net)
    assert [snapshot.leaves for snapshot in taken] == [snapshot.leaves for snapshot in by_hand[:3]]
    for phase in ("loss", "grads", "optimizer", "model"):
        assert digests(taken, phase) == digests(by_hand[:3], phase)
        assert digests(taken, phase) != digests(by_hand[3:], phase)


def test_the_script_ends_at_the_last_step_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """What follows in it is not run, the import path and the arguments are as before, and a later step is nobody's."""
    before = list(sys.path), list(sys.argv)
    record, taken = followed(tmp_path, FLAT + "raise AssertionError('it went on')\n", MODULE, steps=6)
    assert (record.done, len(taken)) == (6, 6)
    assert (sys.path, sys.argv) == before
    weight = torch.nn.Parameter(torch.ones(1))
    torch.optim.SGD([weight], lr=0.1).step()
    assert len(taken) == 6


def test_the_script_is_run_as_python_would_run_it(tmp_path: Path) -> None:
    """Its own path is its one argument, and its folder goes before all others."""
    seen: list[Variables] = []
    text = FLAT.replace("import sys\n", "import sys\nTOLD = list(sys.argv), sys.path[0]\n")

    def after(record: Recorder, here: Variables, optimizer: Optimizer) -> None:
        seen.append(here)
        record(loss=here["loss"])

    followed(tmp_path, text, MODULE, after, steps=1)
    assert seen[0]["TOLD"] == ([str(tmp_path / "train.py")], str(tmp_path))


def test_a_step_after_the_run_is_nobodys_though_the_function_makes_it(tmp_path: Path) -> None:
    seen: list[Variables] = []

    def after(record: Recorder, here: Variables, optimizer: Optimizer) -> None:
        seen.append(here)
        record(loss=here["error"])

    followed(tmp_path, GUARDED, "epoch", after, steps=1)
    seen[0]["self"].epoch(1)
    assert len(seen) == 1


def test_a_guarded_main_runs_and_only_the_named_function_counts(tmp_path: Path) -> None:
    """The step in other() is passed over; attributes of a method's self are reached; two calls of the method are one run."""

    def after(record: Recorder, here: Variables, optimizer: Optimizer) -> None:
        assert optimizer is here["self"].optimizer
        record(loss=here["error"], batch=here["batch"], model=here["self"].net)

    _, taken = followed(tmp_path, GUARDED, "epoch", after, steps=4)
    assert [snapshot.step for snapshot in taken] == [1, 2, 3, 4]
    batches = digests(taken, "batch")
    assert batches[0] == batches[2] != batches[1]


def test_a_script_that_takes_every_exception_ends_all_the_same(tmp_path: Path) -> None:
    text = FLAT.replace("    optimizer.step()\n", "    try:\n        optimizer.step()\n    except Exception:\n        pass\n")
    assert followed(tmp_path, text, MODULE, steps=2)[0].done == 2


def test_a_script_with_fewer_steps_than_the_run_is_told_by_the_recorder(tmp_path: Path) -> None:
    record, _ = followed(tmp_path, FLAT, MODULE, steps=9)
    with pytest.raises(ScenarioFailed, match="6 of 9 steps"):
        record.finish()


@pytest.mark.parametrize(
    ("text", "function", "settings", "told"),
    [
        (FLAT, "main", {}, r"train.py ended, and no torch.optim.Optimizer stepped in main\(\)"),
        (GUARDED, MODULE, {}, "stepped in the code outside its functions"),
        (FLAT.replace("loss", "lost"), MODULE, {}, "no variable 'loss' in the code outside its functions.*did you mean 'lost'"),
        (FLAT, MODULE, {"device": "cuda"}, "train.py trains on cpu, and this run is one on cuda"),
    ],
    ids=["other function", "no function", "variable", "device"],
)
def test_what_does_not_fit_the_script_is_told(tmp_path: Path, text: str, function: str, settings: dict[str, Any], told: str) -> None:
    """Another function, a variable that is gone, another device: what, where, and what there is instead."""
    with pytest.raises(ScenarioFailed, match=told):
        followed(tmp_path, text, function, **settings)


def test_what_the_script_raises_is_its_own(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        followed(tmp_path, "1 / 0\n", MODULE)
    (tmp_path / "train.py").unlink()
    with pytest.raises(FileNotFoundError):
        follow(Recorder(print, steps=1), tmp_path / "train.py", MODULE, print)


def test_variables_are_those_of_the_function_before_those_of_the_file(tmp_path: Path) -> None:
    """A local name hides a global one; both are listed."""
    seen: list[Variables] = []
    text = GUARDED.replace("import torch\n", "import torch\nbatch, ROOT = 99, 7\n", 1)

    def after(record: Recorder, here: Variables, optimizer: Optimizer) -> None:
        seen.append(here)
        record(batch=here["batch"])

    followed(tmp_path, text, "epoch", after, steps=1)
    assert (seen[0]["batch"], seen[0]["ROOT"]) == (0, 7)
    assert {"batch", "ROOT", "Trainer", "self"} <= set(seen[0])
    assert len(seen[0]) == len(set(seen[0]))
