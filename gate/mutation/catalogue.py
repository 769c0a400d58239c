"""All operators, those of the field before the general ones: where two make the same fault, the first has it."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from gate.errors import UsageError
from gate.mutation.operator import Operator
from gate.mutation.operators.general import GENERAL
from gate.mutation.operators.numeric import NUMERIC
from gate.mutation.operators.optimizer import OPTIMIZER
from gate.mutation.operators.recording import RECORDING
from gate.mutation.operators.training import TRAINING
from gate.mutation.plant import plant
from golden.keys import nearest

__all__ = ["OPERATORS", "as_json", "chosen", "digest", "plant"]

OPERATORS: tuple[Operator, ...] = tuple(
    operator for registry in (TRAINING, OPTIMIZER, RECORDING, NUMERIC, GENERAL) for operator in registry.operators
)


def chosen(names: tuple[str, ...]) -> tuple[Operator, ...]:
    """The operators of these names; all of them without a name. Raises UsageError for an unknown one."""
    known = {operator.name: operator for operator in OPERATORS}
    for name in names:
        if name not in known:
            raise UsageError(f"unknown operator {name!r}: {nearest(name, list(known))}")
    return tuple(known[name] for name in dict.fromkeys(names)) if names else OPERATORS


_JUDGING = ("aim.py", "cache.py", "judge.py", "order.py", "pardons.py", "planted.py", "result.py")


@cache
def digest(*, judging: bool = True) -> str:
    """Of the sources that plant and run: where they change, so may what they find; with `judging` those too that judge it."""
    here = Path(__file__).parent
    paths = (path for path in sorted(here.rglob("*.py")) if judging or path.name not in _JUDGING)
    content = b"".join(path.read_bytes() for path in paths)
    return hashlib.sha256(content).hexdigest()


def as_json(operators: tuple[Operator, ...]) -> dict[str, Any]:
    """The list as `gate mutate --operators --json` writes it."""
    rows = [
        {
            "name": operator.name,
            "kind": "general" if operator.general else "field",
            "field": None if operator.general else operator.part,
            "description": operator.description,
            "before": operator.examples[0][0],
            "after": operator.examples[0][1],
            "examples": [{"before": before, "after": after} for before, after in operator.examples],
        }
        for operator in operators
    ]
    return {"format": 1, "operators": rows, "field": sum(not o.general for o in operators), "general": sum(o.general for o in operators)}
