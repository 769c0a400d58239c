"""What pages of work say that a run covers: commits whose sources are the same, and digests that something has."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from gate import git
from gate.claims.issue import Issue, Weight
from gate.claims.prose import line_of, sentences
from gate.errors import BaselineFailed

_COVERS = re.compile(r"\bcover(?:s|ed|ing)?\b", re.IGNORECASE)
_COMMIT = re.compile(r"(?<![\w-])[0-9a-f]{7,40}(?![\w-])")
_DIGEST = re.compile(r"(?<![\w-])(?:[0-9a-f]{64}|[0-9a-f]{32})(?![\w-])")


def judged(file: str, text: str, root: Path, is_source: Callable[[str], bool], digests: Callable[[], frozenset[str]]) -> Iterator[Issue]:
    """What is wrong with the commits and digests that a page says a run covers.

    Args:
        file: the page, relative to the project.
        text: what it says.
        root: the project's folder.
        is_source: whether a file, relative to the project, may decide what a run gives.
        digests: everything that has a digest: sources, subjects of evidence, roots of goldens.
    """
    for place, sentence in sentences(text):
        if not _COVERS.search(sentence):
            continue
        line = line_of(text, place)
        yield from (Issue(Weight.CLAIM, file, line, told) for told in _commits(sentence, root, is_source))
        odd = [digest for digest in _DIGEST.findall(sentence) if digest not in digests()]
        yield from (
            Issue(Weight.CLAIM, file, line, f"says that a run covers {digest}, which nothing here has as its digest") for digest in odd
        )


def _commits(sentence: str, root: Path, is_source: Callable[[str], bool]) -> Iterator[str]:
    known: dict[str, str] = {}
    for name in dict.fromkeys(_COMMIT.findall(sentence)):
        if _DIGEST.fullmatch(name):
            continue
        commit = _resolved(root, name)
        if commit:
            known[name] = commit
        elif not name.isdecimal():
            yield f"says that a run covers {name}, which is no commit of this repository"
    (first, base), *others = list(known.items()) or [("", "")]
    for name, commit in others:
        differing = [path for path in _differing(root, base, commit) if is_source(path)]
        if differing:
            more = f" and {len(differing) - 1} more" if len(differing) > 1 else ""
            yield f"says that a run covers {first} and {name}, but their sources differ: {differing[0]}{more}. Run it at each, or name one"


def _resolved(root: Path, name: str) -> str | None:
    try:
        return git.run(root, "rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}").decode().strip()
    except BaselineFailed:
        return None


def _differing(root: Path, one: str, other: str) -> list[str]:
    listed = git.run(root, "diff", "--name-only", "-z", "--relative", "--no-renames", one, other, "--", ".")
    return [path for path in os.fsdecode(listed).split("\0") if path]
