"""How the values of a phase are found again, step after step, without walking it anew.

A node was built for one value and is shown its successor at each step. ``visit`` hands out what the leaves hold, in the order of the
leaves, or says that the value is built differently now. A node keeps keys and types, never values, Modules or tensors: it keeps nothing
alive. [held by tests/golden/test_plan.py::test_a_plan_keeps_no_tensor_alive_between_steps]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, takewhile
from typing import Any, Protocol

from torch.nn import Module

from golden import paths
from golden.tensors import Parts


class Flat:
    """What the leaves of one phase hold, in the order of the leaves, by kind; and the parameters of its Modules.

    Whatever was made for the step alone lives as long as this.
    """

    __slots__ = ("arrays", "parameters", "scalars", "tensors")

    def __init__(self) -> None:
        self.tensors: list[Any] = []
        self.arrays: list[Any] = []
        self.scalars: list[Any] = []
        self.parameters: list[Any] = []


class Node(Protocol):
    """One value and all below it."""

    def visit(self, value: Any, flat: Flat) -> bool:
        """Hands out what the leaves hold. False: the value is built differently, and what was handed out is void.

        A leaf's own dtype and shape are not looked at; nothing is called on what may be no tensor any more.
        """
        ...


class TensorNode:
    """A plain tensor."""

    __slots__ = ()

    def visit(self, value: Any, flat: Flat) -> bool:
        """Hands out one tensor."""
        flat.tensors.append(value)
        return True


class ArrayNode:
    """A plain array."""

    __slots__ = ()

    def visit(self, value: Any, flat: Flat) -> bool:
        """Hands out one array."""
        flat.arrays.append(value)
        return True


class ScalarNode:
    """A scalar."""

    __slots__ = ()

    def visit(self, value: Any, flat: Flat) -> bool:
        """Hands out one scalar."""
        flat.scalars.append(value)
        return True


TENSOR, ARRAY, SCALAR = TensorNode(), ArrayNode(), ScalarNode()


class _Children:
    """The nodes of a container's values; an absent node stands for None that is no leaf."""

    __slots__ = ("_nodes", "_rows", "plain")

    def __init__(self, nodes: Sequence[Node | None]) -> None:
        keys = [node.row if isinstance(node, MappingNode) else None for node in reversed(nodes)]
        rows = [row for row in takewhile(lambda row: row is not None, keys) if row is not None][::-1]
        self._nodes, self._rows = nodes[: len(nodes) - len(rows)], _Rows(rows)
        self.plain = all(node is TENSOR for node in nodes)

    def visit(self, values: Iterable[Any], flat: Flat) -> bool:
        """Visits as many values as there are nodes."""
        if self.plain:
            flat.tensors.extend(values)
            return True
        remaining = iter(values)
        for node, value in zip(self._nodes, remaining, strict=False):
            if value is not None if node is None else not node.visit(value, flat):
                return False
        return self._rows.visit(list(remaining), flat)


class _Rows:
    """Dicts of plain tensors, such as the state that an optimizer has for each parameter, looked at all at once.

    Args:
        rows: the keys of each.
    """

    __slots__ = ("_classes", "_keys", "_lengths", "_types")

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self._classes = [dict] * len(rows)
        self._lengths = list(map(len, rows))
        self._keys = list(chain.from_iterable(rows))
        self._types = list(map(type, self._keys))

    def visit(self, rows: list[Any], flat: Flat) -> bool:
        """Visits the values of as many dicts."""
        if list(map(type, rows)) != self._classes or list(map(len, rows)) != self._lengths:
            return False
        keys = list(chain.from_iterable(rows))
        if keys != self._keys or list(map(type, keys)) != self._types:
            return False
        flat.tensors.extend(chain.from_iterable(map(dict.values, rows)))
        return True


class MappingNode:
    """A mapping: the same keys, of the same types, in the same order."""

    __slots__ = ("_children", "_cls", "_keys", "_segments", "_types")

    def __init__(self, mapping: Mapping[Any, Any], segments: Sequence[str], nodes: Sequence[Node]) -> None:
        self._cls = type(mapping)
        self._keys = list(mapping)
        self._types = list(map(type, self._keys))
        # 0.0 and -0.0 are equal keys, so are tuples of those: such keys are compared as they are written.
        self._segments = None if {str, int, bool}.issuperset(self._types) else segments
        self._children = _Children(nodes)

    @property
    def row(self) -> Sequence[Any] | None:
        """Its keys, if it is a dict of plain tensors whose keys are equal where they are the same."""
        return self._keys if self._cls is dict and self._segments is None and self._children.plain else None

    def visit(self, value: Any, flat: Flat) -> bool:
        """Visits the values in order."""
        if type(value) is not self._cls or list(value) != self._keys or list(map(type, value)) != self._types:
            return False
        if self._segments is not None and [paths.segment(key, "") for key in value] != self._segments:
            return False
        return self._children.visit(value.values(), flat)


