"""Cases C12 to C16, C19 and C20: evidence of other sources is never shown as current, and nothing is lost or claimed beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gate.config import find
from gate.evidence.keeping import keep
from gate.evidence.status import View
from tests.gate.evidence.records import CONFIG, Toy
from tests.gate.projects import Project
from tests.gate.repositories import IDENTITY, git, write
from tests.gate.test_amended import OWNED

PROVENANCE = "# Provenance\n\n## 2020-01-01\n\n| id | source | used for |\n| --- | --- | --- |\n| P1 | A paper | all |\n"
RULES = '\n[tool.gate.claims]\npromise = ["src"]\n\n[tool.gate.trailers]\npaths = ["src"]\nrequired = ["Provenance"]\nsince = "{since}"\n'
COUNT = "<!-- gate: cpu/tests.passed -->{}<!-- /gate --> pass.\n"
UPDATE = 'def update(w):\n    """Never the same. [held by tests/test_replay.py::test_it]"""\n    return w - 1\n'


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository in which all is fresh and every claim holds."""
    toy = Toy.new(tmp_path_factory.mktemp("cases") / "toy")
    rules = RULES.format(since=toy.git("rev-parse", "HEAD"))
    toy.commit(
        "Rules\n\nProvenance: P1", pyproject_toml=CONFIG + rules, docs__provenance_md=PROVENANCE, src__update_py=UPDATE,
        README_md=f"# Toy\n\n{COUNT.format(169)}",
    )  # fmt: skip
    toy.everything()
    return toy.folder


@pytest.fixture
def toy(prepared: Path, tmp_path: Path) -> Toy:
    return Toy(Path(shutil.copytree(prepared, tmp_path / "toy")))


def told(toy: Toy, *arguments: str) -> tuple[int, str]:
    """What `gate run` says, its work left to the records; and its exit code."""
    answer = Project(toy.folder).gate("run", *arguments)
    return answer.code, answer.out + answer.err


def stale(toy: Toy) -> list[str]:
    return [name for name, state in toy.states().items() if state == "stale"]


@pytest.mark.case("C12")
@pytest.mark.case("C20")
def test_the_story(toy: Toy, case_id: str) -> None:
    """Evidence was recorded; then somebody rewrote a source, typed a count, and promised. Each is named with its place."""
    recorded = toy.git("rev-parse", "HEAD")
    assert Project(toy.folder).gate("status").code == 0
    moved = toy.commit("Rewrite replay\n\nProvenance: P1", src__replay_py="def replay():\n    return 2\n")
    answer = Project(toy.folder).gate("status")
    line = next(row for row in answer.document["records"] if (row["check"], row["hardware"]) == ("tests", "cpu"))
    assert (answer.code, line["state"], line["files"], line["commit"]) == (3, "stale", ["src/replay.py"], moved)
    assert "src/replay.py has other content since" in answer.out
    toy.commit("Unrelated", docs__notes_md="# Notes\n")
    assert stale(toy) == ["cpu/tests", "h200/tests"]
    toy.git("revert", "--no-edit", moved)
    assert stale(toy) == []
    toy.git("reset", "-q", "--hard", recorded)
    write(
        toy.folder,
        {
            "README.md": f"# Toy\n\n{COUNT.format(170)}Never [held by tests/test_replay.py::test_gone].\n",
            "docs/page.md": "# Page\n\n169 focused checks.\n",
            "docs/provenance.md": f"{PROVENANCE}| P2 | A paper | more |\n",
            "docs/work/wp.md": f"# WP\n\nThe run covers {recorded[:9]} and {moved[:9]}.\n",
        },
    )
    toy.mutation(details={"killed": {"src/update.py::update": []}, "asked": ["tests/test_replay.py::test_it"]})
    code, text = told(toy)
    assert code == 1
    for place in (
        "README.md:3: claim: cpu/tests.passed is 169 in the evidence, and 170 here",
        "README.md:4: claim: is held by tests/test_replay.py::test_gone, which does not exist",
        'docs/page.md:3: warning: "169 focused checks"',
        "docs/provenance.md:8: trailer: P2 is a source that stands already, as P1",
        f"docs/work/wp.md:3: claim: says that a run covers {recorded[:9]} and {moved[:9]}, but their sources differ: src/replay.py",
        "src/update.py:2: claim: is held by tests/test_replay.py::test_it, which kills no mutant",
    ):
        assert place in text


