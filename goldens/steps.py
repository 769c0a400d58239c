"""Single optimizer steps on the 366 parameters of a nano detector, for `gate bench musgd-step`; no golden is recorded of them.

The gradients are there before a step begins, three whole sets that take turns; what is timed is `optimizer.step()` alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import golden
from musgd import MuSGD

SHAPES = Path(__file__).parent.parent / "tests" / "musgd" / "shapes.json"
SETS = 3


def musgd(record: golden.Recorder) -> None:
    """MuSGD with the usual split, eagerly or by what `record.parameters` asks of its replay."""
    parameters = make(record.device)
    matrices, others = [p for p in parameters if p.dim() > 1], [p for p in parameters if p.dim() <= 1]
    groups: list[dict[str, Any]] = [
        {"params": matrices, "use_muon": True, "weight_decay": 5e-4},
        {"params": others, "use_muon": False, "weight_decay": 0.0},
    ]
    fit(record, parameters, MuSGD(groups, lr=0.01, momentum=0.9, nesterov=True, **record.parameters))


def muon(record: golden.Recorder) -> None:
    """torch's own Muon on the matrices alone, convolutions flattened as it takes nothing else."""
    parameters = [nn.Parameter(p.detach().flatten(1)) for p in make(record.device) if p.dim() > 1]
    fit(record, parameters, torch.optim.Muon(parameters, lr=0.01))


def sgd(record: golden.Recorder) -> None:
    """torch's own SGD in its fused form on all parameters."""
    parameters = make(record.device)
    fit(record, parameters, torch.optim.SGD(parameters, lr=0.01, momentum=0.9, nesterov=True, fused=True))


def fit(record: golden.Recorder, parameters: list[nn.Parameter], optimizer: torch.optim.Optimizer) -> None:
    """`record.steps` steps on gradients that were made before."""
    generator = torch.Generator(record.device).manual_seed(1)
    sets = [[torch.randn(p.shape, generator=generator, device=record.device) for p in parameters] for _ in range(SETS)]
    for step in range(record.steps):
        give(parameters, sets[step % SETS])
        record.mark()
        optimizer.step()
        record(optimizer=optimizer, weights=parameters)


def make(device: torch.device) -> list[nn.Parameter]:
    """The 366 parameters, float32, the same ones each time."""
    generator = torch.Generator().manual_seed(0)
    shapes = [entry["shape"] for entry in json.loads(SHAPES.read_text(encoding="utf-8"))]
    return [nn.Parameter(torch.randn(shape, generator=generator).mul(0.05).to(device)) for shape in shapes]


def give(parameters: list[nn.Parameter], gradients: list[Tensor]) -> None:
    """Each parameter its gradient of a set."""
    for p, g in zip(parameters, gradients, strict=True):
        p.grad = g
