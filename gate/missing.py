"""What is told where there is no golden: the nearest one, how its environment differs from this one, and how to record the missing."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gate.known import ask
from gate.layout import golden_folder, nearest
from gate.row import Row
from gate.runs import Outcome
from gate.trial import Trial
from gate.verdict import Reason, Verdict
from golden import environment, manifest
from golden.errors import GoldenError
from golden.store import Golden

GPU = ("capability", "multiprocessors")  # what makes two GPUs of one name different hardware


def row(trial: Trial, why: str = "") -> Row:
    """The `no-golden` row of a trial; `why` leads its message where there is a golden that cannot be used."""
    candidate = trial.candidate
    near = nearest(candidate.root, trial.hardware, trial.interpreter.torch, candidate.golden)
    lead = why or f"There is no golden at {trial.folder}."
    told = f"{lead} {_told(near, candidate.root)} Record it: {command(trial)}"
    return trial.row(Verdict.NOT_JUDGED, reason=Reason.NO_GOLDEN, message=told, environment_changes=_changes(trial, near))


def command(trial: Trial) -> str:
    """The command that would record the golden of a trial."""
    candidate = trial.candidate
    words = ["gate", "record", candidate.golden]
    if candidate.device == "cuda":
        words += ["--device", "cuda"]
    elif trial.profile == "native":
        words += ["--profile", "native"]
    if candidate.torch is not None:
        words += ["--torch", candidate.torch]
    return shlex.join(words)


def _told(near: Path | None, root: Path) -> str:
    return f"The nearest is {near.relative_to(root).as_posix()}." if near else "Nor is there one for other hardware or another torch."


def _changes(trial: Trial, near: Path | None) -> tuple[Mapping[str, Any], ...]:
    """How the environment here differs from that of the nearest golden; nothing where one of them cannot be had."""
    if near is None:
        return ()
    try:
        recorded = manifest.read(near).environment
    except GoldenError:
        return ()
    here = ask(trial, "environment", "--device", trial.candidate.device, "--profile", trial.profile)
    found = environment.difference(recorded, here) if isinstance(here, Mapping) else []
    return tuple(change for change in found if not _unknown(change))


def _unknown(change: Mapping[str, Any]) -> bool:
    """Whether a change is of a distribution that a scenario imported: which version it would be here only a run can tell."""
    return str(change["path"]).startswith("distributions.") and change["actual"] is None


def other_settings(trial: Trial, changes: Sequence[str]) -> Row:
    """The `settings` row of a trial whose golden was made with other ones."""
    message = (
        f'{trial.folder} was made with {"; ".join(changes)}. Set that back, or record it anew: {command(trial)} --update --reason "..."'
    )
    return trial.row(Verdict.NOT_JUDGED, reason=Reason.SETTINGS, message=message)


def elsewhere(trial: Trial, golden: Golden, outcome: Outcome, head: Golden) -> str | None:
    """Why a golden is none of this run's after all: it was recorded on other hardware or under another torch; None where it was not."""
    measured = golden_folder(trial.candidate.root, outcome.report.hardware, outcome.report.torch, trial.candidate.golden)
    if measured != trial.folder:
        return f"The run was one on {outcome.report.hardware} under torch {outcome.report.torch}, which is not what {trial.folder} is of."
    gpus = [side.manifest.environment.get("gpu") for side in (golden, head)]
    one, other = ({key: gpu.get(key) for key in GPU} if isinstance(gpu, Mapping) else None for gpu in gpus)
    if one != other:
        return f"{trial.folder} was recorded on another GPU of that name: {one}; here is {other}."
    return None
