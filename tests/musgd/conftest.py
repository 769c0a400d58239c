"""What the tests of musgd measure with, none of which uses the package's code, and the device that they record on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import musgd.packed
from tests.musgd.standin import StandIn

SameBits = Callable[[Tensor, Tensor], bool]
Distance = Callable[[Tensor, Tensor], float]


class Reference:
    """MuSGD for one weight in float64, matrix by matrix, straight from the formulas."""

    def __init__(
        self,
        W: Tensor,
        *,
        lr: float = 1e-3,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        use_muon: bool = False,
        muon: float = 0.5,
        sgd: float = 0.5,
        scale: str = "matrix",
        maximize: bool = False,
    ) -> None:
        self.W, self.m, self.v = W.detach().double().clone(), torch.zeros_like(W).double(), torch.zeros_like(W).double()
        self.lr, self.beta, self.decay, self.nesterov, self.sign = lr, momentum, weight_decay, nesterov, -1 if maximize else 1
        self.use_muon, self.muon, self.sgd, self.scale = use_muon, muon, sgd, scale

    def step(self, gradient: Tensor) -> None:
        g = self.sign * gradient.double()
        h = g + self.decay * self.W
        self.v = self.beta * self.v + h
        update = h + self.beta * self.v if self.nesterov else self.v
        if self.use_muon:
            update = self.sgd * update
        if self.use_muon and g.dim() >= 2 and g.numel() > 0:
            self.m = self.beta * self.m + (1 - self.beta) * g
            u = self.beta * self.m + (1 - self.beta) * g if self.nesterov else self.m
            update = update + self.muon * self.factor(u) * self.orthogonalize(u.reshape(u.shape[0], -1)).reshape(u.shape)
        self.W = self.W - self.lr * update

    def factor(self, u: Tensor) -> float:
        rows, columns = (u.shape[-2], u.shape[-1]) if self.scale == "kernel" else (u.shape[0], u.numel() // u.shape[0])
        return math.sqrt(max(1.0, rows / columns))

    @staticmethod
    def orthogonalize(X: Tensor, a: float = 3.4445, b: float = -4.7750, c: float = 2.0315, times: int = 5) -> Tensor:
        X = X.double()
        if X.shape[0] > X.shape[1]:
            return Reference.orthogonalize(X.T, a, b, c, times).T
        X = X / (X.square().sum().sqrt() + 1e-7)
        for _ in range(times):
            A = X @ X.T
            X = a * X + (b * A + c * A @ A) @ X
        return X


def _same_bits(a: Tensor, b: Tensor) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    left, right = (x.detach().contiguous().reshape(-1).view(torch.uint8) for x in (a, b))
    return bool((left == right).all())


def _distance(actual: Tensor, expected: Tensor) -> float:
    norm = float(expected.double().norm())
    return float((actual.detach().double() - expected.double()).norm()) / (norm or 1.0)


class Twins:
    """Builds weights and feeds gradients, the same ones each time."""

    @staticmethod
    def weights(*shapes: Sequence[int], dtype: torch.dtype = torch.float32) -> list[nn.Parameter]:
        generator = torch.Generator().manual_seed(1)
        return [nn.Parameter(torch.randn(tuple(shape), generator=generator, dtype=torch.float64).to(dtype)) for shape in shapes]

    @staticmethod
    def gradients(params: Iterable[Tensor], step: int) -> list[Tensor]:
        generator = torch.Generator().manual_seed(100 + step)
        return [torch.randn(p.shape, generator=generator, dtype=torch.float64).to(p.dtype) for p in params]

    @staticmethod
    def train(optimizer: torch.optim.Optimizer, steps: Iterable[int], each: Callable[[int], Any] = lambda step: None) -> None:
        params = [p for group in optimizer.param_groups for p in group["params"]]
        for step in steps:
            for p, g in zip(params, Twins.gradients(params, step), strict=True):
                p.grad = torch.empty_like(p).copy_(g)
            optimizer.step()
            each(step)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """The device that every optimizer of the test records on."""
    device = StandIn()
    monkeypatch.setattr("musgd.replay.open_device", lambda _: device)
    return device


@pytest.fixture(scope="session")
def same_bits() -> SameBits:
    """Same dtype, shape and bytes: -0.0 is not 0.0, and NaN equals itself."""
    return _same_bits


@pytest.fixture(scope="session")
def distance() -> Distance:
    """Norm of the difference over the norm of the second, in float64."""
    return _distance


@pytest.fixture(scope="session")
def reference() -> type[Reference]:
    return Reference


@pytest.fixture(scope="session")
def twins() -> type[Twins]:
    return Twins


@pytest.fixture(params=["kernels", "operations"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """By the Triton kernels, or by torch's operations as where Triton is missing."""
    device = torch.device("cuda", 0)
    if request.param == "operations":
        monkeypatch.setitem(musgd.packed._REASONS, device, "as told by a test")
    else:
        assert musgd.packed.why_not(device) is None
    return str(request.param)
