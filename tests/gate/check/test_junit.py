"""JUnit XML that others can read."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from gate.check import junit
from gate.check.harvest import Outcome
from gate.check.result import Checked, Word


def parsed(**outcomes: Outcome) -> ElementTree.Element:
    checked = Checked(Word.FAILED, outcomes={f"tests/test_a.py::{key}": outcome for key, outcome in outcomes.items()})
    return ElementTree.fromstring(junit.text(checked).encode())


@pytest.mark.parametrize("text", ["\x1b[31mred\x1b[0m", "a\x00b", "\ud800", "\ufffe", '<&">]]>', "tab\tand\nlines"])
def test_whatever_a_test_prints_is_valid(text: str) -> None:
    """What XML cannot hold stands there as an escape."""
    (failure,) = parsed(test_x=Outcome("failed", text)).iter("failure")
    assert failure.text == "".join(c if c.isprintable() or c in "\t\n" else f"\\x{ord(c):02x}" for c in text)


def test_counts_and_names_are_those_of_the_tests() -> None:
    root = parsed(test_a=Outcome("passed", seconds=0.5), test_b=Outcome("failed", "no"), test_c=Outcome("skipped", "not here"))
    (skipped,) = root.iter("skipped")
    assert skipped.get("type") is None
    (expected,) = parsed(test_d=Outcome("xfailed", "not yet"), test_e=Outcome("xpassed", "not yet")).iter("skipped")
    assert (expected.get("type"), expected.text) == ("pytest.xfail", "not yet")
    (suite,) = root.iter("testsuite")
    assert [suite.get(key) for key in ("tests", "failures", "errors", "skipped")] == ["3", "1", "0", "1"]
    assert [(case.get("classname"), case.get("name")) for case in root.iter("testcase")] == [
        ("tests.test_a", "test_a"), ("tests.test_a", "test_b"), ("tests.test_a", "test_c")
    ]  # fmt: skip


def test_parameters_may_hold_anything() -> None:
    checked = Checked(Word.PASSED, outcomes={'a.py::TestA::test_b[x::y "z" ü]': Outcome("passed")})
    (case,) = ElementTree.fromstring(junit.text(checked).encode()).iter("testcase")
    assert (case.get("classname"), case.get("name")) == ("a.TestA", 'test_b[x::y "z" ü]')


def test_long_texts_are_cut_and_say_so() -> None:
    """One of 10 MB, and a thousand of 5 kB, which together would be more than a service takes."""
    (failure,) = parsed(test_x=Outcome("failed", "x" * 10_000_000)).iter("failure")
    assert "characters left out" in (failure.text or "")
    assert len(failure.text or "") < 30_000
    many = Checked(Word.FAILED, outcomes={f"a.py::test_{n}": Outcome("failed", "y" * 5000) for n in range(1000)})
    assert len(junit.text(many)) < 2 * junit.MOST
    assert len(list(ElementTree.fromstring(junit.text(many)).iter("failure"))) == 1000
