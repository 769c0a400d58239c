"""Buckets: the parameters of one group that have gradients, by device and dtype, in the order in which the update wants them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from musgd.update import is_matrix

Gradients = list[Tensor | None]
Name = tuple[int, torch.device, torch.dtype]


@dataclass(frozen=True, eq=False)
class Bucket:
    """Parameters of one group, device and dtype.

    Attributes:
        group: Index of the group.
        params: Matrices first, else in the group's order. At least one.
        places: Where each stands in the group.
    """

    group: int
    params: list[Tensor]
    places: list[int]

    @property
    def name(self) -> Name:
        """What tells it from the others of one step."""
        return self.group, self.params[0].device, self.params[0].dtype

    def pick(self, gradients: Gradients) -> list[Tensor]:
        """The bucket's own of the group's gradients."""
        return [g for g in map(gradients.__getitem__, self.places) if g is not None]

    def facts(self) -> tuple[Any, ...]:
        """Which parameters these are, and where and how they lie in memory."""
        return tuple(map(id, self.params)), *lie(self.params)


class Split:
    """A group split into buckets, kept for as long as nothing that decides it changes."""

    def __init__(self, group: int, params: Sequence[Tensor], gradients: Gradients) -> None:
        self.buckets = list(_split(group, params, gradients))
        self._params = list(params)
        self._missing = [g is None for g in gradients]
        self._lie = lie(params)

    def holds(self, params: Sequence[Tensor], gradients: Gradients) -> bool:
        """Whether these are the same parameters, unmoved, and the same ones have gradients. Costs about 0.3 us a parameter."""
        return are(params, self._params) and [g is None for g in gradients] == self._missing and lie(params) == self._lie


def are(some: Sequence[object], others: Sequence[object]) -> bool:
    """Whether two sequences hold the same objects."""
    return len(some) == len(others) and all(map(operator.is_, some, others))


def lie(tensors: Sequence[Tensor]) -> tuple[tuple[Any, ...], ...]:
    """Addresses, strides and dtypes. Sizes are left out: a tensor cannot change them alone."""
    read: tuple[Callable[[Tensor], Any], ...] = (Tensor.data_ptr, Tensor.stride, _dtype)
    return tuple(tuple(map(each, tensors)) for each in read)


def _split(group: int, params: Sequence[Tensor], gradients: Gradients) -> Iterator[Bucket]:
    buckets: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for i, (p, g) in enumerate(zip(params, gradients, strict=True)):
        if g is not None:
            buckets.setdefault((p.device, p.dtype), []).append(i)
    for places in buckets.values():
        places.sort(key=lambda i: is_matrix(params[i]), reverse=True)
        yield Bucket(group, [params[i] for i in places], places)


_dtype = operator.attrgetter("dtype")
