"""Whoever is recorded trains as if nobody looked: G11 and G12.

What a run ends with is recorded once it is over, whether or not somebody recorded it while it went on. Its bits are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from golden.leaf import Snapshot
from golden.recorder import Recorder, gradients
from golden.store import Golden
from tests.cases.recordings import differences, record, seed_all

STEPS = 4


class Block(nn.Module):
    """Hands its input on in two ways."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.1))

    def forward(self, hidden: Tensor) -> Tensor:
        found: Tensor = self.body(hidden) * torch.sigmoid(hidden)
        return found


class Residual(nn.Module):
    """Gradients reach the input of every block on three ways, so that the order in which they accumulate matters."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding=1)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(8, 3)

    def forward(self, images: Tensor) -> Tensor:
        hidden = self.stem(images)
        for block in self.blocks:
            hidden = hidden + block(hidden)
        found: Tensor = self.head(hidden.mean((2, 3)))
        return found


Prelude = Callable[[nn.Module, torch.optim.Optimizer], object]


def nothing(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """What a run does before its first step that nobody asks about."""


def train(recorder: Recorder | None, prelude: Prelude = nothing) -> dict[str, Any]:
    """Trains, and returns every part of what is there at the end; the losses are those of all steps."""
    seed_all(3)
    model = Residual()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    prelude(model, optimizer)
    if recorder:
        recorder.start(model=model, optimizer=optimizer, grads=gradients(model))
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(torch.randn(4, 1, 8, 8)), torch.arange(4) % 3)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if recorder:
            recorder(loss=loss, grads=gradients(model), optimizer=optimizer, model=model)
        losses.append(loss.detach())
    return {"losses": losses, "grads": gradients(model), "optimizer": optimizer, "model": model}


def ended(folder: Path, recorder: Recorder | None = None, prelude: Prelude = nothing) -> Golden:
    """The end of a run, with the generators as it left them."""
    phases = train(recorder, prelude)
    return record(folder, lambda last: last(**phases), seed=None)


def look(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Records the state once, before there is a step."""
    Recorder(lambda snapshot: None, steps=1, store="full")(optimizer=optimizer, grads=gradients(model), model=model)
    assert not optimizer.state
    assert all(parameter.grad is None for parameter in model.parameters())


def advance(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Makes the optimizer's state by a step without gradients and learning rate, so that there is something to read."""
    rates = [group["lr"] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    optimizer.zero_grad()
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate


@pytest.mark.case("G11")
def test_recording_before_the_first_step_leaves_the_run_alone(tmp_path: Path) -> None:
    """Reading an optimizer that has no state yet makes none; a reader that makes some moves counters, and then weights."""
    golden = ended(tmp_path / "golden")
    assert differences(golden, ended(tmp_path / "looked", prelude=look)) == ()
    moved = [difference.path for difference in differences(golden, ended(tmp_path / "advanced", prelude=advance))]
    assert {"optimizer/head.weight/step", "model/head.weight"} <= set(moved)


@pytest.mark.case("G11")
def test_the_start_of_a_run_is_recorded_as_it_is(tmp_path: Path) -> None:
    """Step 0 holds an optimizer without state; that of the run which was made to have some holds some."""

    def start(prelude: Prelude, name: str) -> Golden:
        return record(tmp_path / name, lambda recorder: train(recorder, prelude), steps=STEPS)

    golden = start(nothing, "golden")
    assert golden.find(0, "optimizer/group0/lr") is not None
    assert golden.find(0, "optimizer/head.weight/step") is None
    assert golden.find(1, "optimizer/head.weight/step") is not None
    found = [difference for difference in differences(golden, start(advance, "advanced")) if difference.step == 0]
    assert ("unexpected", "optimizer/head.weight/step") in [(each.kind.value, each.path) for each in found]


@pytest.mark.case("G12")
@pytest.mark.parametrize("store", ["full", "digest"])
def test_a_residual_network_trains_to_the_same_bits_with_and_without_the_recorder(tmp_path: Path, store: str) -> None:
    """Every loss, gradient, moment, weight, buffer and generator at the end is the same."""
    golden = ended(tmp_path / "golden")
    taken: list[Snapshot] = []
    recorded = ended(tmp_path / "recorded", Recorder(taken.append, steps=STEPS, store=store))
    assert [(snapshot.step, snapshot.data is not None) for snapshot in taken] == [(step, store == "full") for step in range(STEPS + 1)]
    assert differences(golden, recorded) == ()
    assert len(golden.leaves(1)) > 100


@pytest.mark.case("G12")
def test_an_observer_that_hooks_into_the_backward_pass_is_found_out(tmp_path: Path) -> None:
    """Hooks that only look change the order in which gradients accumulate; so does one draw of a random number change what follows."""

    def hook(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        for block in model.get_submodule("blocks").children():
            block.register_full_backward_hook(lambda *_: None)

    golden = ended(tmp_path / "golden")
    hooked = differences(golden, ended(tmp_path / "hooked", prelude=hook))
    assert "grads/stem.weight" in [difference.path for difference in hooked]
    assert "rng/torch" not in [difference.path for difference in hooked]
    drawn = differences(golden, ended(tmp_path / "drawn", Recorder(lambda snapshot: torch.rand(1), steps=STEPS)))
    assert {"rng/torch", "losses/1"} <= {difference.path for difference in drawn}
