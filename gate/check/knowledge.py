"""Which test ran which lines and read which files, kept below `.gate/check`, and bound to the contents that it was seen with."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gate import output
from gate.check.lines import Hunk, carried, hunks
from gate.check.parts import heirs
from golden.errors import StoreError

FORMAT = 1


@dataclass(frozen=True)
class Known:
    """What is known of one test.

    Attributes:
        file: the one that it stands in.
        lines: by path, the set of lines that it ran, in whatever process (see gate.check.lines).
        reads: files that it opened for reading, and folders that it listed (with a slash at the end).
        blind: why it may have run more than is known; empty where all is known.
        started: whether it started processes, whose reading is not seen.
        outcome: one of gate.check.harvest.COUNTED.
    """

    file: str
    lines: Mapping[str, int] = field(default_factory=dict)
    reads: frozenset[str] = frozenset()
    blind: str = ""
    started: bool = False
    outcome: str = "passed"


@dataclass(frozen=True)
class Knowledge:
    """What is known of all tests.

    Attributes:
        sources: by path, the text of each Python file whose lines are spoken of.
        tests: by id.
    """

    sources: Mapping[str, str] = field(default_factory=dict)
    tests: Mapping[str, Known] = field(default_factory=dict)

    def translated(self, sources: Mapping[str, str]) -> Knowledge:
        """The same of other contents: lines are followed to where they went. A file that is gone keeps its lines."""
        changed = {path: _fate(text, sources[path]) for path, text in self.sources.items() if sources.get(path, text) != text}

        def follow(known: Known) -> Known:
            touched = changed.keys() & known.lines.keys()
            lines = {path: carried(found, *changed[path]) if path in touched else found for path, found in known.lines.items()}
            return replace(known, lines=lines) if touched else known

        return Knowledge({**self.sources, **sources}, {key: follow(known) for key, known in self.tests.items()})

    def refreshed(self, fresh: Mapping[str, Known], total: Iterable[str]) -> Knowledge:
        """With what a run has shown; of tests that do not exist any more nothing is known.

        A test that failed ran less than it would, so that what was known before still counts for it.

        Args:
            fresh: what the run has shown, by id.
            total: the ids of all tests that there are.
        """
        tests = {
            key: self._united(key, fresh[key]) if key in fresh else self.tests[key] for key in total if key in fresh or key in self.tests
        }
        spoken = {path for known in tests.values() for path in known.lines}
        return Knowledge({path: text for path, text in self.sources.items() if path in spoken}, tests)

    def _united(self, key: str, now: Known) -> Known:
        before = self.tests.get(key)
        if before is None or now.outcome == "passed":
            return now
        lines = {path: now.lines.get(path, 0) | before.lines.get(path, 0) for path in {*now.lines, *before.lines}}
        return replace(
            now, lines=lines, reads=now.reads | before.reads, blind=now.blind or before.blind, started=now.started or before.started
        )


def _fate(old: str, new: str) -> tuple[tuple[Hunk, ...], list[tuple[int, int]]]:
    """What became of a content's lines."""
    differences = hunks(old, new)
    return differences, heirs(old, new, differences)


def load(folder: Path, name: str) -> Knowledge | None:
    """What was kept; None where there is nothing, or nothing that can be read."""
    try:
        document = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            return None
        paths, masks = document["paths"], [int(text, 16) for text in document["lines"]]
        sources = {path: _source(folder, digest) for path, digest in document["sources"].items()}
        return Knowledge(sources, {key: _known(facts, paths, masks) for key, facts in document["tests"].items()})
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None


def keep(knowledge: Knowledge, folder: Path, name: str) -> None:
    """Writes it down: the contents first, and then, in one rename, what speaks of them. A process killed on the way leaves the old one.

    Raises:
        StoreError: the disk or its permissions.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            _write(knowledge, folder, name)
    except OSError as error:
        raise StoreError.of(error, folder) from error


def _write(knowledge: Knowledge, folder: Path, name: str) -> None:
    digests = {path: _keep_source(folder, text) for path, text in sorted(knowledge.sources.items())}
    paths: dict[str, int] = {}
    masks: dict[str, int] = {}
    tests = {key: _facts(known, paths, masks) for key, known in knowledge.tests.items()}
    document = {"format": FORMAT, "sources": digests, "paths": list(paths), "lines": list(masks), "tests": tests}
    output.replace(folder / f"{name}.json", json.dumps(document, separators=(",", ":")))
    _prune(folder)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One at a time: another one's contents must not be pruned before what speaks of them is there."""
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _facts(known: Known, paths: dict[str, int], masks: dict[str, int]) -> dict[str, Any]:
    lines = [
        [paths.setdefault(path, len(paths)), masks.setdefault(f"{found:x}", len(masks))] for path, found in sorted(known.lines.items())
    ]
    reads = [paths.setdefault(path, len(paths)) for path in sorted(known.reads)]
    more = {"blind": known.blind, "started": known.started, "outcome": known.outcome}
    return {"file": paths.setdefault(known.file, len(paths)), "lines": lines, "reads": reads, **more}


def _known(facts: Mapping[str, Any], paths: list[str], masks: list[int]) -> Known:
    lines = {paths[path]: masks[found] for path, found in facts["lines"]}
    reads = frozenset(paths[path] for path in facts["reads"])
    return Known(paths[facts["file"]], lines, reads, facts["blind"], facts["started"], facts["outcome"])


def _keep_source(folder: Path, text: str) -> str:
    content = text.encode("utf-8", "surrogateescape")
    digest = hashlib.sha256(content).hexdigest()
    path = folder / "sources" / digest
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        output.replace(path, text)
    return digest


def _source(folder: Path, digest: str) -> str:
    content = (folder / "sources" / digest).read_bytes()
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(digest)
    return content.decode("utf-8", "surrogateescape")


def _prune(folder: Path) -> None:
    """Removes contents that nothing speaks of any more; asides of killed processes as well."""
    spoken = set()
    for file in folder.glob("*.json"):
        spoken |= set(json.loads(file.read_text(encoding="utf-8")).get("sources", {}).values())
    sources = folder / "sources"
    for path in sources.iterdir() if sources.is_dir() else ():
        if path.name not in spoken and not path.name.endswith(f".{os.getpid()}"):
            path.unlink(missing_ok=True)
