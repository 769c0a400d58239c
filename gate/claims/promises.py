"""Sentences that promise something, and the tests that are named to hold them: `[held by tests/test_x.py::test_it]`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gate.claims.issue import Issue, Weight
from gate.claims.prose import line_of, sentences, without_code
from gate.claims.witnesses import Witnesses

WORDS = re.compile(r"\b(?:bit-identical|never|always|restores|raises)\b", re.IGNORECASE)
_HELD = re.compile(r"\[held by (?P<ids>[^\[\]\n]+(?:\[[^\]\n]*\][^\[\]\n]*)*)\]")
_HEADING = re.compile(r"^[ \t]*(?:Args|Attributes|Example|Examples|Note|Raises|Returns|Yields):[ \t]*$", re.MULTILINE)

Defined = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Promise:
    """A sentence that promises, or that names who holds it.

    Attributes:
        file: where it stands.
        line: from 1.
        text: the sentence on one line.
        function: "FILE::NAME" of what promises, "FILE::" for a module; None for a document.
        tests: ids of the tests that are named.
    """

    file: str
    line: int
    text: str
    function: str | None
    tests: tuple[str, ...]


def of_source(file: str, source: str) -> Iterator[Promise]:
    """The promises in the docstrings of a module's public names. Raises SyntaxError."""
    for name, node in _public(ast.parse(source), ""):
        text = ast.get_docstring(node, clean=False)
        if text:
            plain = _HEADING.sub(lambda heading: " " * len(heading[0]), without_code(text))
            yield from _found(file, plain, node.body[0].lineno, f"{file}::{name}")


def of_document(file: str, text: str) -> Iterator[Promise]:
    """The promises in a document that name who holds them; the others promise at their own risk."""
    yield from (promise for promise in _found(file, without_code(text), 1, None) if promise.tests)


def judged(promise: Promise, outlines: Mapping[str, frozenset[str]], witnesses: Witnesses) -> Iterator[Issue]:
    """What is wrong with a promise.

    Args:
        promise: the sentence.
        outlines: names of the tests of each test file there is ("TestA::test_b").
        witnesses: the evidence.
    """
    for test in promise.tests:
        found = _judged(promise, test, outlines, witnesses)
        if found:
            yield Issue(found[0], promise.file, promise.line, found[1])


def untold(promise: Promise) -> Issue:
    """The issue of a promise that names no test."""
    short = promise.text if len(promise.text) <= 100 else f"{promise.text[:97]}..."
    return Issue(Weight.CLAIM, promise.file, promise.line, f'promises without saying who holds it: "{short}" Add [held by TEST]')


def _judged(promise: Promise, test: str, outlines: Mapping[str, frozenset[str]], witnesses: Witnesses) -> tuple[Weight, str] | None:
    file, _, name = test.partition("::")
    if name.partition("[")[0] not in outlines.get(file, frozenset()):
        return Weight.CLAIM, f"is held by {test}, which does not exist"
    if witnesses.passed is None:
        return Weight.INCONCLUSIVE, f"is held by {test}: there is no fresh evidence that it ran"
    if not any(matches(name, passed) for passed in witnesses.passed.get(file, ())):
        return Weight.CLAIM, f"is held by {test}, which did not pass in any fresh record"
    if witnesses.killers is None:
        return Weight.INCONCLUSIVE, f"is held by {test}: there is no fresh evidence of mutants that it could have killed"
    return _kills(promise, test, witnesses.killers, witnesses.asked)


def _kills(promise: Promise, test: str, killers: Mapping[str, frozenset[str]], asked: frozenset[str]) -> tuple[Weight, str] | None:
    where = promise.function or "anything"
    own = [ids for function, ids in killers.items() if promise.function is None or within(function, promise.function)]
    if any(matches(test, killer) for ids in own for killer in ids):
        return None
    if not own:
        return Weight.INCONCLUSIVE, f"is held by {test}: no mutant of {where} was killed by anything"
    if any(matches(test, one) for one in asked):
        return Weight.CLAIM, f"is held by {test}, which kills no mutant of {where}"
    return Weight.INCONCLUSIVE, f"is held by {test}: other tests noticed the mutants of {where} before it was asked"


def matches(asked: str, ran: str) -> bool:
    """Whether a test that ran is the one named: its parameters may be left out."""
    return ran == asked or ran.startswith(f"{asked}[")


def within(function: str, promising: str) -> bool:
    """Whether a mutated function is the one that promises, or lies in the class or module that does."""
    return function == promising or function.startswith(promising if promising.endswith("::") else f"{promising}.")


def _public(node: Defined, prefix: str) -> Iterator[tuple[str, Defined]]:
    yield prefix, node
    for child in node.body if isinstance(node, (ast.Module, ast.ClassDef)) else ():
        if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and not child.name.startswith("_"):
            yield from _public(child, f"{prefix}.{child.name}" if prefix else child.name)


def _found(file: str, text: str, begin: int, function: str | None) -> Iterator[Promise]:
    for place, sentence in sentences(text):
        held = [name.strip() for tag in _HELD.finditer(sentence) for name in tag["ids"].split(", ")]
        if held or WORDS.search(_HELD.sub("", sentence)):
            yield Promise(file, begin + line_of(text, place) - 1, " ".join(sentence.split()), function, tuple(held))
