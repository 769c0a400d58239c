"""Gradients that are missing, zero, bad, sparse or laid out in another way."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

from musgd import MuSGD

if TYPE_CHECKING:
    from tests.musgd.conftest import SameBits, Twins

OPTIONS: dict[str, Any] = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.05, "nesterov": True, "use_muon": True}
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class TestGradients:
    @pytest.mark.parametrize("use_muon", [True, False])
    def test_a_parameter_without_gradient_is_left_alone(self, use_muon: bool, same_bits: SameBits, twins: type[Twins]) -> None:
        p, q = twins.weights((4, 3), (4, 3))
        optimizer = MuSGD([p, q], **{**OPTIONS, "use_muon": use_muon})
        twins.train(optimizer, range(2))
        before = {key: value.clone() for key, value in {"W": q, **optimizer.state[q]}.items()}
        moving = p.detach().clone()
        p.grad, q.grad = torch.ones_like(p), None
        optimizer.step()
        assert all(same_bits(value, {"W": q, **optimizer.state[q]}[key]) for key, value in before.items())
        assert not same_bits(moving, p)

    def test_a_parameter_that_never_had_a_gradient_has_no_state(self) -> None:
        p = nn.Parameter(torch.ones(2, 2))
        optimizer = MuSGD([p], **OPTIONS)
        optimizer.step()
        assert not optimizer.state
        assert torch.equal(p, torch.ones(2, 2))

    @pytest.mark.parametrize("nesterov", [True, False])
    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    @pytest.mark.parametrize("shape", [(4, 3), (4, 1, 1), (3,), ()], ids=str)
    def test_zero_gradients_move_nothing(
        self, nesterov: bool, dtype: torch.dtype, shape: tuple[int, ...], same_bits: SameBits, twins: type[Twins]
    ) -> None:
        (p,), (before,) = twins.weights(shape, dtype=dtype), twins.weights(shape, dtype=dtype)
        optimizer = MuSGD([p], lr=0.1, momentum=0.9, nesterov=nesterov, use_muon=True)
        for _ in range(3):
            p.grad = torch.zeros_like(p)
            optimizer.step()
        assert same_bits(p, before)

    @pytest.mark.parametrize("bad", [math.inf, math.nan])
    def test_a_bad_gradient_spoils_its_own_parameter_alone(self, bad: float, same_bits: SameBits, twins: type[Twins]) -> None:
        runs = []
        for value in (1.0, bad):
            params = twins.weights((6, 4), (6, 4), (6, 4), (4,))
            gradients = twins.gradients(params, 0)
            for p, g in zip(params, gradients, strict=True):
                p.grad = g
            gradients[1][0, 0] = value
            MuSGD(params, **OPTIONS).step()
            runs.append(params)
        assert [same_bits(a, b) for a, b in zip(*runs, strict=True)] == [True, False, True, True]
        assert runs[1][1].isnan().any()

    @pytest.mark.parametrize("use_muon", [True, False])
    @pytest.mark.parametrize("nesterov", [True, False])
    @pytest.mark.parametrize("maximize", [True, False])
    def test_step_never_writes_gradients(
        self, use_muon: bool, nesterov: bool, maximize: bool, same_bits: SameBits, twins: type[Twins]
    ) -> None:
        params = twins.weights((4, 3), (3,))
        optimizer = MuSGD(params, **{**OPTIONS, "use_muon": use_muon, "nesterov": nesterov, "maximize": maximize, "weight_decay": 0.0})

        def check(step: int) -> None:
            for p, g in zip(params, twins.gradients(params, step), strict=True):
                assert p.grad is not None
                assert same_bits(p.grad, g)
                assert all(p.grad.data_ptr() != x.data_ptr() for x in optimizer.state[p].values())

        twins.train(optimizer, range(3), check)

    def test_a_sparse_gradient_is_refused_before_anything_moves(self, same_bits: SameBits) -> None:
        dense, other, embedding = nn.Parameter(torch.ones(3, 2)), nn.Parameter(torch.ones(1)), nn.Embedding(4, 2, sparse=True)
        groups: list[dict[str, Any]] = [{"params": [dense]}, {"params": [other, embedding.weight]}]
        optimizer = MuSGD(groups, **OPTIONS)
        dense.grad = torch.ones(3, 2)
        embedding(torch.tensor([1, 3])).sum().backward()
        with pytest.raises(ValueError, match=r"parameter 1 of group 1, shape \(4, 2\), has a sparse gradient; make it dense"):
            optimizer.step()
        assert same_bits(dense, torch.ones(3, 2))
        assert not optimizer.state


class TestLayout:
    @pytest.mark.parametrize("nesterov", [True, False])
    @pytest.mark.parametrize("own", [True, False], ids=["gradients-alike", "gradients-contiguous"])
    def test_channels_last_has_the_bits_of_contiguous(self, nesterov: bool, own: bool, same_bits: SameBits, twins: type[Twins]) -> None:
        options, shapes = {**OPTIONS, "nesterov": nesterov}, [(8, 4, 3, 3), (6, 2, 1, 5), (8, 4, 3, 3)]
        plain, laid = twins.weights(*shapes), twins.weights(*shapes)
        for p in laid:
            p.data = p.data.contiguous(memory_format=torch.channels_last)
        pair = MuSGD(plain, **options), MuSGD(laid, **options)
        for step in range(3):
            for a, b, g in zip(plain, laid, twins.gradients(plain, step), strict=True):
                a.grad, b.grad = g, torch.empty_like(b).copy_(g) if own else g
            for optimizer in pair:
                optimizer.step()
        for a, b in zip(plain, laid, strict=True):
            assert same_bits(a, b)
            assert b.is_contiguous(memory_format=torch.channels_last)
            for key, value in pair[1].state[b].items():
                assert value.stride() == b.stride()
                assert same_bits(value, pair[0].state[a][key])

    def test_momenta_follow_a_weight_into_another_layout(self, same_bits: SameBits, twins: type[Twins]) -> None:
        plain, moved = twins.weights((8, 4, 3, 3)), twins.weights((8, 4, 3, 3))
        pair = MuSGD(plain, **OPTIONS), MuSGD(moved, **OPTIONS)
        for optimizer in pair:
            twins.train(optimizer, range(2))
        moved[0].data = moved[0].data.contiguous(memory_format=torch.channels_last)
        for optimizer in pair:
            twins.train(optimizer, range(2, 4))
        assert same_bits(plain[0], moved[0])
        assert all(value.stride() == moved[0].stride() for value in pair[1].state[moved[0]].values())

    def test_momenta_follow_a_weight_into_another_dtype(self, twins: type[Twins]) -> None:
        (p,) = twins.weights((6, 4))
        optimizer = MuSGD([p], **OPTIONS)
        twins.train(optimizer, range(2))
        before, old = p.detach().clone(), {key: value.clone() for key, value in optimizer.state[p].items()}
        p.data = p.data.double()
        p.grad = torch.zeros_like(p)
        optimizer.step()
        assert {value.dtype for value in optimizer.state[p].values()} == {torch.float64}
        assert torch.allclose(optimizer.state[p]["momentum_buffer"], 0.9 * old["momentum_buffer"].double(), rtol=1e-12)
        assert not torch.equal(p, before.double())

    def test_transposed_and_sliced_weights_step(self, same_bits: SameBits, twins: type[Twins]) -> None:
        (plain,) = twins.weights((6, 4))
        transposed = nn.Parameter(plain.detach().t().contiguous().t())
        sliced = nn.Parameter(plain.detach().repeat_interleave(2, dim=1)[:, ::2])
        for p in (plain, transposed, sliced):
            twins.train(MuSGD([p], **OPTIONS), range(3))
        assert (transposed.stride(), sliced.stride()) == ((1, 6), (8, 2))
        assert same_bits(plain, transposed)
        assert same_bits(plain, sliced)

    def test_dtypes_share_a_group(self, same_bits: SameBits, twins: type[Twins]) -> None:
        dtypes = [torch.float32, torch.bfloat16, torch.float64, torch.float16, torch.float32]
        mixed, alone = ([twins.weights((4, 3), dtype=dtype)[0] for dtype in dtypes] for _ in range(2))
        gradients = [twins.gradients([p], i)[0] for i, p in enumerate(mixed)]
        for p, q, g in zip(mixed, alone, gradients, strict=True):
            p.grad, q.grad = g.clone(), g.clone()
        MuSGD(mixed, **OPTIONS).step()
        for chosen in ([0, 4], [1], [2], [3]):
            MuSGD([alone[i] for i in chosen], **OPTIONS).step()
        assert all(same_bits(p, q) for p, q in zip(mixed, alone, strict=True))

    def test_the_order_of_matrices_and_vectors_does_not_matter(self, same_bits: SameBits, twins: type[Twins]) -> None:
        shapes, order = [(3,), (4, 3), (), (4, 3), (2, 5)], [3, 1, 4, 2, 0]
        params, shuffled = twins.weights(*shapes), twins.weights(*shapes)
        for p, q, g in zip(params, shuffled, twins.gradients(params, 0), strict=True):
            p.grad, q.grad = g, g
        MuSGD([params[i] for i in (1, 3, 4, 0, 2)], **OPTIONS).step()
        MuSGD([shuffled[i] for i in order if i not in (1, 3)] + [shuffled[1], shuffled[3]], **OPTIONS).step()
        assert all(same_bits(p, q) for p, q in zip(params, shuffled, strict=True))
