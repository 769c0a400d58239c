"""A test that is named to hold a promise has to be one that pytest collects, or that it ran, whoever made it."""

from __future__ import annotations

from typing import Any

import pytest

from gate.claims.holding import judged
from gate.claims.promises import Promise
from gate.collected import Collected

TESTS = {
    "tests/test_x.py": """
from tests.base import Base
from elsewhere import Other

def helper(): pass

if True:
    def test_under_a_condition(): pass
try:
    pass
finally:
    class TestA:
        def test_b(self): pass

class TestInherited(Base): pass
class TestUnread(Other): pass
""",
    "tests/base.py": "class Base:\n    def test_far(self): pass\n    def helper(self): pass\n",
    "tests/helping.py": "def test_aside(): pass\n",
}
ABSENT = "which does not exist, or pytest does not collect it"
THERE = ["test_under_a_condition", "TestA::test_b", "TestInherited::test_far", "TestUnread::test_c", "TestUnread::test_c[1-2]"]


class Evidence:
    """Of all tests; of mutants that each test that passed noticed one."""

    def __init__(self, passed: Any) -> None:
        self.passed = passed
        self.killers = {"src/toy.py::f": [f"{file}::{name}" for file, names in (passed or {}).items() for name in names]}

    def whole(self, *_: object) -> bool:
        return True


def said(test: str, passed: Any) -> list[tuple[str, str]]:
    witnesses: Any = Evidence(passed)
    promise = Promise("src/toy.py", 7, "Never.", "src/toy.py::f", (test,))
    return [(issue.weight.value, issue.message) for issue in judged(promise, Collected(TESTS.get).answer, witnesses)]


@pytest.mark.parametrize("name", [*THERE, "helper", "test_made_by_a_plugin", "TestGone::test_made"])
def test_what_passed_is_there_whoever_made_it(name: str) -> None:
    """What ran needs no syntax."""
    assert said(f"tests/test_x.py::{name}", {"tests/test_x.py": [name]}) == []


@pytest.mark.parametrize("name", THERE)
def test_what_may_be_there_is_not_said_to_be_absent(name: str) -> None:
    """Of a class whose base is not read here only the evidence can say what it holds."""
    ((weight, text),) = said(f"tests/test_x.py::{name}", None)
    assert (weight, "no fresh evidence that it ran" in text) == ("inconclusive", True)
    ((weight, text),) = said(f"tests/test_x.py::{name}", {"tests/test_x.py": ["test_other"]})
    assert (weight, "did not pass in any fresh record" in text) == ("claim", True)


@pytest.mark.parametrize("passed", [None, {"tests/test_x.py": ["test_other"]}])
@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("tests/test_x.py::test_gone", ABSENT),
        ("tests/test_x.py::helper", ABSENT),
        ("tests/test_x.py::TestA::test_gone", ABSENT),
        ("tests/test_x.py::TestInherited::test_gone", ABSENT),
        ("tests/test_x.py::TestInherited::helper", ABSENT),
        ("tests/test_x.py::TestUnread::helper", ABSENT),
        ("tests/test_y.py::test_far", ABSENT),
        ("tests/helping.py::test_aside", ABSENT),
        ("../test_x.py::test_b", ABSENT),
        ("tests/test_x.py::TestA", "which is a class. Name the tests in it"),
        ("tests/test_x.py::TestInherited", "which is a class"),
    ],
)
def test_what_is_no_test_is_told(test: str, message: str, passed: Any) -> None:
    """A function that pytest does not collect neither; and a class is no single test."""
    ((weight, text),) = said(test, passed)
    assert (weight, message in text) == ("claim", True), text
