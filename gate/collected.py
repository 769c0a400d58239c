"""Whether pytest collects a test from a file: by the names that its configuration says, without importing anything."""

from __future__ import annotations

import ast
import builtins
import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath

from gate.bindings import Imported, Module, last, parsed
from gate.pytest_settings import Read, Settings

_UNIT = ("test", "runTest")  # the beginning is fixed in unittest's classes
_BARE = ("object", "ABC", "Generic", "Protocol", "TestCase", "IsolatedAsyncioTestCase")  # hold no test of their own
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Place = tuple[Module, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]
_Found = tuple[list[_Place], bool]  # what a name may stand for, and whether also for something that is not read here


class Answer(Enum):
    """What stands under a name; of several the first counts."""

    TEST = "test"
    CLASS = "class"  # that holds tests
    UNREAD = "unread"  # what it comes from is made as the file runs, or stands outside the project
    NONE = "none"  # nothing, or nothing that pytest collects


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
    def of(cls, settings: Settings) -> Names:
        """As configured; pytest's own where nothing is, or where it cannot be read."""
        given = {name: settings.words(f"python_{name}") for name in ("files", "functions", "classes")}
        return cls(**{name: words for name, words in given.items() if words})

    def has_file(self, path: str) -> bool:
        """Whether pytest takes a file, by its path in the project, for one of tests."""
        name = path.rpartition("/")[2]
        return any(fnmatch.fnmatch(*((f"/{path}", f"*/{pattern}") if "/" in pattern else (name, pattern))) for pattern in self.files)


@dataclass(frozen=True)
class _Scope:
    """Where names are looked up: a module, or a class with all that it inherits from, nearest first; `unread`: and with more."""

    bodies: tuple[tuple[Module, Sequence[ast.stmt]], ...]
    unread: bool
    functions: tuple[str, ...]


