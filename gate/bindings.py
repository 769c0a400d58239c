"""What the names of a Python file are bound to, by its syntax: definitions, imports and assignments, those under conditions too."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from gate import encoding

_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_MAKERS = ("locals", "vars", "setattr", "exec")  # with globals() what makes names as a file runs


@dataclass(frozen=True)
class Imported:
    """A name that an import binds.

    Attributes:
        module: the parts of the module's name; the first is "" where they lead from the project's folder, as of a relative import.
        names: of the module what is bound, one name; none for the module itself, or for all names of it.
    """

    module: tuple[str, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Module:
    """A Python file.

    Attributes:
        file: its path in the project.
        body: its statements.
        dynamic: whether it makes names as it runs.
    """

    file: str
    body: Sequence[ast.stmt]
    dynamic: bool
    _bound: dict[int, Mapping[str, list[object]]] = field(default_factory=dict, repr=False, compare=False)

    def bound(self, body: Sequence[ast.stmt]) -> Mapping[str, list[object]]:
        """What the names are bound to in the module's body, or in that of one of its classes; "*" to all that a module holds.

        Several where it depends: a definition, `Imported`, or an expression.
        """
        if id(body) not in self._bound:
            found: dict[str, list[object]] = {}
            for name, node in _bindings(body, PurePosixPath(self.file)):
                found.setdefault(name, []).append(node)
            self._bound[id(body)] = found
        return self._bound[id(body)]

    def has(self, name: str) -> bool:
        """Whether a name is bound in the module, or may be by an import of all that another holds."""
        return bool({name, "*"} & self.bound(self.body).keys())


def parsed(file: str, text: str) -> Module | None:
    """A file; None where it does not parse."""
    tree = encoding.tree(text)
    if tree is None:
        return None
    try:
        run = {name for node in _running(tree.body) for name in _used(node)}
    except RecursionError:  # statements less deep than what Python compiles
        return None
    return Module(file, tree.body, "globals" in _used(tree) or bool(run & {*_MAKERS}))


def _running(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """What runs with the import in a module's body and those of its classes."""
    for node in _statements(body):
        if isinstance(node, ast.ClassDef):
            yield from _running(node.body)
        elif not isinstance(node, _DEFINITIONS):
            yield node


def _used(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def last(node: ast.AST) -> str:
    """The last part of a name; of `Generic[T]` that of what stands before the bracket; "" of anything else."""
    node = node.value if isinstance(node, ast.Subscript) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _bindings(body: Sequence[ast.stmt], file: PurePosixPath) -> Iterator[tuple[str, object]]:
    for node in _statements(body):
        if isinstance(node, _DEFINITIONS):
            yield node.name, node
        elif isinstance(node, ast.Import):
            for alias in node.names:
                parts = tuple(alias.name.split("."))
                yield (alias.asname, Imported(parts)) if alias.asname else (parts[0], Imported(parts[:1]))
        elif isinstance(node, ast.ImportFrom):
            above = ("", *file.parents[min(node.level, len(file.parents)) - 1].parts) if node.level else ()
            module = (*above, *(node.module.split(".") if node.module else ()))
            for alias in node.names:
                yield alias.asname or alias.name, Imported(module, () if alias.name == "*" else (alias.name,))
        elif isinstance(node, ast.Assign):
            yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            yield node.target.id, node.value


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run with the import, those under conditions too."""
    for node in body:
        yield node
        if not isinstance(node, _DEFINITIONS):
            blocks = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
            handlers = [inner.body for inner in (*getattr(node, "handlers", []), *getattr(node, "cases", []))]
            for block in (*blocks, *handlers):
                yield from _statements(block)
