"""Commits that are merges, and commits whose parents a shallow clone lacks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from gate import git as module
from gate.config import find
from gate.errors import BaselineFailed
from gate.landing import words
from gate.landing.line import Line, timed
from tests.gate.repositories import commit, git, init, write

CONFIG = '[tool.gate.trailers]\npaths = ["src"]\nrequired = ["Gate"]\n'
WHOLE = "Gate: tests/test_a.py::test_a"
LINES = "".join(f"x{number} = {number}\n" for number in range(30))
FILES = {"pyproject.toml": CONFIG, "tests/test_a.py": "def test_a(): pass\n", "src/a.py": LINES, "src/b.py": "b = 1\n"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = init(tmp_path / "project")
    commit(folder, FILES, f"Begin\n\n{WHOLE}")
    return folder


def judged(folder: Path, since: str | None = None) -> Line:
    """The line of `gate run`."""
    return timed("trailers", lambda: words.trailed(find(folder), since))


def branched(folder: Path, ours: Mapping[str, str], theirs: Mapping[str, str]) -> None:
    """Two branches from HEAD, each with one commit that keeps the rule."""
    git(folder, "checkout", "-q", "-b", "side")
    commit(folder, theirs, f"Theirs\n\n{WHOLE}")
    git(folder, "checkout", "-q", "main")
    commit(folder, ours, f"Ours\n\n{WHOLE}")


def merged(folder: Path, files: Mapping[str, str | None], text: str = "Merge side") -> None:
    """Merges them, whatever git says to it, with files as they are given."""
    git(folder, "merge", "-q", "--no-commit", "--no-ff", "-s", "recursive", "-X", "ours", "side")
    write(folder, files)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", text)


OURS, THEIRS = {"src/a.py": LINES.replace("x1 = 1\n", "x1 = 11\n")}, {"src/a.py": LINES.replace("x20 = 20\n", "x20 = 22\n")}
BOTH = OURS["src/a.py"].replace("x20 = 20\n", "x20 = 22\n")


@pytest.mark.parametrize("dense", [False, True], ids=["merged once more", "an old git"])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(OURS, THEIRS), (OURS, {"src/b.py": "b = 2\n"}), ({"src/new.py": ""}, THEIRS), ({"README.md": "# A\n"}, THEIRS)],
    ids=["one file", "two files", "a new file", "another folder"],
)
def test_a_merge_as_git_makes_it_says_nothing(
    folder: Path, ours: dict[str, str], theirs: dict[str, str], dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if dense:
        without_remerge(monkeypatch)
    branched(folder, ours, theirs)
    merged(folder, {}, "Merge side\n\nGolden-Change: digits\n\nas the branch says")
    assert judged(folder).details == ()


@pytest.mark.parametrize("dense", [False, True], ids=["merged once more", "an old git"])
@pytest.mark.parametrize(
    "files",
    [{"src/a.py": BOTH.replace("x10 = 10\n", "x10 = 100\n")}, {"src/a.py": BOTH, "src/more.py": "m = 1\n"}, {"src/b.py": "b = 3\n"}],
    ids=["in a merged file", "a new file", "in another file"],
)
def test_a_merge_with_a_change_of_its_own_is_judged(
    folder: Path, files: dict[str, str], dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if dense:
        without_remerge(monkeypatch)
    branched(folder, OURS, THEIRS)
    merged(folder, files)
    found = judged(folder)
    assert (found.code, found.why) == (1, "4 commits of src, 1 fault")
    assert "(Merge side): trailer: has no trailer Gate:" in found.details[0]
    git(folder, "commit", "-q", "--amend", "-m", f"Merge side\n\n{WHOLE}")
    assert judged(folder).code == 0


def test_a_merge_that_drops_what_a_branch_did_is_judged(folder: Path) -> None:
    """It is like neither parent, though each of its files is like one."""
    branched(folder, OURS, {"src/b.py": "b = 2\n", "src/c.py": ""})
    merged(folder, {"src/b.py": "b = 1\n"})
    assert judged(folder).code == 1


@pytest.mark.parametrize("dense", [False, True], ids=["merged once more", "an old git"])
def test_a_merge_on_a_branch_whose_work_came_to_nothing_is_judged(folder: Path, dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git leaves such a branch out of the usual history of a path; the merge that took nothing of it is like its parent, and free."""
    if dense:
        without_remerge(monkeypatch)
    git(folder, "branch", "kept")
    branched(folder, OURS, THEIRS)
    merged(folder, {"src/a.py": BOTH.replace("x10 = 10\n", "x10 = 100\n")})
    git(folder, "checkout", "-q", "kept")
    git(folder, "merge", "-q", "--no-ff", "-s", "ours", "-m", "Take nothing of it", "main")
    (fault,) = judged(folder).details
    assert "(Merge side)" in fault


