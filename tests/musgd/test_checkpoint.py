"""States saved, loaded, copied and pickled: every run goes on with the bits of the one that was never interrupted."""

from __future__ import annotations

import copy
import io
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor, nn

from musgd import MuSGD

if TYPE_CHECKING:
    from tests.musgd.conftest import SameBits, Twins

SHAPES = ((6, 4), (4, 2, 3, 3), (5,))
# torch 2.4 warns of what it does itself when a tensor is unpickled.
unpickles = pytest.mark.filterwarnings("ignore:You are using `torch.load` with `weights_only=False`:FutureWarning")
OPTIONS: dict[str, Any] = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.05, "nesterov": True, "use_muon": True}

RESUME = """
import sys, torch
from musgd import MuSGD
assert not torch.cuda.is_available()
saved = torch.load(sys.argv[1], weights_only=True)
params = [torch.nn.Parameter(w) for w in saved["weights"]]
optimizer = MuSGD([{"params": params[:1]}, {"params": params[1:]}])
optimizer.load_state_dict(saved["optimizer"])
for gradients in saved["gradients"]:
    for p, g in zip(params, gradients):
        p.grad = g
    optimizer.step()
torch.save([p.detach() for p in params], sys.argv[1])
"""


def _params(optimizer: MuSGD) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _trained(twins: type[Twins], steps: int, **options: Any) -> MuSGD:
    optimizer = MuSGD(twins.weights(*SHAPES), **{**OPTIONS, **options})
    twins.train(optimizer, range(steps))
    return optimizer


def _same(a: MuSGD, b: MuSGD, same_bits: SameBits) -> bool:
    """Weights and states, key for key."""
    pairs = list(zip(_params(a), _params(b), strict=True))
    keys = all(list(a.state[p]) == list(b.state[q]) for p, q in pairs)
    states = keys and all(same_bits(a.state[p][key], b.state[q][key]) for p, q in pairs for key in a.state[p])
    return states and all(same_bits(p, q) for p, q in pairs)


