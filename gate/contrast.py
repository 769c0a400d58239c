"""What is said of two goldens that were held against each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gate import facts
from gate.facts import Fact, count
from gate.screen import plain
from gate.verdict import Verdict

if TYPE_CHECKING:
    from gate.diff import Diff, Pair


def headline(pair: Pair) -> str:
    """Which two, and what came of it."""
    return plain(f"{pair.name}: {pair.expected} against {pair.actual}: {pair.verdict}")


def told(pair: Pair) -> list[Fact]:
    """The facts of two goldens that differ, those that explain most first."""
    return [
        *facts.environment([pair.environment_changes], "the same"),
        *facts.settings([pair.settings_changes]),
        *facts.sources([pair.changed_sources], "the same"),
        ("in all", plain(facts.reach(pair.comparison))),
        *(facts.first(pair.comparison.first) if pair.comparison.first else ()),
    ]


def counts(pair: Pair) -> str:
    """How much differs, on one line."""
    if pair.verdict is Verdict.NOT_JUDGED:
        return str(pair.reason)
    return facts.reach(pair.comparison) if pair.comparison.differences else "none"


def messages(result: Diff) -> Iterator[str]:
    """What went wrong beside the comparison itself, one message each."""
    for pair in result.pairs:
        for path in pair.damaged:
            yield f"{path}: does not have the digests recorded beside it; compared as it is. Get the file back from version control."
        if pair.message:
            yield f"{pair.name}: {pair.reason}: {pair.message}"
    for path in result.unmatched:
        yield f"{path}: not compared, nothing on the other side stands for it"


def closing(result: Diff) -> str:
    """The last line: what happened, and what to do next."""
    of = f" of {count(len(result.pairs), 'pair')}" if len(result.pairs) > 1 else ""
    structure = sum(pair.comparison.structure for pair in result.pairs)
    bits = sum(pair.comparison.bits for pair in result.pairs)
    if result.verdict is Verdict.IDENTICAL:
        return f"identical: not a bit differs{of}. Next: nothing to do"
    if result.verdict is Verdict.NOT_JUDGED:
        return f"not-judged: {sum(pair.verdict is Verdict.NOT_JUDGED for pair in result.pairs)}{of} cannot be read. Next: {_restore()}"
    if any(pair.damaged for pair in result.pairs):
        return f"drift: {structure} of structure, {bits} of bits{of}. Next: {_restore()}"
    return f"drift: {structure} of structure, {bits} of bits{of}. Next: gate verify, which finds the cause"


def _restore() -> str:
    return "get the files named on standard error back from version control"