def test_a_merge_with_a_change_elsewhere_is_free(folder: Path) -> None:
    branched(folder, OURS, THEIRS)
    merged(folder, {"README.md": "# A\n"})
    assert judged(folder).code == 0


def test_a_conflict_that_somebody_resolved_is_judged(folder: Path) -> None:
    branched(folder, {"src/b.py": "b = 2\n"}, {"src/b.py": "b = 3\n"})
    merged(folder, {"src/b.py": "b = 5\n"})
    assert judged(folder).code == 1


@pytest.mark.parametrize(("own", "code"), [({}, 0), ({"src/a.py": "all = 0\n"}, 1)], ids=["as git makes it", "with a change"])
def test_a_merge_of_three_is_judged_as_well(folder: Path, own: dict[str, str], code: int) -> None:
    branched(folder, {"src/ours.py": ""}, {"src/theirs.py": ""})
    git(folder, "checkout", "-q", "-b", "third", "main~1")
    commit(folder, {"src/third.py": ""}, f"Third\n\n{WHOLE}")
    git(folder, "checkout", "-q", "main")
    git(folder, "merge", "-q", "--no-ff", "-m", "Merge them", "side", "third")
    assert len(git(folder, "rev-list", "--parents", "-1", "HEAD").split()) == 4
    write(folder, own)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--amend", "--no-edit")
    assert judged(folder).code == code


def without_remerge(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a git that does not know the option."""
    real = module.run

    def run(root: Path, *arguments: str, stdin: bytes = b"", fine: tuple[int, ...] = (0,)) -> bytes:
        known = ("--no-such-option" if argument == "--remerge-diff" else argument for argument in arguments)
        return real(root, *known, stdin=stdin, fine=fine)

    monkeypatch.setattr(module, "run", run)


@pytest.fixture
def origin(folder: Path) -> Path:
    """Five commits, the last of which changes a document alone."""
    for number in (2, 3):
        commit(folder, {"src/b.py": f"b = {number}\n"}, f"Change\n\n{WHOLE}")
    commit(folder, {"README.md": "# A\n"}, "Write")
    commit(folder, {"README.md": "# B\n"}, "Write more")
    return folder


def cloned(origin: Path, depth: int) -> Path:
    git(origin.parent, "clone", "-q", "--depth", str(depth), origin.as_uri(), f"clone{depth}")
    return origin.parent / f"clone{depth}"


def test_a_shallow_clone_judges_nothing_that_it_lacks(origin: Path) -> None:
    """No word of the commit whose parents are missing, which looks as if it had changed everything, but what to do."""
    assert judged(origin).code == 0
    for depth in (1, 3):
        found = judged(cloned(origin, depth))
        assert (found.word, found.code) == ("not-judged", 3)
        assert found.why.startswith("baseline-failed: What ")
        assert found.why.endswith("git fetch --unshallow")
        assert found.details == ()
    git(origin.parent / "clone1", "fetch", "-q", "--unshallow")
    assert judged(origin.parent / "clone1").why == "3 commits of src"


def test_a_shallow_clone_with_all_that_is_asked_about_is_judged(origin: Path) -> None:
    """The commit before the first one is there; the parents of that are not needed."""
    base = git(origin, "rev-parse", "HEAD~3")
    commit(origin, {"src/b.py": "b = 4\n"}, "Careless")
    clone = cloned(origin, 5)
    found = judged(clone, base)
    assert (found.code, found.why, len(found.details)) == (1, "2 commits of src, 1 fault", 1)
    assert judged(cloned(origin, 4), base).code == 3
    write(clone, {"pyproject.toml": f"{CONFIG}since = '{base}'\n"})
    assert judged(clone).code == 1
    write(clone, {"pyproject.toml": f"{CONFIG}since = '{git(origin, 'rev-parse', 'HEAD~5')}'\n"})
    assert (judged(clone).code, "git fetch --unshallow" in judged(clone).why) == (3, True)


def test_a_clone_that_is_whole_needs_nothing(origin: Path) -> None:
    git(origin.parent, "clone", "-q", origin.as_uri(), "whole")
    assert judged(origin.parent / "whole").code == 0


def test_what_a_shallow_clone_cannot_know_is_no_mistake(origin: Path) -> None:
    """A path that may have been there earlier."""
    commit(origin, {"pyproject.toml": CONFIG.replace('"src"', '"old", "src"')})
    clone = cloned(origin, 2)
    with pytest.raises(BaselineFailed, match=r"old, which .* is in no commit of this clone"):
        words.trailed(find(clone), git(clone, "rev-parse", "HEAD~1"))
    assert judged(origin).code == 2
