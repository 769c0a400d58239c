"""The tests that commits name in `Gate:` trailers, read by git itself: what only looks like a trailer is none."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from gate import git
from gate.errors import GoldenError
from gate.history import Repository

_FORMAT = "%h%n%(trailers:key=Gate,valueonly,unfold)"  # between commits stands the one byte that no message holds
_NOTHING = "none"  # begins a value that says that there is no test, and why


class UnknownTest(GoldenError):  # noqa: N818  (says what is the case, as its family does)
    """A trailer names a test that does not exist; what is named has to be judged, so nothing is."""

    reason: ClassVar[str] = "nothing-checked"


@dataclass(frozen=True)
class Trailer:
    """A `Gate:` line of a commit.

    Attributes:
        commit: its short id.
        value: what stands behind the colon.
    """

    commit: str
    value: str


def trailers(repository: Repository, since: str | None) -> tuple[Trailer, ...]:
    """The trailers of all commits since one, newest first; of none without a commit to begin at."""
    if since is None:
        return ()
    answer = os.fsdecode(git.run(repository.project, "log", "-z", "--no-show-signature", f"--format={_FORMAT}", f"{since}..HEAD"))
    found = []
    for record in answer.split("\0"):
        commit, *values = record.split("\n")
        found += [Trailer(commit, value.strip()) for value in values if value.strip()]
    return tuple(found)


def tests(given: Iterable[Trailer], ids: Collection[str]) -> dict[str, list[str]]:
    """The tests that trailers name, by id, with what names them: "Gate: trailer of 1a2b3c4".

    A value is an id, a class or a file, a test without its parameters, or several of those with commas between.

    Raises:
        UnknownTest: one of them does not exist; names commit, trailer and test.
    """
    found: dict[str, list[str]] = {}
    for trailer in given:
        for name in _several(trailer.value, ids):
            matches = _matching(name, ids)
            if not matches:
                raise UnknownTest(
                    f"Commit {trailer.commit} has the trailer {'Gate: ' + trailer.value!r}, and there is no test {name!r}. Was it renamed "
                    f"or deleted? Restore it, correct the trailer (git commit --amend, git rebase -i), or check without trailers: --all."
                )
            for match in matches:
                found.setdefault(match, []).append(f"Gate: trailer of {trailer.commit}")
    return found


def _several(value: str, ids: Collection[str]) -> Iterator[str]:
    if value.lower().split()[0].rstrip(",.:;") == _NOTHING:
        return
    if _matching(value, ids):
        yield value
        return
    yield from (part.strip() for part in _split(value) if part.strip())


def _split(value: str) -> Iterator[str]:
    """At the commas that stand outside of brackets: a test's parameters may hold some."""
    part, depth = "", 0
    for character in value:
        depth += (character == "[") - (character == "]")
        if character == "," and depth <= 0:
            yield part
            part = ""
        else:
            part += character
    yield part


def _matching(name: str, ids: Collection[str]) -> list[str]:
    """The tests of a name; pytest writes what is not ASCII in parameters as escapes, people may write it as it is."""
    return _beginning(name, ids) or _beginning(name.encode("unicode_escape").decode(), ids)


def _beginning(name: str, ids: Collection[str]) -> list[str]:
    beginnings = (f"{name}::", f"{name}[", f"{name.rstrip('/')}/")
    return [key for key in ids if key == name or key.startswith(beginnings)]