@pytest.mark.case("C12")
@pytest.mark.parametrize("name", ["src/replay.py", "tests/test_replay.py", "goldens/cpu/torch-2.13.0/text/digests.safetensors"])
def test_a_dirty_tree_has_no_fresh_evidence(toy: Toy, name: str, case_id: str) -> None:
    """An edit that is in no commit counts as one that is; put back, it counts no more."""
    path = toy.folder / name
    before = path.read_bytes()
    path.write_bytes(before + b"\n")
    assert stale(toy)
    path.write_bytes(before)
    assert stale(toy) == []


@pytest.mark.case("C13")
def test_sources_that_move_while_a_check_runs_leave_no_record(tmp_path: Path, case_id: str) -> None:
    """A source written while the scenario runs, with the very same content: bits are identical, and not judged."""
    project = Project.new(tmp_path / "toy", toy="")
    assert project.gate("record").code == 0
    assert project.gate("verify").code == 0
    (kept,) = (project.folder / ".gate/evidence").iterdir()
    kept.unlink()
    touching = (project.folder / "scenarios.py").read_text().replace('print("hello', 'os.utime(HERE / "factor.py"); print("hello')
    (project.folder / "scenarios.py").write_text(touching)
    answer = project.gate("verify")
    assert (answer.code, answer.row["verdict"], answer.row["reason"]) == (3, "not-judged", "stale-evidence")
    assert "factor.py was written while the check ran" in answer.err
    assert list((project.folder / ".gate/evidence").iterdir()) == []


@pytest.mark.case("C14")
@pytest.mark.parametrize(
    ("cuda", "state"),
    [({"passed": 3, "skipped": 0}, "fresh"), ({"passed": 2, "skipped": 1}, "missing"), ({"passed": 0, "skipped": 0}, "missing")],
)
def test_what_was_skipped_on_a_gpu_is_missing(toy: Toy, cuda: dict[str, int], state: str, case_id: str) -> None:
    """One test that needs the GPU and was skipped there, or none that ran, and the record counts as none."""
    for path in (toy.folder / ".gate/evidence").glob("tests-h200-*"):
        path.unlink()
    toy.tests("h200", details={"passed": {}, "cuda": cuda}, counts={"passed": 169, "skipped": cuda["skipped"]})
    line = toy.line("h200/tests")
    assert line.state.value == state
    assert toy.status().exit_code == (0 if state == "fresh" else 3)


@pytest.mark.case("C14")
def test_a_record_of_skipped_tests_alone_is_missing(toy: Toy, case_id: str) -> None:
    for path in (toy.folder / ".gate/evidence").glob("tests-cpu-*"):
        path.unlink()
    toy.tests(counts={"passed": 0, "skipped": 169})
    assert (toy.line("cpu/tests").state.value, toy.line("cpu/tests").reason) == ("missing", "no test passed")


@pytest.mark.case("C15")
@pytest.mark.parametrize(
    "message",
    ["Change\n\n* One\n\nProvenance: P1\n\n* Two", "Change\n\nProvenance: P1\n---\n", "Change\nProvenance: P1"],
    ids=["squash", "dashes", "no paragraph"],
)
def test_a_trailer_that_git_does_not_see_is_flagged(toy: Toy, message: str, case_id: str) -> None:
    toy.commit(message, src__more_py="x = 1\n")
    code, text = told(toy, "--since", "HEAD~1")
    assert code != 0
    assert '"Provenance: P1" looks like a trailer, and git does not see it' in text


@pytest.mark.case("C15")
def test_the_same_trailer_where_git_sees_it_is_none_of_these(toy: Toy, case_id: str) -> None:
    toy.commit("Change\n\n* One\n\n* Two\n\nProvenance: P1", src__more_py="x = 1\n")
    assert "looks like a trailer" not in told(toy, "--since", "HEAD~1")[1]


