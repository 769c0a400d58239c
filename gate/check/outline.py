"""What the lines of a Python file are: which statement they belong to, and when that runs, at import or in which function."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gate import encoding
from gate.check.lines import split

Definition = ast.FunctionDef | ast.AsyncFunctionDef
_BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)
# Where docstrings are more than documentation: command lines print them, doctest runs them.
_LOUD = re.compile(r"\b__doc__\b|^\s*(?:import|from)\s+(?:click|typer|argparse|fire|jsonargparse|doctest)\b", re.MULTILINE)


@dataclass(frozen=True)
class Function:
    """A function or method.

    Attributes:
        name: with the classes and functions around it, "MuSGD.step".
        body: its lines that run when it is called.
        node: its syntax tree.
        classes: the classes around it, outermost first.
        outer: the function around it, None at the top.
    """

    name: str
    body: range
    node: Definition
    classes: tuple[ast.ClassDef, ...] = ()
    outer: Function | None = None


@dataclass(frozen=True)
class Outline:
    """A Python file.

    Attributes:
        tree: its syntax tree, without docstrings where those are but documentation.
        functions: outer ones first.
        spans: the statement (the head alone, of one with a body) that a line belongs to.
        owners: the function that runs a line; None is nobody but the import.
        quiet: lines that do nothing: blank ones, comments, documentation.
    """

    tree: ast.Module
    functions: tuple[Function, ...]
    spans: dict[int, range] = field(repr=False)
    owners: dict[int, Function | None] = field(repr=False)
    quiet: frozenset[int] = field(repr=False)

    @classmethod
    def of(cls, text: str) -> Outline | None:
        """The outline of a source; None where it does not parse, or is too deep to be read."""
        tree = encoding.tree(text)
        if tree is None:
            return None
        documentation = set() if _LOUD.search(text) else set(_drop_docstrings(tree))
        reader = _Reader()
        try:
            reader.block(tree.body, None, (), "")
        except RecursionError:  # statements less deep than what Python compiles
            return None
        quiet = {number for number, line in enumerate(split(text), 1) if number not in reader.spans and _silent(line)}
        return cls(tree, tuple(reader.functions), reader.spans, reader.owners, frozenset(quiet | documentation))

    def same(self, other: Outline) -> bool:
        """Whether both do the same: they differ in comments, blanks and documentation at most."""
        try:
            return ast.dump(self.tree) == ast.dump(other.tree)
        except RecursionError:  # less deep than what Python compiles
            return False

    def statement(self, line: int) -> range | None:
        """The statement at a line; a line with nothing but an `else:` or a bracket counts to the next one. None: nothing is there."""
        if line in self.quiet:
            return None
        following = [number for number in self.spans if number >= line]
        return self.spans[min(following)] if following else None

    def owner(self, line: int) -> Function | None:
        """The function that runs a line, None for the import."""
        found = self.statement(line)
        return self.owners[found.start] if found else None

    def function(self, name: str) -> Function | None:
        """A function by its name; the last one of several."""
        return next((function for function in reversed(self.functions) if function.name == name), None)


class _Reader:
    """Walks over statements, outer ones first."""

    def __init__(self) -> None:
        self.functions: list[Function] = []
        self.spans: dict[int, range] = {}
        self.owners: dict[int, Function | None] = {}

    def block(self, statements: Sequence[ast.AST], owner: Function | None, classes: tuple[ast.ClassDef, ...], prefix: str) -> None:
        for statement in statements:
            self._statement(statement, owner, classes, prefix)

    def _statement(self, node: ast.AST, owner: Function | None, classes: tuple[ast.ClassDef, ...], prefix: str) -> None:
        inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, _BLOCKS)]
        self._claim(_head(node, bool(inner)), owner)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            name = f"{prefix}{node.name}"
            function = Function(name, range(node.body[0].lineno, _end(node) + 1), node, classes, owner)
            self.functions.append(function)
            self.block(node.body, function, classes, f"{name}.")
        elif isinstance(node, ast.ClassDef):
            self.block(node.body, owner, (*classes, node), f"{prefix}{node.name}.")
        else:
            self.block(inner, owner, classes, prefix)

    def _claim(self, span: range, owner: Function | None) -> None:
        """A line with two statements is the first one's; a body on the line of its `def` runs with the import, too."""
        for line in span:
            if line not in self.spans:
                self.spans[line], self.owners[line] = span, owner


def _head(node: ast.AST, compound: bool) -> range:
    decorators = getattr(node, "decorator_list", [])
    first = min([_start(node), *(decorator.lineno for decorator in decorators)])
    if not compound:
        return range(first, _end(node) + 1)
    parts = [child for child in ast.iter_child_nodes(node) if not isinstance(child, _BLOCKS)]
    ends = [end for part in parts for end in (getattr(inner, "end_lineno", None) for inner in ast.walk(part)) if end]
    return range(first, max([_start(node), *ends]) + 1)


def _start(node: ast.AST) -> int:
    """The first line; a case of a match has that of its pattern."""
    return int(getattr(node, "lineno", 0) or getattr(getattr(node, "pattern", None), "lineno", 1))


def _end(node: ast.AST) -> int:
    return int(getattr(node, "end_lineno", 0) or _start(node))


def _drop_docstrings(tree: ast.Module) -> Iterator[int]:
    """Takes the docstrings out of a tree (one that is a whole body stays as a `pass`), and gives their lines."""
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
            and ast.get_docstring(node, False) is not None
        ):
            first = node.body[0]
            yield from range(first.lineno, _end(first) + 1)
            if len(node.body) > 1 or isinstance(node, ast.Module):
                del node.body[0]
            else:
                node.body[0] = ast.copy_location(ast.Pass(), first)


def _silent(line: str) -> bool:
    text = line.strip()
    return not text or text.startswith("#")
