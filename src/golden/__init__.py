"""Records the state of a training run after every step, and compares two recordings bit by bit.

A scenario needs one name, ``golden.gradients``; its ``record`` is a ``golden.Recorder``. Nothing is imported before it is used, so that
reading and comparing goldens loads no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from golden import compare
    from golden.errors import CorruptGolden, GoldenError, Locked, MissingGolden, Refused, ScenarioFailed, StoreError, UsageError
    from golden.recorder import Recorder, gradients
    from golden.store import Golden, same_bits

__version__ = "0.1.0"

__all__ = [
    "CorruptGolden",
    "Golden",
    "GoldenError",
    "Locked",
    "MissingGolden",
    "Recorder",
    "Refused",
    "ScenarioFailed",
    "StoreError",
    "UsageError",
    "compare",
    "gradients",
    "same_bits",
]

_HOMES = {
    "Golden": "golden.store",
    "Recorder": "golden.recorder",
    "gradients": "golden.recorder",
    "same_bits": "golden.store",
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for; ``golden.compare`` is the module, whose function has the same name."""
    if name not in __all__:
        raise AttributeError(f"module 'golden' has no attribute {name!r}")
    if name == "compare":
        return import_module("golden.compare")
    return getattr(import_module(_HOMES.get(name, "golden.errors")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
