"""Which files of a project import which, read from their syntax: what a change at import may reach."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

_DYNAMIC = {"import_module", "__import__", "run_module", "run_path", "find_spec", "spec_from_file_location"}
_DOTTED = re.compile(r"\.*[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_SCRIPT = re.compile(r"((?:[^\s\"']*/)?(\w+\.py))(?::\w+)?")
_COMMON = {"__init__.py", "conftest.py", "setup.py"}


@dataclass(frozen=True)
class Reach:
    """The imports of a project.

    Attributes:
        trees: the syntax trees of its Python files, by path with forward slashes; None for one that does not parse.
    """

    trees: Mapping[str, ast.Module | None]

    def of(self, path: str) -> frozenset[str]:
        """Every file that is imported when a file is, or by what it calls later, itself included; and conftest.py files above those."""
        found: set[str] = set()
        waiting = [path]
        while waiting:
            current = waiting.pop()
            if current not in found:
                found.add(current)
                waiting += self._edges.get(current, ())
        return frozenset(found)

    @cached_property
    def _edges(self) -> dict[str, frozenset[str]]:
        return {path: frozenset(self._targets(path, tree)) - {path} for path, tree in self.trees.items()}

    def _targets(self, path: str, tree: ast.Module | None) -> Iterator[str]:
        yield from self._conftests(path)
        if tree is None:
            return
        dynamic = _is_dynamic(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from self._module(alias.name)
            elif isinstance(node, ast.ImportFrom):
                base = self._base(path, node)
                yield from self._module(base)
                for alias in node.names:
                    yield from self._module(f"{base}.{alias.name}" if base else alias.name)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
                yield from self._text(path, node.value, dynamic)

    def _conftests(self, path: str) -> Iterator[str]:
        """pytest loads them for the tests below them."""
        if not PurePosixPath(path).name.startswith("conftest"):
            for folder in PurePosixPath(path).parents:
                file = (folder / "conftest.py").as_posix()
                if file in self.trees:
                    yield file

    def _base(self, path: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        folder = PurePosixPath(path).parents[min(node.level - 1, len(PurePosixPath(path).parents) - 1)]
        return ".".join([*folder.parts, *([node.module] if node.module else [])])

    def _module(self, name: str) -> Iterator[str]:
        """The files that an import of a dotted name runs: the packages above it as well."""
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            yield from self._names.get(".".join(parts[:end]), ())

    def _text(self, path: str, text: str, dynamic: bool) -> Iterator[str]:
        """Files that a string may stand for: a script's name, or, where modules are imported by name, a module's."""
        script = _SCRIPT.fullmatch(text)
        if script and script[2] not in _COMMON:
            # With folders it is a path's end; a bare name stands for a file beside the one that names it, or below that.
            place = "" if "/" in script[1] else f"{PurePosixPath(path).parent.as_posix()}/".removeprefix("./")
            yield from (
                file for file in self._scripts.get(script[2], ()) if file.startswith(place) and f"/{file}".endswith(f"/{script[1]}")
            )
        if not dynamic or not _DOTTED.fullmatch(text):
            return
        package = ".".join(PurePosixPath(path).parent.parts)
        yield from self._module(f"{package}.{text.lstrip('.')}" if package else text.lstrip("."))
        yield from self._module(text)
        yield from self._names.get(f"{text}.__main__", ())

    @cached_property
    def _scripts(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self.trees:
            found.setdefault(PurePosixPath(path).name, []).append(path)
        return found

    @cached_property
    def _names(self) -> dict[str, list[str]]:
        """Dotted names to files. A folder that is no package may be an import root, or a namespace of any depth."""
        found: dict[str, list[str]] = {}
        for path in self.trees:
            for name in _names_of(path, self.trees):
                found.setdefault(name, []).append(path)
        return found


def _names_of(path: str, files: Iterable[str]) -> Iterator[str]:
    pure = PurePosixPath(path)
    parts = list(pure.parts[:-1] if pure.name == "__init__.py" else (*pure.parts[:-1], pure.stem))
    folders = pure.parents[1:] if pure.name == "__init__.py" else pure.parents
    inside = next((depth for depth, folder in enumerate(folders) if (folder / "__init__.py").as_posix() not in files), 0)
    for start in range(len(parts) - inside):  # within a package there is one name only
        name = ".".join(parts[start:])
        if "." in name or name not in sys.stdlib_module_names:
            yield name


def _is_dynamic(tree: ast.Module) -> bool:
    """Whether modules are imported or run by names that are strings."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) in _DYNAMIC
        ):
            return True
        if isinstance(node, ast.Constant) and node.value == "-m":
            return True
    return False
