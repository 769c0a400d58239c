"""A sentence that promises something names a test that exists, ran, and would notice a broken promise."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from gate.claims.promises import Promise, judged, of_document, of_source

SOURCE = '''"""Updates of weights. Nothing here is bit-identical with anything.

A line that promises nothing.
"""


class Optimizer:
    """Steps.

    Gradients are never written. [held by tests/test_x.py::test_read, tests/test_x.py::TestA::test_b[1-2]]

    Args:
        lr: always positive.

    Raises:
        ValueError: where lr is negative.
    """

    def step(self):
        """Restores momenta [held by tests/test_x.py::test_read]. Says `never` and "whenever" alone."""

    def _hidden(self):
        """Never seen."""


def plain():
    """Adds."""
'''
OUTLINES = {"tests/test_x.py": frozenset({"test_read", "TestA::test_b"})}


def test_sentences_that_promise_are_found_with_their_lines() -> None:
    """Of public names alone; headings, code and words that only contain one do not count."""
    found = {promise.line: (promise.function, promise.tests) for promise in of_source("src/toy.py", SOURCE)}
    held = ("tests/test_x.py::test_read", "tests/test_x.py::TestA::test_b[1-2]")
    assert found == {
        1: ("src/toy.py::", ()),
        10: ("src/toy.py::Optimizer", held),
        13: ("src/toy.py::Optimizer", ()),
        20: ("src/toy.py::Optimizer.step", ("tests/test_x.py::test_read",)),
    }


def test_documents_promise_where_they_name_a_test() -> None:
    """Other prose may say never."""
    text = "# Toy\n\nIt never fails. It never moves a bit [held by tests/test_x.py::test_read]. `[held by tests/a.py::b]` is the form.\n"
    (promise,) = of_document("README.md", text)
    assert (promise.line, promise.function, promise.tests) == (3, None, ("tests/test_x.py::test_read",))


def said(
    function: str | None = "src/toy.py::Optimizer.step", test: str = "tests/test_x.py::test_read", **evidence: Any
) -> list[tuple[str, str]]:
    """What is wrong with a promise, given what there is of evidence."""
    usual: Mapping[str, Any] = {
        "passed": {"tests/test_x.py": frozenset({"test_read", "TestA::test_b[1-2]"})},
        "killers": {"src/toy.py::Optimizer.step": frozenset({test})},
        "asked": frozenset({test}),
    }
    witnesses: Any = SimpleNamespace(**{**usual, **evidence})
    return [
        (issue.weight.value, issue.message) for issue in judged(Promise("src/toy.py", 7, "Never.", function, (test,)), OUTLINES, witnesses)
    ]


@pytest.mark.parametrize("function", ["src/toy.py::Optimizer.step", "src/toy.py::Optimizer", "src/toy.py::", None])
def test_a_promise_that_is_kept_is_fine(function: str | None) -> None:
    """Of a function, of its class, of its module, and of a document."""
    assert said(function) == []
    assert (
        said(function, "tests/test_x.py::TestA::test_b", killers={"src/toy.py::Optimizer.step": {"tests/test_x.py::TestA::test_b[1-2]"}})
        == []
    )


@pytest.mark.parametrize(
    ("facts", "weight", "message"),
    [
        ({"test": "tests/test_x.py::test_gone"}, "claim", "which does not exist"),
        ({"test": "tests/test_y.py::test_read"}, "claim", "which does not exist"),
        ({"passed": {"tests/test_x.py": frozenset()}}, "claim", "did not pass in any fresh record"),
        ({"passed": None}, "inconclusive", "no fresh evidence that it ran"),
        ({"killers": None}, "inconclusive", "no fresh evidence of mutants"),
        ({"killers": {}}, "inconclusive", "no mutant of src/toy.py::Optimizer.step was killed by anything"),
        ({"killers": {"src/toy.py::Optimizer.stepper": frozenset({"tests/test_x.py::test_read"})}}, "inconclusive", "no mutant of"),
        ({"killers": {"src/toy.py::Optimizer.step": frozenset({"tests/z.py::other"})}}, "claim", "which kills no mutant of"),
        ({"killers": {"src/toy.py::Optimizer.step": frozenset()}, "asked": frozenset()}, "inconclusive", "before it was asked"),
    ],
)
def test_a_promise_that_nobody_holds_is_told(facts: dict[str, Any], weight: str, message: str) -> None:
    ((found, text),) = said(**facts)
    assert (found, message in text) == (weight, True)
