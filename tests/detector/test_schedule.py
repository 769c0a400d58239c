"""Learning rate and momentum, step by step."""

from __future__ import annotations

import pytest
import torch

from detector.schedule import Plan, Schedule

PLAN = Plan(steps=20, warmup=4, floor=0.1, momentum=(0.8, 0.95))


def test_it_rises_then_falls_to_its_floor() -> None:
    """Linear to the highest after the warm-up, half way down in the middle, the floor at the end and beyond."""
    assert [PLAN.rate(step) for step in range(5)] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert PLAN.rate(12) == pytest.approx(0.55)
    assert PLAN.rate(20) == pytest.approx(0.1)
    assert PLAN.rate(99) == pytest.approx(0.1)
    rest = [PLAN.rate(step) for step in range(4, 21)]
    assert rest == sorted(rest, reverse=True)


def test_momentum_rises_with_it() -> None:
    """From the first to the last over the warm-up, then stays."""
    assert [PLAN.momentum_at(step) for step in (0, 2, 4, 5, 20)] == pytest.approx([0.8, 0.875, 0.95, 0.95, 0.95])


def optimizer() -> torch.optim.SGD:
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))]} for _ in range(2)]
    return torch.optim.SGD([{**groups[0], "lr": 1.0}, {**groups[1], "lr": 10.0}], momentum=0.5)


def test_every_group_follows() -> None:
    """From the first step on, each by its own highest rate."""
    sgd = optimizer()
    schedule = Schedule(sgd, PLAN)
    for step in range(20):
        assert [group["lr"] for group in sgd.param_groups] == pytest.approx([PLAN.rate(step), 10 * PLAN.rate(step)])
        assert [group["momentum"] for group in sgd.param_groups] == pytest.approx([PLAN.momentum_at(step)] * 2)
        sgd.step()
        schedule.step()


def test_it_goes_on_from_its_state() -> None:
    """A fresh one with the state of another sets what that one would have set."""
    sgd, other = optimizer(), optimizer()
    schedule, resumed = Schedule(sgd, PLAN), Schedule(other, PLAN)
    for _ in range(7):
        sgd.step()
        schedule.step()
    state = schedule.state_dict()
    assert all(not isinstance(value, Plan) for value in state.values())
    resumed.load_state_dict(state)
    other.load_state_dict(sgd.state_dict())
    for one, one_optimizer in ((schedule, sgd), (resumed, other)):
        one_optimizer.step()
        one.step()
    assert [group["lr"] for group in other.param_groups] == [group["lr"] for group in sgd.param_groups]
    assert [group["momentum"] for group in other.param_groups] == [group["momentum"] for group in sgd.param_groups]
    assert sgd.param_groups[0]["lr"] == pytest.approx(PLAN.rate(8))
