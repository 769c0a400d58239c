"""What `--since` takes for a commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate.check import judge, since
from gate.config import find
from gate.errors import BaselineFailed, UsageError
from gate.history import Repository
from gate.progress import Silent
from tests.gate.repositories import commit, git, init


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = init(tmp_path / "project")
    commit(folder, {"a.py": "1\n", "pyproject.toml": "[tool.gate]\n"})
    commit(folder, {"a.py": "2\n"}, "second")
    return folder


def test_every_name_of_one_commit_is_taken(folder: Path) -> None:
    git(folder, "tag", "-m", "annotated", "v1", "HEAD~1")
    first = git(folder, "rev-parse", "HEAD~1")
    repository = Repository.of(folder)
    assert {since.named(repository, name).commit for name in ("v1", "HEAD~1", "HEAD^", first, first[:8], "main@{1}")} == {first}
    assert since.named(repository, "HEAD").title.endswith("(second)")


@pytest.mark.parametrize(
    "name", ["", " ", "HEAD..HEAD", "HEAD~1..HEAD", "HEAD~1...HEAD", "..", "HEAD..", "^HEAD", "HEAD^@", "HEAD^!", "--all", "nope"]
)
def test_what_is_no_commit_is_a_mistake(folder: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"no commit|no such commit"):
        since.named(Repository.of(folder), name)


def test_in_a_shallow_clone_a_commit_may_be_missing_and_a_range_is_none_still(folder: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth", "1", folder.as_uri(), "clone")
    repository = Repository.of(tmp_path / "clone")
    with pytest.raises(BaselineFailed, match="git fetch --unshallow"):
        since.named(repository, git(folder, "rev-parse", "HEAD~1"))
    for name in ("", "HEAD..HEAD"):
        with pytest.raises(UsageError, match="is no commit"):
            since.named(repository, name)


def test_a_check_of_nothing_is_a_mistake_and_not_one_since_the_usual_commit(folder: Path) -> None:
    with pytest.raises(UsageError, match="--since '' is no commit"):
        judge.check(find(folder), judge.Asked(since=""), Silent())
