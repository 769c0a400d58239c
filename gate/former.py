"""The goldens that a commit had, in the folder that its own configuration names."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from gate import git
from gate.config import Config, parse
from gate.errors import BaselineFailed
from gate.history import Repository
from golden.manifest import FILE

_LINK = "120000"  # the mode of its entry in a tree
_MOST = 40  # links on the way to a folder


@dataclass(frozen=True)
class Former:
    """The goldens of a commit.

    Attributes:
        root: the folder that held them, relative to the project.
        files: of each golden, by its place below the root ("cpu/torch-2.13.0/digits"), the name of each file to its path in the repository.
    """

    root: str
    files: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, objects: git.Objects, repository: Repository, config: Config, commit: str) -> Former:
        """Those of a commit. Where it does not configure gate yet, those in the folder that is named now.

        Raises:
            BaselineFailed: git cannot give them, or the commit's configuration does not say where they are.
        """
        root = _root(objects, repository, commit) or config.goldens.relative_to(config.root).as_posix()
        folder = f"{_followed(repository, commit, repository.prefix + root)}/"
        answer = git.run(repository.top, *git.LITERAL, "ls-tree", "-r", "-z", "--name-only", commit, "--", folder)
        found: dict[str, dict[str, str]] = {}
        for path in filter(None, os.fsdecode(answer).split("\0")):
            place, _, name = path.removeprefix(folder).rpartition("/")
            if place.count("/") == 2 and place.split("/")[1].startswith("torch-"):
                found.setdefault(place, {})[name] = path
        return cls(root, {place: files for place, files in found.items() if FILE in files})


def _root(objects: git.Objects, repository: Repository, commit: str) -> str | None:
    """The folder that a commit's configuration names, None where it has none."""
    blob = objects.find(commit, f"{repository.prefix}pyproject.toml")
    if blob is None:
        return None
    where = f"pyproject.toml of {commit[:10]}"
    try:
        document = parse(objects.read(blob).decode("utf-8-sig"))
    except ValueError as error:
        raise BaselineFailed(
            f"{where} does not parse, so that nobody knows where its goldens were: {error}. Name another commit."
        ) from None
    tool = document.get("tool", {})
    gate = tool.get("gate") if isinstance(tool, Mapping) else None
    if not isinstance(gate, Mapping):
        return None
    value = gate.get("goldens", "goldens")
    parts = PurePosixPath(value).parts if isinstance(value, str) else ()
    if not parts or ".." in parts or parts[0] == "/":
        raise BaselineFailed(f"{where}: [tool.gate] goldens = {value!r} is no folder of the project. Name another commit.")
    return "/".join(parts)


def _followed(repository: Repository, commit: str, path: str, links: int = 0) -> str:
    """A path of a commit with the links on its way followed; as it is where one leads outside."""
    done: list[str] = []
    parts = path.split("/")
    for index, part in enumerate(parts):
        done.append(part)
        here = "/".join(done)
        entry = os.fsdecode(git.run(repository.top, *git.LITERAL, "ls-tree", "-z", commit, "--", here)).split("\t")[0].split()
        if entry[:1] == [_LINK] and links < _MOST:
            target = os.fsdecode(git.run(repository.top, "cat-file", "blob", entry[2]))
            real = posixpath.normpath(posixpath.join(posixpath.dirname(here), target, *parts[index + 1 :]))
            return path if real.startswith(("/", "..")) else _followed(repository, commit, real, links + 1)
    return path
