"""Replay while what it replays changes: gradients, schedules, groups, copies; each case ends with the bits of an eager twin."""

from __future__ import annotations

import copy
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, SequentialLR

from musgd import MuSGD
from tests.musgd.twins import MODES, ROOT, counts, ends_equal, gradients, pair, params, same, train, weights

pytestmark = [pytest.mark.cuda, pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")]


@pytest.mark.case("R6")
@pytest.mark.parametrize("overflow", [(0,), (1,), (2,), (0, 1, 3)], ids=str)
def test_r6_skipped_steps_never_happened(overflow: tuple[int, ...]) -> None:
    replayed, eager = pair()
    scaler = torch.amp.GradScaler("cuda", init_scale=8.0, growth_interval=2)
    for step in range(6):
        gradients(replayed, step)
        scale = scaler.scale(torch.ones((), device="cuda"))
        for p in params(replayed):
            assert p.grad is not None
            p.grad = torch.full_like(p, math.inf) if step in overflow else p.grad * scale
        scaler.step(replayed)
        scaler.update()
        if step not in overflow:
            train(eager, [step])
    ends_equal(replayed, eager, 6 - len(overflow), 1)


@pytest.mark.case("R7")
def test_r7_gradients_alternate_and_one_comes_late() -> None:
    replayed, eager = pair()
    for step in range(12):
        for optimizer in (replayed, eager):
            gradients(optimizer, step)
            params(optimizer)[2].grad = None if step % 2 else params(optimizer)[2].grad
            params(optimizer)[4].grad = None if step < 4 else params(optimizer)[4].grad
            optimizer.step()
        assert same(replayed, eager)
    ends_equal(replayed, eager, 12, 4)


@pytest.mark.case("R8")
@pytest.mark.parametrize(
    "shape", [(), (3,), (6, 4), (5, 1, 1), (1, 9), (5, 3, 2), (4, 3, 3, 3), (4, 3, 2, 2, 2), (0,), (0, 3), (3, 0), (2, 0, 3)], ids=str
)
def test_r8_every_rank(path: str, shape: tuple[int, ...]) -> None:
    replayed, eager = pair(shape, (4, 4))
    train((replayed, eager), range(3))
    assert all(p.isfinite().all() for p in params(replayed))
    assert same(replayed, eager)
    assert counts(replayed) == (1, 3)
    with torch.no_grad():
        params(eager)[1].neg_()
    assert not same(replayed, eager)


@pytest.mark.case("R9")
@pytest.mark.parametrize(
    ("shape", "ratio"), [((64, 1, 3, 3), 8 / 3), ((64, 32, 3, 3), 1.0), ((8, 8, 1, 7), 1.0), ((8, 8, 7, 1), 1 / math.sqrt(7))], ids=str
)
def test_r9_a_replayed_step_has_the_scale_of_its_mode(path: str, shape: tuple[int, ...], ratio: float) -> None:
    moved = {}
    for scale in ("matrix", "kernel"):
        replayed, eager = pair(shape, scale=scale, lr=1.0, muon=1.0, sgd=0.0, weight_decay=0.0)
        with torch.no_grad():
            for optimizer in (replayed, eager):
                params(optimizer)[0].zero_()
        train((replayed, eager), [0])
        moved[scale] = params(replayed)[0].norm().item()
        ends_equal(replayed, eager, 1, 1)
    assert moved["matrix"] / moved["kernel"] == pytest.approx(ratio, rel=1e-5)


@pytest.mark.case("R10")
@pytest.mark.parametrize(
    "schedule",
    [lambda o: CosineAnnealingLR(o, T_max=10), lambda o: LambdaLR(o, lambda step: 0.9**step), None],
    ids=["cosine", "lambda", "set"],
)
def test_r10_learning_rates_are_not_frozen(schedule: Any) -> None:
    replayed, eager = pair()
    schedulers = [schedule(optimizer) for optimizer in (replayed, eager)] if schedule else []
    seen = set()
    for step in range(10):
        if not schedulers:
            for optimizer in (replayed, eager):
                optimizer.param_groups[0]["lr"] = 0.1 / (1 + step)
        train((replayed, eager), [step])
        seen.add(replayed.param_groups[0]["lr"])
        for scheduler in schedulers:
            scheduler.step()
    assert len(seen) == 10
    assert type(replayed.param_groups[0]["lr"]) is float
    ends_equal(replayed, eager, 10, 1)


@pytest.mark.case("R11")
@pytest.mark.parametrize("mode", MODES)
def test_r11_momentum_decay_and_weights_change_at_each_of_200_steps(path: str, mode: str) -> None:
    shapes = ((16, 4, 3, 3), (24, 40), (7,))
    replayed, eager = pair(*shapes, mode=mode)

    def change(optimizer: MuSGD, step: int) -> None:
        k = min(step, 200)
        optimizer.param_groups[0].update(momentum=0.8 + k / 2000, weight_decay=k / 1000, lr=0.1 / (1 + k))
        optimizer.muon, optimizer.sgd = 0.5 + k / 400, 0.5 - k / 500

    for step in range(210):
        train((replayed, eager), [step], change)
        if step % 50 == 49:
            assert same(replayed, eager)
    assert counts(replayed)[0] <= 2
    ends_equal(replayed, eager, 210)


@pytest.mark.case("R12")
@pytest.mark.filterwarnings("ignore:The epoch parameter in `scheduler.step:UserWarning")  # torch 2.4's own SequentialLR
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_r12_a_tensor_as_learning_rate(device: str) -> None:
    lr = torch.tensor(0.1, device=device)
    replayed, eager = pair(lr=lr)
    schedulers = [SequentialLR(o, [LinearLR(o, 0.1, total_iters=3), CosineAnnealingLR(o, 8)], [3]) for o in (replayed, eager)]
    seen = set()
    for step in range(10):
        train((replayed, eager), [step])
        seen.add(float(replayed.param_groups[0]["lr"]))
        for scheduler in schedulers:
            scheduler.step()
    assert isinstance(replayed.param_groups[0]["lr"], Tensor)
    assert replayed.param_groups[0]["lr"].device.type == device
    assert len(seen) > 6
    assert float(lr) == pytest.approx(0.1)
    ends_equal(replayed, eager, 10, 1)


LOAD = """
import sys, torch
assert not torch.cuda.is_available()
saved = torch.load(sys.argv[1], weights_only=True, map_location="cpu")
from musgd import MuSGD
optimizer = MuSGD([torch.nn.Parameter(w) for w in saved["weights"]])
optimizer.load_state_dict(saved["optimizer"])
for p in optimizer.param_groups[0]["params"]:
    p.grad = torch.ones_like(p)
optimizer.step()
assert all(type(value) in (float, bool, list) for value in saved["optimizer"]["param_groups"][0].values())
"""


@pytest.mark.case("R13")
def test_r13_a_checkpoint_needs_no_gpu(tmp_path: Path) -> None:
    replayed, eager = pair()
    train((replayed, eager), range(3))
    torch.save({"weights": [p.detach() for p in params(replayed)], "optimizer": replayed.state_dict()}, tmp_path / "state.pt")
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, "-c", LOAD, str(tmp_path / "state.pt")], check=True, env=environment)
    assert replayed.state_dict()["param_groups"] == eager.state_dict()["param_groups"]
    ends_equal(replayed, eager, 3, 1)


