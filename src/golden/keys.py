"""What each key of a scenario's table allows, and how a wrong one is told."""

from __future__ import annotations

import difflib
import json
import math
import posixpath
from collections.abc import Callable, Mapping
from typing import Any

from golden.errors import UsageError

DEVICES = ("cpu", "cuda")
STORES = ("full", "digest")
PROFILES = ("portable", "native")
SEEDS = 2**32  # numpy and PYTHONHASHSEED take no more than 32 bits


def nearest(key: str, known: list[str]) -> str:
    """The end of a sentence about an unknown name: the nearest known one, or all of them."""
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(sorted(known)) or 'none'}."


def wrong(where: str, value: object, allowed: str) -> UsageError:
    """The error for a known key with a value that is not allowed."""
    return UsageError(f"{where} = {shown(value)}: has to be {allowed}.")


def check_run(where: str, value: object) -> str:
    """`value` as "file.py:function" with the file's path normalised; UsageError unless it is one, inside the project."""
    allowed = '"FILE.py:FUNCTION", the file relative to the project and inside it, with forward slashes'
    file, colon, function = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    if not colon or not file.endswith(".py") or not function.isidentifier():
        raise wrong(where, value, allowed)
    return f"{_inside(where, value, file, allowed)}:{function}"


def check_parameters(where: str, value: object) -> dict[str, Any]:
    """`value` as a mapping that JSON holds without loss; UsageError naming the place otherwise (dates, NaN and infinity are none)."""
    if not isinstance(value, Mapping):
        raise wrong(where, value, "a table")
    _check_json(where, value)
    copy: dict[str, Any] = json.loads(json.dumps(value))
    return copy


def _check_json(where: str, value: object) -> None:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise wrong(where, value, "a table whose keys are strings")
            _check_json(f"{where}.{key}", inner)
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            _check_json(f"{where}[{index}]", inner)
    elif isinstance(value, float) and not math.isfinite(value):
        raise wrong(where, value, "a number that JSON holds; write it as a string, and convert it in the scenario")
    elif not isinstance(value, (str, int, float, bool, type(None))):
        raise wrong(where, value, "what JSON holds (strings, numbers, booleans, lists, tables); write a date as a string")


def _inside(where: str, value: object, path: str, allowed: str) -> str:
    normal = posixpath.normpath(path)
    if not path or "\\" in path or "\0" in path or ":" in path or posixpath.isabs(path) or normal.split("/")[0] == "..":
        raise wrong(where, value, allowed)
    return normal


def _integer(low: int, end: int | None, allowed: str) -> Callable[[str, object], int]:
    def check(where: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < low or (end is not None and value >= end):
            raise wrong(where, value, allowed)
        return value

    return check


def _one_of(allowed: tuple[str, ...]) -> Callable[[str, object], str]:
    def check(where: str, value: object) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise wrong(where, value, " or ".join(f'"{item}"' for item in allowed))
        return value

    return check


def _strings(where: str, value: object, allowed: str) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) and item.strip() for item in value):
        raise wrong(where, value, allowed)
    if len(set(value)) != len(value):
        raise wrong(where, value, f"{allowed}, each named once")
    return tuple(value)


def _devices(where: str, value: object) -> tuple[str, ...]:
    allowed = 'a list of "cpu", "cuda" or both'
    devices = _strings(where, value, allowed)
    if not devices or not set(devices) <= set(DEVICES):
        raise wrong(where, value, allowed)
    return devices


def _watch(where: str, value: object) -> tuple[str, ...]:
    allowed = "a list of paths relative to the project and inside it, with forward slashes"
    return tuple(_inside(where, value, path, allowed) for path in _strings(where, value, allowed))


def _scenario_name(where: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise wrong(where, value, "the name of another scenario")
    return value


def shown(value: object) -> str:
    """`value` as an error shows it, cut at 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


check_steps = _integer(1, None, "a whole number, 1 or more")
check_seed = _integer(0, SEEDS, "a whole number from 0 to 4294967295")
check_store = _one_of(STORES)

CHECKS: dict[str, Callable[[str, object], Any]] = {
    "run": check_run,
    "steps": check_steps,
    "seed": check_seed,
    "devices": _devices,
    "store": check_store,
    "parameters": check_parameters,
    "same_as": _scenario_name,
    "resume_at": _integer(1, None, "a whole number between 1 and steps - 1"),
    "requires": lambda where, value: _strings(where, value, 'a list of requirements, such as ["scikit-learn"]'),
    "watch": _watch,
}
