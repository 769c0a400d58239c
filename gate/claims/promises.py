"""Sentences that promise something, and the tests that are named to hold them: `[held by tests/test_x.py::test_it]`."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from gate.claims.issue import Issue, Weight
from gate.claims.prose import Lines, blank, sentences, without_code, without_comments
from gate.claims.tags import FORM, malformed, shielded, tags, without_tags

WORDS = re.compile(r"\b(?:bit-identical|never|always|restores|raises)\b", re.IGNORECASE)
_HEADING = re.compile(r"^[ \t]*(?:Args|Attributes|Example|Examples|Note|Raises|Returns|Yields):[ \t]*$", re.MULTILINE)

Defined = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Promise:
    """A sentence that promises, or that names who holds it.

    Attributes:
        file: where it stands.
        line: that of the word that promises, from 1; of a sentence without one that of its first tag.
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
    for name, begin, text in docstrings(source):
        yield from _found(file, text, _HEADING.sub(blank, without_code(text, indented=False)), begin, f"{file}::{name}")


def of_document(file: str, text: str) -> Iterator[Promise]:
    """The promises in a document that name who holds them; the others promise at their own risk."""
    yield from (promise for promise in _found(file, text, _plain(text), 1, None) if promise.tests)


def misspelt_in_source(file: str, source: str) -> Iterator[Issue]:
    """What was meant to be a tag in the docstrings of a module's public names: nobody would hold it. Raises SyntaxError."""
    for _, begin, text in docstrings(source):
        yield from _misspelt(file, text, without_code(text, indented=False), begin)


def misspelt_in_document(file: str, text: str) -> Iterator[Issue]:
    """What was meant to be a tag in a document."""
    return _misspelt(file, text, _plain(text), 1)


def docstrings(source: str) -> Iterator[tuple[str, int, str]]:
    """Name, first line and text of the docstrings of a module's public names; the module's own name is empty. Raises SyntaxError."""
    for name, node in _public(ast.parse(source), ""):
        text = ast.get_docstring(node, clean=False)
        if text:
            yield name, node.body[0].lineno, text


def untold(promise: Promise) -> Issue:
    """The issue of a promise that names no test."""
    short = promise.text if len(promise.text) <= 100 else f"{promise.text[:97]}..."
    return Issue(Weight.CLAIM, promise.file, promise.line, f'promises without saying who holds it: "{short}" Add [held by TEST]')


def matches(asked: str, ran: str) -> bool:
    """Whether a test that ran is the one named: its parameters may be left out."""
    return ran == asked or ran.startswith(f"{asked}[")


def within(function: str, promising: str) -> bool:
    """Whether a mutated function is the one that promises, or lies in the class or module that does."""
    return function == promising or function.startswith(promising if promising.endswith("::") else f"{promising}.")


def _public(node: Defined, prefix: str) -> Iterator[tuple[str, Defined]]:
    yield prefix, node
    for child in _defined(node.body) if isinstance(node, (ast.Module, ast.ClassDef)) else ():
        if not child.name.startswith("_"):
            yield from _public(child, f"{prefix}.{child.name}" if prefix else child.name)


def _defined(body: list[ast.stmt]) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Classes and functions of a body, those under `if` and `try` too."""
    for child in body:
        if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield child
        elif isinstance(child, (ast.If, ast.Try)):
            handlers = [inner for handler in getattr(child, "handlers", []) for inner in handler.body]
            yield from _defined([*child.body, *handlers, *child.orelse, *getattr(child, "finalbody", [])])


def _plain(text: str) -> str:
    """A document without what nobody reads as its prose."""
    return without_comments(without_code(text))


def _misspelt(file: str, text: str, plain: str, begin: int) -> Iterator[Issue]:
    lines = Lines(text)
    for place, told in malformed(text, plain):
        short = told if len(told) <= 100 else f"{told[:97]}..."
        yield Issue(Weight.CLAIM, file, begin + lines.of(place) - 1, f"{short} looks like a tag, and is none. Write {FORM}")


def _found(file: str, text: str, plain: str, begin: int, function: str | None) -> Iterator[Promise]:
    known, lines = tags(text, plain), Lines(text)
    untagged, starts = without_tags(known, plain), [tag.start for tag in known]
    for place, sentence in sentences(shielded(known, plain)):
        stop = place + len(sentence)
        named = known[bisect_left(starts, place) : bisect_left(starts, stop)]
        word = WORDS.search(untagged, place, stop)
        if named or word:
            line = begin + lines.of(word.start() if word else named[0].start) - 1
            told = " ".join(plain[place:stop].split())
            yield Promise(file, line, told, function, tuple(test for tag in named for test in tag.tests))
