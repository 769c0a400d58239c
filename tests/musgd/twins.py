"""A replaying optimizer on a GPU beside its eager twin, and what tests ask of the two."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from musgd import MuSGD

ROOT = Path(__file__).parents[2]
SHAPES = ((64, 32, 3, 3), (16, 1, 3, 3), (64, 32, 3, 3), (24, 40), (40, 24), (130, 70), (64,), (), (7,))
OPTIONS: dict[str, Any] = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.05, "nesterov": True, "use_muon": True}
MODES = ("capture_updates", "capture_orthogonalization")


def weights(*shapes: Sequence[int], dtype: torch.dtype = torch.float32) -> list[nn.Parameter]:
    """Parameters on the GPU, the same ones each time."""
    generator = torch.Generator().manual_seed(1)
    return [nn.Parameter(torch.randn(tuple(shape), generator=generator).to("cuda", dtype)) for shape in shapes]


def params(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def gradients(optimizer: torch.optim.Optimizer, step: int) -> None:
    """Set gradients that depend on the step alone."""
    generator = torch.Generator().manual_seed(100 + step)
    for p in params(optimizer):
        p.grad = torch.empty_like(p).copy_(torch.randn(p.shape, generator=generator))


def train(optimizers: MuSGD | Iterable[MuSGD], steps: Iterable[int], each: Callable[[MuSGD, int], object] = lambda o, step: None) -> None:
    pair = [optimizers] if isinstance(optimizers, MuSGD) else list(optimizers)
    for step in steps:
        for optimizer in pair:
            each(optimizer, step)
            gradients(optimizer, step)
            optimizer.step()


def bits(x: Tensor) -> Tensor:
    return x.detach().contiguous().reshape(-1).view(torch.uint8)


def same(a: MuSGD, b: MuSGD) -> bool:
    """Weights and states, key for key, as integers."""
    for p, q in zip(params(a), params(b), strict=True):
        if list(a.state[p]) != list(b.state[q]):
            return False
        pairs = [(p, q), *((a.state[p][key], b.state[q][key]) for key in a.state[p])]
        if not all(x.dtype == y.dtype and x.stride() == y.stride() and torch.equal(bits(x), bits(y)) for x, y in pairs):
            return False
    return True


def pair(*shapes: Sequence[int], mode: str = "capture_updates", **options: Any) -> tuple[MuSGD, MuSGD]:
    """A replaying optimizer, for which fallbacks are errors unless the options say otherwise, and its eager twin."""
    common = {**OPTIONS, **options}
    on_fallback = common.pop("on_fallback", "raise")
    dtype = common.pop("dtype", torch.float32)
    replayed, eager = (MuSGD(weights(*(shapes or SHAPES), dtype=dtype), **common) for _ in range(2))
    setattr(replayed, mode, True)
    replayed.on_fallback = on_fallback
    return replayed, eager


def counts(optimizer: MuSGD) -> tuple[int, int]:
    """Recordings and replays."""
    status = optimizer.replay_status()
    return sum(each.recordings for each in status), sum(each.replays for each in status)


def ends_equal(replayed: MuSGD, eager: MuSGD, replays: int, recordings: int | None = None) -> None:
    """The claim of every case, with its negative control."""
    assert same(replayed, eager)
    assert counts(replayed)[1] == replays
    assert recordings is None or counts(replayed)[0] == recordings
    kept = params(eager)[0].detach().clone()
    params(eager)[0].detach().neg_()
    assert not same(replayed, eager)
    params(eager)[0].detach().copy_(kept)


def reserved() -> int:
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return torch.cuda.memory_reserved()