class Collected:
    """The tests of a project's files; those that a class inherits from one of another file, too, where imports lead there.

    Args:
        read: gives the text of a file of the project's folder, None where there is none.
    """

    def __init__(self, read: Read) -> None:
        settings = Settings.of(read)
        self._read, self._roots = read, ("", "src", *settings.words("pythonpath"))
        self._names = Names.of(settings)
        self._modules: dict[str, Module | None] = {}

    def answer(self, file: str, name: str) -> Answer:
        """What pytest collects from a file under a name, "TestA::test_b" within a class, parameters left out."""
        module = self._module(file) if self._names.has_file(file) else None
        if module is None:
            return Answer.NONE
        return self._answer(_Scope(((module, module.body),), module.dynamic, self._names.functions), name.split("::"))

    def _answer(self, scope: _Scope, names: Sequence[str]) -> Answer:
        if len(names) == 1:
            return self._last(scope, names[0])
        found, unread = self._find(scope, names[0])
        answers = {self._answer(inner, names[1:]) for place in found if (inner := self._inside(place, names[0])) is not None}
        if unread and _begins(names[-1], (*self._names.functions, *_UNIT)):
            answers.add(Answer.UNREAD)
        return next((answer for answer in Answer if answer in answers), Answer.NONE)

    def _last(self, scope: _Scope, name: str) -> Answer:
        found, unread = self._find(scope, name)
        tests = [node for _, node in found if isinstance(node, _FUNCTIONS) and not any(map(_fixture, node.decorator_list))]
        if tests and _begins(name, scope.functions):
            return Answer.TEST
        if any(self._holds(inner) for one in found if (inner := self._inside(one, name)) is not None):
            return Answer.CLASS
        return Answer.UNREAD if unread and _begins(name, (*scope.functions, *self._names.classes)) else Answer.NONE

    def _inside(self, place: _Place, name: str) -> _Scope | None:
        """What a class that is bound to a name holds; None of one that pytest passes over, and of a function."""
        if not isinstance(place[1], ast.ClassDef):
            return None
        family, unread = self._family(place, frozenset())
        unit = any(last(base).endswith("TestCase") for _, node in family for base in node.bases)
        said = next(filter(lambda known: known is not None, (_said(node) for _, node in family)), None)
        plain = _begins(name, self._names.classes) or said is True
        made = any(isinstance(node, ast.FunctionDef) and node.name in ("__init__", "__new__") for _, one in family for node in one.body)
        if said is False or not (unit or unread or (plain and not made)):
            return None
        functions = _UNIT if unit else (*self._names.functions, *_UNIT) if unread else self._names.functions
        return _Scope(tuple((module, node.body) for module, node in family), unread, functions)

    def _holds(self, scope: _Scope) -> bool:
        names = {name for module, body in scope.bodies for name in module.bound(body)}
        return scope.unread or any(_begins(name, (*scope.functions, *self._names.classes)) for name in names)

    def _family(self, place: _Place, seen: frozenset[int]) -> tuple[list[tuple[Module, ast.ClassDef]], bool]:
        """A class and those that it inherits from; whether there are more, or something makes another of it."""
        module, node = place
        if not isinstance(node, ast.ClassDef) or id(node) in seen:
            return [], False
        family, unread = [(module, node)], module.dynamic or bool(node.keywords) or not all(map(_mark, node.decorator_list))
        for base in node.bases:
            found, more = self._expression(module, base)
            unread |= more and (bool(found) or last(base) not in _BARE)
            for one in found:
                others, more = self._family(one, seen | {id(node)})
                family, unread = family + others, unread or more
        return family, unread

    def _find(self, scope: _Scope, name: str) -> _Found:
        """What a name may stand for, and whether also for something that is not read here."""
        for module, body in scope.bodies:
            bound = module.bound(body)
            if name in bound:
                return self._defined(module, bound[name], ())
            for star in bound.get("*", ()):
                found, unread = self._defined(module, [star], (name,))
                if found or unread:
                    return found, unread
        return [], scope.unread

    def _defined(self, module: Module, nodes: Sequence[object], rest: tuple[str, ...], depth: int = 0) -> _Found:
        found: list[_Place] = []
        unread = depth > 8  # modules that import from each other
        for node in nodes if not unread else ():
            inner, more = self._resolved(module, node, rest, depth)
            found, unread = found + inner, unread or more
        return found, unread

    def _resolved(self, module: Module, node: object, rest: tuple[str, ...], depth: int) -> _Found:
        if isinstance(node, Imported):
            return self._imported(module, node, rest, depth)
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            return self._expression(module, node, rest, depth)
        if isinstance(node, (ast.ClassDef, *_FUNCTIONS)):
            return ([], True) if rest else ([(module, node)], False)
        return [], isinstance(node, (ast.Call, ast.Lambda))  # a number or a list is no test

    def _expression(self, module: Module, node: ast.expr, rest: tuple[str, ...] = (), depth: int = 0) -> _Found:
        node = node.value if isinstance(node, ast.Subscript) else node
        head, *parts = ast.unparse(node).split(".")
        if not head.isidentifier():
            return [], True
        bound = module.bound(module.body)
        if head in bound:
            return self._defined(module, bound[head], (*parts, *rest), depth + 1)
        if "*" in bound:
            return self._defined(module, bound["*"], (head, *parts, *rest), depth + 1)
        return [], not hasattr(builtins, head)

    def _imported(self, module: Module, imported: Imported, rest: tuple[str, ...], depth: int) -> _Found:
        """A name of another file; of the rest the first parts may be files, too."""
        parts = (*imported.names, *rest)
        for end in range(len(parts) - 1, -1, -1):
            other = self._at(module, (*imported.module, *parts[:end]))
            if other is not None:
                name = ast.parse(".".join(parts[end:]), mode="eval").body
                return self._expression(other, name, (), depth + 1) if other.has(parts[end]) else ([], other.dynamic)
        return [], bool(rest or imported.names)

    def _at(self, module: Module, parts: tuple[str, ...]) -> Module | None:
        """The project's file that an import reads: from the nearest folder above that has it, or from where imports start."""
        folders = [""] if parts[0] == "" else [*(folder.as_posix() for folder in PurePosixPath(module.file).parents), *self._roots]
        for folder in dict.fromkeys(folders):
            path = PurePosixPath(folder, *parts).as_posix()
            found = self._module(f"{path}.py") or self._module(f"{path}/__init__.py")
            if found is not None:
                return found
        return None

    def _module(self, file: str) -> Module | None:
        if file not in self._modules:
            text = self._read(file)
            self._modules[file] = None if text is None else parsed(file, text)
        return self._modules[file]


def _begins(name: str, options: Sequence[str]) -> bool:
    return any(name.startswith(option) or (set("*?[") & set(option) and fnmatch.fnmatch(name, option)) for option in options)


def _said(node: ast.ClassDef) -> bool | None:
    """What a class says of itself: whether it is a test; None where it says nothing."""
    told = [one.value for one in node.body if isinstance(one, ast.Assign) and "__test__" in map(last, one.targets)]
    return bool(told[-1].value) if told and isinstance(told[-1], ast.Constant) else None


def _fixture(node: ast.expr) -> bool:
    return last(node.func if isinstance(node, ast.Call) else node) == "fixture"


def _mark(node: ast.expr) -> bool:
    """Whether a decorator leaves a class what it is."""
    return ast.unparse(node).removeprefix("pytest.").startswith("mark.")
