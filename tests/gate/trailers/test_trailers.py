"""Commits say what they have to, in trailers that git sees and that name what is there."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from gate import bindings, collected
from gate.config import Config, find
from gate.errors import ConfigurationError, UsageError
from gate.trailers.review import review
from gate.trailers.rule import Rule
from tests.gate.repositories import commit, git, init, write

LOG = """# Provenance

## 2020-01-01

| id | source | used for |
| --- | --- | --- |
| P1 | Jordan's write-up (https://example.org/muon) | all |
| P2 | The manual | more |
"""
CONFIG = """
[tool.gate.trailers]
paths = ["src"]
required = ["WP", "Provenance", "Gate"]
"""
FILES = {
    "pyproject.toml": CONFIG,
    "docs/provenance.md": LOG,
    "docs/work/wp-1.md": "# One\n",
    "src/step.py": "def step(): pass\n\ndef test_step(): pass\n",
    "tests/test_a.py": "class TestA:\n    def test_b(self): pass\n\ndef test_c(): pass\n",
}
WHOLE = "WP: wp-1\nProvenance: P1, P2\nGate: tests/test_a.py::TestA::test_b\nGate: tests/test_a.py::test_c[a b, [c]]"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = init(tmp_path / "project")
    commit(folder, FILES, f"Begin\n\n{WHOLE}")
    return folder


def land(folder: Path, message: str, path: str = "src/a.py") -> None:
    """Commits a change of a source."""
    file = folder / path
    commit(folder, {path: f"{file.read_text() if file.exists() else ''}x = 1\n"}, message)


def faults(folder: Path, since: str | None = None) -> list[str]:
    config: Config = find(folder)
    rule = Rule.of(config)
    assert rule is not None
    found = review(config, rule, since)
    assert found.exit_code == bool(found.faults)
    return [fault.told for fault in found.faults]


def test_a_commit_with_all_of_them_is_fine(folder: Path) -> None:
    """Case of the key does not matter to git; a test's parameters may hold anything."""
    land(folder, f"Change\n\nBecause.\n\n{WHOLE}")
    land(folder, f"Change\n\n{WHOLE.replace('WP:', 'wp:')}\nSigned-off-by: A <a@b>\nGolden-Change: digits")
    assert faults(folder) == []


def test_commits_elsewhere_need_none(folder: Path) -> None:
    land(folder, "Note\n\nThe gate: is open.", "docs/notes.txt")
    assert faults(folder) == []


def test_a_missing_one_is_named(folder: Path) -> None:
    land(folder, "Change\n\nWP: wp-1\nProvenance: none")
    assert faults(folder) == ["has no trailer Gate:"]


def test_a_misspelt_one_is_unknown_and_the_right_one_missing(folder: Path) -> None:
    land(folder, f"Change\n\n{WHOLE.replace('Gate:', 'Gates:')}")
    assert faults(folder) == ["has no trailer Gate:", *["unknown trailer 'Gates', did you mean 'Gate'?"] * 2]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("Gate: tests/test_a.py::test_c[a b, [c]]", "Gate: tests/test_a.py::test_gone", "Gate: tests/test_a.py::test_gone does not exist"),
        ("Gate: tests/test_a.py::test_c[a b, [c]]", "Gate: TestA::test_b", "is no test"),
        ("Gate: tests/test_a.py::test_c[a b, [c]]", "Gate: all of them", "is no test"),
        ("WP: wp-1", "WP: wp-2", "WP: there is no page wp-2.md"),
        ("WP: wp-1", "WP: the first one", "is no page's name"),
        ("P1, P2", "P1, P9", "Provenance: P9 is not in the log"),
        ("P1, P2", "Jordan", "is no list of ids"),
        ("P1, P2", "", "Provenance: says nothing. Write Provenance: none where there is none"),
        ("WP: wp-1", "WP:", "WP: says nothing. Name a page of docs/work, without its .md"),
        ("WP: wp-1", "WP: none", "WP: there is no page none.md. Name a page of docs/work, without its .md"),
        ("WP: wp-1", "WP: ..", "WP: there is no page ...md"),
        ("WP: wp-1", f"WP: {'w' * 300}", "WP: there is no page"),
        ("Gate: tests/test_a.py::TestA::test_b", "Gate:", "Gate: says nothing. Name a test, as tests/test_x.py::test_it"),
        ("Gate: tests/test_a.py::TestA::test_b", "Gate: none", "Gate: none is no test, and what changes these paths has one. Name a test"),
        ("Gate: tests/test_a.py::TestA::test_b", f"Gate: {'t' * 300}.py::test_b", "does not exist"),
        ("Gate: tests/test_a.py::TestA::test_b", "Gate: src/step.py::step", "does not exist, or pytest does not collect it"),
        ("Gate: tests/test_a.py::TestA::test_b", "Gate: src/step.py::test_step", "does not exist, or pytest does not collect it"),
        ("Gate: tests/test_a.py::TestA::test_b", "Gate: ../project/tests/test_a.py::test_c", "does not exist"),
        ("WP: wp-1", "WP: wp-1\nGolden-Change:", "Golden-Change: says nothing. Name the scenario"),
        ("WP: wp-1", "WP: wp-1\nCc:", "Cc: says nothing. Leave it out"),
    ],
)
def test_what_a_trailer_names_has_to_be_there(folder: Path, old: str, new: str, told: str) -> None:
    assert old in WHOLE
    land(folder, f"Change\n\n{WHOLE.replace(old, new)}")
    (fault,) = faults(folder)
    assert told in fault


