"""Comments that pardon mutants: `# gate: equivalent REASON`, on the mutant's line or alone on the line above."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gate.errors import UsageError
from gate.mutation.mutant import Judgement, Mutant, Status

_COMMENT = re.compile(r"#\s*gate:\s*equivalent\b[\s:]*(.*)")


@dataclass(frozen=True)
class Pardon:
    """One comment.

    Attributes:
        file: where it stands.
        line: the line that it pardons.
        comment: the line that it stands on.
        reason: why.
        operator: the only one that it pardons, where the reason begins with a name in brackets: `[number] ...`.
    """

    file: str
    line: int
    comment: int
    reason: str
    operator: str | None = None

    def holds(self, mutant: Mutant) -> bool:
        """Whether it pardons a mutant."""
        return self.line == mutant.line and self.operator in (None, mutant.operator)


def read(file: str, source: str) -> list[Pardon]:
    """The pardons in a file.

    Raises:
        UsageError: one gives no reason.
    """
    found = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        match = _COMMENT.search(token.string) if token.type == tokenize.COMMENT else None
        if match is None:
            continue
        line, alone = token.start[0], not token.line[: token.start[1]].strip()
        operator, reason = _parts(match[1].strip())
        if not reason:
            raise UsageError(f"{file}:{line}: a pardon needs its reason: # gate: equivalent REASON")
        found.append(Pardon(file, line + 1 if alone else line, line, reason, operator))
    return found


def _parts(text: str) -> tuple[str | None, str]:
    named = re.match(r"\[([\w-]+)\]\s*(.*)", text)
    return (named[1], named[2]) if named else (None, text)


def grant(mutants: Iterable[Mutant], pardons: Sequence[Pardon]) -> list[Mutant]:
    """The mutants, those pardoned with the reason."""
    by_line: dict[tuple[str, int], list[Pardon]] = {}
    for pardon in pardons:
        by_line.setdefault((pardon.file, pardon.line), []).append(pardon)
    granted = []
    for mutant in mutants:
        fitting = next((p for p in by_line.get((mutant.file, mutant.line), ()) if p.holds(mutant)), None)
        granted.append(mutant if fitting is None else replace(mutant, pardon=fitting.reason))
    return granted


def check_used(mutants: Sequence[Mutant], pardons: Iterable[Pardon]) -> None:
    """Raises UsageError where there is nothing that a pardon could pardon."""
    for pardon in pardons:
        if not any(mutant.file == pardon.file and pardon.holds(mutant) for mutant in mutants):
            raise UsageError(f"{pardon.file}:{pardon.comment}: this pardon is of no use: no mutant is on line {pardon.line}. Remove it.")


def check_needed(judged: Iterable[Judgement], pardons: Iterable[Pardon]) -> None:
    """Raises UsageError where every mutant that a pardon could pardon was noticed; what crashed or took too long may survive elsewhere."""
    found = list(judged)
    useless = [
        f"{pardon.file}:{pardon.comment}: this pardon is of no use: every mutant of line {pardon.line} is noticed. Remove it."
        for pardon in pardons
        if (mine := [one for one in found if one.mutant.file == pardon.file and pardon.holds(one.mutant)])
        and all(one.status is Status.KILLED for one in mine)
    ]
    if useless:
        raise UsageError("\n".join(useless))
