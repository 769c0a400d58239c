"""What a change selects, and what is said of it: on a project of a few lines, with real processes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gate.check import harvest
from gate.check.judge import NO_MAP
from gate.check.result import Word
from gate.errors import BaselineFailed, UsageError
from gate.verdict import Reason
from tests.gate.check.toys import FILES, Toy, names
from tests.gate.repositories import commit, git


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A project of whose tests everything is known."""
    toy = Toy.new(tmp_path_factory.mktemp("learnt") / "toy")
    first = toy.check(everything=True, jobs=2)
    assert first.verdict is Word.PASSED
    assert first.total == len(first.reasons) == 13
    return toy


@pytest.fixture
def toy(learnt: Toy, tmp_path: Path) -> Toy:
    return learnt.copy(tmp_path / "toy")


def test_a_changed_function_selects_those_who_run_it_and_no_other(toy: Toy) -> None:
    """In processes and forks as well; the plain ones are left out."""
    found = toy.replace("lib.py", "return x / 2", "return x * 0.5").check()
    assert names(found) == ["test_half_in_a_process", "test_half_in_a_fork"]
    assert len(found.reasons) == 5
    assert found.reasons["test_lib.py::test_half_in_a_fork"] == ("runs lib.py:19 (half)",)
    assert (found.verdict, found.exit_code, found.fallback, found.untested) == (Word.PASSED, 0, (), ())
    document = found.as_json()
    assert {"format", "verdict", "selected", "total", "fallback", "reasons", "passed", "failed", "skipped"} <= document.keys()
    assert document["selected"] == document["passed"] == list(document["reasons"])
    evidence = found.evidence()
    assert evidence["counts"] == {"passed": 5, "failed": 0, "skipped": 0, "xfailed": 0, "xpassed": 0}
    assert set(evidence["subjects"]) == {"lib.py", "test_lib.py", "pyproject.toml"}
    assert all(len(digest) == 64 for digest in evidence["subjects"].values())
    assert evidence["torch"]
    assert evidence["hardware"]


def test_a_fault_is_found_by_the_selected_as_by_all(toy: Toy) -> None:
    """What failed is run again until it passes, also where the next change touches something else."""
    toy.replace("lib.py", "return 2 * x", "return 3 * x")
    focused = toy.check()
    assert focused.verdict is Word.FAILED
    assert focused.exit_code == 1
    assert (
        focused.having("failed") == toy.check(everything=True).having("failed") == ["test_lib.py::test_double", "test_lib.py::test_helper"]
    )


def test_a_second_check_of_the_same_change_selects_the_same(toy: Toy) -> None:
    """What is known was brought to the changed lines, so that the lines of the commit are not looked for any more."""
    toy.replace("lib.py", "    # in two\n    return x / 2", "    y = x\n    return y / 2")
    assert names(toy.check()) == names(toy.check()) == ["test_half_in_a_process", "test_half_in_a_fork"]


def test_lines_that_moved_are_followed(toy: Toy) -> None:
    """Forty lines of comment above, committed; then a function below them changes."""
    commit(toy.folder, {"lib.py": "# more\n" * 40 + (toy.folder / "lib.py").read_text()})
    assert names(toy.replace("lib.py", "return 2 * x", "return x + x").check()) == ["test_double", "test_helper"]


def test_documents_are_nothing_to_check(toy: Toy) -> None:
    """And so are comments and what other tools are told; the tests are not even collected."""
    toy.write({"README.md": "# Another\n", "docs/a.md": "text\n"}).replace("lib.py", "# in two", "# in two halves")
    found = toy.replace("pyproject.toml", "[tool.gate]", "[tool.gate]\n[tool.ruff]\nline-length = 100").check()
    assert (found.verdict, found.exit_code, found.total) == (Word.NOTHING, 0, None)
    assert "README.md" in found.message


def test_data_select_their_readers_and_those_whose_processes_may_read_it(toy: Toy) -> None:
    found = toy.write({"data.txt": "other\n"}).check()
    assert names(found) == ["test_half_in_a_process", "test_half_in_a_fork", "test_reads"]
    assert "data.txt" in found.fallback[0]


def test_a_new_test_is_selected_and_so_is_one_whose_file_changed(toy: Toy) -> None:
    toy.write({"test_new.py": "def test_new():\n    assert True\n"}).replace("test_others.py", "1 + 1 == 2", "1 + 2 == 3")
    found = toy.check()
    assert names(found) == ["test_new", "test_reads", "test_hooks", "test_alone"]
    assert "its file changed" in found.reasons["test_others.py::test_alone"]


def test_a_file_that_does_not_parse_fails_its_tests(toy: Toy) -> None:
    found = toy.write({"test_others.py": "def broken(\n"}).check()
    assert found.verdict is Word.FAILED
    assert found.having("failed") == ["test_others.py"]


def test_a_first_check_runs_all_and_still_says_what_the_change_touches(toy: Toy) -> None:
    shutil.rmtree(toy.folder / ".gate")
    found = toy.replace("lib.py", "return x / 2", "return x * 0.5").check()
    assert names(found) == ["test_half_in_a_process", "test_half_in_a_fork"]
    assert len(found.outcomes) == 13
    assert found.fallback[0] == NO_MAP


def test_a_test_that_fails_only_while_it_is_measured_has_passed(toy: Toy) -> None:
    """And says so; the negative control fails both times."""
    measured = "import sys\n\n\ndef test_trace():\n    assert sys.gettrace() is None\n"
    found = toy.write({"test_trace.py": measured}).check()
    assert found.verdict is Word.PASSED
    assert found.outcomes["test_trace.py::test_trace"].text == harvest.DISTURBED
    assert toy.write({"test_trace.py": measured.replace("is None", "is 5")}).check().verdict is Word.FAILED


def test_sources_edited_meanwhile_give_no_verdict(toy: Toy) -> None:
    edits = "from pathlib import Path\n\n\ndef test_edits():\n    Path('lib.py').write_text(Path('lib.py').read_text() + 'X = 1\\n')\n"
    found = toy.write({"test_edits.py": edits}).check()
    assert (found.verdict, found.reason, found.exit_code) == (Word.NOT_JUDGED, Reason.STALE_EVIDENCE, 3)
    assert "lib.py" in found.message


def test_since_counts_from_where_the_branch_left(toy: Toy) -> None:
    """What main got later is no change of the branch; without a name the branch main is taken."""
    git(toy.folder, "checkout", "-q", "-b", "topic")
    commit(toy.folder, {"hooks.py": FILES["hooks.py"].replace("gradient * 2", "2 * gradient")})
    git(toy.folder, "checkout", "-q", "main")
    commit(toy.folder, {"lib.py": FILES["lib.py"].replace("2 * x", "x + x")})
    git(toy.folder, "checkout", "-q", "topic")
    found = toy.check(None)
    assert set(names(found)) == {"test_reads", "test_hooks", "test_alone"}
    assert "a hook" in found.fallback[0]


def test_an_unknown_revision_is_a_usage_error(toy: Toy) -> None:
    with pytest.raises(UsageError, match="git knows no such commit"):
        toy.check("nowhere")


def test_without_git_everything_is_run_and_a_named_revision_cannot_be_had(tmp_path: Path) -> None:
    folder = tmp_path / "bare"
    folder.mkdir()
    toy = Toy(folder).write({name: text for name, text in FILES.items() if name != "test_lib.py"})
    found = toy.check(None)
    assert len(found.reasons) == found.total == 3
    assert "git" in found.fallback[0]
    with pytest.raises(BaselineFailed, match="no git repository"):
        toy.check("HEAD")
