"""Gradients by name."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import nn

from golden.errors import Refused
from golden.grads import gradients
from golden.plan import Plan
from tests.golden.states import lines, read, same


def model() -> Any:
    torch.manual_seed(0)
    net: Any = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1, bias=False))
    net(torch.ones(1, 2)).sum().backward()
    return net


def test_gradients_are_recorded_like_a_dict_of_them() -> None:
    net = model()
    plain = {name: parameter.grad for name, parameter in net.named_parameters()}
    assert list(gradients(net)) == ["0.weight", "0.bias", "2.weight"]
    assert dict(gradients(net)) == plain
    assert gradients(net)["0.bias"] is net[0].bias.grad
    assert same(read(grads=gradients(net)), read(grads=plain))


def test_a_parameter_without_a_gradient_is_left_out_and_its_coming_is_a_difference() -> None:
    net = model()
    plan = Plan()
    before = read(plan, grads=gradients(net))
    net[0].bias.grad = None
    assert lines(plan, grads=gradients(net)) == ["grads : dict", "grads 0.weight: float32[3,2]", "grads 2.weight: float32[1,3]"]
    net[0].bias.grad = torch.ones(3)
    after = read(plan, grads=gradients(net))
    assert after.leaves == before.leaves
    net.zero_grad()
    assert lines(plan, grads=gradients(net)) == ["grads : dict"]


def test_gradients_are_those_of_the_moment_and_no_copies() -> None:
    net = model()
    found = gradients(net)
    kept = net[0].weight.grad
    net.zero_grad()
    assert found["0.weight"] is kept
    assert len(gradients(net)) == 0


def test_a_tied_parameter_has_its_gradient_under_both_names() -> None:
    net: Any = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    net[1].weight = net[0].weight
    net(torch.ones(1, 2)).sum().backward()
    assert lines(grads=gradients(net))[1:] == ["grads 0.weight: float32[2,2]", "grads 1.weight: float32[2,2] shares=grads/0.weight"]


@pytest.mark.parametrize("change", ["add", "remove", "replace", "none", "rename"])
def test_a_module_that_is_built_differently_is_walked_anew(change: str) -> None:
    net = model()
    gradients(net)
    if change == "add":
        net.append(nn.Linear(1, 1))
        net[3].weight.grad = torch.ones(1, 1)
    elif change == "remove":
        del net[2]
    elif change == "replace":
        net[0] = nn.Linear(2, 3)
        net[0].bias.grad = torch.ones(3)
    elif change == "none":
        net[0].register_parameter("bias", None)
    else:
        net._modules["last"] = net._modules.pop("2")
    assert list(gradients(net)) == [name for name, parameter in net.named_parameters() if parameter.grad is not None]


def test_asking_for_gradients_makes_none_and_keeps_nothing_alive() -> None:
    net = nn.Linear(2, 2)
    assert len(gradients(net)) == 0
    assert net.weight.grad is None
    watched: list[weakref.ref[Any]] = [weakref.ref(net), weakref.ref(net.weight)]
    del net
    gc.collect()
    assert [reference() for reference in watched] == [None, None]


def test_a_module_that_holds_itself_is_refused() -> None:
    net: Any = nn.Sequential(nn.Linear(1, 1))
    net[0].parent = net
    with pytest.raises(Refused, match="may hold itself"):
        gradients(net)
