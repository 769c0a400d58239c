"""A fault that every test must notice: a function that raises. Where it goes unnoticed, the tests are no witness."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from gate.errors import BaselineFailed
from gate.mutation.evidence import Tests
from gate.mutation.judge import Judge
from gate.mutation.mutant import Mutant, Status, lines_of
from gate.mutation.slot import Slot

_TRIES = 4


def faults(sources: Mapping[str, str], tests: Tests) -> list[Mutant]:
    """A raise at the start of each function that tests run, those that most tests run first."""
    found = [mutant for file, source in sources.items() for mutant in _of(file, source)]
    counted = [(len([t for t in tests.covering(mutant) if t in tests.seconds]), mutant) for mutant in found]
    return [mutant for count, mutant in sorted(counted, key=lambda pair: (-pair[0], pair[1].file, pair[1].line)) if count]


def _of(file: str, source: str) -> Iterator[Mutant]:
    lines = [line.rstrip("\r\n") for line in lines_of(source)]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[1] if len(node.body) > 1 and _is_text(node.body[0]) else node.body[0]
            text = lines[first.lineno - 1]
            if first.lineno == node.lineno or _is_text(first) or text[: first.col_offset].strip():
                continue
            after = f'{text[: first.col_offset]}raise RuntimeError("planted by gate")'
            end = first.end_lineno or first.lineno
            before = "\n".join(lines[first.lineno - 1 : end])
            yield Mutant(file, first.lineno, end, "planted", before, after, (first.lineno, end), node.name)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def check(slot: Slot, judge: Judge) -> None:
    """Plants faults until one is noticed.

    Raises:
        BaselineFailed: several were not.
    """
    ahead = faults(judge.sources, judge.tests)[:_TRIES]
    seen = []
    for mutant in ahead:
        judged = judge.judge(slot, mutant)
        seen.append(judged.status)
        if judged.status is Status.KILLED:
            return
    if ahead and any(status is not Status.CRASHED for status in seen):  # all run at import, so that nothing can be collected
        first = ahead[0]
        raise BaselineFailed(
            f"A fault planted in {first.file}:{first.line} ({first.scope}) was not noticed by the tests that run it: they check nothing."
        )
