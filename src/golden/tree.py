"""Which files are the project's, as seen from a run: a path below the project or below the copy of it that the run is taken from."""

# ruff: noqa: PTH100, PTH110, PTH118
# Called for every file that the process opens, and links and ".." are to be kept apart: pathlib does neither.

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent

# Folders that hold no sources wherever they stand: history, kept runs, bytecode, what installers wrote.
_NEVER = {".git", ".hg", ".gate", "__pycache__", "site-packages", "dist-packages", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
_INSTALLED = (".egg-info", ".dist-info")
_ENVIRONMENT = ("pyvenv.cfg", "conda-meta")


@dataclass(frozen=True)
class Place:
    """Where a project file stands.

    Attributes:
        path: relative to the root (or, where `foreign`, to the project), with forward slashes.
        foreign: it lies in the project although the run is to take its files from another root.
    """

    path: str
    foreign: bool


class Tree:
    """Tells project files from all others.

    Args:
        project: the project's folder.
        root: where project files are to be taken from: the project, or a copy of another revision of it.
        apart: folders that hold no sources even where they lie in the project: what the run writes, say.

    A path counts as it is spelled, so that a linked folder of data belongs to the project; a spelling that leads into the project
    from outside (another link, a mount) is followed. Left out are `.git`, `.gate`, caches of bytecode and of tools, virtual
    environments, metadata of distributions, and the packages golden and gate that judge the run.

    Attributes:
        moved: whether the root is another folder than the project.
    """

    def __init__(self, project: Path, root: Path, apart: Iterable[Path] = ()) -> None:
        self.project, self.root = project, root
        self.moved = os.path.realpath(project) != os.path.realpath(root)
        self._bases = [(spelled, False) for spelled in _spellings(root)]
        self._bases += [(spelled, self.moved) for spelled in _spellings(project)]
        self._real: dict[str, str] = {}
        self._apart = frozenset(self._below(path) for path in (*_own(), *_interpreter(), *apart)) - {None, ""}
        self._left_out: dict[tuple[str, str], bool] = {}

    def place(self, path: str | bytes | os.PathLike[str]) -> Place | None:
        """Where a file or folder stands in the project, None when it is not the project's. The base folder itself is ".".

        Raises:
            ValueError, TypeError: `path` is no path.
        """
        found = self._find(os.path.abspath(os.fsdecode(path)))
        if found is None:
            return None
        base, foreign, relative = found
        folder, _, name = relative.rpartition("/")
        if self._holds_none(relative, name) or self._below_excluded(base, folder):
            return None
        return Place(relative or ".", foreign)

    def counterpart(self, path: str) -> Path | None:
        """The path in the root that stands for one in the project; None for what is not the project's, or in the root already."""
        place = self.place(path)
        return self.root / place.path if place is not None and place.foreign else None

    def _find(self, path: str) -> tuple[str, bool, str] | None:
        """Base folder, whether that is the project's while the root is another, and the path below it."""
        folder, name = os.path.split(path)
        if (real := self._real.get(folder)) is None:
            real = self._real[folder] = os.path.realpath(folder)
        for spelled in (path, os.path.join(real, name)):
            for base, foreign in self._bases:
                if spelled == base:
                    return base, foreign, ""
                if spelled.startswith(base) and spelled[len(base)] == "/":
                    return base, foreign, spelled[len(base) + 1 :]
        return None

    def _below(self, path: Path) -> str | None:
        found = self._find(os.path.abspath(path))
        return found[2] if found else None

    def _holds_none(self, relative: str, name: str) -> bool:
        return name in _NEVER or name.endswith(_INSTALLED) or relative in self._apart

    def _below_excluded(self, base: str, folder: str) -> bool:
        """Whether a folder, or one above it below the base, is one of those that hold no sources."""
        if not folder:
            return False
        known = self._left_out.get((base, folder))
        if known is None:
            parent, _, name = folder.rpartition("/")
            known = (
                self._holds_none(folder, name)
                or self._below_excluded(base, parent)
                or any(os.path.exists(f"{base}/{folder}/{mark}") for mark in _ENVIRONMENT)
            )
            self._left_out[base, folder] = known
        return known


def _spellings(folder: Path) -> tuple[str, ...]:
    return tuple(dict.fromkeys((os.path.abspath(folder), os.path.realpath(folder))))


def _own() -> list[Path]:
    """The packages that judge: golden, and gate where it lies beside it (installed) or a level above (a working tree)."""
    above = (PACKAGE.parent / "gate", PACKAGE.parent.parent / "gate")
    return [PACKAGE, *(folder for folder in above if (folder / "verdict.py").is_file())]


def _interpreter() -> list[Path]:
    return [Path(folder) for folder in (sys.prefix, sys.base_prefix)]
