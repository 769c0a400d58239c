"""Since when a change counts: the commit that `--since` means, or the one at which the branch left what it will be merged into."""

from __future__ import annotations

from dataclasses import dataclass

from gate import git
from gate.errors import BaselineFailed, UsageError
from gate.history import Repository

_DEFAULTS = ("@{upstream}", "refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/remotes/origin/master", "refs/heads/main")
_SHALLOW = "This clone is shallow, so that what changed cannot be told: git fetch --unshallow (a CI checkout: fetch-depth: 0)."


@dataclass(frozen=True)
class Since:
    """The commit that a tree is compared with.

    Attributes:
        commit: its full id.
        title: its short id and subject, for people.
    """

    commit: str
    title: str


def named(repository: Repository, revision: str) -> Since:
    """The commit where the history of HEAD left a revision: what others did there since is no change of this tree.

    Raises:
        UsageError: git knows no such commit, or it is none: nothing at all, or a range.
        BaselineFailed: the clone is shallow and lacks it, or the history between.
    """
    if not revision.strip() or ".." in revision:
        raise UsageError(f"--since {revision!r} is no commit. Name the one that the change begins with: --since main, not main..HEAD.")
    commit = repository.commit(revision)
    if commit is None and repository.shallow:
        raise BaselineFailed(f"--since {revision}: names no commit of this clone. {_SHALLOW}")
    if commit is None:
        raise UsageError(f"--since {revision}: git knows no such commit in {repository.top}. See git log, or fetch it first.")
    return _since(repository, _left(repository, commit) or commit)


def usual(repository: Repository) -> Since | None:
    """Where the branch left its upstream, else the default branch of origin, else main; None where there is none of them to leave.

    Raises:
        BaselineFailed: the clone is shallow, so that "nothing changed" would be a guess.
    """
    head = repository.commit("HEAD")
    for name in _DEFAULTS if head else ():
        commit = repository.commit(name)
        if commit is None or (name.startswith("refs/heads/") and commit == head):
            continue
        left = _left(repository, commit)
        if left is not None and not (repository.shallow and left == head):
            return _since(repository, left)
    if repository.shallow:
        raise BaselineFailed(f"No commit to compare with is in this clone. {_SHALLOW} Or name one with --since.")
    return None


def _left(repository: Repository, commit: str) -> str | None:
    """The newest commit that HEAD and another one have in common.

    Raises:
        BaselineFailed: none is here, in a shallow clone.
    """
    if repository.commit("HEAD") is None:
        return None
    found = git.run(repository.top, "merge-base", commit, "HEAD", fine=(0, 1)).decode().split()
    if not found and repository.shallow:
        raise BaselineFailed(f"The history between {commit[:10]} and HEAD is not in this clone. {_SHALLOW}")
    return found[0] if found else None


def _since(repository: Repository, commit: str) -> Since:
    title = git.run(repository.top, "log", "-1", "--no-show-signature", "--format=%h (%s)", commit)
    return Since(commit, title.decode(errors="replace").strip())
