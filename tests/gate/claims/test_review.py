"""Every claim of a project is found, and what is wrong is named with its file and line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gate.claims.issue import Weight
from gate.claims.review import Claims, refresh, review
from gate.config import find
from gate.errors import ConfigurationError
from gate.evidence.archive import Archive
from gate.evidence.status import View
from tests.gate.evidence.records import CONFIG, Toy
from tests.gate.repositories import write

ROOT = Path(__file__).parents[3]
SCOPED = CONFIG.replace("[tool.gate.required]", '[tool.gate.claims]\npromise = ["src"]\n\n[tool.gate.required]')
UPDATE = 'def update(w):\n    """Never the same{}."""\n    return w - 1\n'


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    toy = Toy.new(tmp_path / "toy")
    toy.commit("Scope", pyproject_toml=SCOPED, src__update_py=UPDATE.format(" [held by tests/test_replay.py::test_it]"))
    toy.everything()
    return toy


def look(toy: Toy) -> Claims:
    return review(View.of(toy.config))


def texts(toy: Toy) -> list[str]:
    return [issue.text for issue in look(toy).issues]


def test_a_project_whose_claims_hold_is_fine(toy: Toy) -> None:
    found = look(toy)
    assert (found.issues, found.promises, found.exit_code) == ((), 1, 0)


def test_an_edited_count_and_an_unmarked_one_are_named(toy: Toy) -> None:
    """The one is wrong, the other is warned of; the changelog may tell what was."""
    toy.commit(
        "Count", README_md="# Toy\n<!-- gate: cpu/tests.passed -->170<!-- /gate --> tests\n", docs__page_md="169 focused checks\n",
        CHANGELOG_md="- 12 tests\n",
    )  # fmt: skip
    first, second = texts(toy)
    assert first.startswith("README.md:2: claim: cpu/tests.passed is 169 in the evidence, and 170 here")
    assert second.startswith('docs/page.md:1: warning: "169 focused checks" looks like a count')
    assert look(toy).exit_code == 1
    assert refresh(View.of(toy.config)) == ["README.md"]
    assert look(toy).exit_code == 0


def test_refreshing_keeps_every_other_byte(toy: Toy) -> None:
    """Line ends and what is not UTF-8."""
    before = b"caf\xe9\r\n<!-- gate: cpu/tests.passed -->1<!-- /gate -->\r\n"
    write(toy.folder, {"README.md": before})
    refresh(View.of(toy.config))
    assert (toy.folder / "README.md").read_bytes() == before.replace(b"-->1<", b"-->169<")


def test_a_promise_without_a_test_is_named(toy: Toy) -> None:
    write(toy.folder, {"src/update.py": UPDATE.format("")})
    assert texts(toy) == ['src/update.py:2: claim: promises without saying who holds it: "Never the same." Add [held by TEST]']


def test_a_promise_whose_test_is_gone_is_named(toy: Toy) -> None:
    write(toy.folder, {"README.md": "# Toy\n\nNever [held by tests/test_replay.py::test_gone].\n"})
    assert texts(toy) == ["README.md:3: claim: is held by tests/test_replay.py::test_gone, which does not exist"]


def test_a_promise_whose_test_kills_nothing_is_named(toy: Toy) -> None:
    details = {"killed": {"src/update.py::update": ["tests/other.py::test"]}, "asked": ["tests/test_replay.py::test_it"]}
    toy.mutation(details=details)
    assert texts(toy) == [
        "src/update.py:2: claim: is held by tests/test_replay.py::test_it, which kills no mutant of src/update.py::update"
    ]


def test_a_figure_of_a_gpu_whose_evidence_is_gone_is_not_judged_unless_allowed(toy: Toy) -> None:
    write(toy.folder, {"README.md": "<!-- gate: l4/tests.passed -->1<!-- /gate -->\n"})
    assert look(toy).exit_code == 3
    assert review(View.of(toy.config), allowed=("l4",)).exit_code == 0


def test_a_page_that_covers_two_commits_has_to_be_of_equal_sources(toy: Toy) -> None:
    """Commits that differ in documents and settings alone are covered by one run."""
    first = toy.git("rev-parse", "HEAD")
    second = toy.commit("Say more", README_md="# More\n")
    toy.commit("Page", docs__work__wp_1_md=f"# WP\n\nThe run covers `{first[:7]}` and {second}.\n")
    assert texts(toy) == []
    third = toy.commit("Rewrite", src__replay_py="def replay():\n    return 2\n")
    write(toy.folder, {"docs/work/wp_1.md": f"# WP\n\nMeasured once.\nThe run covers `{first[:7]}` and {third[:7]}.\n"})
    (text,) = (text for text in texts(toy) if text.startswith("docs/"))
    told = f"says that a run covers {first[:7]} and {third[:7]}, but their sources differ: src/replay.py"
    assert text.startswith(f"docs/work/wp_1.md:4: claim: {told}")


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        ("The run covered abcdef0.", "which is no commit"),
        (f"It covers {'0' * 63}1.", "nothing here has as its digest"),
        ("Not a word of abcdef0.", None),
        ("It covers 1000000 steps.", None),
    ],
)
def test_a_page_names_what_is_there(toy: Toy, sentence: str, told: str | None) -> None:
    write(toy.folder, {"docs/work/wp.md": f"# WP\n\n{sentence}\n"})
    found = texts(toy)
    assert len(found) == bool(told)
    assert all(str(told) in text for text in found)


def test_a_page_may_name_the_digest_of_a_source(toy: Toy) -> None:
    digest = View.of(toy.config).here.present.digest("src/update.py")
    write(toy.folder, {"docs/work/wp.md": f"It covers {digest}.\n"})
    assert texts(toy) == []


@pytest.mark.parametrize(
    ("line", "told"),
    [('promises = ["src"]', "did you mean 'promise'?"), ('promise = "src"', "list of folders"), ('promise = ["lib"]', "no such folder")],
)
def test_a_wrong_table_is_told(toy: Toy, line: str, told: str) -> None:
    write(toy.folder, {"pyproject.toml": SCOPED.replace('promise = ["src"]', line)})
    with pytest.raises(ConfigurationError) as caught:
        look(toy)
    assert told in str(caught.value)


def test_this_project_s_own_promises_name_tests_that_exist() -> None:
    """Whatever the evidence of this work tree says: no sentence promises by itself, and no page covers what differs."""
    view = replace(View.of(find(ROOT)), archive=Archive(()))
    found = review(view)
    assert found.promises >= 5
    assert [issue.text for issue in found.issues if issue.weight is Weight.CLAIM] == []
