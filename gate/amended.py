"""Which goldens a change replaces, with which bits, and whether somebody said that they were meant to move."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from gate import facts, git, tracking
from gate.config import Config
from gate.errors import GoldenError
from gate.former import Former
from gate.history import Repository
from gate.trailers.message import messages
from gate.trailers.rule import GOLDEN_CHANGE
from golden.compare import Comparison, compare
from golden.files import write
from golden.manifest import FILE
from golden.store import Golden

CENSUS = 1000  # differences whose elements are counted


@dataclass(frozen=True)
class Amendment:
    """A golden whose bits are no longer those of a revision.

    Attributes:
        golden: "cpu/torch-2.13.0/digits".
        comparison: how it differs; None where it is gone or cannot be read.
        reason: what its manifest says, None where it says nothing.
        commits: ids of the commits that own up to it.
        faults: what is missing, each as a sentence without its end; empty where all is said.
    """

    golden: str
    comparison: Comparison | None
    reason: str | None
    commits: tuple[str, ...]
    faults: tuple[str, ...]

    @property
    def scenario(self) -> str:
        """The name of the golden's folder."""
        return PurePosixPath(self.golden).name

    def lines(self) -> Iterator[str]:
        """The amendment for people: first difference, census, reason, and what is missing."""
        yield f"{self.golden}: {'changed' if self.comparison else 'removed or unreadable'}"
        if self.comparison is not None and self.comparison.first is not None:
            told = [*facts.first(self.comparison.first), *facts.extent(self.comparison)]
            yield from (f"  {label or '':<9} {text}" for label, text in told)
        yield f"  reason    {self.reason or 'none'}"
        yield from (f"  missing   {fault}" for fault in self.faults)

    def as_json(self) -> dict[str, Any]:
        """The amendment as `--json` writes it."""
        first = self.comparison.first if self.comparison else None
        counts = {"structure": self.comparison.structure, "bits": self.comparison.bits} if self.comparison else {}
        return {
            "golden": self.golden,
            "scenario": self.scenario,
            "first": first.as_json() if first else None,
            **counts,
            "reason": self.reason,
            "commits": list(self.commits),
            "faults": list(self.faults),
        }


@dataclass(frozen=True)
class Amended:
    """What `amended` gives back.

    Attributes:
        since: the revision compared with.
        compared: how many goldens it had.
        changes: in order of their places.
        before, after: the folder that held the goldens there, and the one that does now.
        gone: whether the former one is no longer there.
    """

    since: str
    compared: int
    changes: tuple[Amendment, ...]
    before: str
    after: str
    gone: bool

    @property
    def exit_code(self) -> int:
        """1, as any drift, where something is missing."""
        return 1 if any(change.faults for change in self.changes) else 0

    def lines(self) -> Iterator[str]:
        """What became of the folder, where something did, and each amendment, for people."""
        if self.before != self.after:
            yield f"the goldens were in {self.before}/ at {self.since[:10]}, and are in {self.after}/ now"
        if self.gone and self.compared:
            yield f"{self.before}/ is gone; at {self.since[:10]} it held {facts.count(self.compared, 'golden')}"
        for change in self.changes:
            yield from change.lines()

    def as_json(self) -> dict[str, Any]:
        """The result as `--json` writes it."""
        root = {"before": self.before, "after": self.after, "gone": self.gone}
        return {"since": self.since, "compared": self.compared, "root": root, "changes": [change.as_json() for change in self.changes]}


def amended(config: Config, since: str) -> Amended:
    """Compares every golden of a revision with that of the work tree.

    Where the goldens lay at the revision its own configuration says; those of one place (hardware, torch, scenario) belong together,
    whatever folder holds them all.

    Args:
        config: the project's.
        since: a commit's id.

    Raises:
        BaselineFailed: git cannot give the goldens, or a shallow clone lacks commits that might own up to a change.
        StoreError: there is no room for them.
    """
    repository = Repository.of(config.root)
    repository.check_whole(f"{since}..HEAD")
    owners: dict[str, list[str]] = {}
    for message in messages(config.root, f"{since}..HEAD"):
        for name in (name.strip() for value in message.values(GOLDEN_CHANGE) for name in value.split(",")):
            owners.setdefault(name, []).append(message.id)
    objects = git.Objects(repository.top)
    try:
        former = Former.of(objects, repository, config, since)
        lost = set(tracking.untracked(repository.top, (path for files in former.files.values() for path in files.values())))
        changes = [
            _lost(place, lost.intersection(files.values())) or _amendment(objects, since, config, place, files, owners)
            for place, files in sorted(former.files.items())
        ]
    finally:
        objects.close()
    after, gone = config.goldens.relative_to(config.root).as_posix(), not (config.root / former.root).exists()
    return Amended(since, len(former.files), tuple(change for change in changes if change), former.root, after, gone)


def _lost(place: str, paths: set[str]) -> Amendment | None:
    """A golden of which files are there, and no longer under git: what is merged is without them."""
    if not paths:
        return None
    told = f"{facts.count(len(paths), 'file')} that git held and holds no longer. git add {min(paths)}, or remove what is meant to go"
    return Amendment(place, None, None, (), (told,))


def _amendment(
    objects: git.Objects, since: str, config: Config, place: str, files: Mapping[str, str], owners: Mapping[str, list[str]]
) -> Amendment | None:
    """How a golden was amended; None where its bits are what they were."""
    folder = config.goldens / place
    contents = {FILE: _read(objects, since, files[FILE])}
    if (folder / FILE).is_file() and (folder / FILE).read_bytes() == contents[FILE]:
        return None
    commits = tuple(owners.get(PurePosixPath(place).name, ()))
    unowned = [] if commits else [f"a commit since {since[:10]} with the trailer {GOLDEN_CHANGE}: {PurePosixPath(place).name}"]
    contents |= {name: _read(objects, since, path) for name, path in files.items() if name != FILE}
    with tempfile.TemporaryDirectory(prefix="gate-golden-") as name:
        for file, content in contents.items():
            write(Path(name) / file, [content])
        try:
            old, new = Golden.open(Path(name)), Golden.open(folder)
        except GoldenError as error:
            return Amendment(place, None, None, commits, (*unowned, *_unreadable(folder, error)))
        comparison = compare(old, new, limit=CENSUS)
        if comparison.identical:
            return None
        return Amendment(place, comparison, _text(new), commits, (*_reasonless(old, new), *unowned))


def _unreadable(folder: Path, error: GoldenError) -> list[str]:
    return [f"the golden, which cannot be read: {error}"] if folder.is_dir() else []


def _reasonless(old: Golden, new: Golden) -> list[str]:
    if new.manifest.reason is None:
        return ['a reason: gate record --update --reason "..." gives one, a golden that was removed and recorded anew has none']
    return ["a new reason: it has that of an earlier change"] if _text(new) == _text(old) else []


def _text(golden: Golden) -> str | None:
    return golden.manifest.reason.text.strip() if golden.manifest.reason else None


def _read(objects: git.Objects, commit: str, path: str) -> bytes:
    blob = objects.find(commit, path)
    return objects.read(blob) if blob else b""
