"""How keys become paths.

Keys are joined by ``/``; in a key ``~`` is written ``~0`` and ``/`` is written ``~1``. A key that is no str is written with its type
(``int:0``), and so is a str that could read as one of those, having a colon, or as nothing at all: ``str:int:0``, ``str:``. No two keys
have one path.
"""

from __future__ import annotations

import enum
from typing import Any

from golden import scalars
from golden.errors import Refused


def join(path: str, segment: str) -> str:
    """The path of a child."""
    return f"{path}/{segment}" if path else segment


def full(phase: str, path: str) -> str:
    """A path with its phase in front."""
    return f"{phase}/{path}" if path else phase


def segment(key: Any, where: str) -> str:
    """The segment that stands for a key of a mapping.

    Args:
        key: a str, another scalar, or a tuple of those.
        where: full path of the mapping, for the error.

    Raises:
        Refused: for a key of another type, which has no lasting name.
    """
    if type(key) is str:
        text = f"str:{key}" if not key or ":" in key else key
    else:
        text = _typed(key, where)
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise Refused(where, f"the key {key!r}", "it holds lone surrogates, which have no UTF-8: use another key")
    return text.replace("~", "~0").replace("/", "~1")


def _typed(key: Any, where: str) -> str:
    """A key with its type in front."""
    if type(key) is tuple:
        return f"tuple:({', '.join(_typed(inner, where) for inner in key)})"
    if type(key) is str:
        return f"str:{scalars.exact(key).text}"
    if isinstance(key, str) and not isinstance(key, enum.Enum):
        return f"{type(key).__name__}:{str.__str__(key)}"
    if not scalars.is_scalar(key):
        advice = "give the mapping keys that are text or numbers"
        raise Refused(where, f"a key of type {type(key).__name__}", advice)
    scalar = scalars.exact(key)
    return f"{scalar.type}:{scalar.text}"
