"""Every claim of a project is found, and what is wrong is named with its file and line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gate.claims.issue import Weight
from gate.claims.review import Claims, refresh, review
from gate.config import find
from gate.errors import ConfigurationError, UsageError
from gate.evidence import Finding, Reading
from gate.evidence.archive import Archive
from gate.evidence.status import View
from tests.gate.evidence.records import CONFIG, TORCH, Toy
from tests.gate.projects import Project
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
    assert refresh(View.of(toy.config)) == ["refreshed README.md"]
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
    (text,) = texts(toy)
    assert text.startswith("README.md:3: claim: is held by tests/test_replay.py::test_gone, which does not exist")


def test_a_promise_whose_test_kills_nothing_is_named(toy: Toy) -> None:
    details = {"killed": {"src/update.py::update": ["tests/other.py::test"]}, "asked": ["tests/test_replay.py::test_it"]}
    toy.mutation(details=details)
    (text,) = texts(toy)
    assert text.startswith(
        "src/update.py:2: claim: is held by tests/test_replay.py::test_it, which kills no mutant of src/update.py::update"
    )
    assert look(toy).exit_code == 1


def test_a_figure_of_a_gpu_whose_evidence_is_gone_is_not_judged_unless_allowed(toy: Toy) -> None:
    write(toy.folder, {"README.md": "<!-- gate: l4/tests.passed -->1<!-- /gate -->\n"})
    assert look(toy).exit_code == 3
    assert review(View.of(toy.config), allowed=("l4",)).exit_code == 0


@pytest.mark.parametrize(
    ("line", "told"),
    [('promises = ["src"]', "did you mean 'promise'?"), ('promise = "src"', "list of folders"), ('promise = ["lib"]', "no such folder")],
)
def test_a_wrong_table_is_told(toy: Toy, line: str, told: str) -> None:
    write(toy.folder, {"pyproject.toml": SCOPED.replace('promise = ["src"]', line)})
    with pytest.raises(ConfigurationError) as caught:
        look(toy)
    assert told in str(caught.value)


def test_a_document_s_promise_is_judged_by_what_its_test_was_asked(toy: Toy) -> None:
    """An edit of a document stales nothing: a test that was asked about no mutant is not taken for one that kills, until it was asked."""
    toy.commit(
        "Test",
        tests__test_new_py="def test_nothing():\n    pass\n",
        README_md="# Toy\nIt never fails\n[held by tests/test_new.py::test_nothing].\n",
    )
    passed = {"tests/test_replay.py": ["test_it"], "tests/test_new.py": ["test_nothing"]}
    toy.tests(details={"passed": passed})
    (text,) = texts(toy)
    told = (
        "README.md:2: not-judged: is held by tests/test_new.py::test_nothing: it was asked about no mutant of anything. Ask it: gate mutate"
    )
    assert text.startswith(told)
    assert look(toy).exit_code == 3
    killed = {"src/update.py::update": ["tests/test_replay.py::test_it"]}
    toy.mutation(details={"killed": killed, "asked": ["tests/test_new.py::test_nothing"], "paths": []})
    assert texts(toy)[0].startswith("README.md:2: claim: is held by tests/test_new.py::test_nothing, which kills no mutant of anything")
    assert look(toy).exit_code == 1
    details: dict[str, Any] = {"killed": {"src/replay.py::replay": ["tests/test_new.py::test_nothing"]}, "paths": ["src/replay.py"]}
    toy.leave(Finding("mutation", "cpu", TORCH, "passed", {"killed": 1}, details=details), Reading(("src/replay.py",)))
    assert (texts(toy), look(toy).exit_code) == ([], 0)


HELD = " [held by tests/test_replay.py::test_it]"


def since(toy: Toy, base: str, *allowed: str) -> tuple[list[Weight], int]:
    found = review(View.of(toy.config), frozenset([base]), allowed)
    return [issue.weight for issue in found.issues], found.exit_code


def test_a_promise_that_a_change_leaves_alone_is_not_judged_by_what_the_change_was_asked(toy: Toy) -> None:
    """Of the tests that a change touches, and the mutants in its lines, most promises hear nothing."""
    base = toy.git("rev-parse", "HEAD")
    toy.commit("Change", src__update_py=UPDATE.format(HELD) + "\nx = 1\n", src__replay_py="y = 1\n")
    told = ([Weight.INCONCLUSIVE], 0)
    toy.tests(since=base, details={"passed": {}}, counts={"total": 1, "passed": 1})
    assert since(toy, base) == told
    toy.tests(details={"passed": {}})
    assert since(toy, base) == told  # h200's may show it
    toy.tests()
    toy.mutation(since=base, details={"killed": {"src/update.py::update": []}, "asked": ["tests/test_replay.py::test_it"]})
    assert since(toy, base) == told
    toy.tests(details={"passed": {}})
    toy.tests("h200", details={"passed": {}, "cuda": {"passed": 1}})
    assert since(toy, base) == ([Weight.CLAIM], 1)


@pytest.mark.parametrize(
    ("files", "touched"),
    [
        ({"README_md": "# Toys\n\nIt never\nfails [held by tests/test_replay.py::test_it].\n\nMore.\n"}, False),
        ({"README_md": "# Toy\n\nIt never\nfalls [held by tests/test_replay.py::test_it].\n\nMore.\n"}, True),
        ({"README_md": "# Toy\n\nIt surely never\nfails [held by tests/test_replay.py::test_it].\n\nMore.\n"}, True),
        ({"src__update_py": UPDATE.format(HELD) + "\n\ndef more():\n    return 2\n"}, False),
        ({"src__update_py": UPDATE.format(HELD).replace("    return", "    # down\n\n    return")}, False),
        ({"src__update_py": UPDATE.format(HELD).replace("return w - 1", "# return w - 1")}, True),
        ({"src__update_py": "import abc\n\n\n" + UPDATE.format(HELD)}, False),
        ({"src__update_py": UPDATE.format(HELD).replace("w - 1", "w - 2")}, True),
        ({"src__update_py": UPDATE.format(HELD).replace("the same", "a like one")}, True),
        ({"src__update_py": "import abc\n\n\n@abc.x\n" + UPDATE.format(HELD)}, True),
        ({"tests__test_replay_py": "def test_it():\n    pass\n\n\ndef test_more():\n    pass\n"}, False),
        ({"tests__test_replay_py": "def test_it():\n    assert True\n"}, True),
    ],
)
def test_a_promise_that_a_change_touches_has_to_be_judged(toy: Toy, files: dict[str, Any], touched: bool) -> None:
    """Its sentence, the function that promises, or the test that is to hold it."""
    base = toy.commit("Say", README_md="# Toy\n\nIt never\nfails [held by tests/test_replay.py::test_it].\n\nMore.\n")
    toy.commit("Change", **files, src__replay_py="y = 1\n", tests__test_new_py="def test_new():\n    pass\n")
    weights, code = since(toy, base)
    assert (Weight.UNJUDGED in weights, code) == (touched, 3 if touched else 0)
    assert len(weights) == 2
    assert since(toy, base, "cpu", "h200")[1] == 0
    assert since(toy, base, "h200")[1] == code


def test_a_figure_that_a_change_leaves_alone_needs_no_evidence_of_everything(toy: Toy) -> None:
    """One that it touches does."""
    base = toy.commit("Count", README_md="# Toy\n<!-- gate: cpu/tests.passed -->169<!-- /gate --> tests\n\nMore.\n")
    toy.commit("Change", src__replay_py="y = 1\n", README_md="# Toy\n<!-- gate: cpu/tests.passed -->169<!-- /gate --> tests\n\nLess.\n")
    found = review(View.of(toy.config), frozenset([base]))
    assert found.exit_code == 0
    assert "README.md:2: inconclusive: cpu/tests.passed cannot be told" in found.issues[0].text
    toy.commit("Count", README_md="# Toy\n<!-- gate: cpu/tests.passed -->170<!-- /gate --> tests\n\nMore.\n")
    found = review(View.of(toy.config), frozenset([base]))
    assert found.exit_code == 3
    assert found.issues[0].text.endswith("there is no fresh evidence of tests on cpu. Run gate check --all")


@pytest.mark.parametrize("required", ['goldens = ["cpu"]', 'tests = ["cpu"]', 'tests = ["cpu"]\nmutation = ["cpu"]'])
def test_a_promise_that_nothing_holds_is_never_passed_over(toy: Toy, required: str) -> None:
    """Whatever a merge needs, and the evidence that is there."""
    before, _, after = SCOPED.partition('tests = ["cpu", "h200"]\ngoldens = ["cpu"]\nmutation = ["cpu"]')
    toy.commit("Need less", pyproject_toml=before + required + after)
    assert look(toy).exit_code == 0
    toy.commit(
        "Test", tests__test_new_py="def test_nothing():\n    pass\n",
        README_md="# Toy\nIt never fails\n[held by tests/test_new.py::test_nothing].\n",
    )  # fmt: skip
    assert look(toy).exit_code == 3
    told = [issue.text for issue in look(toy).issues]
    assert all("Run gate check --all" in text for text in told)
    assert all(("put tests into [tool.gate.required]" in text) == ("tests" not in required) for text in told)
    toy.tests(details={"passed": {"tests/test_replay.py": ["test_it"], "tests/test_new.py": ["test_nothing"]}})
    assert look(toy).exit_code == 3


def test_a_promise_of_a_gpu_s_test_may_lack_the_gpu_s_evidence(toy: Toy) -> None:
    """Where that is allowed to be stale, and the CPU's is all there."""
    toy.commit("Change", src__replay_py="y = 1\n")
    toy.tests(details={"passed": {}})
    assert [issue.hardware for issue in look(toy).issues] == [("h200",)]
    assert look(toy).exit_code == 3
    assert review(View.of(toy.config), allowed=("h200",)).exit_code == 0
    toy.commit("Change", src__replay_py="y = 2\n")
    assert review(View.of(toy.config), allowed=("h200",)).exit_code == 3


