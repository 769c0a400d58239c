"""Where the tensors and arrays of a phase lie, and whether they still are what they were.

Everything that makes up a leaf of a plain tensor is looked at on every step, for all tensors at once: class, dtype, shape, strides,
address, and the bits of a lazy view. That costs half a microsecond a tensor, and then the view of its memory that was made before can be
read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from golden import arrays, memory, scalars
from golden.memory import View

HOST = "cpu"  # the memory that can be read where it lies

_dtype = attrgetter("dtype")
_shape = attrgetter("shape")
_itemsize = attrgetter("itemsize")
_IMMUTABLE = {type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, scalars.ParameterNames}
_OTHER = object()


class Tensors:
    """The plain tensors of a phase, in order. Keeps none of them alive.

    Attributes:
        addresses: of their first elements.
        spans: bytes from first to last element.
        spaces: kinds of memory that the addresses are in.
        sizes: logical bytes of each.
        views: of what lies in the host's memory, None elsewhere and for lazy views.
        pending: for this step, the place of each tensor without a view, and that tensor.
    """

    def __init__(self, found: Sequence[Tensor]) -> None:
        self._classes = list(map(type, found))
        self._dtypes = list(map(_dtype, found))
        self._shapes = list(map(_shape, found))
        self._strides = list(map(Tensor.stride, found))
        self._negative = list(map(Tensor.is_neg, found))
        self._complex = [place for place, dtype in enumerate(self._dtypes) if dtype.is_complex]
        self._conjugate = [found[place].is_conj() for place in self._complex]
        lazy = {place for place, conjugate in zip(self._complex, self._conjugate, strict=True) if conjugate}
        self._lazy = lazy.union(place for place, negative in enumerate(self._negative) if negative)
        items = list(map(_itemsize, self._dtypes))
        self.sizes: list[int] = [shape.numel() * item for shape, item in zip(self._shapes, items, strict=True)]
        self.spans = [
            memory.reach(shape, [stride * item for stride in strides], item)[1]
            for shape, strides, item in zip(self._shapes, self._strides, items, strict=True)
        ]
        self.addresses = list(map(Tensor.data_ptr, found))
        self.spaces = [_space(tensor) for tensor in found]
        self.views: list[View | None] = [self._view(place, tensor) for place, tensor in enumerate(found)]
        self._viewless = [place for place, view in enumerate(self.views) if view is None]
        self.pending = self._pend(found)

    def follow(self, found: Sequence[Any]) -> bool:
        """Whether these, the tensors of the next step, are the same but for bytes and addresses. If so, they are what is read next."""
        if list(map(type, found)) != self._classes:
            return False
        try:
            if not self._same(found):
                return False
            addresses = list(map(Tensor.data_ptr, found))
        except RuntimeError:  # sparse, nested, wrapped: no longer plain
            return False
        if addresses != self.addresses and not self._moved(found, addresses):
            return False
        self.pending = self._pend(found)
        return True

    def _same(self, found: Sequence[Tensor]) -> bool:
        return (
            list(map(_dtype, found)) == self._dtypes
            and list(map(_shape, found)) == self._shapes
            and list(map(Tensor.stride, found)) == self._strides
            and list(map(Tensor.is_neg, found)) == self._negative
            and [found[place].is_conj() for place in self._complex] == self._conjugate
        )

    def _moved(self, found: Sequence[Tensor], addresses: list[int]) -> bool:
        """Finds the views of tensors that lie elsewhere now. Whatever else may have changed with the address is checked for these alone."""
        for place, (before, address) in enumerate(zip(self.addresses, addresses, strict=True)):
            if before == address:
                continue
            tensor = found[place]
            # Of all that makes a tensor plain, device and storage alone can differ here: the rest has another dtype, or no address.
            elsewhere = not tensor.is_cpu if self.spaces[place] == HOST else _space(tensor) != self.spaces[place]
            if elsewhere or (self.spans[place] and not address):
                return False
            if isinstance(self.views[place], memoryview):
                self.views[place] = memory.at(address, self.sizes[place])
            else:
                self.views[place] = self._view(place, tensor)
        self.addresses = addresses
        return True

    def _pend(self, found: Sequence[Tensor]) -> list[tuple[int, Tensor]]:
        return [(place, found[place]) for place in self._viewless]

    def _view(self, place: int, tensor: Tensor) -> View | None:
        if self.spaces[place] != HOST or place in self._lazy:
            return None
        return view(tensor)


class Arrays:
    """The plain arrays of a phase, in order. They are few: each is looked at by itself.

    Attributes:
        addresses: of the lowest byte, for those with negative strides not that of the first element.
        spans: bytes from first to last element.
        sizes: logical bytes of each.
        views: of this step's bytes.
    """

    def __init__(self, found: Sequence[Any]) -> None:
        self._facts = [_facts(array) for array in found]
        self.sizes: list[int] = [array.nbytes for array in found]
        self._read(found)

    def follow(self, found: Sequence[Any]) -> bool:
        """Whether these are the same but for bytes and addresses. If so, they are what is read next."""
        if not all(type(array) is np.ndarray for array in found) or [_facts(array) for array in found] != self._facts:
            return False
        self._read(found)
        return True

    def _read(self, found: Sequence[arrays.Array]) -> None:
        reaches = [memory.reach(array.shape, array.strides, array.itemsize) for array in found]
        self.addresses = [arrays.address(array) + below for array, (below, _) in zip(found, reaches, strict=True)]
        self.spans = [span for _, span in reaches]
        self.views = [arrays.view(array) for array in found]


class Texts:
    """The scalars of a phase, in order.

    Attributes:
        data: exact text of each in UTF-8.
        written: places of those that have changed since this was emptied.
    """

    def __init__(self, found: Sequence[Any]) -> None:
        known = [scalars.exact(value) for value in found]
        self._types = [scalar.type for scalar in known]
        self._values = [_kept(value) for value in found]
        self.data = [scalar.text.encode() for scalar in known]
        self.written = set(range(len(self.data)))

    def follow(self, found: Sequence[Any]) -> bool:
        """Whether these have the same types. If so, they are what is read next; only what is another object is written anew."""
        for place, (value, before) in enumerate(zip(found, self._values, strict=True)):
            if value is before:
                continue
            if not scalars.is_scalar(value):
                return False
            scalar = scalars.exact(value)
            if scalar.type != self._types[place]:
                return False
            self._values[place] = _kept(value)
            self.data[place] = scalar.text.encode()
            self.written.add(place)
        return True


def _facts(array: Any) -> tuple[Any, ...]:
    return array.dtype, array.shape, array.strides


def _kept(value: Any) -> Any:
    """The value itself where it cannot change and holds nothing else alive, else an object that no value is."""
    return value if type(value) in _IMMUTABLE else _OTHER


def _space(tensor: Tensor) -> str:
    return str(tensor.device.type)


def view(tensor: Tensor) -> View:
    """The bytes of a plain tensor in the host's memory, where they lie."""
    item = tensor.dtype.itemsize
    return memory.strided(tensor.data_ptr(), tensor.shape, [stride * item for stride in tensor.stride()], item)


def resolved(tensor: Tensor) -> Tensor:
    """The values that a lazily conjugated or negated view reads as: a copy, where it is one."""
    with torch.no_grad(), torch._C.DisableTorchFunction():  # modes have no say in what a tensor is
        return tensor.resolve_conj().resolve_neg()
