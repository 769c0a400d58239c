"""Names of parameters: those that the Modules among the phases give them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.nn import Module, Parameter

from golden.errors import Refused

_DEEPEST = 8  # levels of mappings and sequences in which Modules are looked for
_INNERMOST = 100  # levels of Modules


@dataclass(frozen=True)
class Name:
    """A parameter's name in its Module, and where that Module stands among the phases (``model``, ``models.generator``)."""

    owner: str
    name: str


class Names:
    """The names that are known: of the phases at hand before those of earlier steps, and of an earlier phase before a later one.

    A parameter whose name another one has now has lost it.

    Holds parameters weakly: one that is gone takes its name with it. ``version`` grows whenever names may have changed.
    """

    def __init__(self) -> None:
        self.version = 0
        self._known: dict[int, tuple[weakref.ref[Tensor], Name]] = {}

    def learn(self, phases: Mapping[str, Any]) -> None:
        """Takes in the Modules that stand among the phases, or in mappings and sequences there."""
        found: dict[int, tuple[weakref.ref[Tensor], Name]] = {}
        taken: set[Name] = set()
        for phase, value in phases.items():
            for owner, module in _modules(phase, value, 0):
                for name, parameter in _parameters(owner, module, "", []):
                    found.setdefault(id(parameter), (weakref.ref(parameter), Name(owner, name)))
                    taken.add(Name(owner, name))  # a second name of a tied parameter is one as well
        earlier = {key: entry for key, entry in self._known.items() if entry[0]() is not None and entry[1] not in taken}
        self._known = {**earlier, **found}
        self.version += 1

    def of(self, parameter: Tensor) -> Name | None:
        """The name of a parameter, None where no Module gave it one."""
        entry = self._known.get(id(parameter))
        return entry[1] if entry is not None and entry[0]() is parameter else None


def _modules(owner: str, value: Any, depth: int) -> Iterator[tuple[str, Module]]:
    if isinstance(value, Module):
        yield owner, value
    elif isinstance(value, Mapping) and depth < _DEEPEST:
        for key, inner in value.items():
            if not isinstance(inner, Parameter):
                yield from _modules(f"{owner}.{key}", inner, depth + 1)
    elif isinstance(value, list | tuple) and depth < _DEEPEST:
        for index, inner in enumerate(value):
            yield from _modules(f"{owner}.{index}", inner, depth + 1)


def _parameters(owner: str, module: Module, prefix: str, around: list[Module]) -> Iterator[tuple[str, Tensor]]:
    """``named_parameters(remove_duplicate=False)``, with an end for a Module that holds itself."""
    if any(module is outer for outer in around) or len(around) >= _INNERMOST:
        path, what = f"{owner}/{prefix[:-1]}", f"{type(module).__module__}.{type(module).__qualname__}"
        raise Refused(path, what, f"it holds itself, or lies inside {_INNERMOST} others")
    around.append(module)
    for name, parameter in module._parameters.items():
        if parameter is not None:
            yield f"{prefix}{name}", parameter
    for name, child in module._modules.items():
        if child is not None:
            yield from _parameters(owner, child, f"{prefix}{name}.", around)
    around.pop()
