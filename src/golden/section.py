"""One phase, kept across steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from golden import blocks
from golden.blocks import Arrays, Tensors, Texts
from golden.digest import EMPTY, digest, rows
from golden.errors import Refused, ScenarioFailed
from golden.leaf import Buffer
from golden.memory import View, digest_of, whole
from golden.names import Names
from golden.nodes import Flat
from golden.state import Builder

Rows: TypeAlias = "npt.NDArray[np.uint64]"


class Section:
    """A phase: its leaves, and where what they hold was found at the step that was followed last.

    Args:
        phase: its name.
        value: what was recorded under it.
        names: of parameters.

    Raises:
        Refused: for what cannot be recorded.
        ScenarioFailed: if the value's own code fails, or gives another structure each time it is asked.

    Attributes:
        leaves: in order; ``shares`` not filled in.
        named: whether names of parameters decide the paths.
        parameters: identities of the parameters of its Modules.
        places: int64 [n], of what lies in memory, among the leaves.
        spans: int64 [n], bytes from first to last element of those.
        spaces: which memory each of those is in.
    """

    def __init__(self, phase: str, value: Any, names: Names) -> None:
        builder = Builder(phase, names)
        self._node = builder.build(value)
        self.leaves = tuple(builder.leaves)
        self.named = builder.named
        self._flat = flat = Flat()
        if not self._node.visit(value, flat):
            raise ScenarioFailed(f"{phase}: its state has another structure each time it is read: record plain values")
        with torch._C.DisableTorchFunction():  # modes have no say in what a tensor is
            self._tensors = Tensors(flat.tensors)
        self._arrays, self._texts = Arrays(flat.arrays), Texts(flat.scalars)
        self.parameters = list(map(id, flat.parameters))
        held = [(place, leaf.type.startswith("numpy:")) for place, leaf in enumerate(self.leaves) if leaf.kind == "tensor"]
        self._tensor_places = [place for place, array in held if not array]
        self._array_places = [place for place, array in held if array]
        self._text_places = [place for place, leaf in enumerate(self.leaves) if leaf.kind == "scalar"]
        self._rows = np.repeat(rows([EMPTY]), len(self.leaves), axis=0)
        dense = [place for place, view in enumerate(self._tensors.views) if isinstance(view, memoryview)]
        self._dense_places = self._at(self._tensor_places, dense)
        self._has_spread = any(isinstance(view, np.ndarray) for view in self._tensors.views)
        self.places = np.array(self._tensor_places + self._array_places, np.int64)
        self.spans = np.array(self._tensors.spans + self._arrays.spans, np.int64)
        self.spaces = self._tensors.spaces + [blocks.HOST] * len(self._array_places)
        if len({leaf.path for leaf in self.leaves}) < len(self.leaves):
            path, _ = Counter(leaf.full for leaf in self.leaves).most_common(1)[0]
            raise Refused(path, "a path that stands for two values", "give one of them another name")

    def follow(self, value: Any) -> bool:
        """Whether the phase has the same leaves as before. If so, this step's values are what is read next."""
        flat = Flat()
        if not self._node.visit(value, flat):
            return False
        with torch._C.DisableTorchFunction():
            if not self._tensors.follow(flat.tensors):
                return False
        if not self._arrays.follow(flat.arrays) or not self._texts.follow(flat.scalars):
            return False
        self._flat = flat
        self.parameters = list(map(id, flat.parameters))
        return True

    def release(self) -> Flat:
        """Lets go of the step's values, and returns what holds them."""
        held, self._flat = self._flat, Flat()
        self._tensors.pending = []
        return held

    @property
    def nbytes(self) -> int:
        """Logical bytes of all leaves."""
        return sum(self._tensors.sizes) + sum(self._arrays.sizes) + sum(map(len, self._texts.data))

    @property
    def addresses(self) -> list[int]:
        """Addresses of what lies in memory, in the order of ``places``."""
        return self._tensors.addresses + self._arrays.addresses

    def pending(self) -> Iterator[tuple[int, Tensor]]:
        """Leaves whose bytes have to be brought here, with a tensor that holds their values."""
        for place, tensor in self._tensors.pending:
            yield self._tensor_places[place], tensor

    def dense(self) -> list[memoryview]:
        """Views of what is contiguous in the host's memory: most of it."""
        return [view for view in self._tensors.views if isinstance(view, memoryview)]

    def digests(self, dense: Rows) -> Rows:
        """Digests of the leaves, uint64 [leaves, 2]; those of what is pending as they were ``put``.

        Args:
            dense: digests of ``dense()``, uint64 [n, 2].
        """
        self._rows[self._dense_places] = dense
        if self._has_spread:
            for place, view in zip(self._tensor_places, self._tensors.views, strict=True):
                if isinstance(view, np.ndarray):
                    self.put(place, view)
        for place, array in zip(self._array_places, self._arrays.views, strict=True):
            self.put(place, array)
        if self._texts.written:
            written = list(self._texts.written)
            self._rows[self._at(self._text_places, written)] = rows(digest(self._texts.data[place]) for place in written)
            self._texts.written.clear()
        return self._rows

    def put(self, place: int, view: View) -> None:
        """Takes the bytes of a leaf that was pending."""
        self._rows[place] = rows([digest_of(view)])[0]

    def data(self) -> list[Buffer]:
        """Logical bytes of the leaves, nothing for those that are pending: memory as it is now, copies only where it is not contiguous."""
        found: list[Buffer] = [b""] * len(self.leaves)
        for place, view in zip(self._tensor_places, self._tensors.views, strict=True):
            if view is not None:
                found[place] = whole(view)
        for place, array in zip(self._array_places, self._arrays.views, strict=True):
            found[place] = whole(array)
        for place, text in zip(self._text_places, self._texts.data, strict=True):
            found[place] = text
        return found

    @staticmethod
    def _at(places: list[int], chosen: list[int]) -> npt.NDArray[np.intp]:
        return np.array([places[each] for each in chosen], np.intp)
