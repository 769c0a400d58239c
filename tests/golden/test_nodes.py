"""Nodes: shown a value that is built otherwise, each says so by itself, whatever is compared afterwards."""

from __future__ import annotations

import collections
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from golden.names import Names
from golden.nodes import Flat, MappingNode
from golden.state import Builder

ONE, TWO = torch.zeros(1), torch.ones(1)


class Text(str):
    """A key that equals its text, and is another."""


class Extra(nn.Module):
    """Has state beyond parameters and buffers."""

    state: Any = (1, 2)

    def get_extra_state(self) -> Any:
        return self.state


class Sparse(nn.Module):
    """Has children that are None, before and after one that is not, and a buffer that is."""

    def __init__(self) -> None:
        super().__init__()
        self.register_module("before", None)
        self.inner = nn.Linear(1, 1, bias=False)
        self.register_module("after", None)
        self.register_buffer("absent", None)


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.BatchNorm1d(1), Extra(), Sparse())


VALUES: dict[str, tuple[Any, Any]] = {
    "element added": ([1, [1]], [1, [1, 2]]),
    "list as a tuple": ([1, [1]], [1, (1,)]),
    "element nested otherwise": ([[1], 2], [[1, 3], 2]),
    "zero as minus zero": ({0.0: 1}, {-0.0: 1}),
    "zero as minus zero in a row": ({"a": {0.0: ONE}}, {"a": {-0.0: ONE}}),
    "zero as minus zero inside a key": ({(0.0, 1): 1}, {(-0.0, 1): 1}),
    "key of another type": ({"a": 1}, {Text("a"): 1}),
    "row of a key of another type": ({"a": {"x": ONE}}, {"a": {Text("x"): ONE}}),
    "row of another key": ({"a": {"x": ONE}}, {"a": {"y": ONE}}),
    "row of another class": ({"a": {"x": ONE}}, {"a": collections.OrderedDict(x=ONE)}),
    "keys in another row": ({"a": {"x": ONE}, "b": {"y": ONE, "z": TWO}}, {"a": {"x": ONE, "y": ONE}, "b": {"z": TWO}}),
    "other length by a rule": (collections.deque([1], 2), collections.deque([1], 3)),
    "other class of the same text": (types.SimpleNamespace(a=1), type("SimpleNamespace", (types.SimpleNamespace,), {})(a=1)),
    "sparse and plain": (torch.eye(2).to_sparse(), torch.eye(2)),
}


def built(value: Any) -> Any:
    return Builder("phase", Names()).build(value)


@pytest.mark.parametrize("change", sorted(VALUES))
def test_a_value_that_is_built_otherwise_is_noticed_and_its_like_is_not(change: str) -> None:
    before, after = VALUES[change]
    node = built(before)
    assert node.visit(before, Flat()) is True
    assert node.visit(after, Flat()) is False


MODULES: dict[str, Callable[[Any], object]] = {
    "another class": lambda model: model.__setitem__(1, nn.Tanh()),
    "parameter for None": lambda model: setattr(model[4].inner, "bias", nn.Parameter(torch.ones(1))),
    "parameter where none was": lambda model: model[1].register_parameter("weight", nn.Parameter(torch.ones(1))),
    "buffer for None": lambda model: setattr(model[4], "absent", torch.ones(1)),
    "buffer where none was": lambda model: model[0].register_buffer("seen", torch.ones(1)),
    "other extra state": lambda model: setattr(model[3], "state", (1,)),
    "child renamed": lambda model: model._modules.__setitem__("last", model._modules.pop("4")),
    "child where none was": lambda model: model[1].add_module("inner", nn.ReLU()),
    "child for None": lambda model: setattr(model[4], "after", nn.ReLU()),
    "None for a child": lambda model: setattr(model[4], "inner", None),
}


@pytest.mark.parametrize("change", sorted(MODULES))
def test_a_module_that_is_built_otherwise_is_noticed(change: str) -> None:
    model = net()
    node = built(model)
    assert node.visit(model, Flat()) is True
    MODULES[change](model)
    assert node.visit(model, Flat()) is False


def test_a_module_of_another_class_is_no_part_of_it() -> None:
    assert built(nn.ReLU()).visit(nn.Tanh(), Flat()) is False


def test_a_child_for_the_only_one_that_was_none_is_noticed() -> None:
    model: Any = nn.Sequential()
    model.register_module("only", None)
    node = built(model)
    assert node.visit(model, Flat()) is True
    model.only = nn.ReLU()
    assert node.visit(model, Flat()) is False


def test_what_modules_hold_is_handed_out_in_order_past_children_that_are_none() -> None:
    model, flat = nn.Sequential(Sparse(), nn.Linear(1, 1, bias=False)), Flat()
    assert built(model).visit(model, flat)
    assert list(map(id, flat.tensors)) == list(map(id, model.parameters()))
    assert [id(parameter) for parameter in flat.parameters if parameter is not None] == list(map(id, model.parameters()))


@pytest.mark.parametrize(("keys", "visits"), [(("a", "b"), 1), ((1.0, 2.0), 3)])
def test_rows_of_plain_tensors_are_looked_at_all_at_once(keys: tuple[Any, ...], visits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No row is visited by itself, but for those whose keys say more than that they are equal."""
    state = {"lr": 0.1, "first": dict.fromkeys(keys, ONE), "second": dict.fromkeys(keys, TWO)}
    node, seen, visit = built(state), [], MappingNode.visit

    def counted(self: MappingNode, value: Any, flat: Flat) -> bool:
        seen.append(value)
        return visit(self, value, flat)

    monkeypatch.setattr(MappingNode, "visit", counted)
    flat = Flat()
    assert node.visit(state, flat)
    assert len(seen) == visits
    assert [int(tensor) for tensor in flat.tensors] == [0, 0, 1, 1]
