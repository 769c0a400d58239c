"""A figure in a document is what the evidence says, or is named with its place."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from gate.claims.figures import figures, judged, refreshed, unmarked
from gate.claims.issue import Weight
from gate.claims.promises import of_document
from gate.claims.witnesses import Witnesses
from gate.evidence import Finding, Reading
from gate.evidence.archive import load
from gate.evidence.status import View
from tests.gate.claims.code_samples import READ, UNREAD
from tests.gate.evidence.records import TORCH, Toy

MARKED = "# Toy\n\n<!-- gate: cpu/tests.passed -->{}<!-- /gate --> tests pass.\n"


@pytest.fixture(scope="module")
def witnesses(tmp_path_factory: pytest.TempPathFactory) -> Witnesses:
    toy = Toy.new(tmp_path_factory.mktemp("figures") / "toy")
    toy.tests(counts={"passed": 1169, "failed": 0, "skipped": 4})
    toy.verified("digits")
    toy.verified("text")
    view = View.of(toy.config)
    assert len(load(toy.config).records) == 3
    return Witnesses(view.archive.records, view.here)


def told(text: str, witnesses: Witnesses) -> list[tuple[str, int, str]]:
    return [(issue.weight.value, issue.line, issue.message) for issue in judged("README.md", text, witnesses)]


@pytest.mark.parametrize("figure", ["1169", "1,169", " 1169 "])
def test_a_true_figure_is_fine(figure: str, witnesses: Witnesses) -> None:
    assert told(MARKED.format(figure), witnesses) == []


def test_an_edited_figure_is_a_claim(witnesses: Witnesses) -> None:
    """With its line, and both numbers."""
    ((weight, line, message),) = told(MARKED.format("1170"), witnesses)
    assert (weight, line) == ("claim", 3)
    assert message.startswith("cpu/tests.passed is 1169 in the evidence, and 1170 here")


@pytest.mark.parametrize(
    ("name", "weight", "message"),
    [
        ("h200/tests.passed", "inconclusive", "no fresh evidence of tests on h200. Run gate check --all on a machine with h200"),
        ("cpu/tests.pased", "claim", "did you mean 'passed'?"),
        ("cpu.tests.passed", "claim", "names no figure"),
        ("cpu/torch-2.9.1/goldens.identical", "inconclusive", "Run gate verify --torch 2.9.1"),
        ("cpu/testes.passed", "claim", "names no check, did you mean 'tests'?"),
    ],
)
def test_what_names_no_evidence_is_told(name: str, weight: str, message: str, witnesses: Witnesses) -> None:
    ((found, _, text),) = told(f"<!-- gate: {name} -->1<!-- /gate -->", witnesses)
    assert (found, message in text) == (weight, True)


def test_goldens_are_summed_over_scenarios(witnesses: Witnesses) -> None:
    text = "<!-- gate: cpu/torch-2.13.0/goldens.identical -->2<!-- /gate --> of <!-- gate: cpu/goldens.identical -->2<!-- /gate -->"
    assert told(text, witnesses) == []
    assert len(told(text.replace("-->2<", "-->3<"), witnesses)) == 2


@pytest.mark.parametrize(
    "text", ["<!-- gate: cpu/tests.passed -->1169", "1169<!-- /gate -->", "<!-- gate: cpu/tests.passed -->**1169**<b><!-- /gate -->"]
)
def test_half_a_marker_is_told(text: str, witnesses: Witnesses) -> None:
    """Nobody would hold the number after it to anything."""
    assert all("no other half" in message for _, _, message in told(text, witnesses))
    assert told(text, witnesses)


@pytest.mark.parametrize(
    "text",
    [
        "<!-- Gate: cpu/tests.passed -->77<!-- /Gate -->", "<!--GATE: cpu/tests.passed-->77<!--/GATE-->",
        "<!-- gate cpu/tests.passed -->77",
        "<!-- gate = cpu/tests.passed -->77", "<!-- gat: cpu/tests.passed -->77<!-- /gat -->", "<!-- cpu/tests.passed -->77",
        "<!-- gates: cpu/tests.passed -->77", "<!-- gate :cpu/tests.passed -->77", "77<!-- end gate -->",
        "77<!-- \\gate -->", "77<!-- / gate -->", "<!-- /gate cpu/tests.passed -->", "<!-- gates: cpu/tests.passed -->77<!-- /gates -->",
    ],
)  # fmt: skip
def test_what_was_meant_to_be_a_marker_is_told(text: str, witnesses: Witnesses) -> None:
    """Nobody would hold the number to anything."""
    found = told(f"# Toy\n\n{text}\n", witnesses)
    assert {(weight, line) for weight, line, _ in found} == {("claim", 3)}
    assert all("Write <!-- gate: NAME -->" in message for _, _, message in found)


@pytest.mark.parametrize(
    "text",
    [
        "<!-- a comment -->",
        "<!-- gate keeping is hard -->",
        "<!-- see docs/tests.md -->",
        "<!-- 12 -->",
        "<!-- /gates open -->",
        "<!-- gates -->",
        "<!-- gates: open -->",
        "<!-- /gate-keeper -->",
    ],
)
def test_other_comments_are_no_markers(text: str, witnesses: Witnesses) -> None:
    assert told(text, witnesses) == []


LOST = "2 tests.\n\nAn important paragraph.\n\n## Another\n\nMore"


@pytest.mark.parametrize(
    "between", [LOST, "about 7 tests, see issue", "3,", ",3", "1,16", "11,69", "1 169", "-3", "1169\n", "\n1169", "3 of 4", "N", "x" * 200]
)
def test_what_is_not_one_figure_is_told_and_stays(between: str, witnesses: Witnesses) -> None:
    """A close that was forgotten reaches to one that was left over: nothing that people wrote may go, nor count as a figure."""
    text = MARKED.format(between)
    ((weight, line, message),) = told(text, witnesses)
    assert (weight, line) == ("claim", 3)
    assert "which is not one figure on one line. Put one between them, or close the marker after its figure" in message
    assert ("\n" in message, len(message) < 260) == (False, True)
    assert [figure.whole for figure in figures(text)] == [False]


@pytest.mark.parametrize(("between", "new"), [("", "1169"), (" 7 ", " 1169 "), ("7,000", "1,169"), ("0", "1169")])
def test_one_figure_is_refreshed_and_blanks_around_it_stay(between: str, new: str, witnesses: Witnesses) -> None:
    """Nothing yet is one, too."""
    assert refreshed(MARKED.format(between), witnesses) == MARKED.format(new)
    assert "Refresh it: gate status --write" in told(MARKED.format(between), witnesses)[0][2]


def test_code_shows_markers_and_claims_nothing(witnesses: Witnesses) -> None:
    text = "`<!-- gate: cpu/tests.passed -->7<!-- /gate -->`\n\n```\n<!-- gate: cpu/tests.passed -->7<!-- /gate -->\n12 tests\n```\n"
    assert told(text, witnesses) == []
    assert list(unmarked("README.md", text)) == []


def test_figures_are_refreshed_where_they_stand(witnesses: Witnesses) -> None:
    """Thousands stay grouped; what the evidence says nothing of stays."""
    text = MARKED.format("7") + MARKED.format("7,000") + "<!-- gate: h200/tests.passed -->5<!-- /gate -->\n"
    new = refreshed(text, witnesses)
    assert [figure.text for figure in figures(new)] == ["1169", "1,169", "5"]
    assert refreshed(new, witnesses) == new
    assert new.replace("1169", "7").replace("1,169", "7,000") == text


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("There are\n169 focused checks.", "169 focused checks"),
        ("12 goldens", "12 goldens"),
        ("1,204 tests", "1,204 tests"),
        ("killed 83 planted mutants", "83 planted mutants"),
        ("20 CPU goldens", "20 CPU goldens"),
        ("**169** focused checks", "169 focused checks"),
        ("*169* tests", "169 tests"),
        ("__169 of 170__ tests", "169 of 170 tests"),
        ("<b>169</b> tests", "169 tests"),
        ("`169` tests", "169 tests"),
        ("169/169 tests", "169/169 tests"),
        ("169 / 170 tests", "169 / 170 tests"),
        ("169 of 170 tests", "169 of 170 tests"),
        ("12 unit and 40 integration tests", "12 unit and 40 integration tests"),
        ("169 of the tests", "169 of the tests"),
        ("169 passed", "169 passed"),
        ("169 passed, 3 skipped in 5 s", "169 passed, 3 skipped"),
        ("83 killed", "83 killed"),
        ("Checks: 169", "Checks: 169"),
        ("**Tests passed:** 1,169", "Tests passed: 1,169"),
        ("tests = 169/170", "tests = 169/170"),
        ("| tests | 169 |", "tests | 169"),
        ("| passed | **169** |", "passed | 169"),
        ("89 of 106 test files", "89 of 106 test files"),
        ("_12_ goldens", "12 goldens"),
        ("12 _goldens_", "12 goldens"),
        ("<code>12</code> goldens", "12 goldens"),
        ("[12](page.md) goldens", "12 goldens"),
        ("169 tests that hold", "169 tests"),
        ("169 tests for the kernel", "169 tests"),
        ("in 169 tests", "169 tests"),
        ("In this step 12 tests fail", "12 tests"),
        ("run 12 tests", "12 tests"),
        ("At step 500, 12 tests fail", "12 tests"),
        ("In 2026, 12 tests fail", "12 tests"),
        ("12&nbsp;tests", "12 tests"),
        ("169 failed on Windows", "169 failed"),
        ("skipped: 2", "skipped: 2"),
        ("Tests: 169 in all", "Tests: 169"),
    ],
)
def test_a_number_that_looks_like_a_count_is_warned_of(text: str, quoted: str) -> None:
    (issue,) = unmarked("docs/page.md", f"# Page\n\n{text}\n")
    assert issue.weight is Weight.WARNING
    assert f'"{quoted}"' in issue.message
    assert issue.line == 3 + text.count("\n", 0, text.index(next(filter(str.isdigit, quoted))))


def test_a_column_of_counts_is_warned_of_once() -> None:
    table = "| file | focused tests | seconds |\n| --- | ---: | --- |\n| a | 3 | 7 |\n| b | **4** | 7 |\n| c | 5/6 | 7 |\n"
    table += "\n| a | b |\n| - | - |\n| 1 | 2 |\n"
    (issue,) = unmarked("docs/page.md", table)
    assert (issue.line, '"focused tests | 3 and 2 more below it"' in issue.message) == (3, True)


@pytest.mark.parametrize(
    "text",
    [
        "torch 2.13.0 goldens", "3 to 5 seconds", "WP-3 tests", "1.5 tests", "12 of them", "v2 tests/test_x.py", MARKED.format(9),
        "12 " + MARKED.format(9).strip(), "20 minutes for the tests", "71 by tests", "tests: 2 workers", "tests: 128 s",
        "checks: 2026-11-30",
        "tests: 3.5", "goldens: 2.13.0", "mutants: 1.1 a second", "| tests | 128 s |", "| tests of a file | 128 |", "3 failed attempts",
        "At step 500 tests whether it moves.", "At step **500** tests", "Steps 3 and 4 tests", "On March 3, 2026 tests moved.",
        "In 2026 tests moved to a folder.",
        "since\n2025 tests pass",
        "On 3 March 2026 tests moved.", "In May 2026 tests moved.", "3 failed to decode", "3 passed to the next", "skipped: 2 epochs",
        "failed: 7 images",
        "Section 4 tests the limits.", "4 tests the goldens", "rule 4 checks whether", "Fig. 3 tests", "#12 tests", "Python 3 tests",
        "test 3 failed",
        "Step 500 failed", "file_12_ tests", "_a_12_ tests",
        "| tests | what |\n| --- | --- |\n| all | 3 |", "<!-- gate: cpu/tests.passed -->9<!-- /gate --> of all tests",
    ],
)  # fmt: skip
def test_other_numbers_are_not(text: str) -> None:
    assert list(unmarked("docs/page.md", text)) == []


@pytest.mark.parametrize(("page", "read"), [*((page, 0) for page in UNREAD), *((page, 1) for page in READ)])
def test_code_and_comments_count_nothing(page: str, read: int) -> None:
    """What merely is indented does."""
    assert len(list(unmarked("docs/page.md", page.format("12 tests.")))) == read


def test_long_documents_are_read_in_time_that_grows_with_them(witnesses: Witnesses) -> None:
    """Ten times the lines take ten times as long, not a hundred times."""

    def seconds(lines: int) -> float:
        text = "The suite has 12 tests, and never fails [held by tests/x.py::a].\n\n" * lines
        text += "<!-- open\n" * lines
        figures = "<!-- gate: cpu/tests.passed -->7<!-- /gate -->\n" * lines
        begin = time.process_time()
        found = [*unmarked("a.txt", text), *of_document("a.txt", text), *judged("a.txt", figures, witnesses)]
        assert len(found) == 3 * lines
        refreshed(figures, witnesses)
        return time.process_time() - begin

    assert seconds(4000) < 30 * seconds(400)


def test_a_figure_of_mutants_is_that_of_most(tmp_path: Path) -> None:
    """Asking about one file more takes nothing from the record of all."""
    toy = Toy.new(tmp_path / "toy")
    toy.mutation(counts={"total": 9, "killed": 7})
    details: dict[str, Any] = {"killed": {}, "paths": ["src/replay.py"]}
    toy.leave(Finding("mutation", "cpu", TORCH, "passed", {"total": 2, "killed": 2}, details=details), Reading(("src/replay.py",)))
    view = View.of(toy.config)
    assert told("<!-- gate: cpu/mutation.killed -->7<!-- /gate -->", Witnesses(view.archive.records, view.here)) == []
