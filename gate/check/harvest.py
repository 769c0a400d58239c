"""Reads what a session of pytest left in its folder: how tests ended, which lines they ran and which files they read."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gate.check.knowledge import Known

_COMPILED = "compiled:"
COUNTED = ("passed", "failed", "skipped", "xfailed", "xpassed")  # as pytest counts; the last two were expected to fail
SETTLED = ("passed", "xfailed", "xpassed")  # it ran, and nothing speaks against the code
KILLED = "a process of it ended without telling what it ran"
CUT_OFF = "the process that ran it ended without telling what it ran"
DISTURBED = "it failed while its lines were measured, and passed without"
COMPILED = "torch.compile ran code of it, whose lines coverage does not see"


@dataclass(frozen=True)
class Outcome:
    """How a test ended.

    Attributes:
        status: one of `COUNTED`, or "unfinished".
        text: why it failed, was skipped or was expected to fail.
        seconds: set-up, call and tear-down.
    """

    status: str
    text: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Item:
    """A test as pytest collected it.

    Attributes:
        file: relative to the project where it lies there.
        fixtures: of wider scope than one test.
    """

    file: str
    fixtures: tuple[str, ...]


@dataclass
class Seen:
    """What one context did."""

    lines: dict[str, int] = field(default_factory=dict)
    reads: set[str] = field(default_factory=set)
    started: int = 0
    lost: int = 0
    delivered: int = 0
    worker: str = ""


def items(folder: Path) -> dict[str, Item]:
    """What was collected, by id, in pytest's order."""
    found: dict[str, Item] = {}
    for file in sorted(folder.glob("items-*.json")):
        for key, path, fixtures in json.loads(file.read_text(encoding="utf-8")):
            found.setdefault(key, Item(path, tuple(fixtures)))
    return found


def outcomes(folder: Path) -> dict[str, Outcome]:
    """How each test, or file that could not be collected, ended."""
    reports: dict[str, list[dict[str, Any]]] = {}
    for line in _lines(folder / "outcomes.jsonl"):
        reports.setdefault(line["id"], []).append(line)
    return {key: outcome(several) for key, several in reports.items()}


def part(folder: Path) -> str:
    """The options of the environment that take part of the tests; "" where all that the project's configuration selects were collected."""
    file = folder / "part"
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def known(folder: Path, root: Path, found: Mapping[str, Item], ended: Mapping[str, Outcome]) -> dict[str, Known]:
    """What was seen of each test that ran: its own doing, and that of the fixtures that it shares with others."""
    seen, contexts, compiled = _seen(folder)
    saved = {file.name.removeprefix("saved-"): file.read_text(encoding="ascii") for file in folder.glob("saved-*")}
    _add_lines(seen, contexts, folder, root, set(saved.values()))
    result = {}
    for key, item in found.items():
        if key in ended and ended[key].status != "unfinished":
            own = seen.get(key, Seen())
            all_seen = [own, *(seen[name] for name in item.fixtures if name in seen)]
            blind = _blind(all_seen, own.worker in saved, key in compiled)
            result[key] = _united(item.file, all_seen, blind, ended[key].status)
    return result


def _united(file: str, several: Iterable[Seen], blind: str, status: str) -> Known:
    lines: dict[str, int] = {}
    reads: set[str] = set()
    started = False
    for seen in several:
        reads |= seen.reads
        started = started or bool(seen.started + seen.lost)
        for path, found in seen.lines.items():
            lines[path] = lines.get(path, 0) | found
    return Known(file, lines, frozenset(reads), blind, started, status)


def _blind(several: list[Seen], saved: bool, compiled: bool) -> str:
    if not saved:
        return CUT_OFF
    if any(seen.lost or seen.started > seen.delivered for seen in several):
        return KILLED
    return COMPILED if compiled else ""


def outcome(reports: list[dict[str, Any]]) -> Outcome:
    """How a test ended, by the reports of its phases: "outcome", "when", "seconds", "text"; "expected": why it was to fail, or None."""
    seconds = sum(report["seconds"] for report in reports)
    failed = [report for report in reports if report["outcome"] == "failed"]
    if failed:
        return Outcome("failed", "\n\n".join(report["text"] for report in failed), seconds)
    skipped = [report for report in reports if report["outcome"] == "skipped"]
    if any(report["expected"] is None for report in skipped):
        return Outcome("skipped", next(report["text"] for report in skipped if report["expected"] is None), seconds)
    if all(report["when"] != "teardown" for report in reports):
        return Outcome("unfinished", "", seconds)
    expected = next((report["expected"] for report in reports if report["expected"] is not None), None)
    if expected is None:
        return Outcome("passed", "", seconds)
    return Outcome("xfailed" if skipped else "xpassed", expected, seconds)


def _seen(folder: Path) -> tuple[dict[str, Seen], dict[str, str], set[str]]:
    """What tests and fixtures did, by key; the keys by the names of their contexts; the tests for which torch compiled something."""
    found: dict[str, Seen] = {}
    contexts: dict[str, str] = {}
    compiled = set()
    for file in sorted(folder.glob("seen-*.jsonl")):
        for line in _lines(file):
            key = line["key"]
            if key.startswith(_COMPILED):
                compiled.add(key.removeprefix(_COMPILED))
                continue
            contexts[line["context"]] = key
            seen = found.setdefault(key, Seen())
            seen.reads |= set(line["reads"])
            seen.started += line["started"]
            seen.lost += line["lost"]
            seen.worker = line["worker"]
    return found, contexts, compiled


def _add_lines(seen: Mapping[str, Seen], contexts: Mapping[str, str], folder: Path, root: Path, own: set[str]) -> None:
    """Adds coverage's data; `own` are the numbers of the processes that ran tests."""
    for file in sorted(folder.glob("cov.*")):
        told = set()
        for path, context, bits in _rows(file):
            key = contexts.get(context.rpartition("|")[2])
            if key is None:  # an import while tests were collected, or a test that was cut off
                continue
            told.add(key)
            if path.startswith(f"{root}/"):
                relative, lines = path[len(str(root)) + 1 :], seen[key].lines
                lines[relative] = lines.get(relative, 0) | int.from_bytes(bits, "little")
        if not any(f".pid{number}." in file.name for number in own):
            for key in told:
                seen[key].delivered += 1


def _rows(file: Path) -> list[tuple[str, str, bytes]]:
    """Path, context and set of lines; coverage's own bits are laid out as ours. Of a file half written nothing."""
    query = (
        "select file.path, context.context, numbits from line_bits join file on file.id = file_id join context on context.id = context_id"
    )
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as data:
            return data.execute(query).fetchall()
    except sqlite3.Error:
        return []


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except ValueError:  # cut by a killed process
                continue
