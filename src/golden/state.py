"""The training state as leaves: what a phase consists of, and under which paths.

================================  ======================  ==========================================================================
value                             leaf                    below it
================================  ======================  ==========================================================================
plain tensor, plain array         tensor                  (all others: golden.tensors, golden.arrays)
scalar                            scalar                  (golden.scalars)
Module                            ``module``              ``0.weight``: parameters and buffers (persistent or not) as in state_dict(),
                                                          ``_extra_state``, what an own ``_save_to_state_dict`` adds; None is left out
optimizer, anything that has      ``optimizer``           (golden.optimizers, golden.parts)
state_dict()                      ``state_dict``
mapping                           its class's name        a path for each key (golden.paths)
sequence                          its class's name        0, 1, 2
what consists of parts            (golden.parts)          its parts
================================  ======================  ==========================================================================

A container that holds itself, or more than 100 containers one inside the other, is refused with its path. What stands under two paths is
recorded under both; ``shares`` says so.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module

from golden import arrays, memory, paths, scalars, tensors
from golden.errors import Refused, ScenarioFailed
from golden.grads import Gradients
from golden.leaf import Leaf
from golden.names import Names
from golden.nodes import ARRAY, SCALAR, TENSOR, MappingNode, ModuleNode, Node, PartsNode, SequenceNode, Table, Unit
from golden.parts import described, expansion, has_state

DEEPEST = 100
_EXTRA = "_extra_state"


class Builder:
    """Builds the node of a phase, and collects its leaves.

    Args:
        phase: its name.
        names: of parameters.

    Attributes:
        leaves: in the order in which the nodes hand out what they hold; ``shares`` not filled in.
        named: whether the phase holds an optimizer, so that names decide its paths.
    """

    def __init__(self, phase: str, names: Names) -> None:
        self.phase, self.names = phase, names
        self.leaves: list[Leaf] = []
        self.named = False
        self._around: list[int] = []

    def build(self, value: Any, path: str = "") -> Node:
        """The node for a value at a path.

        Raises:
            Refused: for what cannot be recorded.
            ScenarioFailed: if the value's own code fails.
        """
        if isinstance(value, Tensor):
            if tensors.plain(value):
                return self._tensor(value, path)
        elif isinstance(value, np.ndarray):
            if arrays.plain(value):
                return self._array(value, path)
        elif scalars.is_scalar(value):
            self._leaf(path, "scalar", scalars.exact(value).type)
            return SCALAR
        return self._container(value, path)

    def _leaf(self, path: str, kind: str, text: str, shape: Sequence[int] | None = None, strides: tuple[int, ...] | None = None) -> None:
        self.leaves.append(Leaf(self.phase, path, kind, text, None if shape is None else tuple(shape), strides))

    def _full(self, path: str) -> str:
        return paths.full(self.phase, path)

    def _tensor(self, tensor: Tensor, path: str) -> Node:
        tensors.check(tensor, self._full(path))
        self._leaf(path, "tensor", tensors.name(tensor.dtype), tensor.shape, memory.canonical(tensor.shape, tensor.stride()))
        return TENSOR

    def _array(self, array: arrays.Array, path: str) -> Node:
        arrays.check(array, self._full(path))
        self._leaf(path, "tensor", arrays.name(array.dtype), array.shape, memory.canonical(array.shape, arrays.strides(array)))
        return ARRAY

    def _container(self, value: Any, path: str) -> Node:
        """A value with others inside: none of them may be what it stands in."""
        if id(value) in self._around:
            raise Refused(self._full(path), described(value), "it holds itself: record a part that does not")
        if len(self._around) >= DEEPEST:
            raise Refused(self._full(path), described(value), f"it lies inside {DEEPEST} other containers: record the inner one by itself")
        self._around.append(id(value))
        node = self._opened(value, path)
        self._around.pop()
        return node

    def _opened(self, value: Any, path: str) -> Node:
        if isinstance(value, Module):
            self._leaf(path, "container", "module")
            return self._module(value, path)
        if isinstance(value, Mapping) and not has_state(value):
            self._leaf(path, "container", "dict" if type(value) is Gradients else type(value).__name__)
            return self._mapping(value, path)
        if _is_sequence(value) and not has_state(value):
            self._leaf(path, "container", "torch.Size" if type(value) is torch.Size else type(value).__name__)
            return SequenceNode(value, [self.build(element, paths.join(path, str(index))) for index, element in enumerate(value)])
        return self._parts(value, path)

    def _parts(self, value: Any, path: str) -> Node:
        rule = expansion(value, self._full(path), self.names)
        found = rule(value)
        assert found is not None
        self._leaf(path, "container", found[0])
        self.named = self.named or found[0] == "optimizer"
        return PartsNode(type(value), rule, found[0], self._mapping(found[1], path))

    def _mapping(self, mapping: Mapping[Any, Any], path: str) -> Node:
        segments = [paths.segment(key, self._full(path)) for key in mapping]
        nodes = [self.build(value, paths.join(path, segment)) for segment, value in zip(segments, mapping.values(), strict=True)]
        return MappingNode(mapping, segments, nodes)

    def _module(self, module: Module, path: str) -> Node:
        units: list[Unit] = []
        self._unit(module, path, "", units)
        return ModuleNode(units)

    def _unit(self, module: Module, path: str, prefix: str, units: list[Unit]) -> None:
        """A Module and its children; ``prefix`` is its name in the outermost one, with a dot after it."""
        parameters = self._table(module._parameters, path, prefix)
        buffers = self._table(module._buffers, path, prefix)
        extra = self._extra(module, path, prefix)
        children = module._modules
        absent = frozenset(name for name, child in children.items() if child is None)
        units.append(Unit(type(module), parameters, buffers, extra, list(children.keys()), absent))
        for name, child in children.items():
            if child is not None:
                self._enter(child, path, f"{prefix}{name}", units)

    def _enter(self, module: Module, path: str, name: str, units: list[Unit]) -> None:
        if id(module) in self._around or len(self._around) >= DEEPEST:
            raise Refused(self._full(self._inner(path, name)), described(module), f"it holds itself, or lies inside {DEEPEST} others")
        self._around.append(id(module))
        self._unit(module, path, f"{name}.", units)
        self._around.pop()

    def _inner(self, path: str, name: str) -> str:
        return paths.join(path, paths.segment(name, self._full(path)))

    def _table(self, entries: Mapping[str, Any], path: str, prefix: str) -> Table | None:
        nodes = [None if value is None else self.build(value, self._inner(path, prefix + name)) for name, value in entries.items()]
        return Table(list(entries.keys()), nodes) if nodes else None

    def _extra(self, module: Module, path: str, prefix: str) -> list[tuple[Callable[[Module], Any], Node]]:
        """What a Module saves beyond its parameters and buffers."""
        found: list[tuple[Callable[[Module], Any], Node]] = []
        if type(module).get_extra_state is not Module.get_extra_state:
            where = self._inner(path, prefix + _EXTRA)
            get = _guarded(_extra_state, self._full(where))
            found.append((get, self.build(get(module), where)))
        if type(module)._save_to_state_dict is not Module._save_to_state_dict:
            get = _guarded(_saved, self._inner(self._full(path), prefix.rstrip(".")))
            saved = get(module)
            nodes = [self.build(value, self._inner(path, prefix + name)) for name, value in saved.items()]
            found.append((get, MappingNode(saved, list(saved), nodes)))
        return found


def _is_sequence(value: Any) -> bool:
    if isinstance(value, tuple):
        return not hasattr(value, "_asdict")
    return isinstance(value, Sequence) and not isinstance(value, deque | bytearray | memoryview)


def _extra_state(module: Module) -> Any:
    return module.get_extra_state()


def _saved(module: Module) -> dict[str, Any]:
    """What the Module's own way of saving adds."""
    saved: OrderedDict[str, Any] = OrderedDict()
    module._save_to_state_dict(saved, "", True)
    return {
        name: value for name, value in saved.items() if name != _EXTRA and name not in module._parameters and name not in module._buffers
    }


def _guarded(get: Callable[[Module], Any], path: str) -> Callable[[Module], Any]:
    """``get``, with the path in the error of what the Module's own code raises."""

    def guarded(module: Module) -> Any:
        try:
            return get(module)
        except Exception as error:
            raise ScenarioFailed(f"{path}: {described(module)} raised {type(error).__name__} when asked for its state: {error}") from error

    return guarded
