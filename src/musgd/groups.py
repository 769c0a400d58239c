"""Parameter groups: how a module is usually split, and what a group must hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from musgd.bucket import Gradients

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def param_groups(module: nn.Module, **options: Any) -> list[dict[str, Any]]:
    """Split a module's parameters as usual: weights of 2 and 4 dimensions hybrid, norms, biases and the rest SGD without decay.

    Args:
        module: Every parameter of it is in one of the groups, frozen ones too, shared ones once.
        options: Entries for both groups (`lr`, `momentum`, ...); `weight_decay` is for the hybrid group alone.

    Returns:
        At most two groups, hybrid first; a group that would be empty is left out.
    """
    hybrid: list[Tensor] = []
    rest: list[Tensor] = []
    for owner, name, p in _parameters(module):
        is_weight = "bias" not in name and not isinstance(owner, (nn.LayerNorm, nn.RMSNorm))
        (hybrid if is_weight and p.dim() in (2, 4) else rest).append(p)
    groups = [
        {**options, "params": hybrid, "use_muon": True},
        {**options, "params": rest, "use_muon": False, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def _parameters(module: nn.Module) -> Iterator[tuple[nn.Module, str, Tensor]]:
    """Each parameter once: the module that holds it first, its name there, itself."""
    seen: set[Tensor] = set()
    for owner in module.modules():
        for name, p in owner.named_parameters(recurse=False):
            if p not in seen:
                seen.add(p)
                yield owner, name, p


def check_options(group: dict[str, Any], index: int) -> None:
    """Raise ValueError where an option is out of its range."""
    lr = group["lr"]
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError(f"MuSGD: lr of group {index} is a tensor of shape {tuple(lr.shape)}, must have one element")
    for name in ("lr", "weight_decay"):
        if not group[name] >= 0:
            raise ValueError(f"MuSGD: {name} of group {index} is {group[name]}, must be at least 0")
    if not 0 <= group["momentum"] < 1:
        raise ValueError(f"MuSGD: momentum of group {index} is {group['momentum']}, must be in [0, 1)")


def check_parameters(group: dict[str, Any], index: int) -> None:
    """Raise ValueError where a parameter has a dtype that cannot be trained."""
    for i, p in enumerate(group["params"]):
        if (p.is_floating_point() or p.is_complex()) and p.dtype not in DTYPES:
            names = ", ".join(str(dtype).removeprefix("torch.") for dtype in DTYPES)
            raise ValueError(f"MuSGD: {_place(group, index, i)} is {str(p.dtype).removeprefix('torch.')}; convert it to one of {names}")


def check_gradients(group: dict[str, Any], index: int, gradients: Gradients) -> None:
    """Raise ValueError, naming the parameter, where a gradient is sparse."""
    for i, g in enumerate(gradients):
        if g is not None and g.layout is not torch.strided:
            raise ValueError(f"MuSGD: {_place(group, index, i)} has a sparse gradient; make it dense (for an embedding: sparse=False)")


def _place(group: dict[str, Any], index: int, i: int) -> str:
    """How to find a parameter: by name where torch was given names, else by position."""
    name = f" {group['param_names'][i]!r}" if "param_names" in group else ""
    return f"parameter {i}{name} of group {index}, shape {tuple(group['params'][i].shape)},"
