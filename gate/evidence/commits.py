"""Which commits changed which paths: asked of git once for all paths, as a call for each takes seconds where hundreds have changed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from gate import git
from gate.history import Repository

# What a user's settings could change in the listing: names as the repository's folder has them, of the first commit too, of each parent.
_PLAIN = ("-c", "log.showRoot=true", "-c", "log.follow=false", "-c", "log.diffMerges=separate", "-c", "diff.relative=false")

_MARK = "\x01"  # before a commit in the listing; no file's name begins with it


@dataclass(frozen=True)
class Commit:
    """A commit: its full id, and its short id and subject for people."""

    id: str
    title: str


class Commits:
    """The history that leads to HEAD.

    Args:
        repository: the project's.
    """

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._asked: dict[str, None] = {}
        self._changing: dict[str, list[str]] = {}
        self._before: dict[str, frozenset[str]] = {}

    def ask(self, paths: Iterable[str]) -> None:
        """Names paths of the project that will be asked about, so that git is asked about all of them at once."""
        self._asked |= dict.fromkeys(path for path in paths if path not in self._changing)

    def changing(self, *paths: str, after: str | None = None) -> list[str]:
        """Ids of the commits that changed one of some paths of the project, newest first.

        Args:
            paths: of files.
            after: leaves out this commit and those that led to it.

        Raises:
            BaselineFailed: there is no commit.
        """
        self.ask(paths)
        if self._asked:
            self._fetch([*self._asked])
        found = {commit for path in paths for commit in self._changing[path]} - (self._leading(after) if after else frozenset())
        return sorted(found, key=self._places.__getitem__)

    def commit(self, name: str) -> Commit:
        """A commit by its full id."""
        return Commit(name, self._known[name][1])

    def is_first(self, name: str) -> bool:
        """Whether nothing is known of what came before a commit."""
        return not self._known[name][0]

    def oldest(self, commits: Iterable[Commit]) -> Commit | None:
        """The first of several to be committed, by descent, as several may be of one second; None of none."""
        return max(commits, key=lambda commit: self._places[commit.id], default=None)

    @cached_property
    def _known(self) -> Mapping[str, tuple[list[str], str]]:
        """Parents and title of each commit by its id, newest first."""
        form = "--format=%H%x00%P%x00%h (%s)"
        lines = git.run(self._repository.top, "log", "--topo-order", "--no-show-signature", "--no-color", form, "HEAD")
        found = (line.split("\0") for line in lines.decode(errors="replace").split("\n") if line)
        return {name: (parents.split(), title.strip()) for name, parents, title in found}

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {name: place for place, name in enumerate(self._known)}

    def _leading(self, name: str) -> frozenset[str]:
        """A commit and all that led to it."""
        if name not in self._before:
            found, rest = {name}, [name]
            while rest:
                new = [parent for parent in self._known[rest.pop()][0] if parent not in found]
                found.update(new)
                rest += new
            self._before[name] = frozenset(found)
        return self._before[name]

    def _fetch(self, paths: list[str]) -> None:
        """A merge counts where it differs from one of its parents, as one of them may have had what a record read."""
        full = {self._repository.prefix + path: path for path in paths}
        found: dict[str, dict[str, None]] = {path: {} for path in paths}
        commit = ""
        for word in self._listing([name for name in full if "\n" not in name]):  # a line is a path
            name = word.removeprefix("\n")
            if name.startswith(_MARK):
                commit, _, name = name.removeprefix(_MARK).partition("\n")
            if name in full:
                found[full[name]][commit] = None
        self._changing |= {path: list(commits) for path, commits in found.items()}
        self._asked.clear()

    def _listing(self, names: list[str]) -> list[str]:
        """Marked commits, and the names that each of them changed of some."""
        if not names:
            return []
        options = ("-z", "-m", "--full-history", "--no-renames", "--no-ext-diff", "--name-only", "--no-show-signature", "--no-color")
        form, head = f"--format={_MARK}%H", next(iter(self._known))  # of the same history, whatever is committed meanwhile
        given = os.fsencode("".join(f"{line}\n" for line in ("--", *names)))
        answer = git.run(self._repository.top, *_PLAIN, *git.LITERAL, "log", *options, form, head, "--stdin", stdin=given)
        return os.fsdecode(answer).split("\0")
