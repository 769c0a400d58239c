"""Leaves a record of each golden that was verified."""

from __future__ import annotations

import glob
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from gate.config import Config
from gate.errors import BaselineFailed
from gate.evidence import newcomers
from gate.evidence.leaving import Finding, leave
from gate.evidence.present import Present
from gate.evidence.reading import Reading
from gate.evidence.snapshot import Snapshot, StaleEvidence
from gate.row import Row
from gate.runs import Outcome
from gate.trial import Trial
from gate.verdict import Reason, Verdict
from golden.canonical import Json
from golden.store import Golden

RESULTS = {Verdict.IDENTICAL: "passed", Verdict.DRIFT: "failed", Verdict.NONDETERMINISTIC: "failed"}


@dataclass(frozen=True)
class Basis:
    """What evidence of a row rests on.

    Attributes:
        reading: what was read.
        torch: the full version.
        environment: what the run says of where it ran, as far as it is one value a name.
        listed: folders of the project that the run listed, with a slash at the end.
    """

    reading: Reading
    torch: str
    environment: Mapping[str, Json]
    listed: Collection[str] = ()


def basis(trial: Trial, head: Golden, outcome: Outcome) -> Basis | None:
    """What a run of a trial that was held against its golden rests on; None where the golden lies outside the project's goldens.

    Args:
        trial: what was run.
        head: what the run recorded; its manifest names the sources and distributions.
        outcome: the run: under which torch, and what it listed.
    """
    if not trial.folder.is_relative_to(trial.project):
        return None
    settings, known = trial.candidate.settings, head.manifest.environment
    packages = known.get("distributions")
    reading = Reading(
        files=tuple(head.manifest.sources),
        documents=True,
        goldens=(trial.folder,),
        scenarios=(settings.name,),
        patterns=tuple(pattern for path in settings.watch for pattern in _watched(path)),
        packages={name: str(version) for name, version in packages.items()} if isinstance(packages, Mapping) else {},
    )
    facts = {name: value for name, value in known.items() if not isinstance(value, (Mapping, list))}
    return Basis(reading, outcome.report.torch, {**facts, "interpreter": trial.interpreter.source}, outcome.listed)


def _watched(path: str) -> tuple[str, ...]:
    """Patterns of what a scenario's `watch` names: a file, or all that is in a folder."""
    place = glob.escape(path)
    return ("*",) if place == "." else (place, f"{place}/*")


def put_on_record(config: Config, before: Snapshot, row: Row) -> Row:
    """Leaves a record of a row that was held against a golden.

    Returns:
        The row; one that was identical is not judged after all where what it read was written meanwhile.

    Raises:
        StoreError: the record cannot be written.
    """
    if row.basis is None or row.verdict not in RESULTS:
        return row
    identical = row.verdict is Verdict.IDENTICAL
    finding = Finding(
        "goldens", str(row.hardware), row.basis.torch, RESULTS[row.verdict], {"identical": int(identical), "differing": int(not identical)},
        scenario=row.scenario, environment=row.basis.environment,
    )  # fmt: skip
    reading, present = row.basis.reading, Present(config)
    watched = [path for pattern in reading.patterns for path in present.matching(pattern)]
    new = newcomers.beside(present, map(str, reading.files), documents=True), newcomers.within(present, row.basis.listed, whole=True)
    try:
        leave(config, before, finding, replace(reading, files=(*reading.files, *watched), patterns=(*reading.patterns, *new[0], *new[1])))
    except (StaleEvidence, BaselineFailed) as error:
        if identical:
            return replace(row, verdict=Verdict.NOT_JUDGED, reason=Reason(error.reason), message=str(error))
    return row
