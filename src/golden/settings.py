"""What a scenario is set to (`Settings`), and what a process is asked to run (`Request`) and answers (`Report`)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from golden.errors import UsageError
from golden.keys import CHECKS, nearest, shown, wrong

PROFILED = 5  # last steps of a run whose work on the device is summed up; a run of no more steps has none that could be

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Settings:
    """One scenario of the configuration, checked: `[tool.gate.scenarios.NAME]`.

    Attributes:
        name: its key in the configuration and its folder below goldens.
        run: `"goldens/scenarios.py:digits"`, the file relative to the project, with forward slashes.
        steps: how many steps it records, from 1 (the start, step 0, does not count).
        seed: what torch, CUDA, numpy and Python are seeded with, 0 to 2**32 - 1.
        devices: where it is judged, of "cpu" and "cuda", at least one.
        store: "full" (tensors), "digest", or None: full up to 64 KiB a step.
        parameters: given to the scenario as `record.parameters`; holds what JSON holds.
        same_as: the scenario whose golden it must equal, having none of its own.
        resume_at: after this step it goes on in a fresh process as well, 1 to steps - 1.
        requires: requirements beside the project's own dependencies.
        watch: paths, relative to the project, that its evidence vouches for besides what it imports.
    """

    name: str
    run: str
    steps: int = 10
    seed: int = 0
    devices: tuple[str, ...] = ("cpu",)
    store: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    same_as: str | None = None
    resume_at: int | None = None
    requires: tuple[str, ...] = ()
    watch: tuple[str, ...] = ()

    @classmethod
    def from_table(cls, name: str, table: object) -> Settings:
        """The settings that a TOML table holds, absent keys by default.

        Raises:
            UsageError: names the key, its value and what is allowed; for an unknown key the nearest known one.
        """
        where = f"[tool.gate.scenarios.{name}]"
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{where}: a scenario's name is 1 to 100 of a-z, A-Z, 0-9, '.', '_' and '-', the first no '.' or '-'. Rename it."
            )
        if not isinstance(table, Mapping):
            raise UsageError(f"{where} is {shown(table)}, but has to be a table with the key run. Write it as {where}.")
        known = [f.name for f in fields(cls) if f.name != "name"]
        for key in table:
            if key not in known:
                raise UsageError(f"{where}: unknown key {key!r}, {nearest(str(key), known)}")
        if "run" not in table:
            raise UsageError(
                f'{where}: the key run is missing. Set it to the scenario\'s file and function: run = "goldens/scenarios.py:{name}"'
            )
        settings = cls(name, **{key: CHECKS[key](f"{where} {key}", value) for key, value in table.items()})
        if settings.resume_at is not None and settings.resume_at >= settings.steps:
            raise wrong(f"{where} resume_at", settings.resume_at, f"between 1 and steps - 1, which is {settings.steps - 1}")
        if settings.same_as == name:
            raise wrong(f"{where} same_as", name, "the name of another scenario")
        return settings


def check_pairs(scenarios: Mapping[str, Settings]) -> None:
    """Holds what one table alone cannot show: a `same_as` names a scenario with a golden, of equal steps and seed, on the same devices.

    Raises:
        UsageError: names both scenarios and the value that keeps them from being comparable.
    """
    for settings in scenarios.values():
        if settings.same_as is None:
            continue
        where, other = f"[tool.gate.scenarios.{settings.name}]", scenarios.get(settings.same_as)
        if other is None:
            raise UsageError(f"{where}: same_as names no scenario: {settings.same_as!r}, {nearest(settings.same_as, list(scenarios))}")
        if other.same_as is not None:
            raise UsageError(f"{where}: {other.name} has no golden of its own. Name a scenario without same_as.")
        for key in ("steps", "seed"):
            mine, theirs = getattr(settings, key), getattr(other, key)
            if mine != theirs:
                raise UsageError(
                    f"{where}: {key} is {mine}, but {other.name}, whose bits it must have, has {theirs}. Set both to the same."
                )
        extra = [device for device in settings.devices if device not in other.devices]
        if extra:
            raise UsageError(f"{where}: {other.name} has no golden on {extra[0]}. Add {extra[0]!r} to its devices, or remove it here.")


@dataclass(frozen=True)
class Turn:
    """One run among those that a process times.

    Attributes:
        label: what the parent calls it; stands beside its figures.
        run, steps, seed, parameters: as in `Settings`.
        profiled: whether the work of its last steps on the device is summed up, in which case its clocks tell nothing.
        digests: whether its last step's state is hashed, after the clocks have stopped.
    """

    label: str
    run: str
    steps: int
    seed: int
    parameters: Mapping[str, Any]
    profiled: bool = False
    digests: bool = False


@dataclass(frozen=True)
class Request:
    """What one process has to run. Written by the parent as a file, read by `python -m golden execute FILE`.

    Attributes:
        name, run, steps, seed, store, parameters, resume_at, watch: as in `Settings`.
        device: "cpu" or "cuda".
        profile: "portable" or "native".
        project: the project's folder, absolute.
        root: where project files are taken from: the project, or a copy of another revision of it.
        out: the folder to write the golden into; it exists and is empty.
        report: the file to write the `Report` to.
        keep: steps whose tensors are kept even where `store` is "digest".
        first: the first step to do; above 1 the scenario goes on from what it saved in `folder`.
        last: the last step to do, `steps` when None.
        folder: where a scenario with `resume_at` saves its checkpoint and finds it again.
        fill: whether torch fills new memory, as it does by default where algorithms are deterministic.
        turns: what to time, one after the other, instead of recording; nothing is written into `out` then.
    """

    name: str
    run: str
    steps: int
    seed: int
    device: str
    store: str | None
    parameters: Mapping[str, Any]
    profile: str
    project: Path
    root: Path
    out: Path
    report: Path
    keep: tuple[int, ...] = ()
    first: int = 1
    last: int | None = None
    folder: Path | None = None
    resume_at: int | None = None
    watch: tuple[str, ...] = ()
    fill: bool = True
    turns: tuple[Turn, ...] = ()

    @classmethod
    def of(
        cls, settings: Settings, *, device: str, profile: str, project: Path, out: Path, report: Path, root: Path | None = None
    ) -> Request:
        """The plain run of a scenario: every step, in one process. `dataclasses.replace` gives the others."""
        shared = {f.name: getattr(settings, f.name) for f in fields(settings) if f.name in {g.name for g in fields(cls)}}
        return cls(**shared, device=device, profile=profile, project=project, root=project, out=out, report=report)

    @property
    def file(self) -> Path:
        """The scenario's file below `root`."""
        return self.root / self.run.rpartition(":")[0]

    @property
    def function(self) -> str:
        """The scenario's function."""
        return self.run.rpartition(":")[2]

    @property
    def end(self) -> int:
        """The last step to do, as a number."""
        return self.steps if self.last is None else self.last

    @property
    def import_roots(self) -> tuple[Path, ...]:
        """What goes first on the process's import path: the scenario's folder, the root, and its `src` where there is one."""
        roots = (self.file.parent, self.root, self.root / "src")
        return tuple(dict.fromkeys(root for root in roots if root.is_dir()))

    def resolved(self, store: str) -> dict[str, Any]:
        """The settings as a manifest holds them; `store` is what "by default" came to. No path outside the project is in them."""
        keys = ("name", "run", "steps", "seed", "device", "parameters", "profile", "resume_at")
        return {**{key: getattr(self, key) for key in keys}, "watch": list(self.watch), "store": store}

    def to_json(self) -> str:
        """The text that `from_json` reads back."""
        return _dump(self)

    @classmethod
    def from_json(cls, text: str) -> Request:
        """Reads what `to_json` wrote; UsageError where that is not what the text is."""
        values = _load(cls, text)
        for key in ("project", "root", "out", "report", "folder"):
            values[key] = None if values[key] is None else Path(values[key])
        turns = tuple(Turn(**turn) for turn in values["turns"])
        return cls(**{**values, "keep": tuple(values["keep"]), "watch": tuple(values["watch"]), "turns": turns})


