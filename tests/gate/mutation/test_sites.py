"""The operators on this repository's own sources: where a kind of fault can be made, it is; and no function of musgd is without one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gate.mutation.catalogue import OPERATORS, plant
from gate.mutation.mutant import Mutant

ROOT = Path(__file__).resolve().parents[3]
# What would be a site of an operator, for those that have none in these sources: Lightning calls what they are about.
ABSENT = {
    "scheduler-first": r"scheduler\w*\.step\(",
    "clip-after-step": r"clip_grad|clip_gradients",
    "average-before-step": r"optimizer\w*\.step\(",
    "backward-dropped": r"\.backward\(",
    "step-dropped": r"(?:optimizer|scheduler)\w*\.step\(",
    "zero-grad-dropped": r"zero_grad\(",
    "zero-grad-doubled": r"optimizer\w*\.step\(",  # it clears once more before a step
}


@pytest.fixture(scope="module")
def planted() -> Mapping[str, list[Mutant]]:
    files = [path for package in ("musgd", "detector") for path in sorted((ROOT / "src" / package).rglob("*.py"))]
    names = [path.relative_to(ROOT).as_posix() for path in files]
    return {name: plant(name, (ROOT / name).read_text(encoding="utf-8"), OPERATORS) for name in names}


def bare(source: str, mutants: list[Mutant]) -> list[str]:
    """The functions with a body that have no mutant within their lines."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return [f.name for f in functions if any(map(works, f.body)) and not any(m.line in lines(f) and m.end in lines(f) for m in mutants)]


def works(statement: ast.stmt) -> bool:
    """Whether it is more than a docstring or an ellipsis."""
    return not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))


def lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> range:
    return range(function.lineno, (function.end_lineno or function.lineno) + 1)


def absent(texts: list[str]) -> Iterator[str]:
    """The operators of which these sources show no site."""
    yield from (name for name, site in ABSENT.items() if not any(re.search(site, text) for text in texts))


def test_every_operator_of_the_field_has_a_mutant_where_there_is_a_site(planted: Mapping[str, list[Mutant]]) -> None:
    made = {mutant.operator for mutants in planted.values() for mutant in mutants}
    without = {operator.name for operator in OPERATORS if not operator.general} - made
    assert without == set(absent([(ROOT / name).read_text(encoding="utf-8") for name in planted]))
    assert set(absent(["self.optimizer.step()"])) == set(ABSENT) - {"average-before-step", "step-dropped", "zero-grad-doubled"}, (
        "a site would be seen"
    )


def test_every_function_of_musgd_has_a_mutant(planted: Mapping[str, list[Mutant]]) -> None:
    for name, mutants in planted.items():
        if name.startswith("src/musgd/"):
            assert bare((ROOT / name).read_text(encoding="utf-8"), mutants) == [], name


def test_a_function_without_a_mutant_would_be_seen() -> None:
    source = 'def one():\n    return 1\n\n\ndef two():\n    return 2\n\n\ndef said():\n    """Only said."""\n    ...\n'
    assert bare(source, [m for m in plant("m.py", source, OPERATORS) if m.scope == "one"]) == ["two"]
