"""What git is asked once for many paths is what it says of each; how often it is asked does not follow from how many there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate.evidence import Finding, Reading
from gate.evidence.commits import Commits
from gate.history import Repository
from tests.gate.evidence.records import TORCH, Toy
from tests.gate.repositories import commit, git, init, write

NAMES = (
    "src/a.py", "src/b.py", "src/größe and space.py", "src/[a].py", ":(glob)*.py", 'src/quote".py', "gone.py", "never.py",
    "src/two\nlines.py",
)  # fmt: skip


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose project is a folder of it, with branches, merges of each kind, a rename and a removal."""
    folder = init(tmp_path_factory.mktemp("top"))
    inner = folder / "project"
    commit(folder, {**{f"project/{name}": "1\n" for name in NAMES if name != "never.py"}, "src/a.py": "outside\n"}, "Begin")
    for turn in range(4):
        git(folder, "checkout", "-q", "-b", f"side{turn}")
        commit(inner, {NAMES[turn]: f"side {turn}\n", "src/b.py": f"side {turn}\n"}, f"Side {turn}")
        git(folder, "checkout", "-q", "main")
        commit(inner, {NAMES[turn + 1]: f"main {turn}\n"}, f"Main {turn}")
        git(folder, "merge", "-q", "--no-edit", "-X", "ours" if turn % 2 else "theirs", f"side{turn}")
    git(inner, "mv", "src/a.py", "src/c.py")
    commit(inner, {"gone.py": None}, "Rename and remove")
    git(inner, "mv", "src/c.py", "src/a.py")
    commit(inner, {"src/a.py": "again\n"}, "Back")
    return folder


def told(project: Path, revisions: str, name: str) -> list[str]:
    """What git says of one path."""
    full = f"project/{name}"
    return git(project.parent, "--literal-pathspecs", "rev-list", "--topo-order", "--full-history", revisions, "--", full).split()


def test_each_path_has_the_commits_that_git_tells_of_it_alone(top: Path) -> None:
    """Merges too; and those after each of its own. A name of two lines is no line, and has none."""
    project = top / "project"
    commits = Commits(Repository.of(project))
    commits.ask(NAMES)
    for name in NAMES[:-1]:
        found = commits.changing(name)
        assert found == told(project, "HEAD", name)
        assert (found == []) is (name == "never.py")
        for one in found:
            assert commits.changing(name, after=one) == told(project, f"{one}..HEAD", name)
    assert len(git(top, "rev-list", "--merges", "HEAD").split()) == 4
    assert commits.changing(NAMES[-1]) == []
    assert set(commits.changing("src/a.py", "gone.py")) == {*commits.changing("src/a.py"), *commits.changing("gone.py")}


def test_a_users_settings_change_nothing(top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "settings"
    log = "showRoot = false\nfollow = true\ndiffMerges = first-parent\nshowSignature = true"
    settings.write_text(f"[log]\n{log}\n[diff]\nrelative = true\nrenames = copies\n")
    usual = Commits(Repository.of(top / "project")).changing("src/b.py")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    assert Commits(Repository.of(top / "project")).changing("src/b.py") == usual == told(top / "project", "HEAD", "src/b.py")


def test_the_oldest_is_told_by_descent_and_the_first_commit_is_known(top: Path) -> None:
    commits = Commits(Repository.of(top / "project"))
    found = [commits.commit(name) for name in commits.changing("src/a.py")]
    assert commits.oldest(found) == found[-1]
    assert (found[-1].title, commits.is_first(found[-1].id)) == (f"{found[-1].id[:7]} (Begin)", True)
    assert not commits.is_first(found[0].id)
    assert commits.oldest([]) is None


@pytest.mark.parametrize("kind", ["edited", "edited and gone", "new", "not committed"])
def test_how_often_git_is_asked_does_not_follow_from_how_many_files_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Nor from how many commits did it; each change is told with its own."""
    asked: dict[int, int] = {}
    for number in (3, 12):
        toy = Toy.new(tmp_path / f"toy{number}")
        names = [f"data/{index}.txt" for index in range(number)]
        commit(toy.folder, dict.fromkeys(names, "1\n"), "More")
        toy.leave(Finding("tests", "cpu", TORCH, "passed", {"passed": 1}), Reading(names, patterns=("new/*",)))
        made = change(toy, names, kind)
        log = tmp_path / f"log{number}"
        with monkeypatch.context() as variables:
            variables.setenv("GIT_TRACE2_EVENT", str(log))
            (line,) = [line for line in toy.status().lines if line.need.title == "tests cpu"]
        asked[number] = log.read_text().count('"event":"start"')
        assert {(found.change.told, found.commit and found.commit.id) for found in line.traced} == made
    assert asked[3] == asked[12] > 0


def change(toy: Toy, names: list[str], kind: str) -> set[tuple[str, str | None]]:
    """Changes each file of a record in a commit of its own; what is to be told of it."""
    if kind == "not committed":
        write(toy.folder, dict.fromkeys(names, "2\n"))
        return {(f"{name} has other content", None) for name in names}
    if kind == "new":
        news = [name.replace("data", "new") for name in names]
        return {(f"{name} is new", commit(toy.folder, {name: "1\n"}, name)) for name in news}
    made: set[tuple[str, str | None]] = {(f"{name} has other content", commit(toy.folder, {name: "2\n"}, name)) for name in names}
    if kind == "edited":
        return made
    return made | {(f"{name} is gone", commit(toy.folder, {name: None}, name)) for name in names}