@pytest.mark.parametrize("between", [", tests/test_a.py::", "; tests/test_a.py::", " tests/test_a.py::", " and tests/test_a.py::", ", "])
@pytest.mark.parametrize("first", ["TestA::test_b", "test_c[1]", "test_c"])
def test_several_tests_in_one_trailer_are_told_to_be_no_test(folder: Path, first: str, between: str) -> None:
    """Each of them alone is one, parameters that hold the like included."""
    both = f"tests/test_a.py::{first}{between}test_c"
    land(folder, f"Change\n\nWP: wp-1\nProvenance: none\nGate: {both}")
    assert faults(folder) == [f"Gate: {both} is no test. Write it as tests/test_x.py::test_it, one trailer a test"]
    land(folder, f"Change\n\nWP: wp-1\nProvenance: none\nGate: tests/test_a.py::{first}\nGate: tests/test_a.py::test_c[x, y.py::z]")
    assert [fault for fault in faults(folder) if "y.py" in fault] == []


@pytest.mark.parametrize(
    "message",
    [
        f"Squash\n\n* One\n\n{WHOLE}\n\n* Two\n\nFixes it.",
        f"Change\n\n{WHOLE}\nsee https://example.org/x and the page\n" + "and more\n" * 12,
        f"Change\n\nBecause.\n---\n a | 1 +\n\n{WHOLE}",
        f"Change\n{WHOLE}",
    ],
    ids=["squash", "prose beside them", "dashes", "no paragraph"],
)
def test_what_only_looks_like_a_trailer_is_named(folder: Path, message: str) -> None:
    """Git does not see it, and it is told apart from one that is missing."""
    land(folder, message)
    found = faults(folder)
    assert any('"WP: wp-1" looks like a trailer, and git does not see it' in fault for fault in found)
    assert not any("has no trailer" in fault for fault in found)


def test_a_test_that_was_renamed_later_is_no_fault_of_an_old_commit(folder: Path) -> None:
    """Of a change that is about to land it is: what it names has to be there when it lands."""
    base = git(folder, "rev-parse", "HEAD")
    land(folder, f"Change\n\n{WHOLE}")
    commit(folder, {"tests/test_a.py": "class TestA:\n    def test_b(self): pass\n\ndef test_d(): pass\n"}, "Rename")
    assert faults(folder) == []
    assert faults(folder, base) == ["Gate: tests/test_a.py::test_c[a b, [c]] does not exist, or pytest does not collect it"]


def test_commits_before_the_rule_are_left_alone(folder: Path) -> None:
    land(folder, "Careless")
    assert len(faults(folder)) == 3
    base = git(folder, "rev-parse", "HEAD")
    write(folder, {"pyproject.toml": f'{CONFIG}since = "{base}"\n'})
    assert faults(folder) == []
    with pytest.raises(UsageError, match="no such commit"):
        faults(folder, "nonsense")


