"""What a change to a Python file is made of: the statements that run at import, and those of each function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gate import encoding
from gate.check import hidden
from gate.check.change import Change
from gate.check.lines import Hunk, hunks, numbers, shown, stretch
from gate.check.outline import Function, Outline


@dataclass(frozen=True)
class Part:
    """Changed statements that run together.

    Attributes:
        path: the file.
        name: the function; None where the import runs them.
        lines: the statements, as a set of the new content's lines; empty where they are gone.
        body: all lines of the function.
        hidden: why coverage cannot tell who runs it; None where it can.
    """

    path: str
    name: str | None
    lines: int
    body: int = 0
    hidden: str | None = None

    @property
    def title(self) -> str:
        """For people: "src/a.py:10-12 (Model.step)"."""
        where = f":{shown(numbers(self.lines))}" if self.lines else ""
        return f"{self.path}{where} ({self.name or 'at import'})"


Lines: TypeAlias = "dict[str | None, int]"


def parts(change: Change, handed: Mapping[str, str] | None = None) -> list[Part] | None:
    """The parts of a changed Python file; none where comments and documentation alone changed. None: it does not parse.

    Args:
        change: the file.
        handed: functions that other files hand to what calls them unseen, see gate.check.hidden.
    """
    old = Outline.of(text(change.old or b""))
    new = Outline.of(text(change.new or b""))
    if new is None or change.new is None:
        return None
    if old is None:  # what was broken says nothing of what changed
        return _parts(change.path, new, [Hunk(range(0), range(1, text(change.new).count("\n") + 2))], None, handed or {})
    if change.old is not None and new.same(old):
        return []
    return _parts(change.path, new, hunks(text(change.old or b""), text(change.new)), old, handed or {})


def heirs(old: str, new: str, differences: Iterable[Hunk]) -> list[tuple[int, int]]:
    """What ran old lines of a function is taken to run the new ones that stand in their place, or beside them, in the same function.

    Returns:
        Pairs of sets: old lines, new lines. Without an outline of both the function does not count.
    """
    before, after = Outline.of(old), Outline.of(new)

    def owned(outline: Outline | None, lines: range) -> Lines:
        if before and after and outline:
            return _owned(outline, lines)
        return {None: stretch(lines)} if lines else {}

    found = []
    for hunk in differences:
        left = owned(before, range(max(hunk.old.start - 1, 1), hunk.old.stop + 1))
        right = owned(after, hunk.new if hunk.new else range(max(hunk.new.start - 1, 1), hunk.new.start + 1))
        found += [(lines, right[name]) for name, lines in left.items() if name in right]
    return found


def text(content: bytes) -> str:
    """A source as text."""
    return encoding.text(content)


def _parts(path: str, new: Outline, differences: Iterable[Hunk], old: Outline | None, handed: Mapping[str, str]) -> list[Part]:
    found: Lines = {}
    for hunk in differences:
        added = _owned(new, hunk.new)
        for name, lines in added.items():
            found[name] = found.get(name, 0) | lines
        for name in _owned(old, hunk.old) if old else ():
            if name not in added:  # what stood there is gone, and the function may still be there
                target = name if name is not None and new.function(name) else None
                found[target] = found.get(target, 0) | _body(new, target)
    return [_part(path, new, name, lines, handed) for name, lines in found.items()]


def _owned(outline: Outline, lines: range) -> Lines:
    """The statements that stand at some lines, by the function that runs them."""
    found: Lines = {}
    for line in lines:
        statement, owner = outline.statement(line), outline.owner(line)
        if statement is not None:
            name = owner.name if owner else None
            found[name] = found.get(name, 0) | stretch(statement)
    return found


def _body(outline: Outline, name: str | None) -> int:
    function = outline.function(name) if name else None
    return stretch(function.body) if function else 0


def _part(path: str, outline: Outline, name: str | None, lines: int, handed: Mapping[str, str]) -> Part:
    function: Function | None = outline.function(name) if name else None
    if function is None:
        return Part(path, None, lines)
    return Part(path, name, lines, stretch(function.body), hidden.reason(outline, function, handed))
