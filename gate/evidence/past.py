"""Which commit was the first to take something away from what a record read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from types import TracebackType

from gate import git
from gate.config import Config, parse
from gate.content import Content
from gate.errors import BaselineFailed, GoldenError
from gate.evidence.present import resolved, table
from gate.evidence.statement import Kind, Subject, digest_of
from gate.history import Repository
from golden.settings import Settings


@dataclass(frozen=True)
class Commit:
    """A commit: its full id, and its short id and subject for people."""

    id: str
    title: str


class Past:
    """Looks into a project's history; knows nothing where there is none. Use it as a context manager.

    Args:
        config: the project's.

    Attributes:
        shallow: whether older commits are missing.
    """

    def __init__(self, config: Config) -> None:
        self._file = config.file.name
        self._repository: Repository | None = None
        self._content: Content | None = None
        self._stack = ExitStack()
        self._known: dict[tuple[Kind, str, str], Commit | None] = {}
        with suppress(BaselineFailed):
            self._repository = Repository.of(config.root)
        self.shallow = self._repository is not None and self._repository.shallow

    def __enter__(self) -> Past:
        if self._repository is not None:
            self._content = self._stack.enter_context(Content(self._repository.top, self._repository.prefix))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    def first(self, subject: Subject) -> Commit | None:
        """The first commit after which a subject was no longer what it was when a record read it.

        None where no commit did it (the work tree alone differs), where none has what was read, and where history does not hold it.
        """
        key = (subject.kind, subject.name, subject.digest)
        if key not in self._known:
            self._known[key] = None
            with suppress(BaselineFailed):
                self._known[key] = self._first(subject)
        return self._known[key]

    def oldest(self, commits: list[Commit]) -> Commit | None:
        """The first of several to be committed."""
        if self._repository is None or len(commits) < 2:
            return commits[0] if commits else None
        order = git.run(self._repository.top, "rev-list", "--no-walk=sorted", *(commit.id for commit in commits)).decode().split()
        return next(commit for commit in commits if commit.id == order[-1])

    def _first(self, subject: Subject) -> Commit | None:
        if self._repository is None:
            return None
        state = self._states(subject)
        if state is None:
            return None
        path, digest = state
        found = next((commit for commit in self._commits(path, "HEAD") if digest(commit) == subject.digest), None)
        if found is None:
            return None
        later = list(self._commits(path, f"{found}..HEAD"))
        moved = next((commit for commit in reversed(later) if digest(commit) != subject.digest), None)
        return self.commit(moved) if moved else None

    def commit(self, name: str) -> Commit:
        """A commit by its full id."""
        assert self._repository is not None, "a commit comes from a repository"
        title = git.run(self._repository.top, "log", "-1", "--no-show-signature", "--format=%h (%s)", name)
        return Commit(name, title.decode(errors="replace").strip())

    def _states(self, subject: Subject) -> tuple[str, Callable[[str], str | None]] | None:
        """The path whose commits may have changed a subject, and its digest at a commit."""
        content = self._content
        if content is None:
            return None
        if subject.kind is Kind.FILE:
            return subject.name, lambda commit: content.digest(commit, subject.name)
        if subject.kind in (Kind.SCENARIO, Kind.TABLE):
            return self._file, lambda commit: self._value(commit, subject)
        return None

    def _commits(self, path: str, revisions: str) -> Iterator[str]:
        """Commits that changed a path of the project, newest first."""
        assert self._repository is not None, "history has a repository"
        full = self._repository.prefix + path
        answer = git.run(self._repository.top, *git.LITERAL, "rev-list", "--topo-order", "--full-history", revisions, "--", full)
        yield from answer.decode().split()

    def _value(self, commit: str, subject: Subject) -> str | None:
        """The digest that a part of pyproject.toml had at a commit."""
        assert self._repository is not None, "history has a repository"
        try:
            document = parse(git.run(self._repository.top, "show", f"{commit}:{self._repository.prefix}{self._file}").decode("utf-8-sig"))
            if subject.kind is Kind.TABLE:
                return digest_of(table(document, subject.name))
            found = document["tool"]["gate"]["scenarios"][subject.name]
            return digest_of(resolved(Settings.from_table(subject.name, found)))
        except (GoldenError, ValueError, KeyError, TypeError):
            return None