class TestStateDict:
    """Cases R13 (plain state, loaded with weights_only) and what a checkpoint of another implementation needs."""

    def test_holds_the_known_keys_and_plain_values(self, twins: type[Twins]) -> None:
        hybrid, vector = (_trained(twins, 1, use_muon=use_muon).state_dict() for use_muon in (True, False))
        both = {"momentum_buffer", "momentum_buffer_SGD"}
        assert [set(hybrid["state"][i]) for i in range(3)] == [both, both, {"momentum_buffer_SGD"}]
        assert [set(vector["state"][i]) for i in range(3)] == [{"momentum_buffer"}] * 3
        assert {type(value) for value in hybrid["param_groups"][0].values()} == {float, bool, list}

    @pytest.mark.case("R13")
    def test_r13_a_process_without_gpu_goes_on_from_weights_only(self, tmp_path: Path, same_bits: SameBits, twins: type[Twins]) -> None:
        weights = twins.weights(*SHAPES)
        groups: list[dict[str, Any]] = [{"params": weights[:1]}, {"params": weights[1:], "use_muon": False, "lr": 0.3}]
        optimizer = MuSGD(groups, **OPTIONS)
        twins.train(optimizer, range(3))
        path, params = tmp_path / "state.pt", _params(optimizer)
        gradients = [twins.gradients(params, step) for step in range(3, 5)]
        torch.save({"weights": [p.detach() for p in params], "optimizer": optimizer.state_dict(), "gradients": gradients}, path)
        before = [p.detach().clone() for p in params]
        twins.train(optimizer, range(3, 5))
        subprocess.run([sys.executable, "-c", RESUME, str(path)], check=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
        resumed = torch.load(path, weights_only=True)
        assert all(same_bits(p, q) for p, q in zip(params, resumed, strict=True))
        assert not any(same_bits(p, q) for p, q in zip(before, resumed, strict=True))

    def test_one_written_by_hand_is_continued(self, same_bits: SameBits) -> None:
        """Momentum 0.5 over gradients g, 2g: m = 0.25 g + 1.0 g, v = 0.5 g + 2 g, all exact."""
        g, b = torch.tensor([[1.0, -2.0], [4.0, 8.0], [-16.0, 0.5]]), torch.tensor([1.0, -8.0])
        params, late = ([nn.Parameter(torch.ones(3, 2)), nn.Parameter(torch.ones(2))] for _ in range(2))
        groups: list[dict[str, Any]] = [{"params": params[:1], "use_muon": True}, {"params": params[1:]}]
        optimizer = MuSGD(groups, lr=0.25, momentum=0.5, nesterov=True)
        resumed = MuSGD([{"params": late[:1]}, {"params": late[1:]}])
        for factor in (1.0, 2.0):
            params[0].grad, params[1].grad = factor * g, factor * b
            optimizer.step()
        common = {"lr": 0.25, "momentum": 0.5, "weight_decay": 0.0, "nesterov": True}
        written = {
            "state": {
                0: {
                    "momentum_buffer": torch.tensor([[1.25, -2.5], [5.0, 10.0], [-20.0, 0.625]]),
                    "momentum_buffer_SGD": torch.tensor([[2.5, -5.0], [10.0, 20.0], [-40.0, 1.25]]),
                },
                1: {"momentum_buffer": torch.tensor([2.5, -20.0])},
            },
            "param_groups": [{**common, "use_muon": True, "params": [0]}, {**common, "use_muon": False, "params": [1]}],
        }
        file = io.BytesIO()
        torch.save(written, file)
        file.seek(0)
        resumed.load_state_dict(torch.load(file, weights_only=True))
        with torch.no_grad():
            for p, q in zip(params, late, strict=True):
                q.copy_(p)
        assert _same(optimizer, resumed, same_bits)
        for _ in range(2):
            for each in (params, late):
                each[0].grad, each[1].grad = 3 * g, 3 * b
            optimizer.step()
            resumed.step()
        assert _same(optimizer, resumed, same_bits)
        assert [group["maximize"] for group in resumed.param_groups] == [False, False]
        resumed.state[late[0]]["momentum_buffer"].neg_()
        assert not _same(optimizer, resumed, same_bits)

    def test_a_loaded_group_has_the_keys_of_a_fresh_one(self, twins: type[Twins]) -> None:
        """torch puts an entry of its own among the defaults on loading; it must not reach the groups."""
        saved, loaded = _trained(twins, 2), MuSGD(twins.weights(*SHAPES), **OPTIONS)
        keys = [set(group) for group in loaded.param_groups]
        loaded.load_state_dict(saved.state_dict())
        assert [set(group) for group in loaded.param_groups] == [set(group) for group in copy.deepcopy(saved).param_groups] == keys

    def test_a_momentum_of_none_starts_afresh(self, same_bits: SameBits, twins: type[Twins]) -> None:
        """torch.optim.SGD writes None where it had no momentum."""
        sgd = torch.optim.SGD(twins.weights(*SHAPES), lr=0.1)
        twins.train(sgd, range(1))
        optimizer, fresh = (MuSGD(twins.weights(*SHAPES), lr=0.1, momentum=0.9) for _ in range(2))
        saved = sgd.state_dict()
        saved["state"] = {i: {"momentum_buffer": None} for i in range(3)}
        saved["param_groups"][0]["momentum"] = 0.9
        optimizer.load_state_dict(saved)
        for each in (optimizer, fresh):
            twins.train(each, range(1, 3))
        assert _same(optimizer, fresh, same_bits)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
    def test_momenta_take_the_dtype_of_the_weights(self, dtype: torch.dtype, twins: type[Twins]) -> None:
        optimizer = MuSGD(twins.weights(*SHAPES, dtype=dtype), **OPTIONS)
        optimizer.load_state_dict(_trained(twins, 2).state_dict())
        twins.train(optimizer, range(2, 3))
        assert {value.dtype for state in optimizer.state.values() for value in state.values()} == {dtype}

    def test_contiguous_momenta_take_the_layout_of_the_weights(self, same_bits: SameBits, twins: type[Twins]) -> None:
        optimizer = _trained(twins, 2)
        weights = [nn.Parameter(p.detach().clone()) for p in _params(optimizer)]
        weights[1].data = weights[1].data.contiguous(memory_format=torch.channels_last)
        resumed = MuSGD(weights)
        resumed.load_state_dict(optimizer.state_dict())
        for each in (optimizer, resumed):
            twins.train(each, range(2, 4))
        assert _same(optimizer, resumed, same_bits)
        assert all(value.stride() == weights[1].stride() for value in resumed.state[weights[1]].values())


def _loaded(optimizer: MuSGD) -> MuSGD:
    other = MuSGD(
        [nn.Parameter(p.detach().clone()) for p in _params(optimizer)], muon=optimizer.muon, sgd=optimizer.sgd, scale=optimizer.scale
    )
    other.load_state_dict(optimizer.state_dict())
    return other


def _pickled(optimizer: MuSGD) -> MuSGD:
    copied: MuSGD = pickle.loads(pickle.dumps(optimizer))
    return copied


@unpickles
@pytest.mark.case("R14")
@pytest.mark.parametrize("duplicate", [copy.deepcopy, _pickled, _loaded], ids=["deepcopy", "pickle", "state_dict"])
@pytest.mark.parametrize("steps", [0, 3])
def test_r14_both_copies_step_on_and_apart(
    duplicate: Callable[[MuSGD], MuSGD], steps: int, same_bits: SameBits, twins: type[Twins]
) -> None:
    optimizer, twin = (_trained(twins, steps, muon=0.3, sgd=0.6, scale="kernel") for _ in range(2))
    copied = duplicate(optimizer)
    assert (copied.muon, copied.sgd, copied.scale) == (0.3, 0.6, "kernel")
    twins.train(optimizer, range(steps, steps + 2))
    assert not _same(optimizer, copied, same_bits)
    twins.train(copied, range(steps, steps + 2))
    twins.train(twin, range(steps, steps + 2))
    assert _same(optimizer, twin, same_bits)
    assert _same(copied, twin, same_bits)


@unpickles
def test_a_model_and_its_optimizer_stay_together_in_one_pickle(same_bits: SameBits) -> None:
    torch.manual_seed(0)
    model = nn.Linear(3, 4)
    optimizer = MuSGD(model.parameters(), **OPTIONS)
    other, copied = pickle.loads(pickle.dumps((model, optimizer)))
    for module, each in ((model, optimizer), (other, copied)):
        module(torch.ones(2, 3)).square().sum().backward()
        each.step()
    assert same_bits(model.weight, other.weight)
    assert other.weight is copied.param_groups[0]["params"][0]
