"""What a project holds now, as the digests that evidence knows things by."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from gate import git, inventory
from gate.config import Config, read
from gate.errors import BaselineFailed
from gate.evidence.statement import Kind, Subject
from gate.pytest_settings import TABLES
from gate.pytest_settings import Settings as PytestSettings
from golden import canonical
from golden.canonical import Json
from golden.settings import Settings
from golden.sources import read_content
from golden.tree import Tree

DOCUMENTS = (".md", ".rst")
FOLDER = "evidence"  # below a hardware folder: records that are kept
SOURCES = "<all sources>"  # a pattern: what gate mutate takes where no path is named
_UNSTORED = ("name", "devices")  # settings that say nothing of one run on one device


class Present:
    """Answers are kept: ask a new one after something was written.

    Args:
        config: the project's.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self._digests: dict[str, str | None] = {}
        self._matching: dict[str, list[str]] = {}

    def with_files(self, files: Iterable[str]) -> Present:
        """The project as it would be with these files in it; contents and all else as here."""
        other = copy.copy(self)
        for name in ("folders", "_places", "_environments", "_spelled"):
            other.__dict__.pop(name, None)
        other.files, other._matching = tuple(sorted(files)), {}
        return other

    @cached_property
    def tracked(self) -> frozenset[str]:
        """The project's files that git tracks; none where there is no repository."""
        try:
            return frozenset(_listed(self.config.root, "--cached"))
        except BaselineFailed:
            return frozenset()

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The project's files, tracked or not, without what git ignores, the evidence itself and gate's own folder; sorted.

        Those of submodules are among them.
        """
        root = self.config.root
        try:
            listed = _listed(root, "--cached", "--others", "--exclude-standard")
            found = {path for path in listed if os.path.lexists(root / path)}
        except BaselineFailed:  # no repository
            found = set(_walk(root))
        return tuple(sorted(path for path in found if not self.is_evidence(path)))

    @cached_property
    def folders(self) -> Mapping[str, frozenset[str]]:
        """Names of the project's files by folder, "." for the project's own."""
        found: dict[str, set[str]] = {}
        for path in map(PurePosixPath, self.files):
            found.setdefault(path.parent.as_posix(), set()).add(path.name)
        return {folder: frozenset(names) for folder, names in found.items()}

    @cached_property
    def packages(self) -> Mapping[str, str]:
        """Versions of the distributions that this interpreter holds."""
        return inventory.distributions()

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The project's pyproject.toml."""
        return read(self.config.file)

    @cached_property
    def pytest(self) -> PytestSettings:
        """What pytest is configured with."""
        return PytestSettings.at(self.config.root)

    def is_evidence(self, path: str) -> bool:
        """Whether a path of the project is gate's own or a kept record, which no evidence may rest on."""
        parts = PurePosixPath(path).parts
        goldens = self.config.goldens.relative_to(self.config.root).parts
        kept = parts[: len(goldens)] == goldens and parts[len(goldens) + 1 : len(goldens) + 2] == (FOLDER,)
        return kept or parts[:1] == (".gate",)

    def digest(self, path: str) -> str | None:
        """The digest of a project file; None where there is none."""
        if path not in self._digests:
            content = read_content(self.config.root / path)
            self._digests[path] = content.digest if content else None
        return self._digests[path]

    def is_recorded(self, path: str) -> bool:
        """Whether a path is part of a golden, which a check reads by its own name."""
        goldens = self.config.goldens.relative_to(self.config.root).parts
        parts = PurePosixPath(path).parts
        return parts[: len(goldens)] == goldens and any(part.startswith("torch-") for part in parts[len(goldens) + 1 : len(goldens) + 2])

    def holds(self, path: str) -> bool:
        """Whether the project has such a file, or a folder with files in it."""
        return path in self._places

    def matching(self, pattern: str) -> list[str]:
        """The project's files that a pattern has.

        In one that begins with a slash, as in .gitignore, `*` stands for no slash and `**` for any folders without a dot in front, virtual
        environments left out; in any other, `*` stands for anything. `SOURCES` has what `gate mutate` takes where no path is named.
        """
        if pattern not in self._matching:
            self._matching[pattern] = (
                self._sources() if pattern == SOURCES else [path for path in self._spelled if self.fits(path, pattern)]
            )
        return self._matching[pattern]

    def fits(self, path: str, pattern: str) -> bool:
        """Whether a pattern has a path, be there such a file or not."""
        if not pattern.startswith("/"):
            return fnmatchcase(path, pattern)
        return _fits(pattern[1:].split("/"), path.split("/")) and not self._is_installed(path)

    @cached_property
    def _spelled(self) -> list[str]:
        """The project's files, and below each link to a folder of the project once more what is in that folder."""
        root = os.path.realpath(self.config.root)
        found = list(self.files)
        for link in self.files:
            if os.path.islink(f"{root}/{link}") and os.path.isdir(f"{root}/{link}"):  # noqa: PTH112, PTH114
                place = os.path.relpath(os.path.realpath(f"{root}/{link}"), root)
                found += [f"{link}{path[len(place) :]}" for path in self.files if path.startswith(f"{place}/")]
        return sorted(found)

    @cached_property
    def _places(self) -> frozenset[str]:
        above = (folder.as_posix() for path in self.folders for folder in (PurePosixPath(path), *PurePosixPath(path).parents))
        return frozenset({*self.files, *above})

    @cached_property
    def _environments(self) -> list[str]:
        """Folders that are virtual environments and that git does not ignore."""
        return [folder for folder, names in self.folders.items() if "pyvenv.cfg" in names and folder != "."]

    def _is_installed(self, path: str) -> bool:
        return any(path.startswith(f"{place}/") for place in self._environments)

    def _sources(self) -> list[str]:
        """All sources but tests that stand elsewhere than the others."""
        from gate.mutation import aim
        from gate.mutation.suite import Suite

        python = [path for path in self.files if path.endswith(".py") and not self._is_installed(path)]
        found = aim.targets(Suite.of(self.config.root, python), (), None)
        return sorted(path for path in found if not any(fnmatchcase(PurePosixPath(path).name, name) for name in ("test_*.py", "*_test.py")))

    def changed(self, commit: str) -> list[str]:
        """The project's files that differ from a commit, untracked ones included; documents and evidence left out."""
        root = self.config.root
        differ = os.fsdecode(git.run(root, "diff", "--name-only", "-z", "--relative", "--no-renames", commit, "--", ".")).split("\0")
        fresh = os.fsdecode(git.run(root, "ls-files", "-z", "--others", "--exclude-standard")).split("\0")
        return sorted(path for path in {*differ, *fresh} if path and not self.is_evidence(path) and not is_document(path))

    def subject(self, kind: Kind, name: str) -> Subject | None:
        """What a subject of this kind and name is now; None where it is gone.

        Raises:
            BaselineFailed: git cannot tell what differs from a commit.
        """
        if kind is Kind.FILE:
            digest = self.digest(name)
            return Subject(kind, name, digest) if digest else None
        value = self._value(kind, name)
        return None if value is None and kind is not Kind.TABLE else Subject.of_value(kind, name, value)

    def _value(self, kind: Kind, name: str) -> Json:
        if kind is Kind.SCENARIO:
            settings = self.config.scenarios.get(name)
            return None if settings is None else resolved(settings)
        if kind is Kind.TABLE:
            return plain(self.pytest.table(name)) if name in TABLES else table(self.document, name)
        if kind is Kind.PACKAGE:
            return self.packages.get(name)
        return list(self.matching(name)) if kind is Kind.NAMES else list(self.changed(name))


