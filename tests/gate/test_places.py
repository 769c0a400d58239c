"""Odd places to work in: no PATH, no HOME, odd letters, repositories in others, parts of a history, no git at all.

What a run costs is paid once a place: each is judged by one command, from which everything is asserted.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gate import doctor, environments
from gate.config import find
from tests.gate.projects import Answer, Project
from tests.gate.repositories import commit, git, init

EDIT = "SCALE = 1.5\n"
MOVED = {"NCCL_ALGO": "Ring"}  # recorded, and without effect on a CPU: with an edit beside it, only the base can tell the cause
ODD = "mein größtes 日本 Projekt's"


def gate(project: Project, *arguments: str, variables: Mapping[str, str], folder: str = ".") -> Answer:
    """Runs a command with those variables and nothing else in its environment."""
    done = subprocess.run(
        [sys.executable, "-m", "gate", *arguments, "--json", "-"],
        cwd=project.folder / folder, env=dict(variables), capture_output=True, text=True, encoding="utf-8", timeout=300,
    )  # fmt: skip
    return Answer(done.returncode, done.stdout, done.stderr, json.loads(done.stdout) if done.stdout else {})


def searchable() -> dict[str, str]:
    """Variables by which git is found, and a change of the environment that moves no bit."""
    return {**MOVED, "PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def found(answer: Answer) -> tuple[int, str, str | None, list[str]]:
    """Exit code, verdict, cause and the arms' names."""
    row = answer.row
    return answer.code, row["verdict"], row["cause"], [arm["name"] for arm in row["arms"]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Recorded without PATH and HOME, by a Python told to use ASCII, in a folder with spaces and letters of three scripts."""
    project = Project.new(tmp_path_factory.mktemp("places") / ODD, toy="")
    bare = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    answer = gate(project, "record", variables=bare)
    assert (answer.code, answer.row["verdict"]) == (0, "recorded"), answer.err
    return project


@pytest.fixture
def nested(recorded: Project, tmp_path: Path) -> Project:
    """The project as a repository of its own, in a subfolder of another one; its golden is committed."""
    outer = init(tmp_path / "outer")
    commit(outer, {"factor.py": "SCALE = 9.0\n"})
    project = recorded.copy(init(outer / "sub" / ODD))
    commit(project.folder, {}, "Record the goldens")
    return project


@pytest.fixture
def sealed(tmp_path: Path) -> Iterator[Path]:
    """A home folder that can be read and not written, by nobody."""
    folder = tmp_path / "home"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", str(folder)], capture_output=True).returncode != 0:
        folder.chmod(0o500)
        if os.access(folder, os.W_OK):
            pytest.skip("takes the right to mount, or a user whom permissions hold")
        yield folder
        folder.chmod(0o700)
        return
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_without_path_home_and_git_a_golden_is_judged(recorded: Project) -> None:
    """From a subfolder as well; what is kept and told has its letters as they are."""
    (recorded.folder / "deep/er").mkdir(parents=True, exist_ok=True)
    answer = gate(recorded, "verify", variables={"PATH": ""}, folder="deep/er")
    assert (answer.code, answer.row["verdict"]) == (0, "identical"), answer.err
    assert recorded.golden("toy").is_dir()


def test_without_git_a_drift_is_found_and_what_is_missing_is_said(recorded: Project, tmp_path: Path) -> None:
    """The first difference is told in full; only the cause takes git, and the message says so."""
    project = recorded.copy(tmp_path / ODD)
    (project.folder / "factor.py").write_text(EDIT)
    answer = gate(project, "verify", variables={**MOVED, "PATH": ""})
    assert found(answer) == (1, "drift", "unknown", ["again", "base"])
    assert (answer.row["first"]["step"], answer.row["first"]["phase"], answer.row["changed_sources"]) == (1, "loss", ["factor.py"])
    assert "git was not found on the PATH" in answer.row["message"]
    assert "Install git" in answer.row["message"]


def test_without_a_repository_what_is_missing_is_said(recorded: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """By doctor too, before anything drifts; without a git it says that."""
    assert "in no git repository" in doctor.history(recorded.folder, find(recorded.folder)).why
    monkeypatch.setenv("PATH", "")
    assert "git was not found" in doctor.history(recorded.folder, find(recorded.folder)).why


@pytest.mark.slow
def test_a_repository_in_a_subfolder_of_another_under_a_sealed_home(nested: Project, sealed: Path) -> None:
    """The inner history gives the base, though the outer one has a file of the same name; nothing needs to be written at home."""
    (nested.folder / "factor.py").write_text(EDIT)
    answer = gate(nested, "verify", variables={**searchable(), "HOME": str(sealed)})
    assert found(answer) == (1, "drift", "code", ["again", "base"]), answer.row["message"]
    assert answer.row["arms"][1]["verdict"].startswith("equals the golden")
    assert "Record the goldens" in answer.row["arms"][1]["verdict"]
    assert git(nested.folder, "status", "--porcelain").split() == ["M", "factor.py"]


@pytest.mark.slow
def test_a_project_that_is_a_submodule(nested: Project, tmp_path: Path) -> None:
    """Its own history is the one that counts: without any golden, it is held against a commit of it."""
    outer = tmp_path / "outer"
    git(outer, "submodule", "--quiet", "add", str(nested.folder), "modules/project")
    commit(outer, {}, "Add the project")
    module = Project(outer / "modules/project")
    assert (module.folder / ".git").is_file()
    shutil.rmtree(module.folder / "goldens")
    answer = gate(module, "verify", "--base", "HEAD", variables=searchable())
    assert (answer.code, answer.row["verdict"], answer.row["against"]) == (0, "identical", "base"), answer.err
    assert "Record the goldens" in answer.row["arms"][0]["verdict"]


@pytest.mark.slow
def test_a_shallow_clone_judges_and_says_that_commits_are_missing(nested: Project, tmp_path: Path) -> None:
    """The commit of the golden's sources was left out: the drift is found, its cause is not, and the command that fetches it is told."""
    commit(nested.folder, {"factor.py": EDIT}, "Edit")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{nested.folder}", "shallow")
    clone = Project(tmp_path / "shallow")
    answer = gate(clone, "verify", variables=searchable())
    assert found(answer) == (1, "drift", "unknown", ["again", "base"])
    assert "This clone is shallow, its older commits are missing: git fetch --unshallow" in answer.row["message"]
    assert doctor.history(clone.folder, find(clone.folder)).shallow


def test_a_user_without_a_home_has_environments_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs under a number which its system does not know."""

    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said: list[str] = []
    assert environments.home({}, said.append) == tmp_path / f"gate-{os.getuid()}/environments"
    assert "set XDG_CACHE_HOME" in said[0]
