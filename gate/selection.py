"""Which rows a command judges: scenario x hardware x torch, or the reason why one of them cannot be tried here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from gate.config import Config
from gate.errors import GoldenError, UsageError
from gate.layout import belongs, hardware_folders, torch_folders
from gate.machine import Machine, device_of
from gate.verdict import Reason
from golden.settings import Settings


class NothingChecked(GoldenError):  # noqa: N818  (says what is the case, as its family does)
    """There is nothing to judge or record; the message says what would be."""

    reason: ClassVar[str] = "nothing-checked"


@dataclass(frozen=True)
class Wanted:
    """What a command line names; None and () name nothing.

    Attributes:
        scenarios: names as configured.
        device: "cpu" or "cuda".
        goldens: the goldens' root or one hardware folder in it, absolute.
        torch: a version, or "all" for the configured ones.
        profile: "portable" or "native".
        base: a revision that stands in where there is no golden, so that hardware without any is judged as well.
    """

    scenarios: tuple[str, ...] = ()
    device: str | None = None
    goldens: Path | None = None
    torch: str | None = None
    profile: str | None = None
    base: str | None = None

    @property
    def plain(self) -> bool:
        """Whether nothing is named that has to be judged, so that what cannot be judged here is left out."""
        return not self.scenarios and self.device is None and self.goldens is None


@dataclass(frozen=True)
class Candidate:
    """One row before it is judged.

    Attributes:
        root: the goldens' root.
        hardware: its slug; None for a CUDA device that is not here and that no folder names.
        profile: "portable" or "native"; None leaves it to the golden (GPUs).
        torch: the version asked for, None for that of the interpreter in use.
        refusal: why it cannot be tried here, and what to do.
    """

    settings: Settings
    root: Path
    hardware: str | None
    profile: str | None
    torch: str | None
    refusal: tuple[Reason, str] | None = None

    @property
    def device(self) -> str:
        """The device it runs on: "cpu" or "cuda"."""
        return "cuda" if self.hardware is None else device_of(self.hardware)

    @property
    def golden(self) -> str:
        """The name of its golden: the scenario's own, or that of its `same_as`."""
        return self.settings.same_as or self.settings.name


@dataclass(frozen=True)
class Selection:
    """The rows to judge, scenario by scenario in the configuration's order, and one line for what was left out."""

    candidates: tuple[Candidate, ...]
    left_out: str | None = None


def to_verify(config: Config, machine: Machine, wanted: Wanted, running: str) -> Selection:
    """The rows of a `verify`; `running` is the full version of the interpreter in use, or "".

    Raises:
        UsageError: an unknown scenario, a folder without goldens, a scenario that is not configured for the device named.
    """
    root, slug = _root(config, wanted, machine)
    device = device_of(slug) if slug else wanted.device
    places = [slug] if slug else _recorded(root, device, machine, wanted)
    scenarios = _fitting(config.select(wanted.scenarios), device, bool(wanted.scenarios), machine)
    rows = [
        _candidate(settings, root, place, machine, wanted)
        for settings in scenarios
        for place in _places(settings, places, device, machine, wanted)
    ]
    versions = _versions(config, wanted)
    line = _left_out(config, root, places, [version or running for version in versions]) if wanted.plain else None
    return Selection(_under(rows, versions), line)


def to_record(config: Config, machine: Machine, wanted: Wanted) -> Selection:
    """The rows of a `record`: each scenario with a golden of its own, on each of its devices that is here.

    Raises:
        UsageError: as `to_verify`, and for a named scenario with `same_as`, which has nothing to record.
    """
    scenarios = config.select(wanted.scenarios)
    for settings in scenarios if wanted.scenarios else ():
        if settings.same_as:
            raise UsageError(f"Scenario {settings.name} has no golden of its own (same_as). Record {settings.same_as} instead.")
    rows, absent = [], []
    for settings in _fitting(scenarios, wanted.device, bool(wanted.scenarios), machine):
        if settings.same_as:
            continue
        devices = [wanted.device] if wanted.device else list(settings.devices)
        here = [device for device in devices if machine.default(device)] or ([] if wanted.plain else devices[:1])
        absent += [settings.name for device in devices if device not in here]
        rows += [_candidate(settings, config.goldens, machine.default(device, wanted.profile), machine, wanted) for device in here]
    line = f"left out: {', '.join(absent)} on cuda (no such device here)" if absent else None
    return Selection(_under(rows, _versions(config, wanted)), line)


