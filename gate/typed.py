"""Differences of plain values (settings, environments) with their types: 1, 1.0, True and "1" are four things."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

ABSENT = "absent"


def changes(expected: Any, actual: Any) -> list[dict[str, Any]]:
    """What differs between two values that JSON holds, as {"path", "expected", "actual"}, ordered by path.

    Keys are joined by dots. What one side does not have is None there.
    """
    if _exact(expected) == _exact(actual):
        return []
    found = sorted(_nodes(expected, actual), key=lambda change: change["path"])
    return found or [{"path": "", "expected": expected, "actual": actual}]  # -0.0 and 0.0, which deepdiff does not tell apart


def lines(change: Mapping[str, Any]) -> list[str]:
    """One change as text, one line for each value in it that differs: `threads: 1 -> 2`."""
    inner = changes(change["expected"], change["actual"]) if _both_nested(change) else []
    if not inner:
        return [_line(str(change["path"]), change)]
    return [_line(".".join(filter(None, (str(change["path"]), part["path"]))), part) for part in inner]


def _nodes(expected: Any, actual: Any) -> Iterator[dict[str, Any]]:
    from deepdiff import DeepDiff  # half a second, paid where something differs
    from deepdiff.helper import notpresent

    for nodes in DeepDiff(expected, actual, view="tree", verbose_level=2).values():
        for node in nodes:
            one, other = (None if side is notpresent else side for side in (node.t1, node.t2))
            yield {"path": ".".join(map(str, node.path(output_format="list"))), "expected": one, "actual": other}


def _both_nested(change: Mapping[str, Any]) -> bool:
    return all(isinstance(change[side], Mapping | list) for side in ("expected", "actual"))


def _line(path: str, change: Mapping[str, Any]) -> str:
    return f"{path}: {_shown(change['expected'])} -> {_shown(change['actual'])}"


def _shown(value: Any) -> str:
    """A value as JSON writes it, so that its type can be seen; what is not there by a word."""
    return ABSENT if value is None else json.dumps(value, ensure_ascii=False)


def _exact(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
