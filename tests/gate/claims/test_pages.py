"""A page names commits and digests that are there, and together only those whose sources are the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gate.claims.pages import judged
from gate.claims.review import review
from gate.evidence.status import View
from tests.gate.evidence.records import Toy
from tests.gate.repositories import git, write


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return Toy.new(tmp_path / "toy")


def texts(toy: Toy) -> list[str]:
    """What is said of the pages."""
    return [issue.text for issue in review(View.of(toy.config)).issues if issue.file.startswith("docs/work")]


def test_a_page_that_covers_two_commits_has_to_be_of_equal_sources(toy: Toy) -> None:
    """Commits that differ in documents and settings alone are covered by one run."""
    first = toy.git("rev-parse", "HEAD")
    second = toy.commit("Say more", README_md="# More\n")
    toy.commit("Page", docs__work__wp_1_md=f"# WP\n\nThe run covers `{first[:7]}` and {second}.\n")
    assert texts(toy) == []
    third = toy.commit("Rewrite", src__replay_py="def replay():\n    return 2\n")
    write(toy.folder, {"docs/work/wp_1.md": f"# WP\n\nMeasured once.\nThe run covers `{first[:7]}` and {third[:7]}.\n"})
    (text,) = texts(toy)
    told = f"says that a run covers {first[:7]} and {third[:7]}, but their sources differ: src/replay.py"
    assert text.startswith(f"docs/work/wp_1.md:4: claim: {told}")


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        ("The run covered commit abcdef0.", "which is no commit"),
        ("The run covers revision abcdef0.", "which is no commit"),
        ("The run covers:\n\n- commit abcdef0\n", "which is no commit"),
        ("| run | covered commits |\n| - | - |\n| 1 | abcdef0 |\n", "which is no commit"),
        (f"The run covers the sources {'0' * 63}1.", "nothing here has as its digest"),
        ("Not a word of abcdef0.", None),
        (f"The run covers digest {'0' * 63}A.", "nothing here has as its digest"),
        ("The run covers abcdef0.", "which is no commit"),
        ("The run covers the sources at\n`abcdef0`.", "which is no commit"),
        ("The run covers:\n\n- [abcdef0](x)\n- data abcdef1\n", "covers abcdef0, which is no commit"),
        ("The run covers data abcdef0.", None),
        ("The run of wandb 4f5e6d7 covers 3 epochs.", None),
        ("| run | covered |\n| - | - |\n| 1 | 4f5e6d7 |\n", "which is no commit"),
        ("| run | covered |\n| - | - |\n| 4f5e6d7 | data 4f5e6d8 |\n", None),
        (f"The run covers the data {'0' * 63}A.", None),
        ("The run covers a commit in 1000000 steps.", None),
    ],
)
def test_a_page_names_what_is_there(toy: Toy, sentence: str, told: str | None) -> None:
    write(toy.folder, {"docs/work/wp.md": f"# WP\n\n{sentence}\n"})
    found = texts(toy)
    assert len(found) == bool(told)
    assert all(str(told) in text for text in found)


def test_a_page_may_name_the_digest_of_a_source(toy: Toy) -> None:
    digest = View.of(toy.config).here.present.digest("src/update.py")
    assert digest
    write(
        toy.folder,
        {"docs/work/wp.md": f"The run covers digest {digest}.\n", "docs/work/wp_2.md": f"The run covers digest {digest.upper()}.\n"},
    )
    assert texts(toy) == []


@pytest.fixture(scope="module")
def commits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str, str]:
    """A repository, a commit, one of other sources, and one of the first one's."""
    toy = Toy.new(tmp_path_factory.mktemp("pages") / "toy")
    first = toy.git("rev-parse", "HEAD")
    other = toy.commit("Rewrite", src__replay_py="def replay():\n    return 2\n")
    toy.git("revert", "--no-edit", other)
    return toy.folder, first, other, toy.git("rev-parse", "HEAD")


def lines(folder: Path, text: str) -> list[int]:
    """The lines that are told."""
    return [issue.line for issue in judged("docs/work/wp.md", text, folder, lambda path: path.endswith(".py"), frozenset)]


TOGETHER = [
    ("The run covers A and B.", 1),
    ("# WP 2\nThe run covers A and B.", 2),
    ("WP 2\n====\nThe run covers A\nand B.", 4),
    ("The run covers these commits:\n\n- A\n- B\n", 4),
    ("The run covers these commits:\n* A\n\n  as it was\n* B\n", 5),
    ("Covered by the run are\n**the following**:\n\n1. A\n2. the sources of `B`\n", 5),
    ("These commits are covered by one run.\n\n- A\n- B\n", 4),
    ("## Covered by the run\n\n- A\n- B\n", 4),
    ("- Measured\n- The run covers:\n  - A\n  - B\n", 4),
    ("The run covers:\n\n```\nA\nB\n```\n", 5),
    ("The run covers:\n\nA, B\n", 3),
    ("The run took 3 s. It covers A and:\n\n- B\n", 3),
    ("| run | covered |\n| --- | --- |\n| 1 | A, B |\n", 3),
    ("| run | Covers commits |\n| --- | --- |\n| 1 | A |\n| 2 | A<br>B |\n", 4),
    ("run | covered\n--- | ---\n1 | A, B\n", 3),
    ("| commits | covered by the run |\n| --- | --- |\n| A, B | yes |\n", 3),
    ("## GPU run\n\n| commits | covered |\n| --- | --- |\n| A, B | yes |\n", 5),
    ("What is covered:\n\n| run | commits |\n| --- | --- |\n| 1 | A |\n| 2 | A, B |\n", 6),
    ("A and B are covered by one run.", 1),
    ("The evidence covers A\nand B.", 2),
    ("One gate run covers both A and\nB, not C.", 2),
    ("The record covers not only A but also\nB.", 2),
    ("Both runs cover A\nand B.", 2),
    ("The run of 3 May covered A\nand B.", 2),
    ("The run covers A\nand B without a rerun.", 2),
    ("The run covers A\nand B: their sources do not differ.", 2),
    ("The run covers A;\nB.", 2),
    ("All runs cover these:\n\n- A\n- B\n", 4),
    ("The session covers A and also covers\nB.", 2),
    ("The first run covers A\nand B; a second covers C.", 2),
    ("A is covered by the first run, A and\nB are covered by the second.", 2),
    ("A run covers:\n\n    A\n    B\n", 4),
    ("The session covered:\n\n- A\n- B (on a GPU)\n", 4),
    ("The run covers:\n\n| commit | what |\n| --- | --- |\n| A | first |\n| B | second |\n", 6),
]


