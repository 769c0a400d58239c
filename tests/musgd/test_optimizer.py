"""MuSGD as an optimizer: its signature, options, groups and closure."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

from musgd import MuSGD

if TYPE_CHECKING:
    from tests.musgd.conftest import Distance, Reference, SameBits, Twins

OPTIONS: dict[str, Any] = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.05, "nesterov": True, "use_muon": True}


class TestOptions:
    def test_the_signature_is_the_known_one(self) -> None:
        parameters = inspect.signature(MuSGD).parameters
        positional = {name: p.default for name, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD}
        assert list(positional.items()) == [
            ("params", inspect.Parameter.empty),
            ("lr", 1e-3),
            ("momentum", 0.0),
            ("weight_decay", 0.0),
            ("nesterov", False),
            ("use_muon", False),
            ("muon", 0.5),
            ("sgd", 0.5),
        ]
        assert {name: p.default for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY} == {
            "scale": "matrix",
            "maximize": False,
            "capture_orthogonalization": False,
            "capture_updates": False,
            "on_fallback": "warn",
        }

    @pytest.mark.parametrize("method", ["step", "zero_grad", "state_dict", "load_state_dict", "add_param_group"])
    def test_methods_take_what_torch_optimizers_take(self, method: str) -> None:
        ours, theirs = (list(inspect.signature(getattr(owner, method)).parameters) for owner in (MuSGD, torch.optim.Optimizer))
        assert ours == theirs
        assert isinstance(MuSGD([nn.Parameter(torch.ones(1))]), torch.optim.Optimizer)

    def test_groups_hold_what_the_known_checkpoints_hold(self, twins: type[Twins]) -> None:
        (group,) = MuSGD(twins.weights((2, 2)), 0.1, 0.9, 0.01, True, True, 0.2, 0.8, scale="kernel").state_dict()["param_groups"]
        own = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True, "use_muon": True, "maximize": False, "params": [0]}
        assert group == own

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"lr": -0.1}, "lr of group 0 is -0.1, must be at least 0"),
            ({"lr": math.nan}, "lr of group 0 is nan, must be at least 0"),
            ({"lr": torch.tensor(-1.0)}, r"lr of group 0 is -1.0, must be at least 0"),
            ({"lr": torch.ones(2)}, r"lr of group 0 is a tensor of shape \(2,\), must have one element"),
            ({"momentum": 1.0}, r"momentum of group 0 is 1.0, must be in \[0, 1\)"),
            ({"momentum": -0.1}, r"momentum of group 0 is -0.1, must be in \[0, 1\)"),
            ({"momentum": math.nan}, r"momentum of group 0 is nan, must be in \[0, 1\)"),
            ({"weight_decay": -1e-4}, "weight_decay of group 0 is -0.0001, must be at least 0"),
            ({"muon": -0.5}, "muon is -0.5, must be at least 0"),
            ({"sgd": math.nan}, "sgd is nan, must be at least 0"),
            ({"scale": "rows"}, "scale is 'rows', must be one of 'matrix', 'kernel'"),
        ],
        ids=str,
    )
    def test_options_out_of_range_are_refused(self, options: dict[str, Any], message: str, twins: type[Twins]) -> None:
        with pytest.raises(ValueError, match=message):
            MuSGD(twins.weights((2, 2)), **options)

    @pytest.mark.parametrize("options", [{"lr": 0}, {"momentum": 0.0}, {"muon": 0}, {"sgd": 0}, {"weight_decay": 0}], ids=str)
    def test_the_ends_of_the_ranges_are_accepted(self, options: dict[str, Any], twins: type[Twins]) -> None:
        twins.train(MuSGD(twins.weights((2, 2)), use_muon=True, **options), range(2))

    @pytest.mark.parametrize("dtype", [torch.complex64, torch.float8_e4m3fn])
    def test_dtypes_that_cannot_be_trained_are_refused(self, dtype: torch.dtype) -> None:
        params = [nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2, 3).to(dtype))]
        message = rf"parameter 1 of group 0, shape \(2, 3\), is {str(dtype)[6:]}; convert it to one of float16, bfloat16, float32, float64"
        with pytest.raises(ValueError, match=message):
            MuSGD(params)

    def test_a_frozen_integer_parameter_is_no_hindrance(self) -> None:
        frozen = nn.Parameter(torch.ones(2, dtype=torch.int64), requires_grad=False)
        MuSGD([frozen]).step()
        assert torch.equal(frozen, torch.ones(2, dtype=torch.int64))

    def test_options_are_read_at_every_step(self, same_bits: SameBits, twins: type[Twins]) -> None:
        ours, theirs = MuSGD(twins.weights((4, 3))), torch.optim.SGD(twins.weights((4, 3)), lr=1.0, momentum=0.1)
        for step in range(5):
            changed = {
                "lr": 0.1 / (1 + step),
                "momentum": 0.5 + 0.08 * step,
                "weight_decay": 0.01 * step,
                "nesterov": step > 2,
                "maximize": step == 4,
            }
            for optimizer in (ours, theirs):
                optimizer.param_groups[0].update(changed)
                twins.train(optimizer, [step])
        assert same_bits(ours.param_groups[0]["params"][0], theirs.param_groups[0]["params"][0])

    def test_muon_and_sgd_are_read_at_every_step(self, reference: type[Reference], distance: Distance, twins: type[Twins]) -> None:
        (p,) = twins.weights((6, 4))
        first, expected, optimizer = p.detach().double().clone(), reference(p, **OPTIONS), MuSGD([p], **OPTIONS)
        for step in range(3):
            optimizer.muon = expected.muon = 0.1 * step
            optimizer.sgd = expected.sgd = 1.0 / (1 + step)
            twins.train(optimizer, [step], lambda step: expected.step(twins.gradients([p], step)[0]))
        assert distance(p.double() - first, expected.W - first) < 0.02


class TestGroups:
    def test_each_group_has_its_own_options(self, same_bits: SameBits, twins: type[Twins]) -> None:
        together, apart = twins.weights((4, 3), (4, 3), (3,)), twins.weights((4, 3), (4, 3), (3,))
        own: list[dict[str, Any]] = [{"lr": 0.1}, {"use_muon": False, "momentum": 0.5}, {"weight_decay": 0.0, "nesterov": False}]
        optimizers = [MuSGD([{"params": [p], **options} for p, options in zip(together, own, strict=True)], **OPTIONS)]
        optimizers += [MuSGD([p], **{**OPTIONS, **options}) for p, options in zip(apart, own, strict=True)]
        for step in range(3):
            for p, q, g in zip(together, apart, twins.gradients(together, step), strict=True):
                p.grad, q.grad = g, g
            for optimizer in optimizers:
                optimizer.step()
        assert all(same_bits(p, q) for p, q in zip(together, apart, strict=True))

    @pytest.mark.case("R15")
    def test_r15_a_group_added_at_step_10_starts_afresh(self, same_bits: SameBits, twins: type[Twins]) -> None:
        (p, late), (q, alone) = twins.weights((4, 3), (5, 2)), twins.weights((4, 3), (5, 2))
        optimizer, twin, fresh = MuSGD([p], **OPTIONS), MuSGD([q], **OPTIONS), MuSGD([alone], **{**OPTIONS, "lr": 0.3})
        for each in (optimizer, twin):
            twins.train(each, range(10))
        optimizer.add_param_group({"params": [late], "lr": 0.3})
        for step in range(10, 13):
            for a, b, g in zip((p, late), (q, alone), twins.gradients([p, late], step), strict=True):
                a.grad, b.grad = g, g
            for each in (optimizer, twin, fresh):
                each.step()
        assert same_bits(p, q)
        assert same_bits(late, alone)
        assert not same_bits(p, twins.weights((4, 3))[0])

    @pytest.mark.case("R15")
    def test_r15_a_thawed_parameter_joins_and_a_frozen_one_stops(self, same_bits: SameBits) -> None:
        torch.manual_seed(0)
        first, second = nn.Linear(4, 5), nn.Linear(5, 2)
        optimizer = MuSGD([*first.parameters(), *second.parameters()], **OPTIONS)
        seen = []
        for thawed in (False, True, False):
            first.requires_grad_(thawed)
            before = first.weight.detach().clone(), second.weight.detach().clone()
            optimizer.zero_grad()
            second(first(torch.ones(3, 4))).square().sum().backward()
            optimizer.step()
            seen.append((same_bits(before[0], first.weight), same_bits(before[1], second.weight)))
        assert seen == [(True, False), (False, False), (True, False)]

    @pytest.mark.parametrize(
        "bad",
        [{"lr": -1.0}, {"momentum": 2.0}, {"params": [nn.Parameter(torch.ones(2, dtype=torch.complex64))]}],
        ids=["lr", "momentum", "complex"],
    )
    def test_a_refused_group_is_not_added(self, bad: dict[str, Any], twins: type[Twins]) -> None:
        optimizer = MuSGD(twins.weights((2, 2)))
        with pytest.raises(ValueError, match="of group 1"):
            optimizer.add_param_group({"params": twins.weights((3, 3)), **bad})
        assert len(optimizer.param_groups) == 1
        optimizer.add_param_group({"params": twins.weights((3, 3))})
        assert len(optimizer.param_groups) == 2


class TestClosure:
    def test_runs_first_with_gradients_and_its_loss_is_returned(self, same_bits: SameBits) -> None:
        p, q = (nn.Parameter(torch.tensor([[3.0, 1.0]])) for _ in range(2))
        optimizer, twin = MuSGD([p], **OPTIONS), MuSGD([q], **OPTIONS)

        def closure() -> float:
            optimizer.zero_grad()
            loss = p.square().sum()
            torch.autograd.backward(loss)
            return loss.item()

        assert optimizer.step(closure) == 10.0
        q.grad = 2 * q.detach()
        assert twin.step() is None
        assert same_bits(p, q)
        assert not same_bits(p, torch.tensor([[3.0, 1.0]]))
