"""What version control knows of a project: the state of its tree, and which commit had given sources."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gate import git
from gate.content import Content
from gate.errors import BaselineFailed, UsageError
from golden.sources import read_content

SHALLOW = "This clone is shallow, its older commits are missing: git fetch --unshallow"
_ID = re.compile(r"[0-9a-f]{40,64}")


@dataclass(frozen=True)
class Base:
    """A commit to compare with.

    Attributes:
        commit: its full id.
        title: its short id and subject, for people.
        carried: sources that git does not hold on purpose (ignored data, built files, what lies behind a link that leads outside), to be
            taken from the work tree as they are.
    """

    commit: str
    title: str
    carried: tuple[str, ...] = ()


@dataclass(frozen=True)
class State:
    """The state of a work tree: its commit (None before the first one) and the paths, relative to the project, that differ from it."""

    commit: str | None
    changed: tuple[str, ...]


@dataclass(frozen=True)
class Repository:
    """The repository that a project lies in, the innermost one: a submodule, or one in a subfolder of another, is its own.

    Attributes:
        top: the repository's folder.
        prefix: the project's folder in it, with a slash at its end; empty when it is the top.
        shallow: whether older commits were left out when it was cloned.
    """

    top: Path
    prefix: str = ""
    shallow: bool = False

    @classmethod
    def of(cls, project: Path) -> Repository:
        """The repository of a project's folder.

        Raises:
            BaselineFailed: there is no git, no repository, or git does not trust it; says what to do.
        """
        answer = git.run(project, "rev-parse", "--is-shallow-repository", "--show-toplevel")
        shallow, _, top = os.fsdecode(answer).removesuffix("\n").partition("\n")
        inner = project.resolve().relative_to(Path(top)).as_posix()
        return cls(Path(top), "" if inner == "." else f"{inner}/", shallow == "true")

    @property
    def project(self) -> Path:
        """The project's folder."""
        return self.top / self.prefix

    def state(self) -> State:
        """The state of the project's work tree, untracked files included (an untracked folder as one path)."""
        records = os.fsdecode(git.run(self.project, *git.LITERAL, "status", "--porcelain", "-z", "--no-renames", "--", ".")).split("\0")
        changed = tuple(record[3:].removeprefix(self.prefix) for record in records if record)
        with contextlib.suppress(BaselineFailed):
            return State(self._resolve("HEAD"), changed)
        return State(None, changed)

    def commit(self, revision: str) -> str | None:
        """The full id of the one commit that a revision names; None where it names none, several, or a range."""
        answer = git.run(
            self.top, "rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}", fine=(0, 1, 128)
        )  # 128: "@{upstream}" without one
        found = answer.decode().strip()
        return found if _ID.fullmatch(found) else None

    def check_whole(self, revisions: str) -> None:
        """Makes sure that of every commit of a range its parents are here, so that what it changed can be told.

        Raises:
            BaselineFailed: a shallow clone lacks those of one of them.
        """
        if not self.shallow:
            return
        place = os.fsdecode(git.run(self.top, "rev-parse", "--git-path", "shallow")).removesuffix("\n")
        cut = set((self.top / place).read_text(encoding="ascii").split())
        found = next((commit for commit in git.run(self.top, "rev-list", revisions).decode().split() if commit in cut), None)
        if found is not None:
            raise BaselineFailed(f"What {self._title(found)} changed cannot be told: the commit before it is not here. {SHALLOW}")

    def named(self, revision: str, sources: Iterable[str] = ()) -> Base:
        """The commit that a user names.

        Args:
            revision: anything that git takes for a commit.
            sources: what the scenario reads, relative to the project; what of it git ignores, and the commit lacks, is carried.

        Raises:
            UsageError: there is no such commit.
            BaselineFailed: there is none in a shallow clone.
        """
        commit = self.commit(revision)
        if commit is None and self.shallow:
            raise BaselineFailed(f"{revision} names no commit of this clone. {SHALLOW}")
        if commit is None:
            raise UsageError(f"--base {revision}: git knows no such commit in {self.top}. See git log, or fetch it first.")
        with Content(self.top, self.prefix) as content:
            apart = self._apart(content, sources)
            return Base(commit, self._title(commit), tuple(path for path in apart if content.digest(commit, path) is None))

    def base(self, sources: Mapping[str, str], manifest: Path) -> Base:
        """The commit whose sources are those that a golden was recorded with.

        It is looked for from the last commit that changed the manifest backwards, newest first, then from there forwards (a golden may be
        committed before its sources). A manifest that is not committed as it stands: from HEAD backwards. Sources that git
        does not hold on purpose have to be as they were, and are carried.

        Args:
            sources: digests by path relative to the project, with forward slashes.
            manifest: the golden's manifest.

        Raises:
            BaselineFailed: there is none; says which sources no commit has, or what is missing.
        """
        if not sources:
            raise BaselineFailed("The golden names no source, so that no commit can be told by them. Name one with --base.")
        head = self._resolve("HEAD", "This repository has no commit yet.")
        start = self._last_change(manifest) or head
        with Content(self.top, self.prefix) as content:
            carried = self._carried(content, sources)
            wanted = {path: digest for path, digest in sources.items() if path not in carried}
            order = list(wanted)
            for commit in self._candidates(start, head, content.pathspecs(wanted)):
                if _matches(content, commit, wanted, order):
                    return Base(commit, self._title(commit), carried)
            odd = [path for path in wanted if content.digest(start, path) != wanted[path]]
        raise BaselineFailed(self._unmatched(start, odd))

    def _resolve(self, revision: str, otherwise: str = "") -> str:
        try:
            answer = git.run(self.top, "rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}")
        except BaselineFailed as error:
            raise BaselineFailed(otherwise or str(error)) from None
        return answer.decode().strip()

    def _title(self, commit: str) -> str:
        return git.run(self.top, "log", "-1", "--no-show-signature", "--format=%h (%s)", commit).decode(errors="replace").strip()

    def _last_change(self, manifest: Path) -> str | None:
        """The last commit that changed a file; None when the file is not committed as it stands, or lies outside."""
        try:
            path = manifest.resolve().relative_to(self.top).as_posix()
            if git.run(self.top, *git.LITERAL, "status", "--porcelain", "-z", "--ignored", "--", path):
                return None
            return git.run(self.top, *git.LITERAL, "rev-list", "-1", "HEAD", "--", path).decode().strip() or None
        except (ValueError, BaselineFailed):  # outside the repository, or within a submodule
            return None

    def _candidates(self, start: str, head: str, paths: list[str]) -> Iterator[str]:
        """The two ends, and what each commit that changed a path came from: the newest commit of every state that the paths had."""
        seen: set[str] = set()
        for end, revisions in ((start, [start]), (head, [head, f"^{start}"])):
            for commit in [end, *self._before_changes(revisions, paths)]:
                if commit not in seen:
                    seen.add(commit)
                    yield commit

    def _before_changes(self, revisions: list[str], paths: list[str]) -> Iterator[str]:
        # The full history: without it git follows one side of a merge, and the state may be on the other.
        lines = os.fsencode("\n".join([*revisions, "--", *paths, ""]))
        answer = git.run(self.top, *git.LITERAL, "rev-list", "--full-history", "--format=%P", "--stdin", stdin=lines).decode()
        for line in answer.splitlines():
            if not line.startswith("commit "):
                yield from line.split()

    def _carried(self, content: Content, sources: Mapping[str, str]) -> tuple[str, ...]:
        apart = self._apart(content, sources)
        for path in apart:
            now = read_content(self.project / path)
            if now is None or now.digest != sources[path]:
                told = "is no longer what the golden was recorded with" if now else "is no longer there"
                raise BaselineFailed(f"{path} {told}, and git does not hold it, so that no commit has it. Restore it, or put it under git.")
        return apart

    def _apart(self, content: Content, sources: Iterable[str]) -> tuple[str, ...]:
        """Which sources git does not hold on purpose: those that it ignores, and those behind a link that leads out of the repository."""
        real = {path: (self.project / path).resolve() for path in sources if not content.within_submodule(path)}
        inside = {path: file.relative_to(self.top).as_posix() for path, file in real.items() if file.is_relative_to(self.top)}
        names = b"\0".join(b"./" + os.fsencode(name) for name in inside.values())  # a name may begin like a pattern
        answer = git.run(self.top, "check-ignore", "-z", "--stdin", stdin=names, fine=(0, 1)) if names else b""
        ignored = {name.removeprefix("./") for name in os.fsdecode(answer).split("\0")}
        return tuple(sorted(path for path in real if inside.get(path) is None or inside[path] in ignored))

    def _unmatched(self, start: str, odd: list[str]) -> str:
        names = ", ".join(odd[:3]) + (f" and {len(odd) - 3} more" if len(odd) > 3 else "")
        text = f"No commit has the sources that the golden was recorded with; in {self._title(start)} these are others: {names}."
        return f"{text} {SHALLOW if self.shallow else 'Name the commit with --base, or record again from a committed state.'}"


def _matches(content: Content, commit: str, wanted: Mapping[str, str], order: list[str]) -> bool:
    """Whether a commit has all sources. What differs is asked first the next time: mostly it is the same one."""
    for index, path in enumerate(order):
        if content.digest(commit, path) != wanted[path]:
            order.insert(0, order.pop(index))
            return False
    return True
