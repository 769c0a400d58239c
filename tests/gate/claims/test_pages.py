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


ACROSS = [
    ("## Covered by run 3\n\nIt covers A and:\n\n- B\n", 5),
    ("- The run took 3 s.\n- It covers A and\n  B.\n", 3), ("## Covered by run 3\n\nIt ran once.\n\n- A\n- B\n", 6),
    ("## Covered by run 3\n\nThese:\n\n| commit | what |\n|-|-|\n| A | one |\n| B | two |\n", 8),
    ("Run 3 covers A. It also covers\nB.", 2), ("Run 3 covers A; \nB is covered too.", 2), ("Run 3 covers A. Run 3 covers\nB.", 2),
    ("The run covers A. It took 3 s. It covers\nB as well.", 2), ("The run covers A. The run also covers\nB.", 2),
    ("A is covered by run 3. B is covered by\nrun 3.", 1), ("Run 3 covers A.\nAlso B.", 2), ("The run covers A.\nB too.", 2),
    ("Run 3 covers A. Run 4 covers C. Run 3 covers\nB.", 2), ("- Run 3 covers A\n- Run 3 covers B\n", 2),
    ("## Run 3\n\nIt covers A and\nB.", 4), ("## Run 3\n\nCovers A and\nB.", 4), ("The run took 3 s. Covered: A and\nB.", 2),
    ("## Covered by run 3\n\nA, B\n", 3), ("## Covered by run 3\n\nA\n\n`B`\n", 5), ("## Covered by run 3\n\nThese:\n\n- A\n- B\n", 6),
    ("Covered by run 3\n----------------\n\nThe commit A and\nB.\n", 5), ("## Covered by run 3\n\nA\n\n```\nB\n```\n", 6),
    ("| commit | covered by run |\n| - | - |\n| A | 3 |\n| B | 3 |\n", 4),
    ("| commit | covered by run |\n|-|-|\n| A | run 3 |\n| B | 2, 3 |\n", 4),
    ("commit | covered by\n-|-\nA | run 3\nC | run 4\nB | **run 3**\n", 5),
    ("| commit | covered by run 3 |\n|-|-|\n| A | yes |\n| B | yes |\n", 4),
    ("| run | covered |\n|-|-|\n| 3 | A |\n| 4 | C |\n| 3 | B |\n", 5),
    ("What is covered:\n\n| run | commit |\n|-|-|\n| 1 | A |\n| 1 | B |\n", 6),
    ("| commits | covered by |\n|-|-|\n| A | run 3 on a CPU |\n| B | run 3 on a CPU, run 4 |\n", 4),
    ("| covered commits | covered by run |\n|-|-|\n| A | 3 |\n| B | 3 |\n", 4), ("The CI job covers commits A and\nB.", 2),
    ("The verify job covers commits A and\nB.", 2), ("The verification covers the commits A and\nB.", 2),
    ("The check covers commits A and\nB.", 2), ("The commits A and\nB are covered by the CI job.", 2),
    ("CI covers commits:\n\n- A\n- B\n", 4), ("Run 3 covers A, made before C, and\nB.", 2), ("Run 3 covers A and B, made before C.", 1),
    ("Run 3 covers A; it covers\nB too.", 2), ("Run 3 covers A; so is\nB.", 2), ("Run 3 covers A. In addition it covers\nB.", 2),
    ("Run 3 covers A. The same run covers\nB.", 2), ("Run 3 covers A.\nB is also covered by it.", 2),
    ("## Covered by run 3\n\nCommits: A and\nB\n", 4), ("**Covered by run 3**\n\nA and\nB\n", 4), ("A is covered by run 3; so is\nB.", 2),
    ("| commit | run that covers it |\n|-|-|\n| A | 3 |\n| B | #3 |\n", 4), ("Run 3 covers A, measured after the rewrite, and\nB.", 2),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line"), ACROSS)
def test_what_is_said_of_one_run_in_several_places_has_equal_sources(text: str, line: int, commits: tuple[Path, str, str, str]) -> None:
    """In sentences of a paragraph, below a heading, in rows of a table; of the same sources it is fine."""
    folder, first, other, same = commits
    assert lines(folder, _filled(text, first[:9], other[:9])) == [line]
    assert lines(folder, _filled(text, first[:9], same[:9])) == []


@pytest.mark.parametrize(
    "text",
    [
        "## Covered by run 3\n\n- A\n\nLater commits:\n\n- B\n", "## Covered by run 3\n\n- A\n\nNot covered:\n\n- B\n",
        "## Covered by run 3\n\nNot covered:\n\n- A\n- B\n", "## Covered by run 3\n\nA\n\nThen came another.\n\nB\n",
        "Run 3 covers A, made before B.", "Run 3 (made before B) covers A.", "Run 3 covers A (made before B and later).",
        "The run covers A since B.", "The run covers A, unlike B.", "Run 3, after `B`, covers A.", "Since commit B the run covers A.",
        "The run covers A, which differs from B.", "The run covers A, newer than the sources of B.", "Run 3 covers A. Run 4 covers B.",
        "Run 3 covers A. It also covers C. Run 4 covers B.", "The run covers A. It took as long as B.",
        "One run covers A. One run covers B.", "Once a run covers A. Once a run covers B.", "The CPU run covers A. The GPU run covers B.",
        "A is covered by run 3. B is covered by run 4.", "- CPU: the run covers A\n- GPU: the run covers B\n",
        "The run covers A.\n\nThe run covers B.", "- The run covers A\n- The run covers B\n", "The run covers A. B is not covered.",
        "The run covers A. Not B.", "Run 3 covers A. B came later.", "## Covered by run 3\n\nA\n\n## Not yet\n\nB\n",
        "## Covered by run 3\n\nA, not B\n", "## Covered by run 3\n\nA\n\nLater came B.\n", "## Covered by each run\n\nA\n\nB\n",
        "## Run 3\n\nA, B\n", "## Run 3\n\nCovers A.\n\n## Run 4\n\nCovers B.\n",
        "| commit | covered by run |\n|-|-|\n| A | 3 |\n| B | 4 |\n", "| commit | covered by run |\n|-|-|\n| A | 3 |\n| B | no |\n",
        "| commit | covered by run |\n|-|-|\n| A | 3 |\n| B | |\n", "| commit | covered by a run |\n|-|-|\n| A | yes |\n| B | yes |\n",
        "| run | covered |\n|-|-|\n| 3 | A |\n| 4 | B |\n", "| commit | covered by run |\n|-|-|\n| A | 3 on a CPU |\n| B | 4 on a CPU |\n",
        "| commit | covered by run 3 |\n|-|-|\n| A | yes |\n| B | - |\n", "| commit | covered by |\n|-|-|\n| A | tests |\n| B | tests |\n",
        "Run 3 covers A, not B. Run 4 covers B.", "Run 3 covers A. After B it was made again.", "Run 3 covers A. Nothing covers B.",
        "A is covered by run 3 and B by run 4.", "Run 3 covers A, run 4 B.", "The first run covers A. The second covers B.",
        "| commit | covered by run |\n|-|-|\n| A | ? |\n| B | ? |\n", "The next job will cover commits A and B.",
        "The CI job covers A and B.", "The check covers A and B.", "Tests cover commits A and B.", "This page covers commits A and B.",
    ],
)  # fmt: skip
def test_what_is_said_of_several_runs_or_beside_them_is_free(text: str, commits: tuple[Path, str, str, str]) -> None:
    folder, first, other, _ = commits
    assert lines(folder, _filled(text, first[:9], other[:9])) == []


PLAIN = [
    ("Covered by this run: A, B.", 1), ("Commits covered by the run: A and\nB.", 2), ("The run covers all of these: A plus\nB.", 2),
    ("The run was done on an H200 at A. It also covers\nB.", 2), ("The commits covered by the H200 run are A and\nB.", 2),
    ("The run covers the commits A, B and C.", 1), ("The run covers commits A/B.", 1), ("The H200 run covers both commits, A and\nB.", 2),
    ("The run covers these commits: A and\nB.", 2), ("The run covers **A** and **B**.", 1), ("The run covers [A](x) and [B](y).", 1),
    ("Both A and B are covered by the run.", 1), ("Commits A and B are both covered by the H200 run of 28 November.", 1),
    ("- Run 3\n  - covers A\n  - covers B\n", 3), ("The run covers commit A and commit B.", 1), ("The run covers A & B.", 1),
    ("The run, made at A, also covers\nB.", 2), ("The run was made at A and covers\nB, too.", 2),
    ("The run covers A and the sources of\nB.", 2), ("The run covers A as well as B.", 1),
    ("The run covers A, which is the same as B.\nIt covers B.", 2), ("The benchmark covers A, B.", 1), ("**Covers:** A, B (H200 run)", 1),
    ("### H200 run\n\n- **Commits covered:** `A`, `B`\n", 3), ("### H200 run\n\n* Covered commits: `A` and `B`\n", 3),
    ("### H200 run\n\n| | |\n|-|-|\n| Covers | `A`, `B` |\n", 5), ("### Run of 2026-11-28\n\n- commits covered: A, B\n", 3),
    ("### H200 run\n\nCommits covered: A, B.\n", 3), ("| Run | H200, 2026-11-28 |\n|-|-|\n| Commits covered | A, B |\n", 3),
    ("| key | value |\n|-|-|\n| Run | H200 |\n| Commits covered | A, B |\n", 4),
    ("## H200 run\n\n| what | value |\n|-|-|\n| Hardware | H200 |\n| commits covered | A and B |\n", 6), ("Covers: A, B (H200 run)", 1),
    ("- covers: A, B (H200 run)\n", 1), ("### H200 run\n\n- covers: A, B\n", 3),
    ("| run | made at | covers |\n|-|-|-|\n| 1 | A | B |\n", 3), ("| run at | covers |\n|-|-|\n| A | B |\n", 3),
    ("The run was made at A. It covers B as well.", 1), ("The run was made at A. It took 3 s.\nThe run covers B too.", 2),
    ("The H200 run was recorded at commit `A`, and it covers\nB.", 2), ("The run at A covers\nB too.", 2),
    ("The run covers A (on a GPU), [B](https://x.org/commit/0123abcd).", 1),
    ("The run covers commits A as well as\nthe commit B, with goldens of C.", 2),
    ("| commit | covered by |\n|-|-|\n| A | the H200 run |\n| B | the H200 run |\n", 4), ("- Run: H200\n- Commits covered: A, B\n", 2),
    ("The evidence covers A; it also covers\nB.", 2),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line"), PLAIN)
def test_a_plain_enumeration_beside_the_verb_is_what_is_covered(text: str, line: int, commits: tuple[Path, str, str, str]) -> None:
    """So is that of a key, and the commit that the run was made at; of the same sources it is fine."""
    folder, first, other, same = commits
    assert lines(folder, _filled(text, first[:9], other[:9])) == [line]
    assert lines(folder, _filled(text, first[:9], same[:9])) == []


@pytest.mark.parametrize(
    "text",
    [
        "A is covered by the run: B came later.", "A is covered by the run: B.", "Covered by tests: A, B.", "Covered by no run: A, B.",
        "The run took 3 s. Goldens, which cover A and B, were recorded.", "## Run 3\n\nTests that cover A and B.\n",
        "The run took 3 s. This patch covers A and B.", "The run took 3 s. These notes cover A and B.",
        "## H200 run\n\nGoldens took long. They cover A and B.\n", "## H200 run\n\nThis commit adds clamp. It covers A and B.\n",
        "## H200 run\n\n| file | coverage | commit |\n|-|-|-|\n| a | 90 | A |\n| b | 80 | B |\n",
        "## Runs\n\n| commit | lines covered |\n|-|-|\n| A | 90 |\n| B | 80 |\n",
        "The run covers goldens, tests and mutants; it was made at A, the one before at B.",
        "The record covers A. Its parent B was covered by another.", "The H200 run covers `A` only; `B` was measured on a CPU.",
        "Run 1 covers A; run 2 covers B.", "The run at A covers tests; the run at B covers goldens.",
        "The run at A covers tests, the run at B goldens.", "The run made at A covers what B changed.",
        "The runs at A and B cover all tests.", "The runs at A and B cover A and B.",
        "The run covers A, and B will be covered by the next one.", "A run at A covers it; B needs another.",
        "| run | commit | covers |\n|-|-|-|\n| cpu | A | tests |\n| cpu | B | tests |\n",
        "| date | covered by run of |\n|-|-|\n| A | 2026-11-28 |\n| B | 2026-11-28 |\n", "The run covers A, B not yet.",
        "The run covers A, but not yet B.", "The run covers neither A nor B.", "The run covers A rather than B.",
        "The run covers A (B: not yet).", "The run covers A; for B see run 4.", "The run covers A. B: run 4.",
        "The run covers A and, from B on, nothing.",
        "| date | commit | run covers |\n|-|-|-|\n| 2026-11-28 | A | tests, goldens |\n| 2026-11-30 | B | tests, goldens, mutants |\n",
        "| commit | run covers |\n|-|-|\n| A | CUDA tests |\n| B | CUDA tests |\n",
        "| commit | hardware | covered by the run |\n|-|-|-|\n| A | H200 | tests and goldens |\n| B | CPU | goldens |\n",
        "| run at | covers |\n|-|-|\n| A | tests, goldens |\n| B | tests, goldens |\n",
        "| record | commit | covers |\n|-|-|-|\n| 1 | A | cpu |\n| 2 | B | cpu |\n",
        "## Runs\n\n| run at | hardware | covered |\n|-|-|-|\n| A | CPU | all |\n| B | H200 | all |\n",
        "| benchmark | commit | covers batches |\n|-|-|-|\n| 1 | A | 4, 32 |\n| 2 | B | 4, 32 |\n",
        "The mutation run covers what changed from A to B.",
        "Tests were run at A and the benchmark at B; the benchmark covers batches of 4 and 32.", "The CPU run covers B and the H200 run A.",
        "The run covers B, with goldens recorded at A.", "Run 3 covers B (parent A).",
        "The run covers B (the previous one, at A, is stale since clamp).", "The benchmark run covers B against A in ten pairs.",
        "The evidence covers three machines: an H200 (A), an A100 (B) and a CPU (A).",
        "The run covers commit B with data set revision 9f8e7d6.", "The evidence covers three machines:\n\n- an H200 (A)\n- a CPU (B)\n",
        "### Settings\n\n- commits covered: A, B\n", "Commits covered: A, B.", "| what | value |\n|-|-|\n| Commits covered | A, B |\n",
        "| key | value |\n|-|-|\n| Run | H200 |\n| Commits covered | A, not B |\n", "The run was made at A. Run 4 covers B.",
        "The goldens were made at A. The run covers B.", "The run was made at A. The tests cover B.",
        "The run was made at A. It covers tests.", "The run covers A, B is covered by run 2.",
        "The run was made at A. It does not cover B.",
        "Run 3 was made at A. The GPU run covers B.", "Tests were run at A. The run covers B.",
        "| commit | covered by |\n|-|-|\n| A | the H200 run |\n| B | the CPU run |\n", "The run covers A at batch sizes below those of B.",
        "The run covers A, whose parent is B.", "The run covers:\n\n- `A`, the parent of B\n",
    ],
)  # fmt: skip
def test_what_stands_beyond_the_enumeration_is_free(text: str, commits: tuple[Path, str, str, str]) -> None:
    folder, first, other, _ = commits
    assert lines(folder, _filled(text, first[:9], other[:9])) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Run 3 covers X.", 1), ("Run 3 covers `X`.", 1), ("Run 3 covers A and X.", 1), ("Run 3 covers:\n\n- X\n", 1),
        ("The run covers Y.", 1), ("Run 3 covers the commit X.", 1), ("Run 3 covers the data X.", 0),
        ("Run 3 covers A, made before X.", 0), ("Run 3 covers D.", 0), ("Nothing is said of X.", 0),
    ],
)  # fmt: skip
def test_a_digest_that_nothing_has_is_named_where_it_alone_is_covered(text: str, count: int, commits: tuple[Path, str, str, str]) -> None:
    folder, first, *_ = commits
    names = {"A": first, "X": "0" * 63 + "1", "Y": "0" * 31 + "1", "D": "d" * 63 + "1"}
    page = "".join(names.get(word, word) for word in re.split(r"\b", text))
    found = [issue.text for issue in judged("p.md", page, folder, lambda path: True, lambda: frozenset([names["D"]]))]
    assert [("nothing here has as its digest" in told) for told in found] == [True] * count