def test_a_promise_of_a_setter_is_named_with_what_to_do(toy: Toy) -> None:
    source = (
        'class A:\n    @property\n    def v(self):\n        """One."""\n        return 1\n\n'
        f'    @v.setter\n    def v(self, value):\n        """Never odd{HELD}."""\n        self.w = value\n'
    )
    toy.commit("Set", src__lib_py=source)
    (text,) = [text for text in texts(toy) if "lib" in text]
    assert text.startswith("src/lib.py:9: claim: promises under a name that stands above too, A.v")
    assert "Promise it in the docstring of the first" in text


def test_refreshing_leaves_a_document_whose_markers_hold_more_than_a_figure(toy: Toy) -> None:
    """A close was forgotten, and a later one left over: the paragraphs between them stay, and the line is named."""
    text = "Now\n<!-- gate: cpu/tests.passed -->2 tests.\n\nA paragraph.\n\nMore<!-- /gate --> here.\n"
    toy.commit("Count", README_md=text, docs__page_md="<!-- gate: cpu/tests.passed -->2<!-- /gate -->\n")
    (toy.folder / "docs/page.md").chmod(0o755)
    first, second = refresh(View.of(toy.config))
    assert first.startswith("README.md:2: its figures stay as they are: between the markers of cpu/tests.passed stands")
    assert (second, (toy.folder / "README.md").read_text()) == ("refreshed docs/page.md", text)
    assert (toy.folder / "docs/page.md").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("tag", ["[held by tests/test_gone.py::test_x]", "[Held by tests/test_replay.py::test_it]"])
