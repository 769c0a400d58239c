"""Where faults are planted, and how a mutant is written into its file."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gate.errors import UsageError
from gate.mutation.catalogue import OPERATORS
from gate.mutation.mutant import Mutant
from gate.mutation.plant import plant

ROOT = Path(__file__).parents[3]
SOURCE = '''"""Text."""
from __future__ import annotations
from typing import TYPE_CHECKING, Literal, overload

if TYPE_CHECKING:
    limit = 1

Mode = Literal["a", "b"]


class Optimizer:
    """Text."""

    rate = 3

    @overload
    def step(self, closure: None = None, times: int = 7) -> None: ...

    @torch.no_grad()
    def step(self, times: int = 2) -> int:
        """Text with 5."""
        total = (
            times
            + 4
        )
        return total


SCALE = 6
'''


def planted(source: str) -> list[Mutant]:
    return plant("file.py", source, OPERATORS)


def uncovered(source: str) -> list[str]:
    """The functions with a body in whose lines no mutant is."""
    lines = {mutant.line for mutant in planted(source)}
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return [f.name for f in functions if _works(f) and lines.isdisjoint(range(f.lineno, (f.end_lineno or 0) + 1))]


def _works(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether there is more than a text, an ellipsis or pass; overloads do nothing either."""
    idle = (ast.Pass,)
    return any(not isinstance(s, idle) and not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)) for s in function.body)


def test_decorated_functions_defaults_class_bodies_and_import_time_code_are_mutated() -> None:
    found = {(m.operator, m.after.strip()): m for m in planted(SOURCE)}
    assert found["guard-dropped", "# no_grad dropped"].loaded
    assert found["number", "def step(self, times: int = 3) -> int:"].loaded
    assert found["number", "rate = 4"].loaded
    assert found["number", "SCALE = 7"].loaded
    inside = found["returned-none", "return None"]
    assert (inside.loaded, inside.scope) == (False, "Optimizer.step")


def test_annotations_overloads_texts_and_what_only_type_checkers_read_are_left_alone() -> None:
    after = "\n".join(m.after for m in planted(SOURCE))
    assert "times: int = 8" not in after
    assert "limit = 2" not in after
    assert "Text with 6" not in after
    assert planted('Mode = Literal["a", 1]\n') == []
    assert planted("x = 1\n"), "the same number elsewhere is mutated"


def test_before_starts_at_its_line_and_after_stands_in_its_place() -> None:
    lines = SOURCE.splitlines()
    found = planted(SOURCE)
    assert found
    for mutant in found:
        assert "\n".join(lines[mutant.line - 1 :]).startswith(mutant.before)
        assert mutant.apply(SOURCE).splitlines() == [*lines[: mutant.line - 1], *mutant.after.splitlines(), *lines[mutant.end :]]
    assert len({m.apply(SOURCE) for m in found}) == len(found), "no fault is planted twice"


def test_a_statement_of_several_lines_is_run_where_any_of_them_is() -> None:
    (sum_,) = [m for m in planted(SOURCE) if m.operator == "arithmetic"]
    assert sum_.hits == (22, 25)
    assert sum_.before.splitlines() == ["            times", "            + 4"]


def test_line_ends_and_encodings_stay_as_they_are() -> None:
    source = 'a = "é" \r\nb = 1\r\n'
    (mutant,) = planted(source)
    assert mutant.apply(source) == 'a = "é" \r\nb = 2\r\n'


def test_precedence_is_kept() -> None:
    after = {m.operator: m.after for m in planted("y = (a - b).mT @ c\nz = -x ** 2\n") if m.operator == "transpose-dropped"}
    assert after == {"transpose-dropped": "y = (a - b) @ c"}


def test_what_does_not_parse_is_an_error_that_names_the_line() -> None:
    with pytest.raises(UsageError, match=r"file\.py:2"):
        planted("a = 1\nb = (\n")


@pytest.mark.parametrize("file", sorted(path.name for path in (ROOT / "src/musgd").glob("*.py") if path.name != "kernels.py"))
def test_every_function_with_a_body_has_a_mutant(file: str) -> None:
    """Of musgd, as it is (its kernels too, but they take long)."""
    assert uncovered((ROOT / "src/musgd" / file).read_text(encoding="utf-8")) == []


def test_a_function_without_a_mutant_would_be_seen() -> None:
    assert uncovered("def f(x):\n    y: int\n") == ["f"]
    assert uncovered("def f(x):\n    return x\n") == []
