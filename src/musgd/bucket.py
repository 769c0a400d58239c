"""Buckets: the parameters of one group that have gradients, by device and dtype, in the order in which the update wants them."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

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
        is_whole: The bucket is the group, in its order.
    """

    group: int
    params: list[Tensor]
    places: list[int]
    is_whole: bool

    @property
    def name(self) -> Name:
        """What tells it from the others of one step."""
        return self.group, self.params[0].device, self.params[0].dtype

    def pick(self, gradients: Gradients) -> list[Tensor]:
        """The bucket's own of the group's gradients."""
        if self.is_whole:
            return cast(list[Tensor], gradients)
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
        self._lie = lie(self._params)

    def holds(self, params: Sequence[Tensor], gradients: Gradients) -> bool:
        """Whether these are the same parameters, unmoved, and the same ones have gradients. Costs about 0.2 us a parameter."""
        # gate: equivalent [arguments-swapped] being the same objects is symmetric
        return are(params, self._params) and [g is None for g in gradients] == self._missing and lie(self._params) == self._lie


def are(some: Sequence[object], others: Sequence[object]) -> bool:
    """Whether two sequences hold the same objects."""
    return len(some) == len(others) and all(map(operator.is_, some, others))


def lie(tensors: Sequence[Tensor]) -> tuple[tuple[Any, ...], ...]:
    """Addresses, dtypes and strides: a block may come back to its tensor in another layout. A parameter cannot change its sizes alone."""
    return tuple(map(Tensor.data_ptr, tensors)), tuple(map(_dtype, tensors)), tuple(map(Tensor.stride, tensors))


def _split(group: int, params: Sequence[Tensor], gradients: Gradients) -> Iterator[Bucket]:
    buckets: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for i, (p, g) in enumerate(zip(params, gradients, strict=True)):
        if g is not None:
            buckets.setdefault((p.device, p.dtype), []).append(i)
    for places in buckets.values():
        places.sort(key=lambda i: is_matrix(params[i]), reverse=True)
        yield Bucket(group, [params[i] for i in places], places, places == list(range(len(params))))


_dtype = operator.attrgetter("dtype")
