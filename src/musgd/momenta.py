"""The momenta of parameters: their keys, how they begin, and whether they are still where they were."""

from __future__ import annotations

from collections.abc import Hashable, MutableMapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from musgd.bucket import are, lie
from musgd.update import Form, Inputs, is_laid_like, is_matrix, laid_like

MUON = SGD = "momentum_buffer"
HYBRID_SGD = "momentum_buffer_SGD"
State = MutableMapping[Tensor, dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Momenta:
    """The momenta of a bucket where they lay when they were read.

    Attributes:
        tensors: Muon momenta, then SGD momenta.
        states: The state of each one's parameter.
        keys: Its key there.
    """

    tensors: list[Tensor]
    states: list[dict[str, Any]]
    keys: list[str]
    addresses: list[int]

    @classmethod
    def of(cls, states: list[dict[str, Any]], keys: list[str]) -> Momenta:
        """Those that the states hold now."""
        tensors = [state[key] for state, key in zip(states, keys, strict=True)]
        return cls(tensors, states, keys, list(map(Tensor.data_ptr, tensors)))

    def are_there(self) -> bool:
        """Whether the states still hold these tensors, unmoved. Costs about 0.1 us a tensor."""
        held = list(map(dict.get, self.states, self.keys))
        # gate: equivalent [arguments-swapped] being the same objects is symmetric
        return are(held, self.tensors) and list(map(Tensor.data_ptr, self.tensors)) == self.addresses

    def facts(self) -> Hashable:
        """Which these are, and how they lie."""
        return tuple(map(id, self.tensors)), lie(self.tensors)


def lay_momenta(state: State, params: list[Tensor], form: Form) -> Momenta:
    """The momenta of parameters, matrices first, made where they are missing, in the layout that the parameters have now."""
    matrices = [p for p in params if form.use_muon and is_matrix(p)]
    keys = [MUON] * len(matrices) + [HYBRID_SGD if form.use_muon else SGD] * len(params)
    for p, key in zip([*matrices, *params], keys, strict=True):
        _lay(state[p], key, p)
    return Momenta.of([state[p] for p in [*matrices, *params]], keys)


def gather(state: State, params: list[Tensor], gradients: list[Tensor], form: Form) -> Inputs:
    """What a preparation needs of these parameters, their gradients and momenta, all laid like the parameters."""
    momenta = lay_momenta(state, params, form).tensors
    matrices = len(momenta) - len(params)
    g = [laid_like(g, p) for g, p in zip(gradients, params, strict=True)]
    return Inputs(params, g, momenta[:matrices], momenta[matrices:])


def _lay(state: dict[str, Any], key: str, p: Tensor) -> None:
    momentum: Tensor | None = state.get(key)
    # gate: equivalent [arguments-swapped] being laid alike is symmetric
    if momentum is None or not is_laid_like(momentum, p):
        with torch.inference_mode(False), torch.no_grad():
            # -0.0 is the identity of addition (0.0 is not: 0.0 + -0.0 is 0.0), so that the first v is the gradient bit for bit.
            state[key] = torch.full_like(p, -0.0, requires_grad=False) if momentum is None else laid_like(momentum, p)
