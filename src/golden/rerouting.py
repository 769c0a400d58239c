"""Where a run's imports come from: project files from the request's root, as they stand there now.

The rule of names: the standard library and golden are never shadowed by a project.
[held by tests/golden/test_rerouting.py::test_the_standard_library_is_not_shadowed]
[held by tests/golden/test_rerouting.py::test_golden_is_not_shadowed]
Every other name is looked up in the scenario's
folder, the root and the root's `src`, in that order, and then where the interpreter would look anyway; so the tree under test goes
before an installed copy of it (but, as Python has it, a folder without `__init__.py` after an installed package). A project's own
`random.py` can be imported only from within a package.

Project files are compiled from their source each time, without a bytecode cache read or written: an edit of equal length within a
second would run the old code, and a run would write into the project. All other modules keep theirs.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from golden.tree import Tree

# As importlib itself has them.
LOADERS = (
    (ExtensionFileLoader, EXTENSION_SUFFIXES),
    (SourceFileLoader, SOURCE_SUFFIXES),
    (SourcelessFileLoader, BYTECODE_SUFFIXES),
)


class ProjectFinder:
    """The first finder of a run's process.

    Args:
        tree: which files are the project's, and where the root is.
        roots: what goes first on the import path, in order.
        named: modules found at a file of their own, whatever else has that name: the scenario's.

    Where the root is not the project, whatever leads into the project (an editable install's .pth file or finder, a path that the
    scenario makes up) leads to the same place in the root instead, and finds nothing if nothing stands there.
    """

    def __init__(self, tree: Tree, roots: Sequence[Path], named: Mapping[str, Path]) -> None:
        self.tree, self.roots, self.named = tree, tuple(map(str, roots)), named

    def install(self) -> None:
        """Puts the roots first on `sys.path`, and goes before all other finders."""
        compile_afresh(self.tree)
        if self.tree.moved:
            sys.path_hooks.insert(0, self._folder)
            sys.path_importer_cache.clear()
        sys.path[:] = dict.fromkeys([*self.roots, *sys.path])
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module's spec, or None to leave the name to the other finders.

        Raises:
            ModuleNotFoundError: the project has the module, the root does not.
        """
        if name in self.named:
            return spec_from_file_location(name, self.named[name])
        if path is None and name in sys.stdlib_module_names:
            return next(self._others(name, [entry for entry in sys.path if entry not in self.roots], None, target), None)
        if not self.tree.moved or name.partition(".")[0] == "golden":
            return None
        found = list(self._others(name, path, path, target))
        moved = next((spec for spec in map(self._moved, found) if spec is not None), None)
        if found and moved is None:
            raise ModuleNotFoundError(f"No module named {name!r} in {self.tree.root}", name=name)
        return moved

    def _others(
        self, name: str, entries: Sequence[str] | None, path: Sequence[str] | None, target: ModuleType | None
    ) -> Iterator[ModuleSpec]:
        """What the other finders find, in their order; `entries` is where the one that searches folders looks."""
        for finder in [finder for finder in sys.meta_path if finder is not self]:
            spec = finder.find_spec(name, entries if finder is PathFinder else path, target)
            if spec is not None:
                yield spec

    def _folder(self, entry: str) -> FileFinder:
        """A path hook: the finder of a project's folder looks into that of the root."""
        folder = self.tree.counterpart(entry)
        if folder is None:
            raise ImportError(f"{entry} is no folder of the project", path=entry)  # by importlib's contract: the next hook is asked
        return FileFinder(str(folder), *LOADERS)

    def _moved(self, spec: ModuleSpec) -> ModuleSpec | None:
        """A spec as the root has it, None where it has nothing there."""
        if spec.submodule_search_locations is not None and any(map(self.tree.counterpart, spec.submodule_search_locations)):
            moved = [self.tree.counterpart(folder) or Path(folder) for folder in spec.submodule_search_locations]
            spec.submodule_search_locations = [str(folder) for folder in moved if folder.is_dir()]
        if spec.origin is None or not spec.has_location or (file := self.tree.counterpart(spec.origin)) is None:
            return None if spec.loader is None and not spec.submodule_search_locations else spec
        if not file.is_file():
            return None
        loader: Any = spec.loader
        if isinstance(loader, tuple(kind for kind, _ in LOADERS)):
            loader = copy.copy(loader)
            loader.path = str(file)
        return spec_from_file_location(spec.name, file, loader=loader, submodule_search_locations=spec.submodule_search_locations)


def compile_afresh(tree: Tree) -> None:
    """Makes every loader of source files, whoever uses it, leave bytecode caches alone where the source is the project's."""
    stats = SourceFileLoader.path_stats

    def path_stats(self: SourceFileLoader, path: str) -> Mapping[str, Any]:
        if tree.place(path) is not None:
            raise OSError(f"{path}: no bytecode cache is kept of a project's file")  # by importlib's contract: then none is used
        return stats(self, path)

    SourceFileLoader.path_stats = path_stats  # type: ignore[method-assign]