def _listed(root: Path, *flags: str) -> Iterator[str]:
    """What `git ls-files` lists, in submodules too. Raises BaselineFailed where there is no repository."""
    for path in filter(None, os.fsdecode(git.run(root, "ls-files", "-z", *flags)).split("\0")):
        yield path
        if os.path.lexists(root / path / ".git") and not (root / path).is_symlink() and not path.endswith("/"):
            yield from (f"{path}/{inner}" for inner in _listed(root / path, *flags))


def is_document(path: str) -> bool:
    """Whether a file is prose, which no check runs."""
    return path.endswith(DOCUMENTS)


def resolved(settings: Settings) -> dict[str, Any]:
    """A scenario's settings, defaults filled in, as evidence knows them."""
    values = canonical.plain(asdict(settings), settings.name)
    assert isinstance(values, dict), "a dataclass becomes a mapping"
    return {key: value for key, value in values.items() if key not in _UNSTORED}


def table(document: Mapping[str, Any], name: str) -> Json:
    """The value at a dotted name of a TOML document; None where there is none."""
    found: Any = document
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return plain(found)


def _fits(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Whether a path has a pattern, both in parts."""
    if not pattern or not path:
        return not pattern and not path
    if pattern[0] != "**":
        return fnmatchcase(path[0], pattern[0]) and _fits(pattern[1:], path[1:])
    return _fits(pattern[1:], path) or (not path[0].startswith(".") and _fits(pattern, path[1:]))


def plain(value: Any) -> Json:
    """What a TOML document or an ini file holds, as evidence knows it. Dates and fractions count as their text."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def _walk(root: Path) -> Iterable[str]:
    """Files below a folder that is in no repository, without what never holds sources."""
    tree = Tree(root, root)
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if tree.place(f"{folder}/{name}/x") is not None]
        for name in names:
            place = tree.place(f"{folder}/{name}")
            if place is not None:
                yield place.path