class SequenceNode:
    """A sequence: the same type and length."""

    __slots__ = ("_children", "_cls", "_length")

    def __init__(self, sequence: Sequence[Any], nodes: Sequence[Node]) -> None:
        self._cls, self._length = type(sequence), len(sequence)
        self._children = _Children(nodes)

    def visit(self, value: Any, flat: Flat) -> bool:
        """Visits the elements in order."""
        return type(value) is self._cls and len(value) == self._length and self._children.visit(value, flat)


class PartsNode:
    """A value that consists of parts, by a rule."""

    __slots__ = ("_child", "_cls", "_rule", "_text")

    def __init__(self, cls: type, rule: Callable[[Any], Parts | None], text: str, child: Node) -> None:
        self._cls, self._rule, self._text, self._child = cls, rule, text, child

    def visit(self, value: Any, flat: Flat) -> bool:
        """Takes the value apart and visits its parts."""
        if type(value) is not self._cls:
            return False
        found = self._rule(value)
        return found is not None and found[0] == self._text and self._child.visit(found[1], flat)


class Table:
    """Parameters or buffers of one Module by itself, some of them None."""

    __slots__ = ("_children", "_keys")

    def __init__(self, keys: Sequence[str], nodes: Sequence[Node | None]) -> None:
        self._keys = list(keys)
        self._children = _Children(nodes)

    def visit(self, entries: Mapping[str, Any], flat: Flat) -> bool:
        """Visits the entries that are not None."""
        # keys() and values() rather than iteration: the tables of a ScriptModule have no more.
        return list(entries.keys()) == self._keys and self._children.visit(entries.values(), flat)


# gate: equivalent [truth] nobody changes one
@dataclass(frozen=True)
class Unit:
    """What one Module holds by itself.

    Args:
        cls: its class.
        parameters: its own; None if it has none.
        buffers: its own; None if it has none.
        extra: parts beyond those, each with the function that gets it.
        names: of its children.
        absent: which of its children are None.
    """

    cls: type
    parameters: Table | None
    buffers: Table | None
    extra: Sequence[tuple[Callable[[Module], Any], Node]]
    names: list[str]
    absent: frozenset[str]


class ModuleNode:
    """A Module and all below it: the same classes, the same names in the same order.

    Args:
        units: it and the Modules below it, each before its children.
    """

    __slots__ = ("_units",)

    def __init__(self, units: Sequence[Unit]) -> None:
        self._units = units

    def visit(self, value: Any, flat: Flat) -> bool:
        """Visits, for each Module, parameters, buffers and what else there is, then the children."""
        waiting: list[Any] = [value]
        for unit in self._units:
            module = waiting.pop()
            cls = type(module)
            if cls is not unit.cls:
                return False
            parameters, buffers, children = module._parameters, module._buffers, module._modules
            if unit.parameters is not None:
                flat.parameters.extend(parameters.values())
                if not unit.parameters.visit(parameters, flat):
                    return False
            elif len(parameters):
                return False
            if not (len(buffers) == 0 if unit.buffers is None else unit.buffers.visit(buffers, flat)):
                return False
            for get, node in unit.extra:
                if not node.visit(get(module), flat):
                    return False
            if unit.names:
                if not _expand(unit, children, waiting):
                    return False
            elif len(children):
                return False
        return True


def _expand(unit: Unit, children: Mapping[str, Any], waiting: list[Any]) -> bool:
    """Puts the children of a Module in front of what waits; False if they are others."""
    if list(children.keys()) != unit.names:
        return False
    found = list(children.values())
    if unit.absent:
        if any(children[name] is not None for name in unit.absent):
            return False
        found = [child for name, child in children.items() if name not in unit.absent]
    waiting.extend(reversed(found))  # one that is None now is of another class than its unit
    return True
