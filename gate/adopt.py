"""Publishes as goldens what a failed verify kept: runs of another machine, or the new bits of a change that meant to move them."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gate.errors import GoldenError, UsageError
from gate.layout import golden_folder
from gate.match import goldens
from gate.publication import offer
from gate.record import told, warn
from gate.row import Results, Row
from gate.selection import Candidate
from gate.trial import Means, row, settings_changes
from gate.verdict import Reason, Verdict
from gate.version import valid
from golden.aside import clear_leftovers
from golden.errors import CorruptGolden
from golden.lock import lock
from golden.settings import Settings
from golden.store import Golden

ARMS = "arms"  # where a kept run holds what looked for the cause
_SLUG = re.compile(r"[a-z0-9][a-z0-9.-]*")


def adopt(means: Means, kept: Path, names: Sequence[str], reason: str | None) -> Results:
    """Publishes the goldens of a kept run, which are whole and of the scenarios' present settings.

    Args:
        means: with what; nothing is run.
        kept: `.gate/runs/ID`, or a folder or golden in it.
        names: the scenarios to take, all of them where there is none.
        reason: why bits were meant to move; None keeps goldens that differ.

    Raises:
        UsageError: no such folder or scenario, a scenario that the run does not hold.
        MissingGolden: there is no golden in it.
        Locked: another process records here.
        StoreError: the disk or its permissions.
    """
    found = _found(means, kept, names)
    with lock(means.config.goldens):
        clear_leftovers(means.config.goldens)
        rows = tuple(_row(means, settings, folder, reason) for settings, folder in found)
    warn(means)
    return Results(rows)


def _found(means: Means, kept: Path, names: Sequence[str]) -> list[tuple[Settings, Path]]:
    """The goldens to take with their scenarios' settings, by place."""
    known = {settings.name: settings for settings in means.config.select(names)}
    folders = [folder for place, folder in goldens(kept).items() if ARMS not in Path(place).parts]
    ours = [(known[folder.name], folder) for folder in folders if folder.name in known]
    lacking = [name for name in names if name not in {folder.name for folder in folders}]
    if lacking or not ours:
        raise UsageError(
            f"--from {kept} holds no run of {', '.join(lacking or known)}, but of: {', '.join(f.name for f in folders) or 'nothing'}"
        )
    own = [(settings, folder) for settings, folder in ours if not settings.same_as]
    if not own:
        raise UsageError(f"--from {kept}: {ours[0][0].name} has no golden of its own (same_as): record {ours[0][0].same_as} instead.")
    return own


def _row(means: Means, settings: Settings, folder: Path, reason: str | None) -> Row:
    begun = time.perf_counter()
    candidate = Candidate(settings, means.config.goldens, None, None, None)
    try:
        judged = _adopt(means, candidate, Golden.open(folder), reason)
    except GoldenError as error:
        judged = row(candidate, Verdict.NOT_JUDGED, reason=Reason(error.reason), message=str(error))
    return replace(judged, seconds=time.perf_counter() - begun)


def _adopt(means: Means, candidate: Candidate, golden: Golden, reason: str | None) -> Row:
    known = golden.manifest
    if not _SLUG.fullmatch(known.hardware) or not valid(known.torch) or known.scenario.get("name") != candidate.settings.name:
        raise CorruptGolden(golden.folder, "names no hardware, torch or scenario that a golden could have, or another than its folder")
    candidate = replace(candidate, hardware=known.hardware, torch=known.torch)
    changes = settings_changes(candidate.settings, known.scenario)
    if changes:
        message = f"{golden.folder} was run with {'; '.join(changes)}. Run it again with the settings as they are."
        return row(candidate, Verdict.NOT_JUDGED, reason=Reason.SETTINGS, message=message)
    target = golden_folder(candidate.root, known.hardware, known.torch, candidate.golden)
    published = offer(golden, candidate.root, target, reason)
    return row(candidate, published.verdict, **told(published, golden))
