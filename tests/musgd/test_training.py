"""MuSGD among what drives it in training: schedulers, tensor learning rates, GradScaler, autocast, inference mode."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ConstantLR, CosineAnnealingLR, LambdaLR, LinearLR, LRScheduler, OneCycleLR, SequentialLR

from musgd import MuSGD

if TYPE_CHECKING:
    from tests.musgd.conftest import SameBits, Twins

SHAPES = ((6, 4), (4, 2, 3, 3), (5,))
OPTIONS: dict[str, Any] = {"momentum": 0.9, "weight_decay": 0.05, "nesterov": True}
STEPS = range(8)


def _sequential(optimizer: Optimizer) -> LRScheduler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # older torch warns of its own use of scheduler.step
        return SequentialLR(optimizer, [LinearLR(optimizer, 0.25, total_iters=3), CosineAnnealingLR(optimizer, 5)], milestones=[3])


SCHEDULES: dict[str, Callable[[Optimizer], LRScheduler]] = {
    "cosine": lambda optimizer: CosineAnnealingLR(optimizer, 8),
    "lambda": lambda optimizer: LambdaLR(optimizer, lambda step: 0.7**step),
    "onecycle": lambda optimizer: OneCycleLR(optimizer, 0.2, total_steps=20),
    "sequential": _sequential,
}


def _scheduled(optimizer: Optimizer, schedule: str, twins: type[Twins]) -> list[tuple[float, float]]:
    """Train with a scheduler; returns the (lr, momentum) of each step."""
    scheduler, seen = SCHEDULES[schedule](optimizer), []

    def each(step: int) -> None:
        group = optimizer.param_groups[0]
        seen.append((float(group["lr"]), float(group["momentum"])))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scheduler.step()

    twins.train(optimizer, STEPS, each)
    return seen


def _assigned(optimizer: Optimizer, values: list[tuple[float, float]], twins: type[Twins]) -> None:
    for step, (lr, momentum) in zip(STEPS, values, strict=True):
        optimizer.param_groups[0].update(lr=lr, momentum=momentum)
        twins.train(optimizer, [step])


def _weights(optimizer: Optimizer) -> list[nn.Parameter]:
    weights: list[nn.Parameter] = optimizer.param_groups[0]["params"]
    return weights


@pytest.mark.case("R10")
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_r10_a_schedule_is_followed_as_torch_sgd_follows_it(schedule: str, same_bits: SameBits, twins: type[Twins]) -> None:
    ours, theirs = MuSGD(twins.weights(*SHAPES), lr=0.1, **OPTIONS), torch.optim.SGD(twins.weights(*SHAPES), lr=0.1, **OPTIONS)
    constant = MuSGD(twins.weights(*SHAPES), lr=0.1, **OPTIONS)
    assert _scheduled(ours, schedule, twins) == _scheduled(theirs, schedule, twins)
    twins.train(constant, STEPS)
    assert all(same_bits(p, q) for p, q in zip(_weights(ours), _weights(theirs), strict=True))
    assert not any(same_bits(p, q) for p, q in zip(_weights(ours), _weights(constant), strict=True))


@pytest.mark.case("R10")
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_r10_a_schedule_has_the_bits_of_assignment_in_a_hybrid_group(schedule: str, same_bits: SameBits, twins: type[Twins]) -> None:
    scheduled, assigned = (MuSGD(twins.weights(*SHAPES), lr=0.1, use_muon=True, **OPTIONS) for _ in range(2))
    values = _scheduled(scheduled, schedule, twins)
    _assigned(assigned, values, twins)
    assert len(set(values)) > 4
    assert all(same_bits(p, q) for p, q in zip(_weights(scheduled), _weights(assigned), strict=True))
    assert type(scheduled.param_groups[0]["lr"]) is float


class TestTensorLearningRate:
    """A tensor stays a tensor, belongs to its group, and means the number it holds."""

    @pytest.mark.case("R12")
    @pytest.mark.parametrize("schedule", SCHEDULES)
    @pytest.mark.parametrize("use_muon", [True, False])
    def test_r12_a_tensor_has_the_bits_of_its_number(self, schedule: str, use_muon: bool, same_bits: SameBits, twins: type[Twins]) -> None:
        lr = torch.tensor(0.1)
        optimizer, assigned = (MuSGD(twins.weights(*SHAPES), lr=x, use_muon=use_muon, **OPTIONS) for x in (lr, 0.1))
        theirs = torch.optim.SGD(twins.weights(*SHAPES), lr=torch.tensor(0.1), foreach=False, **OPTIONS)
        values = _scheduled(optimizer, schedule, twins)
        assert values == _scheduled(theirs, schedule, twins)
        _assigned(assigned, values, twins)
        assert all(same_bits(p, q) for p, q in zip(_weights(optimizer), _weights(assigned), strict=True))
        assert isinstance(optimizer.param_groups[0]["lr"], torch.Tensor)
        assert len(set(values)) > 4

    @pytest.mark.case("R12")
    def test_r12_groups_do_not_share_a_tensor(self, twins: type[Twins]) -> None:
        lr = torch.tensor(0.5)
        first, second = ({"params": [p]} for p in twins.weights((2, 2), (3, 3)))
        optimizer = MuSGD([first, second], lr=lr)
        scheduler = LambdaLR(optimizer, [lambda step: 0.5**step, lambda step: 0.25**step])
        for _ in range(2):
            optimizer.step()
            scheduler.step()
        assert [group["lr"].item() for group in optimizer.param_groups] == [0.125, 0.03125]
        assert lr.item() == 0.5

    @pytest.mark.case("R12")
    @pytest.mark.parametrize("lr", [1, 0.1, torch.tensor(0.1), torch.tensor([0.1])], ids=["int", "float", "tensor", "one-element"])
    def test_r12_lr_keeps_its_type_through_steps_and_checkpoints(self, lr: Any, twins: type[Twins]) -> None:
        optimizer, loaded = MuSGD(twins.weights(*SHAPES), lr=lr, use_muon=True), MuSGD(twins.weights(*SHAPES))
        twins.train(optimizer, range(2))
        loaded.load_state_dict(optimizer.state_dict())
        twins.train(loaded, range(2, 4))
        for each in (optimizer, loaded):
            kept = each.param_groups[0]["lr"]
            assert type(kept) is type(lr)
            assert kept == lr


class TestGradScaler:
    """Scales are powers of two, so that a scaled run has the bits of an unscaled one."""

    @pytest.mark.case("R6")
    @pytest.mark.parametrize("overflow", [(), (0,), (2,), (3,), (0, 1, 3)], ids=str)
    @pytest.mark.parametrize("use_muon", [True, False])
    def test_r6_a_step_skipped_for_overflow_never_happened(
        self, overflow: tuple[int, ...], use_muon: bool, same_bits: SameBits, twins: type[Twins]
    ) -> None:
        scaled, plain = (MuSGD(twins.weights(*SHAPES), lr=0.1, use_muon=use_muon, **OPTIONS) for _ in range(2))
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
        for step in range(4):
            for p, g in zip(_weights(scaled), twins.gradients(_weights(scaled), step), strict=True):
                p.grad = g * scaler.scale(torch.ones(()))
            if step in overflow:
                _weights(scaled)[1].grad = torch.full_like(_weights(scaled)[1], math.inf)
            scaler.step(scaled)
            scaler.update()
            if step in overflow:
                assert bool(scaled.state) == any(i not in overflow for i in range(step))
            else:
                twins.train(plain, [step])
        for p, q in zip(_weights(scaled), _weights(plain), strict=True):
            assert same_bits(p, q)
            assert scaled.state[p].keys() == plain.state[q].keys()
            assert all(same_bits(scaled.state[p][key], plain.state[q][key]) for key in plain.state[q])

    def test_an_overflow_that_is_not_skipped_shows(self, twins: type[Twins]) -> None:
        optimizer = MuSGD(twins.weights(*SHAPES), lr=0.1, use_muon=True, **OPTIONS)
        for p in _weights(optimizer):
            p.grad = torch.full_like(p, math.inf)
        optimizer.step()
        assert not any(p.isfinite().any() for p in _weights(optimizer))


class TestModes:
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
    def test_a_step_under_autocast_has_the_same_bits(self, dtype: torch.dtype, same_bits: SameBits, twins: type[Twins]) -> None:
        inside, outside = (MuSGD(twins.weights(*SHAPES), lr=0.1, use_muon=True, **OPTIONS) for _ in range(2))
        with torch.autocast("cpu", dtype=dtype):
            twins.train(inside, range(3))
        twins.train(outside, range(3))
        assert all(same_bits(p, q) for p, q in zip(_weights(inside), _weights(outside), strict=True))
        with torch.autocast("cpu", dtype=dtype):
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == dtype

    def test_training_goes_on_after_a_step_in_inference_mode(self, same_bits: SameBits, twins: type[Twins]) -> None:
        inside, outside = (MuSGD(twins.weights(*SHAPES), lr=0.1, use_muon=True, **OPTIONS) for _ in range(2))
        with torch.inference_mode():
            twins.train(inside, range(2))
        twins.train(inside, range(2, 4))
        twins.train(outside, range(4))
        assert all(same_bits(p, q) for p, q in zip(_weights(inside), _weights(outside), strict=True))

    def test_hooks_and_profiles_of_torch_optimizers_work(self, twins: type[Twins]) -> None:
        optimizer, seen = MuSGD(twins.weights(*SHAPES)), []
        optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
        optimizer.register_step_post_hook(lambda *_: seen.append("after"))
        twins.train(optimizer, range(1))
        assert seen == ["before", "after"]

    def test_a_schedule_of_constants_is_no_schedule(self, same_bits: SameBits, twins: type[Twins]) -> None:
        scheduled, plain = (MuSGD(twins.weights(*SHAPES), lr=0.1, use_muon=True, **OPTIONS) for _ in range(2))
        scheduler = ConstantLR(scheduled, factor=1.0)
        twins.train(scheduled, range(3), lambda step: scheduler.step())
        twins.train(plain, range(3))
        assert all(same_bits(p, q) for p, q in zip(_weights(scheduled), _weights(plain), strict=True))
