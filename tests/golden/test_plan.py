"""The plan that is kept across steps: it never misses what a walk anew sees."""

from __future__ import annotations

import copy
import random
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.optim import SGD
from torch.optim.lr_scheduler import CosineAnnealingLR

from golden import blocks
from golden.errors import Refused
from golden.grads import gradients
from golden.names import Names
from golden.plan import Plan
from tests.golden.states import leaves, read, same


class Run:
    """A small training run whose state can be changed in every way that a state can change."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model: Any = nn.Sequential(nn.Conv2d(1, 2, 3, bias=False), nn.BatchNorm2d(2), nn.Linear(3, 2))
        self.optimizer = SGD([{"params": self.model[:2].parameters()}, {"params": self.model[2].parameters()}], lr=0.1, momentum=0.9)
        self.scheduler = CosineAnnealingLR(self.optimizer, 50)
        self.extra: dict[Any, Any] = {"list": [1, 2.0, torch.ones(2)], "array": np.arange(3), "none": None, "nested": {"t": torch.zeros(3)}}
        self.step()

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.model(torch.ones(1, 1, 5, 5)).square().sum().backward()
        self.optimizer.step()
        self.scheduler.step()

    def phases(self) -> dict[str, Any]:
        return {
            "grads": gradients(self.model),
            "optimizer": self.optimizer,
            "model": self.model,
            "scheduler": self.scheduler,
            "extra": self.extra,
        }


def momentum(run: Run) -> dict[str, Any]:
    state: dict[str, Any] = run.optimizer.state[run.model[0].weight]
    return state


def uncoalesced(run: Run) -> None:
    """Made when it is put there, not on import: torch 2.11 warns of the first sparse tensor, whether its invariants are checked or not."""
    put("none", torch.sparse_coo_tensor(torch.tensor([[0, 0]]), torch.ones(2), (2,), check_invariants=True))(run)


def put(name: Any, value: Any) -> Callable[[Run], object]:
    return lambda run: run.extra.__setitem__(name, value)


def pop(run: Run) -> None:
    run.extra.pop(next(iter(run.extra), None), None)


def reorder(run: Run) -> None:
    items = list(run.extra.items())[::-1]
    run.extra.clear()
    run.extra.update(items)


def swap_data(run: Run) -> None:
    run.model[2].weight.data = run.model[2].weight.data.clone() + 1


def transpose_data(run: Run) -> None:
    run.model[2].bias.data = run.model[2].bias.data[:1].expand(2)


def retype(run: Run) -> None:
    run.extra.pop(1, None)
    run.extra[True] = 1


def listed(run: Run) -> list[Any]:
    value: list[Any] = run.extra["list"]
    return value


def tie(run: Run) -> None:
    run.model[1].bias = run.model[1].weight


def swap_parameters(run: Run) -> None:
    norm = run.model[1]
    norm.weight, norm.bias = norm.bias, norm.weight


def tensor_lr(run: Run) -> None:
    run.optimizer.param_groups[0]["lr"] = torch.tensor(0.1)


def rename(run: Run) -> None:
    run.model._modules["renamed"] = run.model._modules.pop(next(iter(run.model._modules)))


def add_group(run: Run) -> None:
    run.model.register_parameter(f"extra{len(run.optimizer.param_groups)}", nn.Parameter(torch.ones(2)))
    run.optimizer.add_param_group({"params": [list(run.model.parameters(recurse=False))[-1]]})


def half(run: Run) -> None:
    run.model[2].half()


MUTATIONS: dict[str, Callable[[Run], object]] = {
    "nothing": lambda run: None,
    "step": lambda run: run.step(),
    "values": lambda run: run.model[2].weight.data.add_(1),
    "one bit": lambda run: run.model[1].num_batches_tracked.add_(1),
    "no grads": lambda run: run.model.zero_grad(),
    "one grad": lambda run: setattr(run.model[2].bias, "grad", None),
    "zero grads": lambda run: run.model.zero_grad(set_to_none=False),
    "sparse grad": lambda run: setattr(run.model[2].bias, "grad", torch.ones(2).to_sparse()),
    "lr": lambda run: run.optimizer.param_groups[0].__setitem__("lr", 0.5),
    "lr as an int": lambda run: run.optimizer.param_groups[0].__setitem__("lr", 1),
    "lr as a tensor": tensor_lr,
    "new hyperparameter": lambda run: run.optimizer.param_groups[1].__setitem__("scale", 2),
    "new group": add_group,
    "new state": lambda run: momentum(run).__setitem__("count", len(momentum(run))),
    "new tensor of state": lambda run: momentum(run).__setitem__("second", torch.ones(len(momentum(run)))),
    "state gone": lambda run: run.optimizer.state.pop(run.model[2].weight, None),
    "state replaced": lambda run: momentum(run).__setitem__("momentum_buffer", torch.zeros(2, 1, 3, 3)),
    "state as None": lambda run: momentum(run).__setitem__("momentum_buffer", None),
    "state of no parameter": lambda run: run.optimizer.state.__setitem__("calls", 3),  # type: ignore[index]
    "resize_": lambda run: run.extra["nested"]["t"].resize_(5).fill_(2),
    "set_": lambda run: run.extra["nested"]["t"].set_(torch.full((3,), 7.0)),
    "view of other strides": lambda run: run.extra["nested"]["t"].as_strided_((2,), (0,)),
    ".data": swap_data,
    ".data of other strides": transpose_data,
    ".data of other dtype": half,
    "buffer as None": lambda run: setattr(run.model[1], "running_mean", None),
    "buffer replaced": lambda run: setattr(run.model[1], "running_var", torch.ones(2, dtype=torch.float64)),
    "buffer non-persistent": lambda run: run.model[1].register_buffer("seen", torch.ones(1), persistent=False),
    "parameter replaced": lambda run: setattr(run.model[2], "weight", nn.Parameter(torch.ones(2, 3))),
    "parameters swapped": swap_parameters,
    "parameter as None": lambda run: setattr(run.model[1], "bias", None),
    "tied": tie,
    "module replaced": lambda run: run.model.__setitem__(2, nn.Linear(3, 2, bias=False)),
    "module added": lambda run: run.model.append(nn.PReLU()),
    "module renamed": rename,
    "key added": put("more", torch.ones(1)),
    "key of another type": put(1, 1),
    "equal key of another type": retype,
    "key removed": pop,
    "keys reordered": reorder,
    "tensor as a float": put("list", 1.0),
    "float as an int": put("none", 1),
    "int as a bool": put("none", True),
    "zero as minus zero": put("none", -0.0),
    "zero": put("none", 0.0),
    "tensor for None": put("none", torch.ones(2)),
    "array for None": put("none", np.ones(2)),
    "strided array": put("array", np.arange(6)[::2]),
    "array of other dtype": put("array", np.arange(3, dtype=np.float32)),
    "conjugate": put("none", torch.tensor([1 + 2j]).conj()),
    "complex": put("none", torch.tensor([1 + 2j])),
    "negative view": put("none", torch._neg_view(torch.ones(2))),
    "sparse": put("none", torch.eye(2).to_sparse()),
    "uncoalesced": uncoalesced,
    "channels last": put("none", torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)),
    "element appended": lambda run: listed(run).append(1),
    "list as a tuple": lambda run: run.extra.__setitem__("list", tuple(listed(run))),
    "alias": lambda run: run.extra.__setitem__("alias", run.model[1].weight),
    "alias of a part": lambda run: run.extra.__setitem__("part", run.model[1].weight[1:]),
    "generator": put("generator", torch.Generator()),
    "scheduler": lambda run: setattr(run.scheduler, "note", len(vars(run.scheduler))),
    "eval": lambda run: run.model.eval(),
    "frozen": lambda run: run.model.requires_grad_(False),
}  # fmt: skip


def anew(names: Names, phases: dict[str, Any]) -> Any:
    """A walk that knows nothing but the names that were known."""
    return Plan(copy.copy(names)).read(phases).snapshot(1, keep=False)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(sorted(MUTATIONS)), min_size=1, max_size=8))
def test_a_plan_sees_after_any_changes_what_a_walk_anew_sees(changes: list[str]) -> None:
    run, names = Run(), Names()
    plan = Plan(names)
    read(plan, **run.phases())
    for change in changes:
        try:
            MUTATIONS[change](run)
        except (AttributeError, KeyError, IndexError, RuntimeError, TypeError, ValueError):
            continue  # an earlier change took away what this one changes
        seen = read(plan, **run.phases())
        expected = anew(names, run.phases())
        assert [leaf.line() for leaf in seen.leaves] == [leaf.line() for leaf in expected.leaves]
        assert same(seen, expected)


UNSEEN = {"nothing", "zero grads", "eval", "frozen", "module renamed"}


@pytest.mark.parametrize("change", sorted(set(MUTATIONS) - UNSEEN))
def test_every_one_of_these_changes_is_seen(change: str) -> None:
    run = Run()
    plan = Plan()
    before = read(plan, **run.phases())
    assert same(before, read(plan, **run.phases()))
    MUTATIONS[change](run)
    assert not same(before, read(plan, **run.phases()))


@pytest.mark.parametrize("change", ["eval", "frozen", "nothing"])
def test_what_is_no_state_is_not_seen(change: str) -> None:
    run = Run()
    plan = Plan()
    before = read(plan, **run.phases())
    MUTATIONS[change](run)
    assert read(plan, **run.phases()).leaves is before.leaves


class Text(str):
    """A key that equals its text, and is another."""


ONE, TWO, THREE = torch.zeros(1), torch.ones(1), torch.full((1,), 2.0)
TABLES: dict[str, dict[Any, Any]] = {
    "as it was": {"lr": 0.1, "a": {"x": ONE, "y": TWO}, "b": {"z": THREE}},
    "key in another row": {"lr": 0.1, "a": {"x": ONE}, "b": {"y": TWO, "z": THREE}},
    "key renamed": {"lr": 0.1, "a": {"x": ONE, "y": TWO}, "b": {"w": THREE}},
    "keys in another order": {"lr": 0.1, "a": {"y": TWO, "x": ONE}, "b": {"z": THREE}},
    "key of another type": {"lr": 0.1, "a": {"x": ONE, "y": TWO}, "b": {Text("z"): THREE}},
    "row of another class": {"lr": 0.1, "a": {"x": ONE, "y": TWO}, "b": OrderedDict(z=THREE)},
    "row that is a list": {"lr": 0.1, "a": {"x": ONE, "y": TWO}, "b": [THREE]},
    "row gone": {"lr": 0.1, "a": {"x": ONE, "y": TWO}},
    "row empty": {"lr": 0.1, "a": {"x": ONE, "y": TWO}, "b": {}},
    "value no tensor": {"lr": 0.1, "a": {"x": ONE, "y": TWO}, "b": {"z": 2.0}},
    "value None": {"lr": 0.1, "a": {"x": ONE, "y": TWO}, "b": {"z": None}},
    "first gone": {"a": {"x": ONE, "y": TWO}, "b": {"z": THREE}},
}


@pytest.mark.parametrize("after", sorted(set(TABLES) - {"as it was"}))
def test_rows_of_tensors_that_are_built_otherwise_are_walked_anew(after: str) -> None:
    """The state of an optimizer is many small dicts, which are looked at all at once."""
    plan = Plan()
    before = read(plan, state=TABLES["as it was"])
    assert read(plan, state=TABLES["as it was"]).leaves is before.leaves
    seen = read(plan, state=TABLES[after])
    assert not same(before, seen)
    assert same(seen, read(state=TABLES[after]))
    assert same(before, read(plan, state=TABLES["as it was"]))


def test_while_only_bytes_change_the_leaves_are_one_tuple() -> None:
    run = Run()
    plan = Plan()
    first = read(plan, **run.phases())
    for _ in range(3):
        run.step()  # gradients are new tensors every time
        after = read(plan, **run.phases())
        assert after.leaves is first.leaves
        assert not same(first, after)


def test_leaves_that_come_and_go_are_equal_again() -> None:
    run = Run()
    plan = Plan()
    first = read(plan, **run.phases())
    run.model.zero_grad()
    assert len(read(plan, **run.phases()).leaves) < len(first.leaves)
    run.step()
    assert read(plan, **run.phases()).leaves == first.leaves


def test_phases_may_change_from_read_to_read() -> None:
    plan = Plan()
    assert set(leaves(plan, a=1)) == {"a"}
    assert set(leaves(plan, b=[torch.ones(1)], a=1)) == {"b", "b/0", "a"}
    assert list(leaves(plan, a=1, b=[torch.ones(1)])) == ["a", "b", "b/0"]


def test_a_refused_value_leaves_a_plan_that_reads_on() -> None:
    plan = Plan()
    good = read(plan, a=[1, torch.ones(2)], b=2)
    with pytest.raises(Refused):
        read(plan, a=[1, torch.empty(2, device="meta")], b=3)
    assert same(good, read(plan, a=[1, torch.ones(2)], b=2))


def test_modes_that_change_what_torch_functions_do_are_not_asked() -> None:
    plan = Plan()
    state = {"a": torch.ones(2), "b": torch.tensor([1j]).conj(), "c": torch.eye(2).to_sparse()}
    before = read(plan, s=state)
    with torch.device("meta"):
        assert same(before, read(plan, s=state))
        assert same(before, read(Plan(), s=state))


def test_data_of_values_made_for_the_step_outlives_the_step() -> None:
    class Fresh:
        def state_dict(self) -> dict[str, Tensor]:
            return {"t": torch.full((1000,), 3.0)}

    snapshot = read(fresh=Fresh(), rng=torch.Generator())
    junk = [torch.full((1000,), 5.0) for _ in range(50)]
    assert snapshot.data is not None
    assert bytes(snapshot.data[1]) == np.full(1000, 3, np.float32).tobytes()
    assert len(junk) == 50


def test_a_plan_keeps_no_tensor_alive_between_steps() -> None:
    plan = Plan()
    tensors = [torch.ones(3), torch.ones(4).to_sparse(), torch.tensor([1j]).conj()]
    watched = [weakref.ref(tensor) for tensor in tensors]
    plan.read({"a": tensors}).snapshot(1, keep=False)
    tensors.clear()
    assert [reference() for reference in watched] == [None, None, None]


def test_copies_of_device_tensors_give_the_same_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    state = {
        "dense": torch.arange(7.0),
        "permuted": torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1),
        "expanded": torch.ones(1).expand(3),
        "part": torch.arange(9.0)[4:6],
        "conj": torch.tensor([1 + 2j]).conj(),
        "empty": torch.ones(0, 3),
        "exotic": torch.arange(4, dtype=torch.uint8).view(torch.float8_e5m2),
        "scalar": torch.tensor(3),
    }
    here = read(s=state)
    monkeypatch.setattr(blocks, "HOST", "nowhere")
    plan = Plan()
    for _ in range(2):
        assert same(here, read(plan, s=state))
    state["dense"][0] = 9
    assert not same(here, read(plan, s=state))


def growth(work: Callable[[], object]) -> int:
    """By how many bytes the process grew at most while it worked."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    except OSError:
        pytest.skip("needs Linux, which tells the peak of resident memory")

    def told(key: str) -> int:
        return int(next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))) * 1024

    before = told("VmRSS")
    work()
    return told("VmHWM") - before


@pytest.mark.parametrize("permuted", [False, True])
def test_a_large_state_is_digested_without_a_second_copy(permuted: bool) -> None:
    size = 1 << 27
    dense = torch.zeros(2, 64, 1024, size // 4 // 2 // 64 // 1024)
    large = dense.permute(0, 3, 1, 2) if permuted else dense
    assert growth(lambda: Plan().read({"a": large}).snapshot(1, keep=False)) < size // 10
    assert growth(dense.clone) > size // 2


def test_ten_times_the_tensors_take_about_ten_times_the_time() -> None:
    def seconds(tensors: list[Tensor]) -> float:
        plan = Plan()
        plan.read({"a": tensors}).snapshot(1, keep=False)
        began = time.thread_time()
        plan.read({"a": tensors}).snapshot(1, keep=False)
        return time.thread_time() - began

    tensors = [torch.full((1,), random.random()) for _ in range(50_000)]
    few = min(seconds(tensors[:5_000]) for _ in range(3))
    assert min(seconds(tensors) for _ in range(3)) < 60 * few
