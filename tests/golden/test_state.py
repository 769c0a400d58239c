"""Phases as leaves."""

from __future__ import annotations

import collections
import copy
import inspect
import sys
import time
import types
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from golden.errors import Refused, ScenarioFailed
from golden.plan import Plan
from tests.golden.states import leaves, lines, read, same, texts


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(4, 2)
        self.head = nn.Linear(2, 4, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("seen", torch.zeros(1), persistent=False)
        self.register_buffer("absent", None)


class Counter(nn.Module):
    """Has state that is neither parameter nor buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Any = 3

    def get_extra_state(self) -> Any:
        if isinstance(self.count, Exception):
            raise self.count
        return {"count": self.count}

    def set_extra_state(self, state: Any) -> None:
        self.count = state["count"]


class Packed(nn.Module):
    """Saves something by a way of its own, as quantized Modules do."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.scale = 0.5

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = self.scale


def test_a_module_is_its_parameters_and_all_buffers_under_every_name() -> None:
    assert lines(model=Tied()) == [
        "model : module",
        "model seen: float32[1]",
        "model embed.weight: float32[4,2]",
        "model head.weight: float32[4,2] shares=model/embed.weight",
    ]


@pytest.mark.case("G9")
def test_untying_equal_weights_is_a_difference_of_sharing_alone() -> None:
    model = Tied()
    tied = read(model=model)
    model.head.weight = nn.Parameter(model.embed.weight.detach().clone())
    untied = read(model=model)
    assert (tied.digests == untied.digests).all()
    assert [leaf.full for leaf, other in zip(tied.leaves, untied.leaves, strict=True) if leaf != other] == ["model/head.weight"]


def test_what_only_says_how_a_module_is_used_is_no_state() -> None:
    norm = nn.BatchNorm1d(2)
    model = nn.Sequential(nn.Linear(2, 2), norm)
    before = read(model=model)
    model.eval()
    model.requires_grad_(False)
    assert same(before, read(model=model))
    assert norm.running_mean is not None
    norm.running_mean.add_(1)
    assert not same(before, read(model=model))


def test_extra_state_is_recorded_where_state_dict_has_it() -> None:
    counter = Counter()
    model = nn.Sequential(counter, Packed())
    assert lines(model=model) == [
        "model : module",
        "model 0._extra_state: dict",
        "model 0._extra_state/count: int",
        "model 1.weight: float32[2]",
        "model 1.scale: float",
    ]
    plan = Plan()
    before = read(plan, model=model)
    counter.count = 4
    after = read(plan, model=model)
    assert not same(before, after)
    assert before.leaves is after.leaves
    counter.count = "4"
    assert texts(plan, model=model)["model/0._extra_state/count"] == '"4"'


def test_extra_state_that_raises_is_told_with_its_path() -> None:
    counter = Counter()
    counter.count = OSError("gone")
    model = nn.Sequential(counter)
    with pytest.raises(ScenarioFailed, match=r"^model/0\._extra_state: .*Counter raised OSError when asked for its state: gone"):
        read(model=model)


@pytest.mark.filterwarnings("ignore")
def test_a_quantized_module_is_recorded_with_its_packed_weights() -> None:
    quantized = pytest.importorskip("torch.ao.nn.quantized")
    if torch.backends.quantized.engine == "none":
        pytest.skip("torch was built without a quantized engine")
    found = lines(model=quantized.Linear(2, 3))
    assert "model _packed_params._packed_params/0/values: int8[3,2]" in found


@pytest.mark.filterwarnings("ignore")
def test_a_scripted_module_has_the_leaves_of_the_module_it_was_made_from() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    assert same(read(model=model), read(model=torch.jit.script(model)))


@pytest.mark.case("G23")
def test_an_average_of_a_model_with_buffers_is_recorded_whole() -> None:
    norm = nn.BatchNorm1d(2)
    model = nn.Sequential(nn.Linear(2, 2), norm)
    average = AveragedModel(model, use_buffers=True)
    found = leaves(ema=average)
    assert {"ema/n_averaged", "ema/module.1.running_mean", "ema/module.1.num_batches_tracked", "ema/module.0.weight"} <= set(found)
    before = read(ema=average)
    assert norm.running_mean is not None
    norm.running_mean.add_(1)
    assert same(before, read(ema=average))
    average.update_parameters(model)
    assert not same(before, read(ema=average))


def test_containers_are_leaves_so_empty_ones_differ() -> None:
    kinds: list[Any] = [{}, [], (), collections.OrderedDict(), torch.Size(()), set(), frozenset(), None, collections.defaultdict(int)]
    assert len({tuple(lines(a=kind)) for kind in kinds}) == len(kinds)


def test_keys_and_elements_are_written_into_the_path() -> None:
    assert lines(a={"x/y": [1, (2.0,)], 3: {"": b""}, "3": None}) == [
        "a : dict",
        "a x~1y: list",
        "a x~1y/0: int",
        "a x~1y/1: tuple",
        "a x~1y/1/0: float",
        "a int:3: dict",
        "a int:3/str:: bytes",
        "a 3: NoneType",
    ]


def test_a_mapping_of_any_class_is_read_without_changing_it() -> None:
    reading = collections.defaultdict(list, {"a": [1]})
    assert lines(a=reading)[0] == "a : defaultdict"
    assert dict(reading) == {"a": [1]}
    assert lines(a=types.MappingProxyType({"b": 1})) == ["a : mappingproxy", "a b: int"]
    assert lines(a=collections.UserDict(b=1)) == ["a : UserDict", "a b: int"]
    assert lines(a=collections.Counter({30: 1})) == ["a : Counter", "a int:30: int"]


def test_modules_and_optimizers_are_known_inside_mappings_and_sequences() -> None:
    generator, discriminator = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    assert lines(models={"g": generator, "d": [discriminator]}) == [
        "models : dict",
        "models g: module",
        "models g/weight: float32[1,1]",
        "models d: list",
        "models d/0: module",
        "models d/0/weight: float32[1,1]",
    ]


@pytest.mark.case("G10")
def test_an_int_a_float_and_tensors_of_the_same_value_are_all_different() -> None:
    values: list[Any] = [
        3,
        3.0,
        torch.tensor(3),
        torch.tensor(3.0),
        torch.tensor(3.0, dtype=torch.bfloat16),
        torch.tensor([3.0]),
        (3,),
        [3],
    ]
    assert len({tuple(lines(a=value)) for value in values}) == len(values)


def looped_list() -> Any:
    value: list[Any] = [1]
    value.append({"again": value})
    return value


def looped_module() -> Any:
    model = nn.Sequential(nn.Linear(1, 1))
    model[0].parent = model
    return model


def looped_state() -> Any:
    class Me:
        def state_dict(self) -> dict[str, Any]:
            return {"me": self}

    return Me()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (looped_list(), r"^a/1/again: list cannot be recorded: it holds itself"),
        (looped_module(), r"^a/0\.parent: .*Sequential cannot be recorded: it holds itself"),
        (looped_state(), r"^a/me: .*Me cannot be recorded: it holds itself"),
    ],
    ids=["list", "module", "state_dict"],
)
def test_what_holds_itself_is_refused_with_the_path(value: Any, told: str) -> None:
    with pytest.raises(Refused, match=told):
        read(a=value)


