"""What is wrong with the trailers of one commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gate.trailers.message import Message
from gate.trailers.rule import GOLDEN_CHANGE, Rule
from golden.keys import nearest

NONE = "none"
_TEST = re.compile(r"(?P<file>[^\s:]+\.py)::(?P<name>[^\s,;\[]+)(?:\[.*\])?")
_NEXT = re.compile(r"\](?:\s*[,;]|\s)\s*(?:and\s+)?[^\s:]+\.py::")  # another test behind the parameters of one, which may hold anything
_IDENTIFIER = re.compile(r"[A-Za-z]+[0-9]+")
_PAGE = re.compile(r"[\w.-]+")


@dataclass(frozen=True)
class Known:
    """What trailers may name.

    Attributes:
        has_test: whether pytest collects a test, by the commit that names it, its file and its name there.
        has_page: whether a page of work exists, by the commit and its name.
        sources: ids of the log of provenance.
    """

    has_test: Callable[[str, str, str], bool]
    has_page: Callable[[str, str], bool]
    sources: frozenset[str]


def wrong(message: Message, rule: Rule, bound: bool, known: Known) -> Iterator[str]:
    """What is wrong, each as a sentence without its end.

    Args:
        message: the commit.
        rule: what commits have to say.
        bound: whether it changes a path of the rule, so that it has to carry every trailer.
        known: what trailers may name.
    """
    hidden = message.hidden([*rule.required, GOLDEN_CHANGE] if bound else [GOLDEN_CHANGE])
    for line in hidden:
        why = "trailers are the last paragraph, with nothing else in it and no line of --- above"
        yield f'"{line}" looks like a trailer, and git does not see it: {why}'
    if not bound:
        return
    unknown = [trailer.key for trailer in message.trailers if not any(trailer.named(name) for name in rule.names)]
    for key in rule.required:
        if not message.values(key) and not any(line.casefold().startswith(key.casefold()) for line in hidden):
            yield f"has no trailer {key}:"
    for key in unknown:
        yield f"unknown trailer {key!r}, {nearest(key, rule.names)}"
    for trailer in message.trailers:
        if not trailer.value:
            yield f"{trailer.key}: says nothing. {_what(trailer.key, rule)}"
            continue
        for check in (_gate, _work, _provenance):
            told = check(message, trailer.key, trailer.value, known)
            if told:
                yield told if trailer.value.casefold() != NONE else f"{told}. {_what(trailer.key, rule)}"
                break


def _what(key: str, rule: Rule) -> str:
    """What to write: whatever changes the paths belongs to a page and to a test, but need not have a source, nor anything else."""
    names = {
        "gate": "Name a test, as tests/test_x.py::test_it",
        "wp": f"Name a page of {rule.work}, without its .md",
        GOLDEN_CHANGE.casefold(): "Name the scenario whose golden changes",
    }
    required = any(key.casefold() == name.casefold() for name in rule.required)
    return names.get(key.casefold(), f"Write {key}: {NONE} where there is none" if required else "Leave it out where there is none")


def _gate(message: Message, key: str, value: str, known: Known) -> str | None:
    if key.casefold() != "gate":
        return None
    test = _TEST.fullmatch(value)
    if value.casefold() == NONE:
        return f"Gate: {value} is no test, and what changes these paths has one"
    if test is None or _NEXT.search(value):
        return f"Gate: {value} is no test. Write it as tests/test_x.py::test_it, one trailer a test"
    exists = known.has_test(message.id, test["file"], test["name"])
    return None if exists else f"Gate: {value} does not exist, or pytest does not collect it"


def _work(message: Message, key: str, value: str, known: Known) -> str | None:
    if key.casefold() != "wp":
        return None
    if not _PAGE.fullmatch(value):
        return f"WP: {value} is no page's name. Write it without its .md, one trailer a page"
    return None if known.has_page(message.id, value) else f"WP: there is no page {value}.md"


def _provenance(message: Message, key: str, value: str, known: Known) -> str | None:
    if key.casefold() != "provenance" or value.casefold() == NONE:
        return None
    names = [name.strip() for name in value.split(",")]
    if not all(_IDENTIFIER.fullmatch(name) for name in names):
        return f"Provenance: {value} is no list of ids. Write P1, P2, or {NONE}"
    absent = [name for name in names if name not in known.sources]
    return f"Provenance: {', '.join(absent)} {'is' if len(absent) == 1 else 'are'} not in the log" if absent else None
