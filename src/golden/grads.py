"""Gradients of a Module's parameters, by name."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast

from torch import Tensor
from torch.nn import Module, Parameter

from golden.errors import Refused


class Gradients(Mapping[str, Tensor]):
    """Names of parameters to their gradients, recorded like a dict of those. Read-only; holds the gradients themselves, no copies."""

    __slots__ = ("_names", "_places", "_tensors")

    def __init__(self, names: Sequence[str], tensors: Sequence[Tensor]) -> None:
        self._names, self._tensors = names, tensors
        self._places: dict[str, int] | None = None

    def __getitem__(self, name: str) -> Tensor:
        if self._places is None:
            self._places = {each: index for index, each in enumerate(self._names)}
        return self._tensors[self._places[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def values(self) -> Any:
        """The gradients in order."""
        return self._tensors

    def __repr__(self) -> str:
        return f"Gradients({dict(self)!r})"


def gradients(module: Module) -> Gradients:
    """The gradients that the parameters of a Module have at this moment, as they are: none is copied, none is made.

    Args:
        module: its parameters are named as in ``state_dict()``, tied ones under every name. A parameter whose ``grad`` is None is left
            out, so that a gradient which comes or goes is a difference of structure.

    Raises:
        Refused: for a Module that holds itself.
    """
    walk = _walks.get(module)
    parameters = None if walk is None else walk.parameters(module)
    if walk is None or parameters is None:
        walk = _walks[module] = _Walk(module)
        parameters = walk.parameters(module) or []
    grads = [parameter.grad for parameter in parameters]
    present = [grad for grad in grads if grad is not None]
    if len(present) == len(grads):
        return Gradients(walk.names, present)
    return Gradients([name for name, grad in zip(walk.names, grads, strict=True) if grad is not None], present)


class _Walk:
    """Where the parameters of a Module are: keeps names, and neither Modules nor parameters."""

    def __init__(self, module: Module) -> None:
        self.names: list[str] = []
        self._units: list[_Unit] = []
        self._add(module, "", 0)

    def _add(self, module: Module, prefix: str, depth: int) -> None:
        if depth > _DEEPEST:
            raise Refused(prefix[:-1], f"a Module inside {_DEEPEST} others", "it may hold itself: pass one that does not")
        own, children = module._parameters, module._modules
        self.names.extend(f"{prefix}{name}" for name, parameter in own.items() if parameter is not None)
        self._units.append((list(own.keys()), _gaps(own), list(children.keys()), _gaps(children)))
        for name, child in children.items():
            if child is not None:
                self._add(child, f"{prefix}{name}.", depth + 1)

    def parameters(self, module: Module) -> list[Parameter] | None:
        """The parameters in the order of ``names``; None if the Module is built differently now."""
        found: list[Parameter | None] = []
        waiting: list[Module | None] = [module]
        for keys, gaps, names, absent in self._units:
            each = waiting.pop()
            if each is None:
                return None
            own, children = each._parameters, each._modules
            if list(own.keys()) != keys or list(children.keys()) != names:
                return None
            found.extend(_without(own, gaps) if gaps else own.values())
            waiting.extend(reversed(_without(children, absent) if absent else list(children.values())))
        return None if any(parameter is None for parameter in found) else cast("list[Parameter]", found)


# The keys of a Module's parameters, which of them are None, the names of its children, which of those are None.
_Unit: TypeAlias = "tuple[list[str], frozenset[str], list[str], frozenset[str]]"
_Entry = TypeVar("_Entry")


def _gaps(entries: Mapping[str, object | None]) -> frozenset[str]:
    return frozenset(key for key, entry in entries.items() if entry is None)


def _without(entries: Mapping[str, _Entry | None], gaps: frozenset[str]) -> list[_Entry | None]:
    """The entries but for those that were None; where one of them is there now, None stands in its place."""
    if any(entries[key] is not None for key in gaps):
        return [None]
    return [entry for key, entry in entries.items() if key not in gaps]


_DEEPEST = 100
_walks: weakref.WeakKeyDictionary[Module, _Walk] = weakref.WeakKeyDictionary()
