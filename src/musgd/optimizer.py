"""MuSGD as a torch.optim.Optimizer: groups, state, step. What a step computes stands in update.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, get_args, overload

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from musgd.update import Coefficients, Form, Inputs, Scale, is_laid_like, is_matrix, laid_like, prepare, write

if TYPE_CHECKING:
    from torch.optim.optimizer import ParamsT, StateDict

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
MUON = SGD = "momentum_buffer"
HYBRID_SGD = "momentum_buffer_SGD"
OPTIONS = ("lr", "momentum", "weight_decay", "nesterov", "use_muon", "maximize")


class MuSGD(Optimizer):
    """Momentum SGD, to whose update hybrid groups add an orthogonalised one (Muon).

    A hybrid group (`use_muon=True`) moves its weights by `muon` times the orthogonalised momentum plus `sgd` times the SGD update; its
    parameters of fewer than two dimensions, and empty ones, take the SGD half alone. Other groups are plain SGD with momentum.
    A parameter whose gradient is None is left alone, momentum included. Gradients are read, never written.

    State of a parameter, in its dtype and layout: `momentum_buffer` (of the Muon half, or an SGD group's own) and, in a hybrid group,
    `momentum_buffer_SGD`. `muon`, `sgd` and `scale` are attributes, neither group entries nor part of the state_dict.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        use_muon: bool = False,
        muon: float = 0.5,
        sgd: float = 0.5,
        *,
        scale: Scale = "matrix",
        maximize: bool = False,
    ) -> None:
        """Set up the groups; the first step makes the state.

        Args:
            params: Parameters or groups, as every torch optimizer takes them: float16, bfloat16, float32 or float64, dense.
            lr: Step length (of the Muon half: in spectral norm), at least 0. Keeps its Python type. Each group has its own copy of a
                tensor, which must have one element; on a GPU, reading it synchronises in each step.
            momentum: beta of both momenta, in [0, 1).
            weight_decay: lambda of the SGD half, at least 0.
            nesterov: Look ahead along both momenta.
            use_muon: Hybrid groups rather than SGD ones.
            muon: Weight of the Muon half in hybrid groups, at least 0.
            sgd: Weight of the SGD half in hybrid groups, at least 0.
            scale: Where a convolution's rows and columns are read from for sqrt(max(1, rows / columns)): "matrix" (first dimension, the
                rest) or "kernel" (the last two dimensions).
            maximize: Climb along the gradient.

        Raises:
            ValueError: An option out of its range, or a parameter of a dtype that cannot be trained.
        """
        for name, weight in (("muon", muon), ("sgd", sgd)):
            if not weight >= 0:
                raise ValueError(f"MuSGD: {name} is {weight}, must be at least 0")
        if scale not in get_args(Scale):
            raise ValueError(f"MuSGD: scale is {scale!r}, must be one of {', '.join(map(repr, get_args(Scale)))}")
        self.muon = muon
        self.sgd = sgd
        self.scale: Scale = scale
        options = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "nesterov": nesterov, "use_muon": use_muon}
        super().__init__(params, {**options, "maximize": maximize})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; options it lacks are the optimizer's own.

        Raises:
            ValueError: As at construction; the group is then not added.
        """
        super().add_param_group(param_group)
        group = self.param_groups.pop()
        _check_options(group, len(self.param_groups))
        _check_parameters(group, len(self.param_groups))
        if isinstance(group["lr"], Tensor):
            # Schedulers fill a tensor in place: groups that shared one would follow the last schedule.
            group["lr"] = group["lr"].detach().clone()
        self.param_groups.append(group)

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Do one step on every parameter that has a gradient.

        Args:
            closure: Evaluates the model again and returns the loss; run first, with gradients enabled.

        Returns:
            What the closure returned, or None.

        Raises:
            ValueError: A gradient is sparse; nothing has been changed then.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for i, group in enumerate(self.param_groups):
            _check_gradients(group, i)
        for group in self.param_groups:
            for params in _buckets(group["params"]):
                self._update(group, params)
        return loss

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Load what `state_dict` returned, here or in another implementation with these state keys.

        Options that the saved groups lack keep the optimizer's defaults. The momenta are copied: the source can step on.
        """
        super().load_state_dict(state_dict)
        for state in self.state.values():
            state.update({key: value.clone() for key, value in state.items() if isinstance(value, Tensor)})

    def __getstate__(self) -> dict[str, Any]:
        """What pickle and deepcopy keep."""
        return {**super().__getstate__(), "muon": self.muon, "sgd": self.sgd, "scale": self.scale}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore from pickle, deepcopy or a state_dict; the last may come from where `maximize` is unknown."""
        super().__setstate__(state)
        for group in self.param_groups:
            # Not all of self.defaults: torch adds an entry of its own there on loading, and a resumed group must have a fresh one's keys.
            for key in OPTIONS:
                group.setdefault(key, self.defaults[key])

    def _update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        """Update parameters of one group, device and dtype, which all have gradients."""
        coefficients = Coefficients(group["momentum"], group["weight_decay"], self.muon, self.sgd)
        form = Form(group["use_muon"], group["nesterov"], group["weight_decay"] != 0, group["maximize"], self.scale)
        inputs = self._inputs(params, form.use_muon)
        with torch.autocast(params[0].device.type, enabled=False):
            updates = prepare(inputs, coefficients, form)
        write(params, updates, float(group["lr"]))

    def _inputs(self, params: list[Tensor], use_muon: bool) -> Inputs:
        matrices = [p for p in params if use_muon and is_matrix(p)]
        return Inputs(
            W=params,
            g=[laid_like(p.grad, p) for p in params if p.grad is not None],
            m=[self._momentum(p, MUON) for p in matrices],
            v=[self._momentum(p, HYBRID_SGD if use_muon else SGD) for p in params],
        )

    def _momentum(self, p: Tensor, key: str) -> Tensor:
        """The momentum of that name, in the layout that the parameter has now."""
        state = self.state[p]
        momentum: Tensor | None = state.get(key)
        if momentum is None or not is_laid_like(momentum, p):
            with torch.inference_mode(False):
                # -0.0 is the identity of addition (0.0 is not: 0.0 + -0.0 is 0.0), so that the first v is the gradient bit for bit.
                momentum = state[key] = torch.full_like(p, -0.0, requires_grad=False) if momentum is None else laid_like(momentum, p)
        return momentum


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


def _buckets(params: Iterable[Tensor]) -> list[list[Tensor]]:
    """Parameters with gradients by device and dtype, in order, but matrices first."""
    buckets: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
    for p in params:
        if p.grad is not None:
            buckets.setdefault((p.device, p.dtype), []).append(p)
    return [sorted(bucket, key=is_matrix, reverse=True) for bucket in buckets.values()]


def _check_options(group: dict[str, Any], index: int) -> None:
    lr = group["lr"]
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError(f"MuSGD: lr of group {index} is a tensor of shape {tuple(lr.shape)}, must have one element")
    for name in ("lr", "weight_decay"):
        if not group[name] >= 0:
            raise ValueError(f"MuSGD: {name} of group {index} is {group[name]}, must be at least 0")
    if not 0 <= group["momentum"] < 1:
        raise ValueError(f"MuSGD: momentum of group {index} is {group['momentum']}, must be in [0, 1)")


def _check_parameters(group: dict[str, Any], index: int) -> None:
    for i, p in enumerate(group["params"]):
        if (p.is_floating_point() or p.is_complex()) and p.dtype not in DTYPES:
            names = ", ".join(str(dtype).removeprefix("torch.") for dtype in DTYPES)
            raise ValueError(f"MuSGD: {_place(group, index, i)} is {str(p.dtype).removeprefix('torch.')}; convert it to one of {names}")


def _check_gradients(group: dict[str, Any], index: int) -> None:
    for i, p in enumerate(group["params"]):
        if p.grad is not None and p.grad.layout != torch.strided:
            raise ValueError(f"MuSGD: {_place(group, index, i)} has a sparse gradient; make it dense (for an embedding: sparse=False)")


def _place(group: dict[str, Any], index: int, i: int) -> str:
    """How to find a parameter: by name where torch was given names, else by position."""
    name = f" {group['param_names'][i]!r}" if "param_names" in group else ""
    return f"parameter {i}{name} of group {index}, shape {tuple(group['params'][i].shape)},"
