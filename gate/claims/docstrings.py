"""The docstrings of a module, public ones and others, and for whose code each speaks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

Defined = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_DEFINED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_IDLE = (*_DEFINED, ast.Pass, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)


@dataclass(frozen=True)
class Docstring:
    """A string that stands as a statement of its own.

    Attributes:
        line: its first, from 1.
        text: as it stands, indented.
        owner: the qualified name of what it stands in, "Class.method"; empty for the module.
        public: whether it is the docstring of a public name, or of a method that Python itself calls (`__exit__`).
        keeper: the owner, or where that holds no code (an exception, a protocol) what encloses it; None where nothing there holds any.
        twin: whether code above has the name too, as a getter has that of its setter.
    """

    line: int
    text: str
    owner: str
    public: bool
    keeper: str | None
    twin: bool = False


def docstrings(source: str) -> Iterator[Docstring]:
    """Every docstring of a module, also those of private names, of functions within functions, and below attributes. Raises SyntaxError."""
    return _within(ast.parse(source), "", set(), public=True, keeper=None)


def _within(node: ast.Module | Defined, name: str, seen: set[str], *, public: bool, keeper: str | None) -> Iterator[Docstring]:
    coded, twin = _holds_code(node), name in seen
    keeper = name if coded else keeper
    seen |= {name} if coded else set()
    inner: list[Defined] = []
    for child in _statements(node):
        if isinstance(child, _DEFINED):
            inner.append(child)
        elif isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant) and isinstance(child.value.value, str):
            yield Docstring(child.lineno, child.value.value, name, public and child is node.body[0], keeper, twin)
    outer = public and isinstance(node, (ast.Module, ast.ClassDef))
    for one in inner:
        full = f"{name}.{one.name}" if name else one.name
        yield from _within(one, full, seen, public=outer and _is_public(one.name), keeper=keeper)


def _statements(node: ast.Module | Defined) -> Iterator[ast.AST]:
    """What stands in a body, in blocks of any kind too, but in no class or function within it."""
    waiting: list[ast.AST] = list(reversed(node.body))
    while waiting:
        child = waiting.pop()
        yield child
        if not isinstance(child, _DEFINED):
            blocks = (one for one in ast.iter_child_nodes(child) if isinstance(one, (ast.stmt, ast.ExceptHandler, ast.match_case)))
            waiting += reversed(list(blocks))


def is_special(name: str) -> bool:
    """Whether a name is one that Python itself calls."""
    return len(name) > 4 and name.startswith("__") and name.endswith("__")


def _is_public(name: str) -> bool:
    return not name.startswith("_") or is_special(name)


def _holds_code(node: ast.Module | Defined) -> bool:
    """Whether there is anything in which a fault could be planted."""
    return any(isinstance(one, ast.stmt) and not _is_idle(one) for child in node.body for one in ast.walk(child))


def _is_idle(node: ast.stmt) -> bool:
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    return isinstance(node, _IDLE) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