def test_commits_are_held_to_the_rule_where_they_are_newer_than_both_beginnings(folder: Path) -> None:
    """Whichever is older; a beginning on another branch leaves out what that holds."""
    start = git(folder, "rev-parse", "HEAD")
    land(folder, "Careless")
    rule = git(folder, "rev-parse", "HEAD")
    git(folder, "branch", "other")
    land(folder, "Change\n\nWP: wp-1\nProvenance: none")
    late = git(folder, "rev-parse", "HEAD")
    assert len(faults(folder, start)) == 4  # the rule has no beginning yet
    write(folder, {"pyproject.toml": f'{CONFIG}since = "{rule}"\n'})
    assert faults(folder, start) == ["has no trailer Gate:"]
    assert faults(folder, late) == []
    write(folder, {"pyproject.toml": f'{CONFIG}since = "{start}"\n'})
    assert faults(folder, rule) == ["has no trailer Gate:"]
    git(folder, "checkout", "-q", "-f", "other")
    land(folder, "Careless as well")
    aside = git(folder, "rev-parse", "HEAD")
    git(folder, "merge", "-q", "-s", "ours", "-m", "Merge", late)
    write(folder, {"pyproject.toml": f'{CONFIG}since = "{aside}"\n'})
    assert faults(folder, rule) == ["has no trailer Gate:"]
    assert faults(folder, late) == []
    write(folder, {"pyproject.toml": f'{CONFIG}since = "{rule}"\n'})
    assert len(faults(folder, late)) == 3
    write(folder, {"pyproject.toml": f'{CONFIG}since = "nonsense"\n'})
    with pytest.raises(UsageError, match="no such commit"):
        faults(folder, late)


