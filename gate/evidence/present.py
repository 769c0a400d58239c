"""What a project holds now, as the digests that evidence knows things by."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from gate import git, inventory
from gate.config import Config, read
from gate.errors import BaselineFailed
from gate.evidence.statement import Kind, Subject
from golden import canonical
from golden.canonical import Json
from golden.settings import Settings
from golden.sources import read_content
from golden.tree import Tree

DOCUMENTS = (".md", ".rst")
FOLDER = "evidence"  # below a hardware folder: records that are kept
_UNSTORED = ("name", "devices")  # settings that say nothing of one run on one device


class Present:
    """Answers are kept: ask a new one after something was written.

    Args:
        config: the project's.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self._digests: dict[str, str | None] = {}

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The project's files, tracked or not, without what git ignores, the evidence itself and gate's own folder; sorted."""
        root = self.config.root
        try:
            listed = os.fsdecode(git.run(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")).split("\0")
            found = {path for path in listed if path and os.path.lexists(root / path)}
        except BaselineFailed:  # no repository
            found = set(_walk(root))
        return tuple(sorted(path for path in found if not self.is_evidence(path)))

    @cached_property
    def packages(self) -> Mapping[str, str]:
        """Versions of the distributions that this interpreter holds."""
        return inventory.distributions()

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The project's pyproject.toml."""
        return read(self.config.file)

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

    def matching(self, pattern: str) -> list[str]:
        """The project's files that a pattern has; `*` stands for anything, slashes too."""
        return [path for path in self.files if fnmatchcase(path, pattern)]

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
            return table(self.document, name)
        if kind is Kind.PACKAGE:
            return self.packages.get(name)
        return list(self.matching(name)) if kind is Kind.NAMES else list(self.changed(name))


def is_document(path: str) -> bool:
    """Whether a file is prose, which no check runs."""
    return path.endswith(DOCUMENTS)


def resolved(settings: Settings) -> dict[str, Any]:
    """A scenario's settings, defaults filled in, as evidence knows them."""
    values = canonical.plain(asdict(settings), settings.name)
    assert isinstance(values, dict), "a dataclass becomes a mapping"
    return {key: value for key, value in values.items() if key not in _UNSTORED}


def table(document: Mapping[str, Any], name: str) -> Json:
    """The value at a dotted name of a TOML document; None where there is none. Dates count as their text."""
    found: Any = document
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return _plain(found)


def _plain(value: Any) -> Json:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
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
