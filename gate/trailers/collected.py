"""The tests that pytest collects from a file: by the names that its configuration says, without importing anything."""

from __future__ import annotations

import ast
import configparser
import fnmatch
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gate.config import parse

# In pytest's order: the first file that holds the table is the configuration; the first four are one even where they hold nothing.
_OWN = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")
_PYPROJECT = (("tool", "pytest", "ini_options"), ("tool", "pytest"))
_INI = {"pytest.ini": "pytest", ".pytest.ini": "pytest", "tox.ini": "pytest", "setup.cfg": "tool:pytest"}
_FILES = (*_OWN, "pyproject.toml", "tox.ini", "setup.cfg")
_Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_BOUND = (ast.Call, ast.Name, ast.Attribute, ast.Lambda)  # what may be a function; a number or a list is none


@dataclass(frozen=True)
class Names:
    """Which names pytest takes for tests.

    Attributes:
        files: patterns of files.
        functions, classes: beginnings or patterns.
    """

    files: tuple[str, ...] = ("test_*.py", "*_test.py")
    functions: tuple[str, ...] = ("test",)
    classes: tuple[str, ...] = ("Test",)

    @classmethod
    def of(cls, read: Callable[[str], str | None]) -> Names:
        """As configured; pytest's own where nothing is, or where it cannot be read.

        Args:
            read: gives the text of a file of the project's folder, None where there is none.
        """
        options = next((found for file in _FILES if (found := _options(file, read(file))) is not None), {})
        given = {name: _words(options.get(f"python_{name}")) for name in ("files", "functions", "classes")}
        return cls(**{name: words for name, words in given.items() if words})

    def has_file(self, path: str) -> bool:
        """Whether pytest takes a file, by its path in the project, for one of tests."""
        name = path.rpartition("/")[2]
        return any(fnmatch.fnmatch(*((f"/{path}", f"*/{pattern}") if "/" in pattern else (name, pattern))) for pattern in self.files)

    def tests(self, text: str) -> frozenset[str]:
        """The tests of a file, "TestA::test_b" within a class, and the classes that hold one; of a file that does not parse none."""
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return frozenset()
        return frozenset(_Reader(self, tree).names(tree.body))


class _Reader:
    """Reads one file."""

    def __init__(self, names: Names, tree: ast.Module) -> None:
        self._names = names
        self._classes = {node.name: node for node in _definitions(tree.body) if isinstance(node, ast.ClassDef)}

    def names(self, body: Sequence[ast.stmt], prefix: str = "", unit: bool = False) -> Iterator[str]:
        """The tests in a module's or a class's body; in one of unittest's the beginning is fixed."""
        functions = ("test", "runTest") if unit else self._names.functions
        yield from (prefix + name for name in _bound(body) if _begins(name, functions))
        for node in _definitions(body):
            if isinstance(node, ast.ClassDef):
                yield from self._class(node, f"{prefix}{node.name}")
            elif _begins(node.name, functions) and not any(map(_fixture, node.decorator_list)):
                yield prefix + node.name

    def _class(self, node: ast.ClassDef, name: str) -> Iterator[str]:
        family = list(self._family(node, ()))
        unit = any(_last(base).endswith("TestCase") for one in family for base in one.bases)
        if not unit and not (_begins(node.name, self._names.classes) and _simple(family)):
            return
        found = [test for one in family for test in self.names(one.body, f"{name}::", unit)]
        yield from [name, *found] if found else []

    def _family(self, node: ast.ClassDef, seen: tuple[str, ...]) -> Iterator[ast.ClassDef]:
        """A class, and those of its file that it inherits from."""
        yield node
        for base in map(_last, node.bases):
            if base in self._classes and base not in (*seen, node.name):
                yield from self._family(self._classes[base], (*seen, node.name))


def _options(file: str, text: str | None) -> Mapping[str, Any] | None:
    """pytest's options in a file; None where the file is not its configuration."""
    if text is None:
        return None
    empty: Mapping[str, Any] | None = {} if file in _OWN else None
    if file in _INI:
        ini = configparser.RawConfigParser(strict=False, allow_no_value=True)
        try:
            ini.read_string(text)
            return dict(ini[_INI[file]]) if ini.has_section(_INI[file]) else empty
        except configparser.Error:
            return empty
    try:
        document = parse(text)
    except ValueError:
        return empty
    tables = (_table(document, path) for path in (_PYPROJECT if file == "pyproject.toml" else (("pytest",),)))
    return next((table for table in tables if table is not None), empty)


def _table(document: Any, path: Sequence[str]) -> Mapping[str, Any] | None:
    for key in path:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document if isinstance(document, Mapping) else None


def _words(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(map(str, value))
    try:
        return tuple(shlex.split(value)) if isinstance(value, str) else ()
    except ValueError:  # a quote without its end
        return ()


def _begins(name: str, options: Sequence[str]) -> bool:
    return any(name.startswith(option) or (set("*?[") & set(option) and fnmatch.fnmatch(name, option)) for option in options)


def _definitions(body: Sequence[ast.stmt]) -> Iterator[_Definition]:
    yield from (node for node in _statements(body) if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)))


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run with the import, those under conditions too."""
    for node in body:
        yield node
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            blocks = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
            handlers = [handler.body for handler in getattr(node, "handlers", [])]
            for block in (*blocks, *handlers):
                yield from _statements(block)


def _bound(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Names that are imported, or assigned what may be a function."""
    for node in _statements(body):
        if isinstance(node, ast.ImportFrom):
            yield from (name.asname or name.name for name in node.names)
        elif isinstance(node, ast.Assign) and isinstance(node.value, _BOUND):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _simple(family: Sequence[ast.ClassDef]) -> bool:
    """Whether pytest can make the class: one with a constructor, or that says that it is no test, it leaves out."""
    body = [node for one in family for node in one.body]
    made = any(isinstance(node, ast.FunctionDef) and node.name in ("__init__", "__new__") for node in body)
    denied = (node.value for node in body if isinstance(node, ast.Assign) and "__test__" in map(_last, node.targets))
    return not made and not any(isinstance(value, ast.Constant) and not value.value for value in denied)


def _fixture(node: ast.expr) -> bool:
    return _last(node.func if isinstance(node, ast.Call) else node) == "fixture"


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
