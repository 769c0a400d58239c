"""Known answers of the portable profile: digests of small computations that every machine which keeps it gives alike.

One digest an aspect, so that a report can say which part of the profile a machine does not keep. The inputs are made of integers:
no aspect depends on the arithmetic of another. What torch 2.4 to 2.14 or numpy 1.26 to 2.5 themselves compute in different ways
(torch: sqrt, exponential_, bernoulli, inverse; numpy: singular values, matrix times a column of another) is no part of an answer.
"""

from __future__ import annotations

import hashlib
import math
import platform
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

Array = npt.NDArray[Any]

# On Linux x86-64 with FMA: equal on an AMD and an Intel host, under torch 2.4.0, 2.9.1, 2.11.0, 2.13.0 and 2.14.1,
# and under numpy 1.26.0 to 2.5.5.
EXPECTED = {
    "torch-fp32": "1e054cac73be65ac",
    "torch-bf16": "76ade25309078d16",
    "torch-functions": "f4556d44f20d6883",
    "torch-products": "9d7cbfa8349d05df",
    "torch-random": "434e7396c50a5859",
    "numpy-functions": "9172aa07f0bb4145",
    "numpy-products": "9f6427afaafab92b",
    "libm": "0a42902db2afdb4d",
}


@dataclass(frozen=True)
class Answers:
    """What this machine answers, and what it should.

    Attributes:
        expected: digest by aspect; empty on a system for which no answers are known.
        actual: digest by aspect, of this process.
    """

    expected: dict[str, str]
    actual: dict[str, str]

    @property
    def broken(self) -> tuple[str, ...]:
        """The aspects in which this process does not keep the profile."""
        return tuple(aspect for aspect, digest in self.expected.items() if self.actual[aspect] != digest)

    @property
    def honoured(self) -> bool | None:
        """Whether this process keeps the profile; None where no answers are known."""
        return not self.broken if self.expected else None


def check() -> Answers:
    """Computes every answer in this process, which has to have been started under the portable profile. Takes half a second."""
    measured = platform.system() == "Linux" and platform.machine() == "x86_64"
    return Answers(EXPECTED if measured else {}, {aspect: _digest(compute()) for aspect, compute in ASPECTS.items()})


def _numbers(shape: tuple[int, ...], seed: int) -> npt.NDArray[np.float64]:
    """Numbers of full precision in [-1, 1), from a linear congruential generator."""
    state, count = seed * 2654435761 + 1, math.prod(shape)
    found = np.empty(count, dtype=np.int64)
    for index in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        found[index] = (state >> 11) - 2**52
    return (found / 2.0**52).reshape(shape)


def _tensor(shape: tuple[int, ...], seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.from_numpy(_numbers(shape, seed)).to(dtype)


def _digest(values: Iterable[Tensor | Array]) -> str:
    found = hashlib.sha256()
    for value in values:
        bits = value.detach().contiguous().reshape(-1).view(torch.uint8).numpy() if isinstance(value, Tensor) else value
        found.update(np.ascontiguousarray(bits).tobytes())
    return found.hexdigest()[:16]


def _newton_schulz(G: Tensor) -> Tensor:
    """Five steps from G, (m, n) with m <= n, towards the nearest matrix with orthonormal rows, in the dtype of G."""
    X: Tensor = G / (G.norm() + 1e-7)
    for _ in range(5):
        A = X @ X.T
        X = 3.4445 * X + (-4.7750 * A + 2.0315 * A @ A) @ X
    return X


def _model() -> nn.Sequential:
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False, dtype=torch.float32),
        nn.BatchNorm2d(16, dtype=torch.float32),
        nn.SiLU(),
        nn.Conv2d(16, 24, 3, stride=2, padding=1, bias=False, dtype=torch.float32),
        nn.BatchNorm2d(24, dtype=torch.float32),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(96, 10, dtype=torch.float32),
    )
    with torch.no_grad():
        for index, weight in enumerate(model.parameters()):
            weight.copy_(_tensor(tuple(weight.shape), 10 + index) * 0.25)
    return model


