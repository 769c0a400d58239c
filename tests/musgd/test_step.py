"""What a step computes: against a float64 reference, and against torch.optim.SGD by bits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

from musgd import MuSGD

if TYPE_CHECKING:
    from tests.musgd.conftest import Distance, Reference, SameBits, Twins

OPTIONS: dict[str, Any] = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.05, "nesterov": True, "use_muon": True}
DTYPES = {torch.float16: 2e-3, torch.bfloat16: 1.5e-2, torch.float32: 1e-6, torch.float64: 1e-14}


class TestReference:
    """Momenta agree to the dtype's rounding; what moved a weight agrees to bfloat16's where the Muon half takes part."""

    SHAPES = ((12, 5), (16, 1, 3, 3), (4, 8, 3, 3), (6, 4, 7, 1), (7,))

    def _check(
        self, options: dict[str, Any], reference: type[Reference], distance: Distance, twins: type[Twins], shapes: Any = SHAPES
    ) -> None:
        params = twins.weights(*shapes)
        references = [reference(p, **options) for p in params]
        optimizer = MuSGD(params, **options)
        first = [p.detach().double().clone() for p in params]

        def follow(step: int) -> None:
            for p, r, g in zip(params, references, twins.gradients(params, step), strict=True):
                r.step(g)
                state = optimizer.state[p]
                assert distance(state["momentum_buffer_SGD" if options["use_muon"] else "momentum_buffer"], r.v) < 3e-3
                if options["use_muon"] and p.dim() > 1:
                    assert distance(state["momentum_buffer"], r.m) < 1e-6

        twins.train(optimizer, range(4), follow)
        near = 0.02 if options["use_muon"] else 1e-5
        for p, r, w in zip(params, references, first, strict=True):
            assert distance(p.double() - w, r.W - w) < (near if p.dim() > 1 else 1e-5)

    @pytest.mark.parametrize("nesterov", [True, False])
    @pytest.mark.parametrize("weight_decay", [0.05, 0.0])
    @pytest.mark.parametrize("maximize", [True, False])
    @pytest.mark.parametrize("use_muon", [True, False])
    def test_four_steps_agree(
        self,
        nesterov: bool,
        weight_decay: float,
        maximize: bool,
        use_muon: bool,
        reference: type[Reference],
        distance: Distance,
        twins: type[Twins],
    ) -> None:
        own = {"nesterov": nesterov, "weight_decay": weight_decay, "maximize": maximize, "use_muon": use_muon}
        self._check({**OPTIONS, **own}, reference, distance, twins)

    @pytest.mark.parametrize("scale", ["matrix", "kernel"])
    @pytest.mark.parametrize(("muon", "sgd"), [(0.5, 0.5), (1.0, 0.0), (0.2, 0.1)])
    def test_weights_and_scales_agree(
        self, scale: str, muon: float, sgd: float, reference: type[Reference], distance: Distance, twins: type[Twins]
    ) -> None:
        self._check({**OPTIONS, "scale": scale, "muon": muon, "sgd": sgd}, reference, distance, twins)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("lr", 0.11),
            ("momentum", 0.8),
            ("weight_decay", 0.5),
            ("nesterov", False),
            ("use_muon", False),
            ("muon", 0.6),
            ("sgd", 0.6),
            ("scale", "kernel"),
            ("maximize", True),
        ],
    )
    def test_agreement_would_notice_another_option(
        self, name: str, value: Any, reference: type[Reference], distance: Distance, twins: type[Twins]
    ) -> None:
        (p,) = twins.weights((16, 1, 3, 3))
        first = p.detach().double().clone()
        other = reference(p, **{**OPTIONS, name: value})
        twins.train(MuSGD([p], **OPTIONS), range(4), lambda step: other.step(twins.gradients([p], step)[0]))
        assert distance(p.double() - first, other.W - first) > 0.02

    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    @pytest.mark.parametrize("use_muon", [True, False])
    def test_dtypes_agree(
        self, dtype: torch.dtype, use_muon: bool, reference: type[Reference], distance: Distance, twins: type[Twins]
    ) -> None:
        (p,) = twins.weights((12, 5), dtype=dtype)
        first, options = p.detach().double().clone(), {**OPTIONS, "use_muon": use_muon}
        expected, optimizer = reference(p, **options), MuSGD([p], **options)
        twins.train(optimizer, range(3), lambda step: expected.step(twins.gradients([p], step)[0]))
        assert {x.dtype for x in optimizer.state[p].values()} == {dtype}
        near = DTYPES[dtype]
        assert distance(optimizer.state[p]["momentum_buffer"], expected.m if use_muon else expected.v) < near
        assert distance(p.double() - first, expected.W - first) < (max(4 * near, 0.02) if use_muon else 4 * near)

    @pytest.mark.case("R8")
    @pytest.mark.parametrize(
        "shape", [(), (3,), (6, 4), (5, 1, 1), (1, 9), (5, 3, 2), (4, 3, 3, 3), (4, 3, 2, 2, 2), (0,), (0, 3), (3, 0), (2, 0, 3)], ids=str
    )
    @pytest.mark.parametrize("nesterov", [True, False])
    @pytest.mark.parametrize("scale", ["matrix", "kernel"])
    def test_r8_every_rank_steps_in_a_hybrid_group(
        self, shape: tuple[int, ...], nesterov: bool, scale: str, reference: type[Reference], distance: Distance, twins: type[Twins]
    ) -> None:
        options = {**OPTIONS, "nesterov": nesterov, "scale": scale}
        (p,) = twins.weights(shape)
        first, expected, optimizer = p.detach().double().clone(), reference(p, **options), MuSGD([p], **options)
        twins.train(optimizer, range(3), lambda step: expected.step(twins.gradients([p], step)[0]))
        is_matrix = len(shape) > 1 and p.numel() > 0
        assert set(optimizer.state[p]) == ({"momentum_buffer", "momentum_buffer_SGD"} if is_matrix else {"momentum_buffer_SGD"})
        assert distance(p.double() - first, expected.W - first) < (0.03 if is_matrix else 1e-5)
        assert p.isfinite().all()

    @pytest.mark.case("R9")
    @pytest.mark.parametrize(
        ("shape", "ratio"), [((64, 1, 3, 3), 8 / 3), ((64, 32, 3, 3), 1.0), ((8, 8, 1, 7), 1.0), ((8, 8, 7, 1), 1 / math.sqrt(7))], ids=str
    )
    def test_r9_a_step_has_the_scale_of_its_mode(self, shape: tuple[int, ...], ratio: float, twins: type[Twins]) -> None:
        moved = {}
        for scale in ("matrix", "kernel"):
            (p,) = twins.weights(shape, dtype=torch.float64)
            first = p.detach().clone()
            twins.train(MuSGD([p], lr=1.0, use_muon=True, muon=1.0, sgd=0.0, scale=scale), [0])
            moved[scale] = (p.detach() - first).norm().item()
        assert moved["matrix"] / moved["kernel"] == pytest.approx(ratio, rel=1e-9)


class TestTorchSGD:
    """Where the arithmetic is torch.optim.SGD's, so are the bits."""

    SHAPES = ((12, 5), (4, 2, 3, 3), (7,), ())

    def _pair(
        self, ours: dict[str, Any], theirs: dict[str, Any], twins: type[Twins], dtype: torch.dtype = torch.float32
    ) -> tuple[MuSGD, torch.optim.SGD]:
        pair = MuSGD(twins.weights(*self.SHAPES, dtype=dtype), **ours), torch.optim.SGD(twins.weights(*self.SHAPES, dtype=dtype), **theirs)
        for optimizer in pair:
            twins.train(optimizer, range(5))
        return pair

    @pytest.mark.parametrize("kind", [{"use_muon": False}, {"use_muon": True, "muon": 0, "sgd": 1}], ids=["sgd", "hybrid"])
    @pytest.mark.parametrize("nesterov", [True, False])
    @pytest.mark.parametrize("weight_decay", [0.0, 0.05])
    @pytest.mark.parametrize("maximize", [True, False])
    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    def test_five_steps_have_the_same_bits(
        self,
        kind: dict[str, Any],
        nesterov: bool,
        weight_decay: float,
        maximize: bool,
        dtype: torch.dtype,
        same_bits: SameBits,
        twins: type[Twins],
    ) -> None:
        options: dict[str, Any] = {"lr": 0.03, "momentum": 0.9, "weight_decay": weight_decay, "nesterov": nesterov, "maximize": maximize}
        ours, theirs = self._pair({**options, **kind}, options, twins, dtype)
        key = "momentum_buffer_SGD" if kind["use_muon"] else "momentum_buffer"
        for a, b in zip(ours.param_groups[0]["params"], theirs.param_groups[0]["params"], strict=True):
            assert same_bits(a, b)
            assert same_bits(ours.state[a][key], theirs.state[b]["momentum_buffer"])

    def test_without_momentum_the_bits_are_the_same(self, same_bits: SameBits, twins: type[Twins]) -> None:
        ours, theirs = self._pair({"lr": 0.1}, {"lr": 0.1}, twins)
        assert all(same_bits(a, b) for a, b in zip(ours.param_groups[0]["params"], theirs.param_groups[0]["params"], strict=True))

    @pytest.mark.parametrize("other", [{"momentum": 0.9000001}, {"weight_decay": 1e-6}, {"nesterov": True}, {"lr": 0.0300001}], ids=str)
    def test_another_option_has_other_bits(self, other: dict[str, Any], same_bits: SameBits, twins: type[Twins]) -> None:
        options = {"lr": 0.03, "momentum": 0.9}
        ours, theirs = self._pair({**options, **other}, options, twins)
        assert not all(same_bits(a, b) for a, b in zip(ours.param_groups[0]["params"], theirs.param_groups[0]["params"], strict=True))

    @pytest.mark.parametrize("use_muon", [True, False])
    def test_the_first_momentum_keeps_a_negative_zero(self, use_muon: bool, same_bits: SameBits) -> None:
        ours, theirs = (nn.Parameter(torch.ones(2, 2)) for _ in range(2))
        pair = MuSGD([ours], momentum=0.9, use_muon=use_muon), torch.optim.SGD([theirs], lr=1e-3, momentum=0.9)
        for p, optimizer in zip((ours, theirs), pair, strict=True):
            p.grad = torch.tensor([[-0.0, 0.0], [1.0, -1.0]])
            optimizer.step()
        key = "momentum_buffer_SGD" if use_muon else "momentum_buffer"
        assert same_bits(pair[0].state[ours][key], pair[1].state[theirs]["momentum_buffer"])
        assert not same_bits(pair[0].state[ours][key], torch.tensor([[0.0, 0.0], [1.0, -1.0]]))
