"""The names of the tests in a file, without importing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def outline(source: str) -> frozenset[str]:
    """Names of a file's functions, "TestA::test_b" within a class; none of a file that does not parse."""
    try:
        return frozenset(_named(ast.parse(source), ""))
    except SyntaxError:
        return frozenset()


def _named(node: ast.Module | ast.ClassDef, prefix: str) -> Iterator[str]:
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield from _named(child, f"{prefix}{child.name}::")
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{prefix}{child.name}"