def test_a_tag_is_looked_at_wherever_it_stands(toy: Toy, tag: str) -> None:
    """The folders only say where one is compulsory."""
    toy.commit("Tool", tools__lib_py=f'def double(x):\n    """Twice.\n\n    Never wrong. {tag}\n    """\n    return x + x\n')
    (text,) = texts(toy)
    assert text.startswith("tools/lib.py:4: claim: ")
    assert look(toy).exit_code == 1
    toy.commit("Say no more", tools__lib_py='def double(x):\n    """Twice. Never wrong."""\n    return x + x\n')
    assert texts(toy) == []


def test_a_source_that_does_not_parse_is_told(toy: Toy) -> None:
    """It stops everything in the folders where promises need a test, else it is warned of where it seems to name one."""
    broken = 'def double(x):\n    """Twice [held by tests/test_gone.py::test_x]."""\n    return (\n'
    toy.commit("Tool", tools__lib_py=broken, tools__other_py="return (\n")
    (text,) = texts(toy)
    assert text.startswith("tools/lib.py:3: warning: does not parse")
    toy.commit("Source", src__lib_py=broken)
    with pytest.raises(UsageError, match=r"src/lib\.py:3: does not parse"):
        look(toy)


@pytest.mark.parametrize("name", ["README.txt", "docs/page.markdown", "docs/PAGE.MD", "docs/page.rst", "notes.txt"])
def test_documents_of_any_suffix_are_read(toy: Toy, name: str) -> None:
    write(
        toy.folder,
        {name: "# Toy\n<!-- gate: cpu/tests.passed -->170<!-- /gate --> tests\n\n168 tests\n", "requirements/dev.txt": "# 12 tests\n"},
    )
    wrong, warned = texts(toy)
    assert wrong.startswith(f"{name}:2: claim: cpu/tests.passed is 169")
    assert warned.startswith(f'{name}:4: warning: "168 tests"')
    assert refresh(View.of(toy.config)) == [f"refreshed {name}"]


def test_figures_outside_the_project_are_left_and_named(toy: Toy, tmp_path: Path) -> None:
    """A link that leads out, to a file or through a folder, is not written through; one within the project is."""
    outside = tmp_path / "outside.md"
    text = "<!-- gate: cpu/tests.passed -->1<!-- /gate -->\n"
    outside.write_text(text)
    write(toy.folder, {"docs/in.md": text, ".git/aside": text})
    (toy.folder / "docs/out.md").symlink_to(outside)
    (toy.folder / "docs/git.md").symlink_to("../.git/aside")
    (toy.folder / "docs/link.md").symlink_to("in.md")
    told = Project(toy.folder).gate("status", "--write")
    assert f"docs/out.md leads out of the project, to {outside}: its figures stay as they are" in told.err
    assert "docs/git.md leads out" in told.err
    assert "refreshed docs/in.md" in told.err
    assert outside.read_text() == (toy.folder / ".git/aside").read_text() == text
    assert (toy.folder / "docs/in.md").read_text() == text.replace("-->1<", "-->169<")
    assert (toy.folder / "docs/out.md").is_symlink()
    assert (toy.folder / "docs/link.md").is_symlink()


def test_this_project_s_own_promises_name_tests_that_exist() -> None:
    """Whatever the evidence of this work tree says: no sentence promises by itself, and no page covers what differs."""
    view = replace(View.of(find(ROOT)), archive=Archive(()))
    found = review(view)
    assert found.promises >= 5
    assert [issue.text for issue in found.issues if issue.weight is Weight.CLAIM] == []
