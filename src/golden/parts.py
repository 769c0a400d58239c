"""What values that are neither leaves nor containers consist of, by one rule each.

=====================================  ====================================================================================
value                                  recorded as
=====================================  ====================================================================================
anything with ``state_dict()``         ``state_dict``: what it returns, as a mapping
torch.Generator                        ``Generator cpu``: its state
numpy Generator, bit generator         ``Generator PCG64``: its state; RandomState by its bit generator
random.Random                          ``Random``: its 625 words, gauss_next; the system's generator has no state
dataclass, namedtuple                  the class's name: its fields
deque                                  ``deque maxlen=4``: its elements
set, frozenset                         its elements, which have to be scalars, sorted by type and text: a set has no order of its own
bytearray                              its bytes
functools.partial                      ``partial``: func, args, keywords
SimpleNamespace, argparse.Namespace    its attributes
functions and classes                  scalars: their qualified name; what a closure holds is not followed
everything else                        refused, with its path and type
=====================================  ====================================================================================
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import random
import types
from collections import deque
from collections.abc import Callable, Mapping, Set
from typing import Any

import numpy as np
import torch

from golden import arrays, optimizers, scalars, tensors
from golden.errors import Refused, ScenarioFailed
from golden.names import Names
from golden.tensors import Parts

_ADVICE = "give record what it holds instead: tensors, numbers, text, a mapping of those, or an object with state_dict()"


def expansion(value: Any, path: str, names: Names) -> Callable[[Any], Parts | None]:
    """The rule for a value: gives its parts, and None for a later value that needs another rule.

    Args:
        value: neither a leaf, nor a Module, nor a mapping or sequence.
        path: full path, for errors.
        names: of parameters.

    Raises:
        Refused: for what no rule fits.
    """
    if isinstance(value, torch.Tensor):
        return lambda tensor: None if tensors.plain(tensor) else tensors.parts(tensor, path)
    if has_state(value):
        if optimizers.is_optimizer(value):
            renaming = optimizers.Renaming(names, path)
            return lambda optimizer: ("optimizer", renaming.named(optimizer, state(optimizer, path)))
        return lambda holder: ("state_dict", state(holder, path))
    for cls, rule in _RULES.items():
        if isinstance(value, cls) and not isinstance(value, random.SystemRandom):
            return rule
    if isinstance(value, Set):
        return lambda members: _set(members, path)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return lambda record: (type(record).__name__, record._asdict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _dataclass
    raise Refused(path, described(value), _ADVICE)


def described(value: object) -> str:
    """The type of a value as an error names it."""
    cls = type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def has_state(value: Any) -> bool:
    """Whether a value has ``state_dict()``: of its class, or forwarded by a wrapper that is no container itself."""
    if callable(getattr(type(value), "state_dict", None)):
        return True
    return not isinstance(value, Mapping | tuple | list) and callable(getattr(value, "state_dict", None))


def state(holder: Any, path: str) -> dict[Any, Any]:
    """What ``state_dict()`` returns, as a dict.

    Raises:
        ScenarioFailed: if it raises.
            [held by tests/golden/test_parts.py::test_a_state_dict_that_raises_is_the_scenarios_failure_with_its_path]
        Refused: if it returns no mapping.
            [held by tests/golden/test_parts.py::test_a_state_dict_that_is_no_mapping_is_refused]
    """
    try:
        found = holder.state_dict()
    except Exception as error:
        raise ScenarioFailed(f"{path}: state_dict() of {described(holder)} raised {type(error).__name__}: {error}") from error
    if not isinstance(found, Mapping):
        raise Refused(path, f"state_dict() of {described(holder)}, which returned {described(found)},", "it has to return a mapping")
    return dict(found)


def _generator(generator: torch.Generator) -> Parts:
    return f"Generator {generator.device.type}", {"state": generator.get_state()}


def _numpy_generator(generator: np.random.Generator) -> Parts:
    return _bit_generator(generator.bit_generator)


def _bit_generator(generator: np.random.BitGenerator) -> Parts:
    return f"Generator {type(generator).__name__}", dict(generator.state)


def _random_state(generator: np.random.RandomState) -> Parts:
    found: Any = generator.get_state(legacy=False)
    return "RandomState", dict(found)


def _random(generator: random.Random) -> Parts:
    """Python's generator: its words as one array, not as 625 leaves."""
    _, words, gauss = generator.getstate()
    return type(generator).__name__, {"state": np.array(words, dtype=np.uint32), "gauss_next": gauss}


def _set(members: Set[Any], path: str) -> Parts:
    strangers = [member for member in members if not scalars.is_scalar(member)]
    if strangers:
        raise Refused(path, f"a set that holds {described(strangers[0])}", "its elements have no order: record a sorted list")
    known = sorted(((scalars.exact(member), member) for member in members), key=lambda pair: (pair[0].type, pair[0].text))
    return type(members).__name__, {str(index): member for index, (_, member) in enumerate(known)}


def _dataclass(value: Any) -> Parts:
    return type(value).__name__, {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _deque(value: deque[Any]) -> Parts:
    return f"deque maxlen={value.maxlen}", {str(index): element for index, element in enumerate(value)}


def _partial(value: functools.partial[Any]) -> Parts:
    return "partial", {"func": value.func, "args": value.args, "keywords": value.keywords}


_RULES: dict[type, Callable[[Any], Parts]] = {
    np.ndarray: arrays.parts,
    torch.Generator: _generator,
    np.random.Generator: _numpy_generator,
    np.random.BitGenerator: _bit_generator,
    np.random.RandomState: _random_state,
    random.Random: _random,
    deque: _deque,
    bytearray: lambda value: ("bytearray", {"bytes": bytes(value)}),
    functools.partial: _partial,
    types.SimpleNamespace: lambda value: ("SimpleNamespace", dict(vars(value))),
    argparse.Namespace: lambda value: ("Namespace", dict(vars(value))),
}