def test_long_histories_take_no_process_a_commit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for lines of dashes, nor for tests and pages of files that are gone; such a file is parsed once."""
    started: list[object] = []
    parses: list[str] = []

    class Counted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            started.append(arguments)
            super().__init__(*arguments, **options)

    def parsed(file: str, text: str) -> object:
        parses.append(file)
        return real(file, text)

    real = bindings.parsed
    monkeypatch.setattr(collected, "parsed", parsed)
    counts, message = [], f"Change\n\n---\nof 3\n\n{WHOLE.replace('wp-1', 'wp-0')}"
    commit(folder, {"docs/work/wp-0.md": "# Nought\n"}, "Page")
    for number in range(2, 10):
        land(folder, f"{WHOLE.replace('wp-1', 'wp-0')}\n\n{WHOLE}" if number % 2 else message)
        if number not in (3, 9):
            continue
        commit(folder, {"tests/test_a.py": None, "docs/work/wp-0.md": None}, "Remove")
        with monkeypatch.context() as patch:
            patch.setattr(subprocess, "Popen", Counted)
            started.clear()
            parses.clear()
            told = faults(folder)
        counts.append(len(started))
        assert parses == ["tests/test_a.py"]
        assert any('"WP: wp-0" looks like a trailer' in fault for fault in told)
        assert not any("does not exist" in fault or "no page" in fault for fault in told)
        commit(folder, {"tests/test_a.py": FILES["tests/test_a.py"], "docs/work/wp-0.md": "# Nought\n"}, "Restore")
    assert counts[0] == counts[1] > 5


def test_a_file_of_tests_that_changed_is_read_as_each_commit_has_it(folder: Path) -> None:
    """Negative control of reading it once: the same name is there at one commit and not at the next, by its text and by the settings."""
    land(folder, f"Change\n\n{WHOLE}")
    commit(folder, {"tests/test_a.py": "class TestA:\n    def test_b(self): pass\n"}, "Remove one")
    land(folder, f"Late\n\n{WHOLE}")
    commit(folder, {"tests/test_a.py": FILES["tests/test_a.py"], "pytest.ini": "[pytest]\npython_functions = check\n"}, "Rename")
    land(folder, f"Later\n\n{WHOLE}")
    commit(folder, {"tests/test_a.py": None, "pytest.ini": None}, "Remove all")
    told = [fault for fault in faults(folder) if "does not exist" in fault]
    assert [fault.split()[1] for fault in told] == [
        "tests/test_a.py::test_c[a",
        "tests/test_a.py::TestA::test_b",
        "tests/test_a.py::test_c[a",
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ("| P2 | The manual | more |", "| P2 | the manual. | more |\n| P3 | The manual | again |", 9, "stands already, as P2 in line 8"),
        ("| P2 | The manual | more |", "| P2 | Muon, at https://example.org/muon/ | more |", 8, "stands already, as P1"),
        ("| P2 |", "| P1 |", 8, "stands already, as P1"),
        ("| P1 |", "| P4 |", 8, "P2 is out of order: it stands after P4"),
        ("## 2020-01-01", "## 1 January", 3, "'1 January' is no day, so that the rows under it cannot be held to one"),
        ("## 2020-01-01", "## 20200101", 3, "is no day"),
        ("## 2020-01-01", "## 2020-02-30", 3, "is no day"),
        ("| P2 |", f"| P{'9' * 5000} |", 8, "names no source"),
        ("| P2 |", "\n## 2019-12-31\n\n| P2 |", 9, "2019-12-31 stands after 2020-01-01"),
        ("## 2020-01-01\n", "", 6, "P1 stands under no day"),
        ("| P2 |", "| second |", 8, "names no source"),
        ("## 2020-01-01", "## 2999-01-01", 7, "of 20"),
    ],
)
def test_the_log_has_each_source_once_on_its_first_day_in_order(folder: Path, old: str, new: str, line: int, told: str) -> None:
    land(folder, "Change\n\nWP: wp-1\nProvenance: P1\nGate: tests/test_a.py::test_c")
    config, rule = find(folder), Rule.of(find(folder))
    assert rule is not None
    assert review(config, rule, None).faults == ()
    write(folder, {"docs/provenance.md": LOG.replace(old, new, 1)})
    texts = [fault.text for fault in review(config, rule, None).faults]
    assert any(text.startswith(f"docs/provenance.md:{line}: ") and told in text for text in texts)


@pytest.mark.parametrize("heading", ["yesterday", "99999", "0", "20261129"])
def test_under_a_heading_that_is_no_day_nothing_else_is_said_of_the_rows(folder: Path, heading: str) -> None:
    """A row that no commit names, and one that a commit names, can be held to no day."""
    write(folder, {"docs/provenance.md": LOG.replace("2020-01-01", heading) + "| P3 | More | none |\n"})
    (fault,) = faults(folder)
    assert fault.startswith(f"'{heading}' is no day")


def test_none_is_right_where_there_may_be_none(folder: Path) -> None:
    """A change need not have a source, nor an assumption, and a page may be called so."""
    write(folder, {"pyproject.toml": CONFIG.replace('"Gate"', '"Gate", "Assumptions"')})
    base = commit(folder, {"docs/work/none.md": "# None\n"}, "Set up")
    gate = "Gate: tests/test_a.py::test_c"
    land(folder, f"Change\n\nWP: none\nProvenance: none\nAssumptions: none\n{gate}")
    assert faults(folder, base) == []


@pytest.mark.parametrize("path", ["srcc", "src/*.py", "../elsewhere", "/etc/passwd", "src/step.py/x"])
def test_a_path_that_never_was_is_a_mistake(folder: Path, path: str) -> None:
    write(folder, {"pyproject.toml": CONFIG.replace('"src"', f'"src", "{path}"')})
    with pytest.raises(ConfigurationError, match="there neither is nor was such a file or folder") as caught:
        faults(folder)
    assert f"paths names {path!r}" in str(caught.value)


def test_a_path_that_was_there_still_binds_its_commits(folder: Path) -> None:
    """A folder that was renamed: what was done under its old name is held to the rule."""
    write(folder, {"pyproject.toml": CONFIG.replace('"src"', '"src", "new"')})
    with pytest.raises(ConfigurationError, match="'new'"):
        faults(folder)
    (folder / "src").rename(folder / "new")
    commit(folder, {}, f"Rename\n\n{WHOLE}")
    land(folder, "Careless", "new/step.py")
    config = find(folder)
    rule = Rule.of(config)
    assert rule is not None
    assert review(config, rule, None).commits == 3
    assert len(faults(folder)) == 3


def test_a_log_that_is_gone_is_told(folder: Path) -> None:
    write(folder, {"docs/provenance.md": None})
    assert faults(folder) == [
        "Provenance: P1, P2 are not in the log",
        "there is no such log, and commits have to name what stands in it",
    ]


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('path = ["src"]', "did you mean 'paths'?"),
        ('paths = "src"', "list of strings"),
        ('paths = ["src"]', "needs paths and required"),
        ('paths = ["src"]\nrequired = ["WP"]\nsince = 3', "has to be a string"),
    ],
)
def test_a_wrong_table_is_told(folder: Path, table: str, told: str) -> None:
    write(folder, {"pyproject.toml": f"[tool.gate.trailers]\n{table}\n"})
    with pytest.raises(ConfigurationError) as caught:
        Rule.of(find(folder))
    assert told in str(caught.value)


def test_this_repository_keeps_its_own_rule() -> None:
    """Every commit under src/musgd, from the first one on; a shallow copy without history shows nothing."""
    root = Path(__file__).parents[3]
    config = find(root)
    rule = Rule.of(config)
    assert rule is not None
    if not (root / ".git").exists() or git(root, "rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("no history here")
    found = review(config, rule, None)
    assert found.commits > 5
    assert [fault.text for fault in found.faults] == []
