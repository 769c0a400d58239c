"""From a change to tests, on made-up knowledge: each rule, and what it leaves out."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from gate.check import harvest
from gate.check.change import Change
from gate.check.choice import Chooser, Kind, Unit, nothing_checked, unproven
from gate.check.harvest import Item
from gate.check.knowledge import Known
from gate.check.lines import mask
from gate.check.reach import Reach

A = "LIMIT = 1\n\n\ndef f(x):\n    if x:\n        return 1\n    return 2\n\n\ndef g():\n    return 3\n"
SOURCES = {"a.py": A, "tests/test_a.py": "import a\n", "tests/test_b.py": "", "tests/conftest.py": ""}
KNOWN = {
    "tests/test_a.py::runs_f": Known("tests/test_a.py", {"a.py": mask([5, 6])}),
    "tests/test_a.py::runs_nothing": Known("tests/test_a.py"),
    "tests/test_b.py::runs_all": Known("tests/test_b.py", {"a.py": mask([5, 7])}),
    "tests/test_b.py::alone": Known("tests/test_b.py"),
}


def chooser(**more: Known) -> Chooser:
    known = {**KNOWN, **{f"tests/test_b.py::{key}": value for key, value in more.items()}}
    items = {key: Item(value.file, ()) for key, value in known.items()}
    return Chooser(items, known, Reach({path: ast.parse(text) for path, text in SOURCES.items()}))


def short(change: Change, **more: Known) -> list[str]:
    return [key.rpartition("::")[2] for key in chooser(**more).choose([change], {}).reasons]


def edited(old: str, new: str) -> Change:
    assert A.count(old) == 1
    return Change("a.py", A.replace(old, new).encode(), A.encode())


def test_a_line_selects_those_who_run_it() -> None:
    assert short(edited("return 1\n", "return 0\n")) == ["runs_f"]
    assert short(edited("return 2\n", "return 0\n")) == ["runs_all"]
    assert short(edited("if x:", "if not x:")) == ["runs_f", "runs_all"]


def test_a_line_that_is_gone_selects_those_who_run_its_function() -> None:
    gone = Change("a.py", A.replace("    if x:", "    log(x)\n    if x:").encode(), A.encode())
    assert short(gone) == ["runs_f", "runs_all"]


def test_a_function_that_nobody_is_known_to_run_selects_the_importers_and_says_so() -> None:
    choice = chooser().choose([edited("return 3", "return 4")], {})
    assert [key.rpartition("::")[2] for key in choice.reasons] == ["runs_f", "runs_nothing", "runs_all"]
    assert "no test is known to run a.py:11 (g)" in choice.fallback[0]


def test_what_runs_at_import_selects_the_importers() -> None:
    """By their imports or by what they are known to have run; a default in a head is such a thing."""
    for change in (edited("LIMIT = 1", "LIMIT = 2"), edited("def f(x)", "def f(x=1)")):
        assert short(change) == ["runs_f", "runs_nothing", "runs_all"]


def test_a_hidden_function_selects_the_importers_and_says_why() -> None:
    hooked = A + "t.register_hook(f)\n"
    choice = chooser().choose([Change("a.py", hooked.encode(), hooked.replace("return 2", "return 0").encode())], {})
    assert len(choice.reasons) == 3
    assert harvest.KILLED not in choice.fallback[0]
    assert "hook" in choice.fallback[0]


def test_of_whom_less_is_known_is_taken_for_every_source() -> None:
    """Where torch compiled something, for every source that its file reaches; neither is for a document."""
    blind = {"killed": Known("tests/test_b.py", blind=harvest.KILLED), "compiled": Known("tests/test_b.py", blind=harvest.COMPILED)}
    assert short(edited("return 1\n", "return 0\n"), **blind) == ["runs_f", "killed"]
    seen = {"compiled": Known("tests/test_b.py", {"a.py": mask([1])}, blind=harvest.COMPILED)}
    assert short(edited("return 1\n", "return 0\n"), **seen) == ["runs_f", "compiled"]
    assert short(Change("README.md", b"a", b"b"), **blind) == []


def test_who_listed_a_folder_is_taken_for_what_is_new_in_it() -> None:
    lists = {"lists": Known("tests/test_b.py", reads=frozenset({"data/"}))}
    assert short(Change("data/new.md", None, b""), **lists) == ["lists"]
    assert short(Change("data/old.md", b"", b"x"), **lists) == []


def test_a_new_test_and_one_that_failed_are_taken_along() -> None:
    """Where something changed that matters at all."""
    more = {"failed": Known("tests/test_b.py", outcome="failed")}
    found = chooser(**more)
    unknown = Chooser({**found.items, "tests/test_b.py::new": Item("tests/test_b.py", ())}, found.known, found.reach)
    choice = unknown.choose([edited("return 1\n", "return 0\n")], {})
    assert [key.rpartition("::")[2] for key in choice.reasons] == ["runs_f", "failed", "new"]
    assert not unknown.choose([Change("README.md", b"a", b"b")], {}).reasons


@pytest.mark.parametrize("path", ["src/fast.cpp", "pyproject.toml", "pytest.ini", "requirements/dev.txt", "uv.lock"])
def test_what_may_decide_everything_selects_all(path: str) -> None:
    """Unless it is known to concern other tools alone."""
    choice = chooser().choose([Change(path, b"a", b"b")], {})
    assert len(choice.reasons) == len(KNOWN)
    assert path in choice.fallback[0]
    quiet = replace(chooser(), quiet=[path])
    assert not quiet.choose([Change(path, b"a", b"b")], {}).reasons


def test_a_submodule_selects_all() -> None:
    assert len(chooser().choose([Change("vendored", None, None)], {}).reasons) == len(KNOWN)


def test_a_conftest_selects_what_is_below_it() -> None:
    assert len(short(Change("tests/conftest.py", b"", b"X = 1\n"))) == len(KNOWN)
    assert short(Change("deep/conftest.py", None, b"X = 1\n")) == []


def test_a_source_that_is_gone_or_broken_selects_its_importers_and_says_so() -> None:
    for new in (None, b"def broken("):
        choice = chooser().choose([Change("a.py", A.encode(), new)], {})
        assert [key.rpartition("::")[2] for key in choice.reasons] == ["runs_f", "runs_nothing", "runs_all"]
        assert "a.py" in choice.fallback[0]


def test_a_document_matters_to_those_who_read_it() -> None:
    reads = {"reads": Known("tests/test_b.py", reads=frozenset({"README.md"}))}
    assert short(Change("README.md", b"a", b"b"), **reads) == ["reads"]
    assert short(Change("docs/other.md", b"a", b"b"), **reads) == []


def test_a_trailer_adds_its_tests() -> None:
    choice = chooser().choose([edited("return 1\n", "return 0\n")], {"tests/test_b.py::alone": ["Gate: trailer of 1a2b3c4"]})
    assert choice.reasons["tests/test_b.py::alone"] == ("Gate: trailer of 1a2b3c4",)


def test_a_function_that_another_file_hands_to_a_hook_is_hidden() -> None:
    """Not one of another name, and none without that file."""
    change = edited("return 1\n", "return 0\n")
    found = chooser()
    trees = {**found.reach.trees, "tests/test_b.py": ast.parse("import a\nt.register_hook(a.f)\n")}
    assert "hook" in replace(found, reach=Reach(trees)).choose([change], {}).fallback[0]
    assert not found.choose([change], {}).fallback
    assert short(edited("return 2\n", "return 0\n")) == ["runs_all"]


def unit(kind: Kind, lines: int = 0, *tests: str) -> Unit:
    return Unit(kind, "title", "a.py", lines, frozenset(tests))


def test_a_unit_is_proven_by_who_ran_its_lines() -> None:
    """By one of its tests, where it has no lines of its own."""
    known = {"t": Known("t.py", {"a.py": mask([5])})}
    assert unproven([unit(Kind.FUNCTION, mask([5, 6])), unit(Kind.IMPORT, 0, "t")], ["t"], known) == []
    assert len(unproven([unit(Kind.FUNCTION, mask([6])), unit(Kind.IMPORT, 0, "u")], ["t"], known)) == 2


def test_what_torch_compiled_may_have_run_it() -> None:
    known = {"t": Known("t.py", blind=harvest.COMPILED), "u": Known("t.py")}
    assert unproven([unit(Kind.FUNCTION, mask([5]), "t")], ["t"], known) == []
    assert len(unproven([unit(Kind.FUNCTION, mask([5]), "u")], ["t", "u"], known)) == 1


def test_an_import_does_not_stand_for_a_function() -> None:
    """Nothing is checked where of functions none was run; something is where one was, or where there are none."""
    function, other, imported = unit(Kind.FUNCTION, 2), unit(Kind.FUNCTION, 4), unit(Kind.IMPORT)
    assert nothing_checked([function, imported], [function])
    assert not nothing_checked([function, other, imported], [function, imported])
    assert nothing_checked([imported], [imported])
    assert not nothing_checked([imported], [])
    assert not nothing_checked([], [])
