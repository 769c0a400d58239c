"""The content of a project's files at any commit, as the digests that a golden knows its sources by."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from gate import git
from golden.sources import digest_text

_POINTER = re.compile(rb"version https://git-lfs[^\n]*\n(?:[^\n]+\n)*?oid sha256:([0-9a-f]{64})\n")
_MANY = 500  # paths that git is asked about one by one


class Content:
    """Digests of files at commits; each file's content is read once. Use it as a context manager: its processes end with it.

    A file within a submodule counts as the submodule has it at the commit that the outer commit names.

    Args:
        top: the repository's folder.
        prefix: the project's folder in it, with a slash at its end; empty when it is the top.
    """

    def __init__(self, top: Path, prefix: str = "") -> None:
        self._top = top
        self._prefix = prefix
        self._objects = git.Objects(top)
        self._digests: dict[str, str] = {}
        self._inner: dict[str, Content | None] = {}
        self._links: dict[tuple[str, str], str | None] = {}

    def __enter__(self) -> Content:
        return self

    def __exit__(self, *error: object) -> None:
        self._objects.close()
        for inner in filter(None, self._inner.values()):
            inner.__exit__()

    def digest(self, commit: str, path: str) -> str | None:
        """The digest of a file by its path relative to the project; None where the commit has no such file."""
        path = self._prefix + path
        submodule = self._submodule(path)
        if submodule is not None:
            return self._within(submodule, commit, path[len(submodule) + 1 :])
        blob = self._objects.find(commit, path)
        if blob is None:
            return None
        if blob not in self._digests:
            self._digests[blob] = _digest(self._objects.read(blob))
        return self._digests[blob]

    def pathspecs(self, paths: Iterable[str]) -> list[str]:
        """What to ask git for, relative to the top, so that it lists every commit that changes one of the paths."""
        full = sorted({self._submodule(path) or path for path in (self._prefix + path for path in paths) if "\n" not in path})
        return full if len(full) <= _MANY else sorted({path.split("/")[0] for path in full})

    def within_submodule(self, path: str) -> bool:
        """Whether a path relative to the project lies in a repository of its own."""
        return self._submodule(self._prefix + path) is not None

    def _within(self, submodule: str, commit: str, path: str) -> str | None:
        key = (submodule, commit)
        if key not in self._links:
            self._links[key] = git.submodule(self._top, commit, submodule)
        link, inner = self._links[key], self._inner[submodule]
        return inner.digest(link, path) if link and inner else None

    def _submodule(self, path: str) -> str | None:
        """The outermost folder below the project, on the way to a path, that is a repository of its own."""
        parts = path.split("/")[:-1]
        for folder in ("/".join(parts[:end]) for end in range(self._prefix.count("/") + 1, len(parts) + 1)):
            if folder not in self._inner:
                self._inner[folder] = Content(self._top / folder) if (self._top / folder / ".git").exists() else None
            if self._inner[folder]:
                return folder
        return None


def _digest(content: bytes) -> str:
    """The digest of a file as a work tree has it: a pointer of git-lfs stands for the content whose sha256 it holds."""
    pointer = _POINTER.match(content) if len(content) < 1024 else None
    return pointer[1].decode() if pointer else digest_text(content)