@pytest.mark.parametrize("digits", [40, 9, 6])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize(("text", "line"), TOGETHER)
def test_what_one_run_covers_has_equal_sources(text: str, line: int, upper: bool, digits: int, commits: tuple[Path, str, str, str]) -> None:
    """In a sentence, in what it announces, in a column; of commits named in any way that git takes. The same sources are fine."""
    folder, *named = commits
    first, other, same = ((name.upper() if upper else name)[:digits] for name in named)
    assert lines(folder, _filled(text, first, other)) == [line]
    assert lines(folder, _filled(text, first, same)) == []


@pytest.mark.parametrize(
    "text",
    [
        "The run covers A.\n\n- B came later\n", "The run covers A. Later came B.", "The run covers the new kernel.\n\n- A\n- B\n",
        "| run | covered |\n| --- | --- |\n| 1 | A |\n| 2 | B |\n", "| at | covered |\n| --- | --- |\n| A | B |\n",
        "The runs cover:\n\n- 1: A\n- 2: B\n", "Each run covers a commit:\n\n- A\n- B\n", "| one | two |\n| --- | --- |\n| A | B |\n",
        "What is covered:\n\n| run | commit |\n| --- | --- |\n| 1 | A |\n| 2 | B |\n", "These differ:\n\n- A\n- B\n",
        "The run covers A.\n\n## Not yet\n\n- B\n",
        "## Coverage\n\n- A\n- B\n", "## What this page covers\n\n- A\n- B\n",
        "This work package covers the following commits:\n\n- A\n- B\n",
        "| dataset | covered |\n| --- | --- |\n| A | B |\n| A, B | yes |\n", "Tests cover both A and B.", "It covers A and B.",
        "This page covers the runs at A and B.", "Tests that run on a GPU cover A and B.", "A and B are covered by tests.",
        "Covered: A and B.",
        "The run covers A, not B.", "The run covers A but not B.", "The run does not cover A or B.", "A is covered by the run, B is not.",
        "No run covers A and B.", "The run covers A (not B).", "The run covers:\n\n- A\n- not B\n",
        "The run covers:\n\n- A\n- B (not yet)\n",
        "| run | covered |\n| --- | --- |\n| 1 | A, not B |\n", "| commits | covered by the run |\n| --- | --- |\n| A, B | no |\n",
        "The run does not cover:\n\n- A\n- B\n", "A run has to cover A and B.", "The next run will cover A and B.",
        "Does the run cover A and B?",
        "If a run covers A and B, they are the same.",
        "The first run covers A; a second covers B.", "The first run covers A, and the second covers B.",
        "One run covers A, another covers B.",
        "The first run covers A and the second B.", "A is covered by the first run and B is covered by the second.",
        "The run covers A; B came later.", "The run covers A; B does not differ.", "Run 1 covers A; run 2: B.",
        "The runs cover A and B, respectively.", "A and B are each covered by a run.", "The run covers A; the tests cover A and B.",
        "<!-- The run covers A and B. -->", "```\nThe run covers A and B.\n```\n", "Text\n\n    The run covers A and B.\n",
    ],
)  # fmt: skip
def test_commits_of_several_runs_are_not_held_against_each_other(text: str, commits: tuple[Path, str, str, str]) -> None:
    folder, first, other, _ = commits
    assert lines(folder, _filled(text, first[:9], other[:9])) == []


def test_words_numbers_and_branches_are_no_commits(commits: tuple[Path, str, str, str]) -> None:
    """Only what git knows as the beginning of a commit's name is one, if it is short."""
    folder, first, other, _ = commits
    git(folder, "tag", "-f", "beef", other)
    git(folder, "tag", "-f", "1000", other)
    assert lines(folder, f"The run covers {first}, 1000 steps of a facade, beef, bf16, a defaced 2026 and 12345678 more.") == []
    assert lines(folder, f"The run covers {first} and {first[:5]}0.") == []
    assert lines(folder, f"The run covers commits {first}, and since\n0123abcd.") == [2]


def test_a_commit_that_a_shallow_clone_lacks_is_not_judged(commits: tuple[Path, str, str, str], tmp_path: Path) -> None:
    folder, first, *_ = commits
    git(tmp_path, "clone", "-q", "--depth", "1", folder.as_uri(), "clone")
    (issue,) = judged("p.md", f"The run covers commit {first}.", tmp_path / "clone", lambda path: True, frozenset)
    assert (issue.weight.value, "git fetch --unshallow" in issue.message) == ("not-judged", True)


def _filled(text: str, first: str, second: str) -> str:
    """The page with commits for the letters that stand alone."""
    return "".join({"A": first, "B": second}.get(word, word) for word in re.split(r"\b", text))