def test_what_is_too_deep_is_refused_with_the_path_and_what_is_not_is_recorded() -> None:
    def nested(depth: int) -> Any:
        value: Any = 1
        for _ in range(depth):
            value = [value]
        return value

    assert len(lines(a=nested(100))) == 101
    for depth in (101, 100_000):
        value = nested(depth)
        with pytest.raises(Refused, match=r"^a/0/0.*list cannot be recorded: it lies inside 100 other containers"):
            read(a=value)
        while isinstance(value, list):  # so that freeing it does not recurse
            value = value.pop()


def test_a_stack_that_is_nearly_used_up_gives_our_error() -> None:
    value: Any = 1
    for _ in range(90):
        value = [value]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 120)
    try:
        with pytest.raises(ScenarioFailed, match="too deep for the stack that is left"):
            Plan().read({"a": value})
    finally:
        sys.setrecursionlimit(limit)
    assert len(lines(a=value)) == 91


def test_two_values_with_one_path_are_refused() -> None:
    class Twice(collections.abc.Mapping[str, int]):
        def __getitem__(self, key: str) -> int:
            return 1

        def __iter__(self) -> Any:
            return iter(["a", "a"])

        def __len__(self) -> int:
            return 2

    with pytest.raises(Refused, match=r"^a/a: a path that stands for two values"):
        read(a=Twice())


def test_many_small_tensors_take_time_in_proportion() -> None:
    def seconds(tensors: list[Tensor]) -> float:
        began = time.thread_time()
        read(a=tensors)
        return time.thread_time() - began

    tensors = [torch.zeros(1) for _ in range(50_000)]
    few = min(seconds(tensors[:5_000]) for _ in range(2))
    assert min(seconds(tensors) for _ in range(2)) < 50 * few


def test_equal_states_are_equal_in_another_order_of_keys_by_path() -> None:
    one, other = leaves(a={"x": 1, "y": 2}), leaves(a={"y": 2, "x": 1})
    assert one == other
    assert list(one) != list(other)


def test_a_deep_copy_has_the_same_bits() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    assert same(read(model=model), read(model=copy.deepcopy(model)))