def _fp32() -> Iterator[Tensor]:
    """Three steps of the network under momentum SGD, the second convolution's by Newton-Schulz; and a sum that threads would split."""
    model = _model()
    weights = list(model.parameters())
    momenta = [torch.zeros_like(weight) for weight in weights]
    images, labels = _tensor((16, 3, 16, 16), 1), torch.arange(16) % 10
    for _ in range(3):
        loss = nn.functional.cross_entropy(model(images), labels)
        gradients = torch.autograd.grad(loss, weights)
        for weight, momentum, gradient in zip(weights, momenta, gradients, strict=True):
            momentum.mul_(0.9).add_(gradient)
            hybrid = weight.shape == (24, 16, 3, 3)
            step = _newton_schulz(momentum.reshape(24, -1)).reshape(weight.shape) if hybrid else momentum
            weight.data.sub_(step, alpha=0.05)
        yield from (loss, *gradients)
    yield from model.state_dict().values()
    yield images.expand(8, -1, -1, -1, -1).reshape(-1).sum()


def _bf16() -> Iterator[Tensor]:
    a, b = _tensor((64, 160), 2, torch.bfloat16), _tensor((160, 96), 3, torch.bfloat16)
    yield from (_newton_schulz(a), a @ b)
    images = _tensor((2, 8, 9, 9), 4, torch.bfloat16)
    yield nn.functional.conv2d(images, _tensor((8, 8, 3, 3), 5, torch.bfloat16))
    yield nn.functional.batch_norm(images, torch.zeros(8), torch.ones(8), training=True)


def _torch_functions() -> Iterator[Tensor]:
    for dtype in (torch.float32, torch.float64):
        x = _tensor((1003,), 6, dtype) * 4
        y = x.abs() + 0.125
        yield from (x.exp(), y.log(), x.tanh(), y.pow(x), x.sin(), x.cos(), x.sigmoid(), x.erf(), y.rsqrt(), x.expm1(), y.log1p())
        yield from (x.softmax(0), x.logsumexp(0), nn.functional.gelu(x), x.cumsum(0), x.sum(), x.var())


def _torch_products() -> Iterator[Tensor]:
    a, b = _tensor((96, 300), 7, torch.float64), _tensor((300, 64), 8, torch.float64)
    yield from (a @ b, a.T @ a, a @ a.T, a @ b[:, 0], a[0] @ b[:, 0])


def _torch_random() -> Iterator[Tensor]:
    generator = torch.Generator("cpu").manual_seed(7)
    for dtype in (torch.float32, torch.float64):
        for count in (7, 101):  # below 16 normal numbers are made one by one
            yield from (torch.rand(count, generator=generator, dtype=dtype), torch.randn(count, generator=generator, dtype=dtype))
    yield from (torch.randperm(101, generator=generator), torch.randint(1000, (101,), generator=generator))


def _numpy_functions() -> Iterator[Array]:
    for dtype in (np.float32, np.float64):
        x = (_numbers((1003,), 6) * 4).astype(dtype)
        y = np.abs(x) + dtype(0.125)
        yield from (np.exp(x), np.log(y), np.tanh(x), np.power(y, x), np.sin(x), np.cos(x), np.exp2(x), np.expm1(x), np.log1p(y))
        yield from (np.sqrt(y), np.arctan(x), np.cbrt(x), np.arcsinh(x), np.cumsum(x), np.asarray(x.sum()), np.asarray(x.std()))
        yield np.random.default_rng(7).standard_normal(101, dtype=dtype)


def _numpy_products() -> Iterator[Array]:
    for dtype in (np.float32, np.float64):
        for index, (m, k, n) in enumerate(((3, 5, 7), (33, 65, 17), (96, 300, 64))):
            a, b = _numbers((m, k), 20 + index).astype(dtype), _numbers((k, n), 30 + index).astype(dtype)
            yield from (a @ b, a.T @ a, a @ a.T, b.T @ a[0], np.asarray(a[0] @ b[:, 0]))


def _libm() -> Iterator[Array]:
    x = [float(value) * 4 for value in _numbers((501,), 9)]
    y = [abs(value) + 0.125 for value in x]
    for function in (math.exp, math.sin, math.cos, math.tan, math.atan):
        yield np.array([function(value) for value in x])
    yield np.array([math.log(value) for value in y])
    yield np.array([math.pow(base, power) for base, power in zip(y, x, strict=True)])


ASPECTS: dict[str, Callable[[], Iterable[Tensor | Array]]] = {
    "torch-fp32": _fp32,
    "torch-bf16": _bf16,
    "torch-functions": _torch_functions,
    "torch-products": _torch_products,
    "torch-random": _torch_random,
    "numpy-functions": _numpy_functions,
    "numpy-products": _numpy_products,
    "libm": _libm,
}
