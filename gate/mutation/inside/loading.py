"""Compiles a copy's files from what they hold, never from a bytecode cache, and notes what was loaded.

The zygote loads this file by its path: nothing of gate or golden is imported here.
"""

# ruff: noqa: PTH100, PTH108, PTH113, PTH116

from __future__ import annotations

import contextlib
import hashlib
import importlib
import marshal
import os
import runpy
import types
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any


class Sources:
    """Compiles the tree's files from what they hold, never from a bytecode cache, and notes what was loaded.

    Code is kept by the content that it was compiled from, so that a fork compiles only what no fork before it has.

    Args:
        tree: the copy of the project.
    """

    def __init__(self, tree: str) -> None:
        self.tree = tree
        self.codes: dict[tuple[str, str, str], types.CodeType] = {}
        self.new: dict[tuple[str, str, str], types.CodeType] = {}
        self.loaded: dict[str, str] = {}
        self.failed: dict[str, str] = {}

    def place(self, path: str) -> str | None:
        """A path below the tree, relative to it."""
        return path[len(self.tree) + 1 :] if path.startswith(self.tree + os.sep) else None

    def code(self, kind: str, path: str, content: bytes, make: Any) -> types.CodeType:
        """The code of a file's content."""
        key = (kind, self.place(path) or path, hashlib.sha256(content).hexdigest())
        if key not in self.codes:
            self.codes[key] = self.new[key] = make()
        return self.codes[key]

    def install(self) -> None:
        """Goes before every loader of source files."""
        get, run, run_path = SourceFileLoader.get_code, SourceFileLoader.exec_module, runpy.run_path
        sources = self

        def get_code(self: SourceFileLoader, fullname: str) -> Any:
            path = sources.place(self.path)
            if path is None:
                return get(self, fullname)
            content = Path(self.path).read_bytes()
            sources.loaded[path] = hashlib.sha256(content).hexdigest()
            return sources.code("plain", self.path, content, lambda: self.source_to_code(content, self.path))

        def exec_module(self: SourceFileLoader, module: types.ModuleType) -> None:
            try:
                run(self, module)
            except BaseException as error:
                sources.failed[sources.place(self.path) or self.path] = f"{type(error).__name__}: {error}"[:300]
                raise

        def run_script(path_name: str, *arguments: Any, **named: Any) -> Any:
            """A script that runs as `__main__` is compiled by runpy, which keeps no bytecode."""
            path = sources.place(os.path.abspath(path_name))
            if path is not None and os.path.isfile(path_name):
                sources.loaded[path] = hashlib.sha256(Path(path_name).read_bytes()).hexdigest()
            return run_path(path_name, *arguments, **named)

        runpy.run_path = run_script
        SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
        SourceFileLoader.exec_module = exec_module  # type: ignore[method-assign, assignment]

    def rewriting(self) -> None:
        """The same for pytest's rewritten tests."""
        rewrite: Any = importlib.import_module("_pytest.assertion.rewrite")
        make = rewrite._rewrite_test

        def rewritten(file: Path, config: Any) -> Any:
            stat = os.stat(file)
            code = self.code("test", str(file), Path(file).read_bytes(), lambda: make(file, config)[1])
            return stat, code

        rewrite._rewrite_test = rewritten

    def keep(self, file: str, mutated: str) -> None:
        """Writes what was compiled here and not before, for `take`; not of the mutated file, whose content no other fork has."""
        new = [(key, code) for key, code in self.new.items() if key[1][:1] != os.sep and key[1] != mutated]
        if new:
            Path(file).write_bytes(marshal.dumps(new))

    def take(self, file: str) -> None:
        """Reads what a fork of this process has written by `keep`, if it has."""
        with contextlib.suppress(OSError, ValueError, EOFError, TypeError):  # half a file of a fork that was ended
            self.codes.update(marshal.loads(Path(file).read_bytes()))
            os.unlink(file)
