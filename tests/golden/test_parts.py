"""What values consist of that are neither leaves nor containers."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import functools
import random
import threading
import types
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from golden.errors import Refused, ScenarioFailed
from golden.names import Names
from golden.parts import expansion
from tests.golden.states import lines, read, same, texts

PARTIAL = [
    "a : partial",
    "a func: function (scalar)",
    "a args: tuple",
    "a args/0: int",
    "a keywords: dict",
    "a keywords/key: function (scalar)",
]


class Point(NamedTuple):
    x: int
    y: Any


@dataclasses.dataclass
class Settings:
    lr: float
    betas: tuple[float, float] = (0.9, 0.99)


class Holder:
    """Anything that saves its state."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def state_dict(self) -> Any:
        if isinstance(self.state, Exception):
            raise self.state
        return self.state


class Table:
    """Gives a mapping of itself as a namedtuple does, and is none."""

    def _asdict(self) -> dict[str, int]:
        return {"x": 1}


class Forwarding:
    """A wrapper that has nothing of its own."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner"], name)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Point(1, 2.0), ["a : Point", "a x: int", "a y: float"]),
        (Settings(0.1), ["a : Settings", "a lr: float", "a betas: tuple", "a betas/0: float", "a betas/1: float"]),
        (collections.deque([1], maxlen=4), ["a : deque maxlen=4", "a 0: int"]),
        (bytearray(b"ab"), ["a : bytearray", "a bytes: bytes"]),
        (functools.partial(max, 1, key=abs), PARTIAL),
        (types.SimpleNamespace(n=1), ["a : SimpleNamespace", "a n: int"]),
        (argparse.Namespace(n=1), ["a : Namespace", "a n: int"]),
        ({3, 1, "b"}, ["a : set", "a 0: int", "a 1: int", "a 2: str"]),
        (frozenset(), ["a : frozenset"]),
        (torch.Generator(), ["a : Generator cpu", "a state: uint8[5056]"]),
        (random.Random(1), ["a : Random", "a state: numpy:uint32[625]", "a gauss_next: NoneType"]),
        (Holder({"epoch": 1}), ["a : state_dict", "a epoch: int"]),
        (Forwarding(Holder({"epoch": 1})), ["a : state_dict", "a epoch: int"]),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_a_value_consists_of_these_parts(value: Any, expected: list[str]) -> None:
    assert lines(a=value) == expected


def test_a_set_is_the_same_in_any_order_and_no_other_set() -> None:
    words = [f"word{index}" for index in range(50)]
    backwards = words[::-1]
    assert same(read(a=set(words)), read(a=set(backwards)))
    assert not same(read(a=set(words)), read(a=set(words[1:])))


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: torch.Generator().manual_seed(seed),
        np.random.default_rng,
        lambda seed: np.random.Generator(np.random.MT19937(seed)),
        lambda seed: np.random.Generator(np.random.Philox(seed)),
        lambda seed: np.random.Generator(np.random.SFC64(seed)),
        np.random.PCG64,
        np.random.RandomState,
        random.Random,
    ],
)
def test_a_generator_is_its_state_and_reading_it_draws_nothing(make: Any) -> None:
    before = make(3)
    first = read(a=before)
    assert same(first, read(a=before))
    assert same(first, read(a=make(3)))
    assert not same(first, read(a=make(4)))
    assert not same(read(a=make(3)), read(a=[make(3)]))


def test_a_draw_changes_the_state_of_a_generator() -> None:
    generator = torch.Generator().manual_seed(0)
    before = read(a=generator)
    torch.rand(1, generator=generator)
    assert not same(before, read(a=generator))


def test_a_tensor_that_is_plain_now_needs_another_rule() -> None:
    sparse = torch.eye(2).to_sparse()
    rule = expansion(sparse, "a", Names())
    found = rule(sparse)
    assert found is not None
    assert (found[0], list(found[1])) == ("sparse_coo float32[2,2] coalesced", ["indices", "values"])
    assert rule(torch.eye(2)) is None


def test_functions_are_told_apart_by_their_qualified_name() -> None:
    assert texts(a=[max, torch.nn.functional.relu, Settings, lambda: 0, Holder.state_dict])["a/4"] == "Holder.state_dict"
    assert texts(a=max) != texts(a=min)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (object(), "object cannot be recorded: give record what it holds instead"),
        (threading.Lock(), "lock cannot be recorded"),
        (Table(), "Table cannot be recorded"),
        (iter([1]), "list_iterator cannot be recorded"),
        (torch, "module cannot be recorded"),
        ({1, (2,)}, "a set that holds tuple cannot be recorded: .*sorted list"),
        (memoryview(b"a"), "memoryview cannot be recorded"),
        (random.SystemRandom(), "SystemRandom cannot be recorded"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_data_is_refused_with_path_and_type(value: Any, told: str) -> None:
    with pytest.raises(Refused, match=rf"^a/b/0: .*{told}"):
        read(a={"b": [value]})


def test_an_object_inside_a_state_dict_is_refused_with_its_path() -> None:
    with pytest.raises(Refused, match=r"^scheduler/clock: object cannot"):
        read(scheduler=Holder({"epoch": 1, "clock": object()}))


def test_a_state_dict_that_raises_is_the_scenarios_failure_with_its_path() -> None:
    with pytest.raises(ScenarioFailed, match=r"^a/b: state_dict\(\) of .*Holder raised KeyError: 'x'") as caught:
        read(a={"b": Holder(KeyError("x"))})
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_state_dict_that_is_no_mapping_is_refused() -> None:
    with pytest.raises(Refused, match=r"^a/b: state_dict\(\) of .*Holder, which returned list, cannot .*has to return a mapping"):
        read(a={"b": Holder([1])})


def test_a_state_of_another_structure_each_time_is_refused() -> None:
    class Counting:
        calls = 0

        def state_dict(self) -> dict[str, int]:
            self.calls += 1
            return {f"call {self.calls}": 1}

    with pytest.raises(ScenarioFailed, match=r"^a: its state has another structure each time it is read"):
        read(a=Counting())
