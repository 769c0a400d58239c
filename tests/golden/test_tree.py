"""Which files are the project's."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import golden
from golden.tree import Place, Tree

OWN = Path(golden.__file__).parent


def make(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x = 1\n")
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def test_a_project_file_stands_relative_to_the_root(project: Path) -> None:
    """A path below the project is named from there, one beside it, also with a common beginning, is not the project's."""
    tree = Tree(project, project)
    assert tree.place(project / "src" / "a.py") == Place("src/a.py", foreign=False)
    assert tree.place(os.fsencode(project / "conf.yaml")) == Place("conf.yaml", foreign=False)
    assert tree.place(project) == Place(".", foreign=False)
    assert tree.place(project.parent / "project2" / "a.py") is None
    assert tree.place(project / ".." / "a.py") is None


@pytest.mark.parametrize(
    "path",
    [
        ".git/HEAD",
        ".gate/runs/x",
        "a/__pycache__/b.pyc",
        "lib/python3.11/site-packages/m.py",
        "src/pkg.egg-info/entry_points.txt",
        "kept/out/a",
    ],
)
def test_folders_without_sources_are_left_out(project: Path, path: str) -> None:
    """History, kept runs, caches, installed distributions and what the caller sets apart hold no sources, wherever they lie."""
    tree = Tree(project, project, [project / "kept" / "out"])
    assert tree.place(project / path) is None
    assert tree.place(project / "other" / Path(path).name) is not None


def test_a_virtual_environment_is_left_out(project: Path) -> None:
    """A folder with pyvenv.cfg holds no sources, unless it is the project itself."""
    make(project / "env" / "pyvenv.cfg")
    make(project / "pyvenv.cfg")
    tree = Tree(project, project)
    assert tree.place(project / "env" / "bin" / "activate_this.py") is None
    assert tree.place(project / "a.py") is not None


def test_the_interpreter_that_holds_the_project_does_not_hide_it(tmp_path: Path) -> None:
    """A project below sys.prefix has sources, an interpreter below the project has none."""
    inside = Path(sys.prefix) / "share" / "project"
    assert Tree(inside, inside).place(inside / "a.py") is not None
    above = Path(sys.prefix).parent
    assert Tree(above, above).place(Path(sys.prefix) / "share" / "a.py") is None


def test_golden_is_no_source_of_the_project_it_lies_in() -> None:
    """golden and gate, which judge, are left out in golden's own repository; the code under test beside them is not."""
    repository = OWN.parent.parent
    tree = Tree(repository, repository)
    assert tree.place(OWN / "state.py") is None
    assert tree.place(repository / "gate" / "verdict.py") is None
    assert tree.place(repository / "src" / "musgd" / "update.py") == Place("src/musgd/update.py", foreign=False)


def test_a_gate_of_the_projects_own_is_a_source(project: Path) -> None:
    """Only our packages are left out, not whatever has their name."""
    make(project / "gate" / "logic.py")
    make(project / "golden" / "ratio.py")
    tree = Tree(project, project)
    assert tree.place(project / "gate" / "logic.py") == Place("gate/logic.py", foreign=False)
    assert tree.place(project / "golden" / "ratio.py") == Place("golden/ratio.py", foreign=False)


def test_links_into_and_out_of_the_project_count(tmp_path: Path, project: Path) -> None:
    """A linked folder of data belongs to the project, and so does a file reached through a link to the project."""
    data = make(tmp_path / "data" / "train.csv").parent
    (project / "data").symlink_to(data)
    (tmp_path / "alias").symlink_to(project)
    make(project / "a.py")
    tree = Tree(project, project)
    assert tree.place(project / "data" / "train.csv") == Place("data/train.csv", foreign=False)
    assert tree.place(tmp_path / "alias" / "a.py") == Place("a.py", foreign=False)
    assert tree.place(data / "train.csv") is None


def test_two_spellings_of_one_folder_are_one_root(tmp_path: Path, project: Path) -> None:
    """A root that is the project by another name moves nothing."""
    (tmp_path / "alias").symlink_to(project)
    tree = Tree(tmp_path / "alias", project)
    assert not tree.moved
    assert tree.place(tmp_path / "alias" / "a.py") == Place("a.py", foreign=False)


def test_another_root_makes_the_projects_files_foreign(tmp_path: Path, project: Path) -> None:
    """Where files are taken from a copy, the project's own are foreign and have a counterpart; the copy's own have none."""
    base = tmp_path / "base"
    tree = Tree(project, base)
    assert tree.moved
    assert tree.place(base / "a.py") == Place("a.py", foreign=False)
    assert tree.place(project / "a.py") == Place("a.py", foreign=True)
    assert tree.counterpart(str(project / "src" / "a.py")) == base / "src" / "a.py"
    assert tree.counterpart(str(base / "a.py")) is None
    assert tree.counterpart(os.__file__) is None


def test_a_root_within_the_project_is_a_root_of_its_own(project: Path) -> None:
    """A copy that lies in the project, even where nothing counts, is named from itself."""
    base = project / ".gate" / "base"
    assert Tree(project, base).place(base / "a.py") == Place("a.py", foreign=False)
