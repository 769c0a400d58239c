"""Which commit was the first to take something away from what a record read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from types import TracebackType

from gate import git
from gate.config import Config, parse
from gate.content import Content
from gate.errors import BaselineFailed, GoldenError
from gate.evidence.commits import Commit, Commits
from gate.evidence.present import plain, resolved, table
from gate.evidence.statement import Kind, Subject, digest_of
from gate.history import Repository
from gate.pytest_settings import FILES, TABLES
from gate.pytest_settings import Settings as PytestSettings
from golden.settings import Settings


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
        self._changed: tuple[str, ...] | None = None
        self._known: dict[tuple[Kind, str, str, str], Commit | None] = {}
        with suppress(BaselineFailed):
            self._repository = Repository.of(config.root)
        self.shallow = self._repository is not None and self._repository.shallow
        self._commits = Commits(self._repository) if self._repository else None
        self._texts: dict[tuple[str, str], str | None] = {}

    def __enter__(self) -> Past:
        if self._repository is not None:
            self._content = self._stack.enter_context(Content(self._repository.top, self._repository.prefix))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    def ask(self, files: Iterable[str]) -> None:
        """Names files that will be asked about, so that git is asked about all of them at once."""
        if self._commits is not None:
            self._commits.ask(files)

    def first(self, subject: Subject, file: str = "") -> Commit | None:
        """The first commit after which a subject was no longer what it was when a record read it.

        None where no commit did it (the work tree alone differs), where none has what was read, and where history does not hold it.

        Args:
            subject: as it was.
            file: of names of files, the one that has come or gone.
        """
        key = (subject.kind, subject.name, subject.digest, file)
        if key not in self._known:
            self._known[key] = None
            with suppress(BaselineFailed):
                self._known[key] = self._first(subject, file)
        return self._known[key]

    def removed(self, file: str) -> Commit | None:
        """The commit that removed a file which is not in HEAD; None where there is none."""
        with suppress(BaselineFailed):
            return self._moved(self._there(file), file, absent=False)
        return None

    def holds(self, commit: Commit, file: str) -> bool:
        """Whether a commit has a file."""
        return self._content is not None and self._content.digest(commit.id, file) is not None

    def is_committed(self, file: str) -> bool:
        """Whether a file, or that there is none, is as HEAD has it; no where there is no history."""
        if self._repository is None:
            return False
        with suppress(BaselineFailed):
            self._changed = self._repository.state().changed if self._changed is None else self._changed
            return not any(file == path or (path.endswith("/") and file.startswith(path)) for path in self._changed)
        return False

    def oldest(self, commits: list[Commit]) -> Commit | None:
        """The first of several to be committed."""
        return self._commits.oldest(commits) if self._commits else None

    def _first(self, subject: Subject, file: str) -> Commit | None:
        content = self._content
        if content is None:
            return None
        nothing = digest_of(None)
        if subject.kind is Kind.FILE:
            return self._moved(lambda commit: content.digest(commit, subject.name) == subject.digest, subject.name, absent=False)
        if subject.kind in (Kind.SCENARIO, Kind.TABLE):
            paths = FILES if subject.name in TABLES else (self._file,)  # pytest reads one of several
            absent = subject.kind is Kind.TABLE and subject.digest == nothing
            return self._moved(lambda commit: self._value(commit, subject) == subject.digest, *paths, absent=absent)
        listed = isinstance(subject.value, list) and file in subject.value
        if subject.kind is Kind.NAMES:
            there = self._there(file)
            return self._moved(lambda commit: there(commit) is listed, file, absent=not listed)
        if subject.kind is Kind.CHANGED:
            base = content.digest(subject.name, file)
            return self._moved(lambda commit: (content.digest(commit, file) != base) is listed, file, absent=(base is not None) is listed)
        return None

    def _there(self, file: str) -> Callable[[str], bool]:
        return lambda commit: self._content is not None and self._content.digest(commit, file) is not None

    def _moved(self, was: Callable[[str], bool], *paths: str, absent: bool) -> Commit | None:
        """The first commit after the last one in which something was so; `absent`: it was also so before there was such a file."""
        commits = self._commits
        assert commits is not None, "history has a repository"
        found = next((commit for commit in commits.changing(*paths) if was(commit)), None)
        if found is None and not absent:
            return None
        later = commits.changing(*paths, after=found)
        moved = next((commit for commit in reversed(later) if not was(commit)), None)
        if moved is None or (found is None and self.shallow and commits.is_first(moved)):
            return None  # where older commits are cut off, the first one seems to bring whatever it has
        return commits.commit(moved)

    def _value(self, commit: str, subject: Subject) -> str | None:
        """The digest that a part of pyproject.toml, or what pytest reads of a file, had at a commit."""
        try:
            if subject.name in TABLES:
                return digest_of(plain(PytestSettings.of(lambda file: self._text(commit, file)).table(subject.name)))
            text = self._text(commit, self._file)
            if text is None:
                return None
            document = parse(text.removeprefix("\ufeff"))
            if subject.kind is Kind.TABLE:
                return digest_of(table(document, subject.name))
            found = document["tool"]["gate"]["scenarios"][subject.name]
            return digest_of(resolved(Settings.from_table(subject.name, found)))
        except (GoldenError, ValueError, KeyError, TypeError):
            return None

    def _text(self, commit: str, file: str) -> str | None:
        assert self._repository is not None, "history has a repository"
        if (commit, file) not in self._texts:
            self._texts[commit, file] = None
            with suppress(BaselineFailed):
                found = git.run(self._repository.top, "show", f"{commit}:{self._repository.prefix}{file}")
                self._texts[commit, file] = found.decode(errors="replace")
        return self._texts[commit, file]
