"""Goldens of GPUs that were removed by commits which do not say so: what a merge needs does not shrink with the folders."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import PurePosixPath

from gate import git
from gate.config import Config
from gate.errors import BaselineFailed
from gate.machine import device_of

TRAILER = "Golden-Change"  # a commit that carries it says that its goldens changed on purpose
_MARK = "\x1e"
_TORCH = "torch-"


def removed(config: Config) -> Mapping[str, tuple[str, ...]]:
    """Torch versions of GPUs, by hardware, that had goldens in HEAD's history and have none now, with no commit that says why.

    Those that are gone from the work tree alone count, too. Nothing where there is no history; in a shallow clone, what it holds of it.
    """
    goldens = config.goldens.relative_to(config.root)
    found: dict[str, set[str]] = {}
    with suppress(BaselineFailed):
        for place in sorted({*_tracked(config, goldens.as_posix()), *_dropped(config, goldens.as_posix())}):
            slug, folder = place
            if device_of(slug) == "cuda" and not (config.goldens / slug / folder).is_dir():
                found.setdefault(slug, set()).add(folder.removeprefix(_TORCH))
    return {slug: tuple(sorted(versions)) for slug, versions in sorted(found.items())}


def _tracked(config: Config, goldens: str) -> Iterator[tuple[str, str]]:
    """Torch folders that HEAD has."""
    listed = git.run(config.root, *git.LITERAL, "ls-tree", "-r", "-z", "--name-only", "HEAD", "--", goldens)
    yield from _places(os.fsdecode(listed).split("\0"), goldens)


def _dropped(config: Config, goldens: str) -> Iterator[tuple[str, str]]:
    """Torch folders of which a commit without the trailer removed the last manifest; the last removal of each decides."""
    told = git.run(
        config.root, *git.LITERAL, "log", "-z", "--no-renames", "--diff-filter=D", "--name-only", "--relative", "--no-show-signature", "-c",
        f"--format={_MARK}%(trailers:key={TRAILER},valueonly,separator=%x2C)%x00", "HEAD", "--", goldens,
    )  # fmt: skip
    seen: set[tuple[str, str]] = set()
    for commit in os.fsdecode(told).split(_MARK)[1:]:
        reason, _, names = commit.partition("\0")
        places = set(_places(names.split("\0"), goldens)) - seen
        seen |= places
        if not reason.strip():
            yield from places


def _places(names: list[str], goldens: str) -> Iterator[tuple[str, str]]:
    """Hardware and torch folder of each golden among some paths."""
    depth = len(PurePosixPath(goldens).parts)
    for name in names:
        parts = PurePosixPath(name.strip("\n")).parts[depth:]
        if len(parts) > 2 and parts[1].startswith(_TORCH) and parts[-1] == "manifest.json":
            yield parts[0], parts[1]
