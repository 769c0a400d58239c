"""What pages of work say that a run covers: commits whose sources are the same, and digests that something has."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from gate import git
from gate.claims.coverage import Claim, covered
from gate.claims.issue import Issue, Weight
from gate.claims.prose import Lines, without_comments
from gate.errors import BaselineFailed

SURE = 7  # digits: so many are hardly a word or a number; git takes four for a commit, so of fewer it is asked alone
_DIGEST = re.compile(r"(?<![\w-])(?:[0-9a-f]{64}|[0-9a-f]{32})(?![\w-])", re.IGNORECASE)
_FOUND = re.compile(r"(?P<commit>[0-9a-f]{40,64}) commit \d+")
SHALLOW = "this clone is shallow: git fetch --unshallow"
NO_GIT = "no git repository is here to tell"

Told = tuple[int, Weight, str]  # a fault after its place


def judged(file: str, text: str, root: Path, is_source: Callable[[str], bool], digests: Callable[[], frozenset[str]]) -> Iterator[Issue]:
    """What is wrong with the commits and digests that a page says a run covers, each once.

    Args:
        file: the page, relative to the project.
        text: what it says.
        root: the project's folder.
        is_source: whether a file, relative to the project, may decide what a run gives.
        digests: everything that has a digest: sources, subjects of evidence, roots of goldens.
    """
    lines, claims = Lines(text), list(covered(without_comments(text)))
    names = {name for claim in claims for _, name in claim}
    commits = _commits(root, names) if names else {}
    found = [told for claim in claims for told in _unknown(claim, commits, root, digests)]
    found += [told for claim in claims for told in _apart(claim, commits, root, is_source)]
    yield from (Issue(weight, file, lines.of(place), told) for place, weight, told in dict.fromkeys(found))


def _unknown(claim: Claim, commits: Mapping[str, str], root: Path, digests: Callable[[], frozenset[str]]) -> Iterator[Told]:
    for place, name in claim:
        if name in commits or len(name) < SURE:
            continue
        if _DIGEST.fullmatch(name):
            if name.lower() not in digests():
                yield place, Weight.CLAIM, f"says that a run covers {name}, which nothing here has as its digest"
        elif not (name.isdecimal() or name.isalpha()):
            told, lack = f"says that a run covers {name}, which is no commit of this repository", _lack(root)
            yield place, Weight.UNJUDGED if lack else Weight.CLAIM, f"{told}; {lack}" if lack else told


def _apart(claim: Claim, commits: Mapping[str, str], root: Path, is_source: Callable[[str], bool]) -> Iterator[Told]:
    (_, first), *others = [(place, name) for place, name in claim if name in commits] or [(0, "")]
    for place, name in others:
        differing = [path for path in _differing(root, commits[first], commits[name]) if is_source(path)]
        if differing:
            more = f" and {len(differing) - 1} more" if len(differing) > 1 else ""
            told = f"says that a run covers {first} and {name}, but their sources differ: {differing[0]}{more}"
            yield place, Weight.CLAIM, f"{told}. Run it at each, or name one"


def _commits(root: Path, names: set[str]) -> dict[str, str]:
    """The commits that names are the beginnings of, as git has it: a word, a number or a branch is none, nor what several begin with."""
    ordered = sorted(names)
    asked = "".join(f"{name.lower()}^{{commit}}\n" for name in ordered).encode()
    try:
        answers = git.run(root, "cat-file", "--batch-check", stdin=asked).decode().splitlines()
    except BaselineFailed:  # no repository
        return {}
    found = {name: match["commit"] for name, line in zip(ordered, answers, strict=True) if (match := _FOUND.fullmatch(line))}
    return {name: commit for name, commit in found.items() if commit.startswith(name.lower())}


def _lack(root: Path) -> str:
    """Why a commit may be one that is not here; nothing where all of them are."""
    try:
        shallow = git.run(root, "rev-parse", "--is-shallow-repository").strip() == b"true"
    except BaselineFailed:
        return NO_GIT
    return SHALLOW if shallow else ""


def _differing(root: Path, one: str, other: str) -> list[str]:
    listed = git.run(root, "diff", "--name-only", "-z", "--relative", "--no-renames", one, other, "--", ".")
    return [path for path in os.fsdecode(listed).split("\0") if path]
