"""What of a project can be judged on this machine, without running anything; and what it takes to judge the rest."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gate import environments, missing, need
from gate.config import Config
from gate.environments import Environment
from gate.errors import GoldenError
from gate.layout import golden_folder, hardware_folders, torch_folders, version_of
from gate.machine import Machine, device_of
from gate.selection import Candidate, Wanted, to_verify
from gate.trial import Means, Trial, prepare, settings_changes
from gate.verdict import Reason
from golden.settings import Settings


@dataclass(frozen=True)
class Prospect:
    """One golden, there or missing.

    Attributes:
        torch: the version that decides its folder, None where no torch is here.
        plain: whether `gate verify`, with nothing named, judges it here.
        reason: why it cannot be judged here; None where it can.
        told: why it cannot, for people.
        how: what to run for it, and where.
    """

    scenario: str
    hardware: str
    torch: str | None
    plain: bool
    reason: Reason | None
    told: str
    how: str

    def as_json(self) -> dict[str, Any]:
        """The prospect as it stands in doctor's JSON."""
        facts = {"scenario": self.scenario, "hardware": self.hardware, "torch": self.torch, "plain": self.plain}
        return {**facts, "reason": self.reason and self.reason.value, "message": self.told or None, "how": self.how}


def judged(means: Means, machine: Machine, running: str) -> list[Prospect]:
    """What a plain `verify` would judge here, each golden read in full.

    Args:
        means: with what.
        machine: this one.
        running: the full version of the torch in use, "" where there is none.

    Raises:
        UsageError: the configuration is wrong.
    """
    return [_prospect(means, candidate) for candidate in to_verify(means.config, machine, Wanted(), running).candidates]


def _prospect(means: Means, candidate: Candidate) -> Prospect:
    try:
        trial = prepare(means, candidate)
        reason, told, how = _judgement(trial)
        torch = version_of(trial.folder.parent)
    except GoldenError as error:
        reason, told, how, torch = Reason(error.reason), str(error), "", None
    return Prospect(candidate.settings.name, str(candidate.hardware), torch, reason is None, reason, told, how)


def _judgement(trial: Trial) -> tuple[Reason | None, str, str]:
    """Reason, message and command of a trial that a plain `verify` would come to."""
    if trial.golden is None:
        return Reason.NO_GOLDEN, f"there is no golden at {trial.folder}", missing.command(trial)
    changes = settings_changes(trial.candidate.settings, trial.golden.manifest.scenario, trial.profile)
    if changes:
        return Reason.SETTINGS, f"its golden was made with {'; '.join(changes)}", f'{missing.command(trial)} --update --reason "..."'
    trial.golden.check()
    return None, "", "gate verify"


def others(config: Config, machine: Machine, known: list[Prospect], home: Path | None) -> list[Prospect]:
    """The goldens that a plain `verify` passes over, and the configured versions that have none.

    Args:
        config: the project's.
        machine: this one.
        known: what a plain `verify` judges.
        home: the folder of cached environments.
    """
    cached = environments.cached(home) if home else []
    seen = {(prospect.hardware, prospect.torch, prospect.scenario) for prospect in known}
    found = [*_recorded(config, machine, cached), *_unrecorded(config, machine)]
    return [prospect for prospect in found if (prospect.hardware, prospect.torch, prospect.scenario) not in seen]


def _recorded(config: Config, machine: Machine, cached: list[Environment]) -> Iterator[Prospect]:
    for hardware in hardware_folders(config.goldens):
        here = hardware.name in machine.slugs()
        for folder in torch_folders(hardware):
            for golden in sorted(path for path in folder.iterdir() if path.is_dir()):
                settings = config.scenarios.get(golden.name)
                facts = (golden.name, hardware.name, version_of(folder), False)
                if settings is None:
                    told = "no scenario of this name is configured"
                    yield Prospect(*facts, Reason.NOTHING_CHECKED, told, "configure it, or remove its folder")
                elif here:
                    yield Prospect(*facts, None, _installed(config, settings, folder, cached), f"gate verify --torch {version_of(folder)}")
                else:
                    yield Prospect(*facts, Reason.NO_ACCELERATOR, *_elsewhere(config, hardware))


def _elsewhere(config: Config, hardware: Path) -> tuple[str, str]:
    kind = f"the GPU {hardware.name.upper()}" if device_of(hardware.name) == "cuda" else "another CPU"
    root = config.goldens.relative_to(config.root).as_posix()
    return f"recorded on {kind}", f"on such a machine: gate verify --goldens {shlex.quote(f'{root}/{hardware.name}')}"


def _installed(config: Config, settings: Settings, folder: Path, cached: list[Environment]) -> str:
    """Whether the environment of a golden is there already."""
    try:
        made_of = need.recipe(config, settings, folder)
    except GoldenError as error:
        return str(error)
    ready = made_of is not None and any(environment.serves(made_of) for environment in cached)
    return "its environment is cached" if ready else "uv installs that torch first"


def _unrecorded(config: Config, machine: Machine) -> Iterator[Prospect]:
    """Configured versions of torch without a golden, on this machine's CPU under the portable profile."""
    for version in config.torch:
        for settings in config.scenarios.values():
            folder = golden_folder(config.goldens, machine.portable, version, settings.name)
            if settings.same_as is None and "cpu" in settings.devices and not folder.is_dir():
                how = f"gate record {settings.name} --torch {version}"
                yield Prospect(settings.name, machine.portable, version_of(folder.parent), False, Reason.NO_GOLDEN, "not recorded", how)