def _root(config: Config, wanted: Wanted, machine: Machine) -> tuple[Path, str | None]:
    """The goldens' root, and the hardware folder that `--goldens` names, if it names one."""
    path = wanted.goldens
    if path is None or path == config.goldens:
        return config.goldens, None
    if not path.is_dir() and path.parent != config.goldens:
        raise UsageError(f"--goldens {path}: there is no such folder. Name {config.goldens} or a hardware folder in it.")
    if path.parent != config.goldens and not torch_folders(path):
        return path, None
    slug = path.name
    if wanted.device and device_of(slug) != wanted.device:
        raise UsageError(f"--goldens {path} holds goldens of {device_of(slug)}, but --device is {wanted.device}. Leave one of them out.")
    if wanted.profile and slug in machine.slugs("cpu") and slug != machine.default("cpu", wanted.profile):
        raise UsageError(
            f"--goldens {path} is of the profile {machine.profile(slug)}, but --profile is {wanted.profile}. Leave one of them out."
        )
    return path.parent, slug


def _fitting(scenarios: list[Settings], device: str | None, named: bool, machine: Machine) -> list[Settings]:
    """The scenarios configured for a device; a device that is not here is answered for every scenario named."""
    here = device is None or machine.default(device) is not None
    if device is None or (named and not here):
        return scenarios
    odd = [settings.name for settings in scenarios if device not in settings.devices]
    if named and odd:
        raise UsageError(f'Scenario {odd[0]} is not configured for {device}. Add "{device}" to devices in [tool.gate.scenarios.{odd[0]}].')
    return [settings for settings in scenarios if device in settings.devices] or ([] if here else scenarios)


def _recorded(root: Path, device: str | None, machine: Machine, wanted: Wanted) -> list[str]:
    """What is here and has a folder; with a base also what has none but would get one."""
    usual = [machine.default(kind, wanted.profile) for kind in ("cpu", "cuda")] if wanted.base else []
    return [slug for slug in machine.slugs(device, wanted.profile) if slug in usual or (root / slug).is_dir()]


def _places(settings: Settings, places: Sequence[str], device: str | None, machine: Machine, wanted: Wanted) -> list[str | None]:
    """The hardware that a scenario is judged on; what is named gets a place even where nothing was recorded for it."""
    found: list[str | None] = [place for place in places if device is not None or device_of(place) in settings.devices]
    if found or wanted.plain:
        return found
    able = [d for d in settings.devices if machine.default(d)] or list(settings.devices)
    return [machine.default(device or able[0], wanted.profile)]


def _candidate(settings: Settings, root: Path, slug: str | None, machine: Machine, wanted: Wanted) -> Candidate:
    profile = wanted.profile if slug is None else machine.profile(slug) or wanted.profile
    row = Candidate(settings, root, slug, profile, None)
    return row if slug in machine.slugs() else replace(row, refusal=(Reason.NO_ACCELERATOR, _elsewhere(row, machine)))


def _elsewhere(row: Candidate, machine: Machine) -> str:
    """Why a row cannot be tried on this machine, and what to run on which."""
    here = ", ".join(machine.slugs())
    if row.hardware is None:
        folders = [path.name for path in hardware_folders(row.root) if device_of(path.name) == "cuda"]
        known = (
            f"Its goldens are of: {', '.join(folders)}"
            if folders
            else "It has no golden of a GPU yet: record one there by `gate record --device cuda`"
        )
        return f"There is no CUDA device here ({here}). {known}. On a machine with one: gate verify {row.settings.name} --device cuda"
    where = f"gate verify --goldens {row.root.name}/{row.hardware}"
    if device_of(row.hardware) == "cpu":
        return f"{row.root / row.hardware} is of another CPU; here is {here}. On that machine: {where}"
    name = row.hardware.upper()
    if (row.root / row.hardware).is_dir():
        return f"{row.root / row.hardware} was recorded on the GPU {name}; here is {here}. On a machine with one: {where}"
    return f"Nothing was recorded on the GPU {name}, and here is {here}. On a machine with one: gate record --device cuda, then {where}"


def _versions(config: Config, wanted: Wanted) -> tuple[str | None, ...]:
    if wanted.torch == "all":
        return config.torch or (None,)
    return (wanted.torch,)


def _under(rows: Iterable[Candidate], versions: Sequence[str | None]) -> tuple[Candidate, ...]:
    return tuple(replace(row, torch=version) for row in rows for version in versions)


def _left_out(config: Config, root: Path, places: Sequence[str], versions: Sequence[str]) -> str | None:
    """One line naming the goldens that a plain `verify` passes over: other hardware, other versions, no such scenario."""
    parts = []
    hardware = [path.name for path in hardware_folders(root) if path.name not in places]
    if hardware:
        parts.append(f"{', '.join(hardware)} (not this machine's)")
    folders = [folder for place in places for folder in torch_folders(root / place)]
    passed = [folder for folder in folders if not any(belongs(folder, version) for version in versions)]
    if passed:
        parts.append(f"{', '.join(f'{folder.parent.name}/{folder.name}' for folder in passed)} (--torch judges them)")
    strays = [
        golden for folder in folders if folder not in passed for golden in sorted(folder.iterdir()) if golden.name not in config.scenarios
    ]
    if strays:
        parts.append(f"{', '.join(golden.relative_to(root).as_posix() for golden in strays)} (no such scenario is configured)")
    return f"left out: {'; '.join(parts)}" if parts else None
