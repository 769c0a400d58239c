"""The trailers of a range of commits, and the log of provenance."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from gate import git
from gate.collected import Answer, Collected
from gate.config import Config
from gate.errors import BaselineFailed, ConfigurationError, UsageError
from gate.history import SHALLOW, Repository
from gate.pytest_settings import text_of
from gate.trailers import log, verdicts
from gate.trailers.message import Message, changing, messages
from gate.trailers.past import Past
from gate.trailers.rule import Rule
from gate.trailers.verdicts import Known


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong: where (a commit, or a file with its line), and what."""

    where: str
    told: str

    @property
    def text(self) -> str:
        """On one line."""
        return f"{self.where}: trailer: {self.told}"

    def as_json(self) -> dict[str, Any]:
        """As `--json` writes it."""
        return {"where": self.where, "message": self.told}


@dataclass(frozen=True)
class Trailers:
    """What `[tool.gate.trailers]` finds.

    Attributes:
        faults: in order of commits, those of the log last.
        commits: how many had to carry trailers.
    """

    faults: tuple[Fault, ...]
    commits: int

    @property
    def exit_code(self) -> int:
        """1 where something is wrong."""
        return 1 if self.faults else 0

    def as_json(self) -> dict[str, Any]:
        """The result as `--json` writes it."""
        return {"commits": self.commits, "faults": [fault.as_json() for fault in self.faults]}


def review(config: Config, rule: Rule, since: str | None) -> Trailers:
    """Holds commits to a rule.

    A test that a commit names has to exist now where `since` is given, for what lands is the whole range. Without it, a commit of long ago
    is not blamed for a test that was renamed after it: the test has to exist now, or at that commit. So it is with pages.

    Args:
        config: the project's.
        rule: what commits have to say.
        since: the commit before the first one; the rule's own leaves out more. Without either, all commits.

    Raises:
        UsageError: there is no such commit, or a path of the rule names nothing.
        BaselineFailed: git cannot tell, as in a shallow clone that lacks what one of the commits changed.
    """
    repository = Repository.of(config.root)
    revisions = _range(repository, since, rule.since)
    _check_paths(config, rule, repository)
    bound = changing(config.root, revisions, rule.paths)
    with closing(Past(repository)) as past:
        tree = _Tree(config, rule, None if since is not None else past)
        known = Known(tree.has_test, tree.has_page, tree.sources)
        faults = [
            Fault(f"commit {message.title}", told)
            for message in messages(config.root, *revisions)
            if not message.merge or message.id in bound
            for told in verdicts.wrong(message, rule, message.id in bound, known)
        ]
    return Trailers((*faults, *_log_faults(config, rule)), len(bound))


def _range(repository: Repository, *starts: str | None) -> list[str]:
    """The commits that are newer than each of some, as git is asked for them."""
    found = {_resolved(repository, start) for start in starts if start}
    if len(found) > 1:  # of one that another follows, nothing has to be here
        found = set(git.run(repository.top, "merge-base", "--independent", *found).decode().split())
    for start in sorted(found):
        repository.check_whole(f"{start}..HEAD")
    if not found:
        repository.check_whole("HEAD")
    return ["HEAD", *(f"^{start}" for start in sorted(found))]


def _resolved(repository: Repository, revision: str) -> str:
    commit = repository.commit(revision)
    if commit is None and repository.shallow:
        raise BaselineFailed(f"{revision} names no commit of this clone. {SHALLOW}")
    if commit is None:
        raise UsageError(f"{revision}: git knows no such commit. Name one of git log, or fetch it first.")
    return commit


def _check_paths(config: Config, rule: Rule, repository: Repository) -> None:
    """A path that neither is there nor ever was would hold no commit to anything."""
    for path in rule.paths:
        if _known(config.root, path):
            continue
        if repository.shallow:
            raise BaselineFailed(f"{path}, which [tool.gate.trailers] paths names, is in no commit of this clone. {SHALLOW}")
        told = f"{config.file}: [tool.gate.trailers] paths names {path!r}, and there neither is nor was such a file or folder."
        raise ConfigurationError(f"{told} Write it relative to the project; it is no pattern.")


def _known(root: Path, path: str) -> bool:
    """Whether git has something under a path, or would take it up, or had it once."""
    now, once = ("ls-files", "--cached", "--others", "--exclude-standard"), ("rev-list", "-1", "--full-history", "HEAD")
    try:
        return any(git.run(root, *git.LITERAL, *command, "--", path) for command in (now, once))
    except BaselineFailed:  # it lies outside of the repository
        return False


def _log_faults(config: Config, rule: Rule) -> Iterator[Fault]:
    path = config.root / rule.provenance
    if not any(name.casefold() == "provenance" for name in rule.required):
        return
    if not path.is_file():
        yield Fault(rule.provenance, "there is no such log, and commits have to name what stands in it")
        return
    used: dict[str, tuple[str, str]] = {}
    for message in messages(config.root, "HEAD"):
        for name in _names(message):
            if message.date is not None:
                used[name] = min(used.get(name, (message.date, message.title)), (message.date, message.title))
    for line, told in log.wrong(path.read_text(encoding="utf-8", errors="replace"), used):
        yield Fault(f"{rule.provenance}:{line}", told)


def _names(message: Message) -> list[str]:
    return [name.strip() for value in message.values("Provenance") for name in value.split(",")]


class _Tree:
    """What there is to name, in the work tree and, where its past is given, at a commit."""

    def __init__(self, config: Config, rule: Rule, past: Past | None) -> None:
        self._root, self._rule, self._past = config.root, rule, past
        self._read = partial(text_of, config.root)
        self._collected = Collected(self._read)

    @cached_property
    def sources(self) -> frozenset[str]:
        """Ids in the log."""
        path = self._root / self._rule.provenance
        if not path.is_file():
            return frozenset()
        return frozenset(entry.id for entry in log.entries(path.read_text(encoding="utf-8", errors="replace")))

    def has_test(self, commit: str, file: str, name: str) -> bool:
        """Whether pytest collects a test, or a class of tests, as far as its syntax tells."""
        answer = self._collected.answer(file, name)
        if answer is Answer.NONE and self._past:
            answer = self._past.answer(commit, file, name)
        return answer is not Answer.NONE

    def has_page(self, commit: str, name: str) -> bool:
        """Whether a page of work exists."""
        file = f"{self._rule.work}/{name}.md"
        return self._read(file) is not None or (self._past is not None and self._past.has(commit, file))