@pytest.mark.case("C16")
def test_branches_with_records_merge_and_stay_fresh(toy: Toy, case_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both keep records of a GPU anew, each replacing the same ones; nothing conflicts, and the merge has what it needs."""
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    keep(View.of(toy.config))
    toy.commit("Keep")
    for branch in ("one", "two"):
        toy.git("checkout", "-q", "-b", branch, "main")
        toy.tests("h200", environment={"host": branch})
        assert len(keep(View.of(toy.config)).notes) == 2, "one was kept, and one was removed"
        toy.commit(branch)
    toy.git("merge", "-q", "--no-edit", "one")
    assert toy.git("status", "--porcelain") == ""
    assert len(list((toy.folder / "goldens/h200/evidence").iterdir())) == 2
    shutil.rmtree(toy.folder / ".gate")
    assert toy.states()["h200/tests"] == "fresh"
    assert [note.split()[0] for note in keep(View.of(toy.config)).notes] == ["removed"]


@pytest.mark.case("C16")
def test_kept_records_are_in_nobodys_way(toy: Toy, case_id: str) -> None:
    """They stand beside goldens, and what reads goldens passes them by."""
    keep(View.of(toy.config))
    assert (toy.folder / "goldens/h200/evidence").is_dir()
    rows = Project(toy.folder).gate("diff", "goldens", "goldens").rows
    assert [(row["golden"], row["verdict"]) for row in rows] == [("digits", "identical"), ("text", "identical")]
    assert toy.states()["cpu/goldens"] == "fresh"
    assert find(toy.folder).goldens == toy.folder / "goldens"
    toy.commit(OWNED)
    assert git(toy.folder, "status", "--porcelain") == ""


@pytest.mark.case("C17")
def test_a_summary_is_cut_and_says_so(toy: Toy, case_id: str) -> None:
    """Control characters of a commit's subject reach no console, and thousands of findings no summary; the JSON holds them all."""
    toy.commit("Colour \x1b[31m", src__replay_py="x = 1\n", docs__page_md="12 tests\n\n" * 5000)
    answer = Project(toy.folder).gate("run", "--since", "HEAD~1", "--allow-stale", "h200")
    assert answer.code != 0
    assert r"(Colour \x1b[31m)" in answer.out
    assert "\x1b" not in answer.out + answer.err
    assert len(answer.out) < 1 << 20
    assert "more lines: --json FILE has them all" in answer.out
    (claims,) = (line for line in answer.document["lines"] if line["name"] == "claims")
    assert sum(issue["kind"] == "warning" for issue in claims["result"]["issues"]) == 5000


@pytest.mark.case("C19")
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_names_that_a_console_lacks_are_escaped(toy: Toy, encoding: str, case_id: str) -> None:
    """A stale file and a commit with names in other letters, through a pipe of another encoding."""
    write(toy.folder, {"src/replay.py": "x = 1\n", "tests/test_日本.py": "def test_a():\n    pass\n"})
    toy.commit("Größer — 日本")
    done = subprocess.run(
        [sys.executable, "-m", "gate", "status", "--explain"], cwd=toy.folder, env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
    )  # fmt: skip
    assert done.returncode == 3
    text = done.stdout.decode(encoding)
    assert r"tests/test_\u65e5\u672c.py is new" in text
    assert b"Traceback" not in done.stderr


def changes() -> Iterator[tuple[str, str]]:
    """A count that is typed, and one that is removed by half."""
    yield "-->169<", "-->168<"
    yield "169<!-- /gate -->", "169"


@pytest.mark.case("C20")
@pytest.mark.parametrize(("old", "new"), list(changes()))
def test_a_count_in_a_document_is_held_to_the_evidence(toy: Toy, old: str, new: str, case_id: str) -> None:
    assert told(toy)[0] == 0
    path = toy.folder / "README.md"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    code, text = told(toy)
    assert (code, "README.md:3: claim:" in text) == (1, True)
