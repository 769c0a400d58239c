"""Sentences that promise something, and the tests that are named to hold them: `[held by tests/test_x.py::test_it]`."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gate.claims.docstrings import Docstring, docstrings, is_special
from gate.claims.issue import Issue, Weight
from gate.claims.prose import Lines, blank, sentences, without_code, without_comments
from gate.claims.tags import FORM, malformed, shielded, tags, without_tags

WORDS = re.compile(r"\b(?:bit-identical|never|always|restores|raises)\b", re.IGNORECASE)
_SECTION = r"(?:Args|Attributes|Example|Examples|Note|Raises|Returns|Yields)"
_HEADING = re.compile(  # of Google's, NumPy's and Sphinx's form: they announce what is raised; entries may promise
    rf"^[ \t]*(?:{_SECTION}:[ \t]*$|{_SECTION}[ \t]*\r?\n[ \t]*-{{3,}}[ \t]*$|[:@]raises?\b[^:\n]*:)", re.MULTILINE
)


@dataclass(frozen=True)
class Promise:
    """A sentence that promises, or that names who holds it.

    Attributes:
        file: where it stands.
        line: that of the word that promises, from 1; of a sentence without one that of its first tag.
        text: the sentence on one line.
        function: "FILE::NAME" of what promises, "FILE::" for a module; None for a document, and where there is no code that could.
        tests: ids of the tests that are named.
        span: first and last line of the sentence.
        owner: the qualified name of what has the docstring, empty for a module; None in a document.
        twin: whether code above the docstring's own has the same name.
        weight: of the issue where no test is named; a warning where Python itself calls what promises.
    """

    file: str
    line: int
    text: str
    function: str | None
    tests: tuple[str, ...]
    span: tuple[int, int] = (0, 0)
    owner: str | None = None
    twin: bool = False
    weight: Weight = Weight.CLAIM


def of_source(file: str, source: str) -> Iterator[Promise]:
    """The promises in the docstrings of a module's public names, and those elsewhere that name who holds them. Raises SyntaxError."""
    for one in docstrings(source):
        plain = _HEADING.sub(blank, without_code(one.text, indented=False))
        for promise in _found(file, one.text, plain, one.line):
            if one.public or promise.tests:
                yield _spoken(promise, one)


def of_document(file: str, text: str) -> Iterator[Promise]:
    """The promises in a document that name who holds them; the others promise at their own risk."""
    yield from (promise for promise in _found(file, text, _plain(text), 1) if promise.tests)


def misspelt_in_source(file: str, source: str) -> Iterator[Issue]:
    """What was meant to be a tag in the docstrings of a module: nobody would hold it. Raises SyntaxError."""
    for one in docstrings(source):
        yield from _misspelt(file, one.text, without_code(one.text, indented=False), one.line)


def misspelt_in_document(file: str, text: str) -> Iterator[Issue]:
    """What was meant to be a tag in a document."""
    return _misspelt(file, text, _plain(text), 1)


def untold(promise: Promise) -> Issue:
    """The issue of a promise that names no test."""
    short = promise.text if len(promise.text) <= 100 else f"{promise.text[:97]}..."
    return Issue(promise.weight, promise.file, promise.line, f'promises without saying who holds it: "{short}" Add [held by TEST]')


def misplaced(promise: Promise) -> Issue:
    """The issue of a promise of what has the name of something above it, as a setter has its getter's: a test of that would hold it."""
    told = f"promises under a name that stands above too, {promise.owner}, and the evidence does not tell their faults apart"
    ask = "Promise it in the docstring of the first, which speaks for all of them, or give this another name"
    return Issue(Weight.CLAIM, promise.file, promise.line, f"{told}. {ask}")


def matches(asked: str, ran: str) -> bool:
    """Whether a test that ran is the one named: its parameters may be left out."""
    return ran == asked or ran.startswith(f"{asked}[")


def within(function: str, promising: str) -> bool:
    """Whether a mutated function is the one that promises, or lies in the class or module that does."""
    return function == promising or function.startswith(promising if promising.endswith("::") else f"{promising}.")


def _spoken(promise: Promise, docstring: Docstring) -> Promise:
    """A promise with what it speaks for."""
    function = None if docstring.keeper is None else f"{promise.file}::{docstring.keeper}"
    weight = Weight.WARNING if is_special(docstring.owner.rpartition(".")[2]) else Weight.CLAIM
    return replace(promise, function=function, owner=docstring.owner, twin=docstring.twin, weight=weight)


def _plain(text: str) -> str:
    """A document without what nobody reads as its prose."""
    return without_comments(without_code(text))


def _misspelt(file: str, text: str, plain: str, begin: int) -> Iterator[Issue]:
    lines = Lines(text)
    for place, told in malformed(text, plain):
        short = told if len(told) <= 100 else f"{told[:97]}..."
        yield Issue(Weight.CLAIM, file, begin + lines.of(place) - 1, f"{short} looks like a tag, and is none. Write {FORM}")


def _found(file: str, text: str, plain: str, begin: int) -> Iterator[Promise]:
    known, lines = tags(text, plain), Lines(text)
    untagged, starts = without_tags(known, plain), [tag.start for tag in known]
    for place, sentence in sentences(shielded(known, plain)):
        stop = place + len(sentence)
        named = known[bisect_left(starts, place) : bisect_left(starts, stop)]
        word = WORDS.search(untagged, place, stop)
        if named or word:
            line = begin + lines.of(word.start() if word else named[0].start) - 1
            told = " ".join(plain[place:stop].split())
            span = (begin + lines.of(place) - 1, begin + lines.of(max(stop - 1, place)) - 1)
            yield Promise(file, line, told, None, tuple(test for tag in named for test in tag.tests), span)