@pytest.mark.case("R14")
@pytest.mark.filterwarnings("ignore:You are using `torch.load` with `weights_only=False`:FutureWarning")
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))], ids=["deepcopy", "pickle"])
def test_r14_copies_step_on_and_apart(duplicate: Callable[[MuSGD], MuSGD]) -> None:
    replayed, eager = pair()
    train((replayed, eager), range(3))
    copied = duplicate(replayed)
    train(replayed, range(3, 5))
    assert not same(copied, replayed)
    train((copied, eager), range(3, 5))
    ends_equal(copied, eager, 2, 1)
    ends_equal(replayed, eager, 5, 1)


@pytest.mark.case("R15")
def test_r15_groups_are_added_and_parameters_thawed() -> None:
    replayed, eager = pair()
    train((replayed, eager), range(10))
    for optimizer in (replayed, eager):
        optimizer.add_param_group({"params": weights((12, 5), (3,)), "use_muon": False, "lr": 0.3})
    train((replayed, eager), range(10, 12))
    for step, frozen in enumerate((True, False, True, False), 12):
        for optimizer in (replayed, eager):
            params(optimizer)[1].requires_grad_(not frozen)
            gradients(optimizer, step)
            if frozen:
                params(optimizer)[1].grad = None
            optimizer.step()
    ends_equal(replayed, eager, 22)


@pytest.mark.case("R16")
@pytest.mark.parametrize("mode", MODES)
def test_r16_two_groups_in_one_pool_under_autocast_and_inference_mode(path: str, mode: str) -> None:
    """The second group's replay must not write over the first one's updates."""
    replayed, eager = pair(mode=mode)
    for optimizer in (replayed, eager):
        optimizer.add_param_group({"params": weights((48, 64), (20, 30), (5,)), "lr": 0.03})
    for step in range(6):
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=step % 2 == 0), torch.inference_mode(step % 3 == 0):
            train((replayed, eager), [step])
        assert same(replayed, eager)
    ends_equal(replayed, eager, 12, 2)
