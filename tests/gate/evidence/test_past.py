"""A change is told with the commit that made it, also where a file is new, gone or renamed, and where history is cut off."""

from __future__ import annotations

import shutil
from pathlib import Path

from gate.evidence.status import View
from tests.gate.evidence.records import Toy
from tests.gate.repositories import git, write


def test_a_new_file_is_told_with_the_commit_that_brought_it(toy: Toy) -> None:
    first = toy.commit("Bring one", tests__test_one_py="def test_one():\n    pass\n")
    second = toy.commit("Bring two", tests__test_two_py="def test_two():\n    pass\n")
    toy.commit("Edit one", tests__test_one_py="def test_one():\n    assert 1\n")
    line = toy.line("cpu/tests")
    assert line.reason == (
        f"tests/test_one.py is new since {first[:7]} (Bring one); tests/test_two.py is new since {second[:7]} (Bring two)"
    )
    assert line.commit is not None
    assert line.commit.id == line.as_json()["commit"] == first
    write(toy.folder, {"tests/test_three.py": "def test_three():\n    pass\n"})
    assert "tests/test_three.py is new in no commit" in str(toy.line("cpu/tests").reason)


def test_a_file_that_went_and_came_again_is_told_with_the_last_time(toy: Toy) -> None:
    toy.commit("Bring", tests__test_one_py="def test_one():\n    pass\n")
    toy.commit("Remove", tests__test_one_py=None)
    again = toy.commit("Bring again", tests__test_one_py="def test_one():\n    pass\n")
    assert toy.line("cpu/tests").reason == f"tests/test_one.py is new since {again[:7]} (Bring again)"


def test_a_file_of_a_pattern_that_is_gone_is_told_with_its_commit(toy: Toy) -> None:
    toy.commit("Bring", tests__extra_py="x = 1\n")
    toy.tests()
    gone = toy.commit("Remove", tests__extra_py=None)
    toy.commit("More", tests__test_one_py="def test_one():\n    pass\n")
    assert f"tests/extra.py is gone since {gone[:7]} (Remove)" in str(toy.line("cpu/tests").reason)


def test_an_edit_before_a_removal_is_told_apart(toy: Toy) -> None:
    edited = toy.commit("Edit", src__replay_py="def replay():\n    return 2\n")
    toy.git("mv", "src/replay.py", "src/renamed.py")
    moved = toy.commit("Rename")
    line = toy.line("cpu/tests")
    assert line.reason == (f"src/replay.py has other content since {edited[:7]} (Edit); src/replay.py is gone since {moved[:7]} (Rename)")
    assert line.commit is not None
    assert line.commit.id == edited
    assert line.files == ("src/replay.py",)


def test_a_change_of_a_change_is_told_with_its_commit(toy: Toy) -> None:
    """Of a record of what has changed since a commit."""
    base = toy.git("rev-parse", "HEAD")
    toy.tests(since=base)
    for path in (toy.folder / ".gate/evidence").glob("tests-cpu-*"):
        if f'"since":"{base}"' not in path.read_text():
            path.unlink()
    more = toy.commit("More", other_py="x = 1\n")
    status = View.of(toy.config).status(frozenset([base]))
    line = next(line for line in status.lines if line.need.title == "tests cpu")
    assert line.reason == f"other.py is changed since {base[:10]} as well since {more[:7]} (More)"


def test_a_shallow_clone_says_what_it_cannot_know(toy: Toy, tmp_path: Path) -> None:
    """Also where another change of the same line has a commit; and it does not take its first commit for the one that brought a file."""
    toy.commit("Bring", tests__test_one_py="def test_one():\n    pass\n")
    toy.commit("Other")
    folder = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{toy.folder}", str(folder))
    shutil.copytree(toy.folder / ".gate", folder / ".gate")
    clone = Toy(folder)
    edited = clone.commit("Edit", src__replay_py="def replay():\n    return 2\n")
    line = clone.line("cpu/tests")
    assert line.reason == (
        f"src/replay.py has other content since {edited[:7]} (Edit); tests/test_one.py is new in no commit that is known here"
    )
    assert any("git fetch --unshallow" in note for note in clone.status().notes)
