"""What pages of work say that a run covers: commits whose sources are the same, and digests that something has."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from gate import git
from gate.claims.coverage import Claim, covered
from gate.claims.issue import Issue, Weight
from gate.claims.prose import Lines, blank, without_comments
from gate.errors import BaselineFailed

SURE = 7  # digits: so many are hardly a word or a number; git takes four for a commit, so of fewer it is asked alone
_COMMIT = re.compile(r"(?<![\w-])(?:[0-9a-f]{7,40}|(?<![/:#])(?<!\d\.)[0-9a-f]{4,6}(?!\.\d))(?![\w-])", re.IGNORECASE)
_DIGEST = re.compile(r"(?<![\w-])(?:[0-9a-f]{64}|[0-9a-f]{32})(?![\w-])", re.IGNORECASE)
_OF_COMMITS = re.compile(r"\b(?:commits?|revisions?)\b", re.IGNORECASE)
_OF_DIGESTS = re.compile(r"\b(?:digests?|hash(?:es)?|sources?|contents?|goldens?|manifests?|roots?)\b", re.IGNORECASE)
_BARE = re.compile(  # what stands before a name that has no noun of its own: it is the commit's
    r"(?:\A|[.,:;|!?]|\n[ \t]*(?:[-*+]|\d+[.)])|\b(?:cover(?:s|ed|ing)?|and|or|both|only|also|at|commits?|revisions?))[\s`*_\[(]*\Z",
    re.IGNORECASE,
)
_NAME = r"[\s`*_\[(]*[0-9a-f]{4,64}(?![\w-])[`*_\])]*"
_ASIDE = re.compile(  # what is named to say when, or how else
    r"(?<!\band\s)\b(?:before|after|since|until|unlike|than|prior\s+to|differs?\s+from)\s+"
    rf"(?:(?:the\s+)?(?:commits?|revisions?|sources)\s+(?:of\s+|at\s+)?)?{_NAME}(?:\s+(?:and|or)\s+{_NAME})*",
    re.IGNORECASE,
)
_FOUND = re.compile(r"(?P<commit>[0-9a-f]{40,64}) commit \d+")
SHALLOW = "this clone is shallow: git fetch --unshallow"

Named = tuple[int, str]


def judged(file: str, text: str, root: Path, is_source: Callable[[str], bool], digests: Callable[[], frozenset[str]]) -> Iterator[Issue]:
    """What is wrong with the commits and digests that a page says a run covers, each once.

    What nothing here has as its name or digest may be that of something else, such as a dataset, but where the words speak of commits or of
    digests, or where what is said to be covered is the name alone.

    Args:
        file: the page, relative to the project.
        text: what it says.
        root: the project's folder.
        is_source: whether a file, relative to the project, may decide what a run gives.
        digests: everything that has a digest: sources, subjects of evidence, roots of goldens.
    """
    page, lines = _ASIDE.sub(blank, without_comments(text)), Lines(text)
    claims = list(covered(page))
    named = [_named(page, claim, _COMMIT) for claim in claims]
    commits = _commits(root, {name for run in named for _, name in run}) if any(named) else {}
    found = [told for run, claim in zip(named, claims, strict=True) for told in _unknown(page, run, claim, commits, root)]
    found += [told for run in named for told in _apart(run, commits, root, is_source)]
    for claim in claims:
        said = _OF_DIGESTS.search(claim.words) is not None
        for place, digest in _named(page, claim, _DIGEST):
            if (said or _is_bare(page, place)) and digest.lower() not in digests() and not _commits(root, {digest}):
                found.append((place, Weight.CLAIM, f"says that a run covers {digest}, which nothing here has as its digest"))
    yield from (Issue(weight, file, lines.of(place), told) for place, weight, told in dict.fromkeys(found))


def _named(text: str, claim: Claim, pattern: re.Pattern[str]) -> list[Named]:
    """What is named in the spans of a claim, each name where it stands first."""
    found: dict[str, int] = {}
    for start, end in claim.spans:
        for name in pattern.finditer(text, start, end):
            if pattern is _DIGEST or not _DIGEST.fullmatch(name[0]):
                found.setdefault(name[0], name.start())
    return [(place, name) for name, place in found.items()]


def _unknown(page: str, run: Sequence[Named], claim: Claim, commits: Mapping[str, str], root: Path) -> Iterator[tuple[int, Weight, str]]:
    said = _OF_COMMITS.search(claim.words) is not None
    for place, name in run:
        if name in commits or len(name) < SURE or name.isdecimal() or name.isalpha():
            continue
        if said or _is_bare(page, place):
            told = f"says that a run covers {name}, which is no commit of this repository"
            shallow = _is_shallow(root)
            yield place, Weight.UNJUDGED if shallow else Weight.CLAIM, f"{told}; {SHALLOW}" if shallow else told


def _is_bare(page: str, place: int) -> bool:
    return _BARE.search(page, max(0, place - 80), place) is not None


def _apart(
    run: Sequence[Named], commits: Mapping[str, str], root: Path, is_source: Callable[[str], bool]
) -> Iterator[tuple[int, Weight, str]]:
    (_, first), *others = [(place, name) for place, name in run if name in commits] or [(0, "")]
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


def _is_shallow(root: Path) -> bool:
    try:
        return git.run(root, "rev-parse", "--is-shallow-repository").strip() == b"true"
    except BaselineFailed:
        return False


def _differing(root: Path, one: str, other: str) -> list[str]:
    listed = git.run(root, "diff", "--name-only", "-z", "--relative", "--no-renames", one, other, "--", ".")
    return [path for path in os.fsdecode(listed).split("\0") if path]
