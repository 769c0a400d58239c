"""Canonical JSON: one text for one value, and a reader that takes no other.

Sorted keys, two spaces, ASCII, a newline at the end, no NaN and no infinity: the bytes depend neither on the process nor on its locale.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Any] | dict[str, Any] | None"


def dumps(value: object) -> str:
    """The canonical text of a value of JSON's own types.

    Raises:
        ValueError: for NaN, infinity, or nesting deeper than Python can follow.
    """
    try:
        return json.dumps(value, sort_keys=True, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def compact(value: object) -> str:
    """As :func:`dumps`, on one line: for text inside another file's header."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def loads(text: bytes) -> Any:
    """The value of a JSON text, strictly: UTF-8, no key twice, no NaN, no nesting bomb.

    Raises:
        ValueError: with what is wrong, as a clause that goes with the name of a file.
    """
    try:
        return json.loads(text.decode(), object_pairs_hook=_distinct, parse_constant=_constant)
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8: byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error}") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def plain(value: object, where: str) -> Json:
    """A copy of a value in JSON's own types: mappings become dicts, tuples lists.

    Args:
        value: what is to be written.
        where: its name, for the message.

    Raises:
        ValueError: for what JSON cannot hold exactly: other types, keys that are no str, NaN, infinity.
    """
    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, list | tuple):
        return [plain(element, f"{where}[{index}]") for index, element in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {str(key): plain(element, f"{where}.{key}") for key, element in value.items()}
    raise ValueError(f"{where}: JSON cannot hold {value!r} ({type(value).__name__}) exactly")


def has_keys(document: Any, keys: set[str], name: str) -> None:
    """Expects a mapping of exactly these keys."""
    expect(isinstance(document, dict) and set(document) == keys, f"{name} has the keys {', '.join(sorted(keys))}, and no others")


def as_list(document: Any, name: str) -> list[Any]:
    """Expects a list."""
    expect(isinstance(document, list), f"{name} is no list")
    return list(document)


def as_mapping(document: Any, name: str) -> dict[str, Any]:
    """Expects a mapping."""
    expect(isinstance(document, dict), f"{name} is no mapping")
    return dict(document)


def as_text(document: Any, name: str) -> str:
    """Expects a text."""
    expect(isinstance(document, str), f"{name} is no text")
    return str(document)


def expect(holds: bool, why: str) -> None:
    """ValueError, saying why, unless something holds."""
    if not holds:
        raise ValueError(why)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"holds the key {key!r} twice")
        found[key] = value
    return found


def _constant(name: str) -> NoReturn:
    raise ValueError(f"holds {name}, which is not JSON")
