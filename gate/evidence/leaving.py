"""Puts what a check found on record, if what it read is still what it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from gate.config import Config
from gate.evidence import archive
from gate.evidence.present import Present
from gate.evidence.reading import Reading
from gate.evidence.snapshot import Snapshot
from gate.evidence.statement import CHECKS, MADE, Record, Subject
from gate.layout import shown_version
from golden.canonical import Json

PASSED, FAILED, INCONCLUSIVE = RESULTS = ("passed", "failed", "inconclusive")


@dataclass(frozen=True)
class Finding:
    """What a check found.

    Attributes:
        check: "tests", "goldens", "mutation" or "bench".
        hardware: slug of what it ran on: the GPU's where it used one, else the CPU profile's.
        torch: the full version; records of CPUs are filed under its public part.
        result: "passed", "failed" (judged and wrong) or "inconclusive" (ran, and cannot say).
        counts: figures by name ("passed", "failed", "skipped", "killed"); documents may claim them.
        scenario: for `goldens`, which one.
        since: the full id of the commit that the change it looked at began with; None where it looked at everything.
        environment: what it ran in.
        details: for `tests` {"passed": {FILE: [NAME in it, ...]}, "skipped": {ID: reason}, "cuda": {"passed": N, "skipped": N}}, for
            `mutation` {"killed": {"FILE::FUNCTION": [ID of a test that killed a mutant of it, ...]}, "paths": [PATH, ...], "asked": [ID of
            a test that was asked of every mutant it runs, ...], "tests": [PATH of --tests, ...]}; for others what it likes. "made" is ours.
    """

    check: str
    hardware: str
    torch: str
    result: str
    counts: Mapping[str, int]
    scenario: str | None = None
    since: str | None = None
    environment: Mapping[str, Json] = field(default_factory=dict)
    details: Mapping[str, Json] = field(default_factory=dict)


def leave(config: Config, before: Snapshot, finding: Finding, reading: Reading) -> Path:
    """Writes a record into `.gate/evidence`, also of a check that failed: a later failure is not hidden behind an earlier success.

    Returns:
        Its file.

    Raises:
        StaleEvidence: something that was read has been written since `before`; there is no record.
        StoreError: the disk or its permissions; there is no record.
        BaselineFailed: git cannot tell what differs from `finding.since`.
    """
    assert finding.check in CHECKS, "records of other checks are not read"
    assert finding.result in RESULTS, "a check passed, failed or cannot say"
    present = Present(config)
    paths = set(reading.paths(present))
    came_or_went = _came_or_went(before, present, reading.patterns)
    held = before.tracked | present.tracked
    theirs = came_or_went & held  # nobody knows whether the check has seen them
    written = {path for path in paths - held if before.is_made(present, path)}
    before.check(present, {*paths - written, *theirs})
    own = (came_or_went - theirs) | written
    subjects = tuple(reading.subjects(present.with_files(before.files), finding.since, without=written))
    details = {**finding.details, MADE: sorted(own)} if own else finding.details
    return archive.write(config, record(replace(finding, details=details), subjects))


def _came_or_went(before: Snapshot, present: Present, patterns: Iterable[str]) -> set[str]:
    """Files that patterns have, and that have come or gone since."""
    now = {path for pattern in patterns for path in present.matching(pattern)}
    moved = before.files.keys() ^ set(present.files)
    return {path for path in moved if path in now or any(present.fits(path, pattern) for pattern in patterns)}


def record(finding: Finding, subjects: tuple[Subject, ...]) -> Record:
    """The record of a finding, made now."""
    facts = {key: getattr(finding, key) for key in ("check", "hardware", "result", "scenario", "since")}
    return Record(
        **facts,
        torch=shown_version(finding.hardware, finding.torch),
        counts=dict(finding.counts),
        environment=dict(finding.environment),
        details=dict(finding.details),
        time=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        subjects=subjects,
    )