@dataclass(frozen=True)
class Report:
    """What a process says about its run, also where it failed.

    Attributes:
        status: "ok" or "failed".
        reason: why not judged ("scenario-failed", "io", ...), None when ok.
        message: what failed, where, and what to do; empty when ok.
        traceback: the scenario's own, its last line the exception; None where there is none.
        torch: `torch.__version__` inside the run, empty where torch could not be imported.
        hardware: the slug of the device used.
        python: the interpreter's version.
        foreign: project modules and files that came from outside the request's root.
        flags: changes of flags that move bits, seen between import, build and step 1.
        seconds: how long each part took, by name.
        replay: sums of what its optimizers say of their replay ("recordings", "replays", "fallbacks"); None where none says it.
    """

    status: str
    reason: str | None = None
    message: str = ""
    traceback: str | None = None
    torch: str = ""
    hardware: str = ""
    python: str = ""
    foreign: tuple[str, ...] = ()
    flags: tuple[Mapping[str, Any], ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    replay: Mapping[str, int] | None = None

    def to_json(self) -> str:
        """The text that `from_json` reads back."""
        return _dump(self)

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Reads what `to_json` wrote; UsageError where that is not what the text is."""
        values = _load(cls, text)
        return cls(**{**values, "foreign": tuple(values["foreign"]), "flags": tuple(values["flags"])})


def _dump(fact: Request | Report) -> str:
    return json.dumps(asdict(fact), default=os.fspath, indent=2) + "\n"


def _load(kind: type[Request] | type[Report], text: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except ValueError as error:
        raise UsageError(f"This is no {kind.__name__.lower()} of golden: {error}. Give the file that golden wrote.") from None
    names = {f.name for f in fields(kind)}
    if not isinstance(values, dict) or set(values) != names:
        odd = sorted(names.symmetric_difference(values)) if isinstance(values, dict) else [shown(values)]
        raise UsageError(f"This is no {kind.__name__.lower()} of this golden: {', '.join(odd)}. Give the file that this version wrote.")
    return values