def test_words_numbers_and_branches_are_no_commits(commits: tuple[Path, str, str, str]) -> None:
    """Only what git knows as the beginning of a commit's name is one, if it is short."""
    folder, first, other, _ = commits
    git(folder, "tag", "-f", "beef", other)
    git(folder, "tag", "-f", "1000", other)
    assert lines(folder, f"The run covers {first}, 1000 steps of a facade, beef, bf16, a defaced 2026 and 12345678 more.") == []
    assert lines(folder, f"The run covers {first} and {first[:5]}0.") == []
    assert lines(folder, f"The run covers commits {first}, and\n0123abcd.") == [2]


def test_a_commit_that_a_shallow_clone_lacks_is_not_judged(commits: tuple[Path, str, str, str], tmp_path: Path) -> None:
    folder, first, *_ = commits
    git(tmp_path, "clone", "-q", "--depth", "1", folder.as_uri(), "clone")
    (issue,) = judged("p.md", f"The run covers commit {first}.", tmp_path / "clone", lambda path: True, frozenset)
    assert (issue.weight.value, "git fetch --unshallow" in issue.message) == ("not-judged", True)


def test_a_commit_is_not_judged_where_no_repository_can_tell(commits: tuple[Path, str, str, str], tmp_path: Path) -> None:
    folder, first, *_ = commits
    page = f"The run covers commit {first}."
    (issue,) = judged("p.md", page, tmp_path, lambda path: True, frozenset)
    assert (issue.weight.value, "no git repository" in issue.message) == ("not-judged", True)
    (issue,) = judged("p.md", page.replace(first, "0123abcd"), folder, lambda path: True, frozenset)
    assert issue.weight.value == "claim"


def _filled(text: str, first: str, second: str) -> str:
    """The page with commits for the letters that stand alone."""
    return "".join({"A": first, "B": second}.get(word, word) for word in re.split(r"\b", text))
