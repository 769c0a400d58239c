"""What was found of a machine and a project, as data and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gate.facts import count
from gate.machine import Machine
from gate.prospect import Prospect
from gate.verdict import Cause, Reason, Verdict

FORMAT = 1
READY = "ready"


@dataclass(frozen=True)
class Torch:
    """The torch in use: its full version, "" where there is none and `why` says so, and what it says of the CUDA device."""

    version: str
    why: str = ""
    cuda: str | None = None


@dataclass(frozen=True)
class Profile:
    """Whether the portable profile is honoured, None where that is not known and `why` says so; and each known answer by its aspect."""

    honoured: bool | None
    why: str = ""
    aspects: Mapping[str, bool] = field(default_factory=dict)

    @property
    def broken(self) -> list[str]:
        """The aspects that this machine does not keep."""
        return [aspect for aspect, right in self.aspects.items() if not right]


@dataclass(frozen=True)
class Project:
    """The project.

    Attributes:
        root: its folder; None where there is none, and `why` says so.
        judged: what a plain `verify` is to judge here.
        rest: what it passes over.
        size: bytes of its goldens.
    """

    root: Path | None
    why: str = ""
    judged: tuple[Prospect, ...] = ()
    rest: tuple[Prospect, ...] = ()
    size: int = 0


@dataclass(frozen=True)
class History:
    """The git repository: its folder, None where there is none and `why` says so.

    Attributes:
        shallow: whether older commits are missing.
        loose: whether goldens are not committed as they are.
    """

    top: Path | None
    shallow: bool
    why: str = ""
    loose: bool = False


@dataclass(frozen=True)
class Cache:
    """A cached environment, its bytes, and whether a golden of the project needs it."""

    folder: Path
    torch: str
    python: str
    size: int
    needed: bool

    def as_json(self) -> dict[str, Any]:
        """The environment as it stands in doctor's JSON."""
        return {"path": str(self.folder), "torch": self.torch, "python": self.python, "bytes": self.size, "needed": self.needed}


@dataclass(frozen=True)
class Storage:
    """Disk space: free where the project is, cached environments, uv's own cache, kept runs."""

    free: int
    home: Path | None
    environments: tuple[Cache, ...]
    uv: str | None
    uv_cache: Path | None
    uv_size: int
    runs: int
    runs_size: int


@dataclass(frozen=True)
class Diagnosis:
    """All that `gate doctor` says."""

    python: str
    executable: Path
    machine: Machine
    torch: Torch
    profile: Profile
    project: Project
    history: History
    storage: Storage

    @property
    def reason(self) -> str | None:
        """Why a plain `gate verify` does not judge everything that it is to judge here; None where it does."""
        return self._answer[0]

    @property
    def message(self) -> str:
        """The same for people; what is judged, where nothing hinders."""
        return self._answer[1]

    @property
    def exit_code(self) -> int:
        """0 where the main job can be done here, else 3."""
        return 0 if self.reason is None else Verdict.NOT_JUDGED.exit_code

    @property
    def _answer(self) -> tuple[str | None, str]:
        judged, odd = self.project.judged, [each for each in self.project.judged if not each.plain]
        if not self.torch.version:
            return str(Reason.NO_TORCH), self.torch.why
        if self.project.root is None:
            return str(Reason.NOTHING_CHECKED), self.project.why
        if odd:
            more = f" {count(len(odd) - 1, 'other')} cannot be judged either." if len(odd) > 1 else ""
            how = f" Run: {odd[0].how}." if odd[0].how else ""
            return str(odd[0].reason), f"{odd[0].scenario} on {odd[0].hardware}: {odd[0].told}.{how}{more}"
        if not judged:
            return str(Reason.NO_GOLDEN), f"there is no golden of the hardware here ({', '.join(self.machine.slugs())}). Run: gate record"
        if self.profile.honoured is False:
            broken = ", ".join(self.profile.broken)
            return str(Cause.ENVIRONMENT), f"this machine does not honour the portable profile ({broken}): its bits are its own"
        return None, f"gate verify judges {count(len(judged), 'golden')} here"

    def as_json(self) -> dict[str, Any]:
        """The diagnosis as `--json` writes it; sizes in bytes."""
        project, git, storage = self.project, self.history, self.storage
        return {
            "format": FORMAT,
            "verdict": READY if self.reason is None else Verdict.NOT_JUDGED.value,
            "reason": self.reason,
            "message": self.message,
            "hardware": {"portable": self.machine.portable, "native": self.machine.native, "cuda": self.machine.cuda},
            "python": {"version": self.python, "executable": str(self.executable)},
            "torch": {"version": self.torch.version or None, "cuda": self.torch.cuda, "message": self.torch.why or None},
            "profile": {"honoured": self.profile.honoured, "aspects": dict(self.profile.aspects), "message": self.profile.why or None},
            "project": {"root": _path(project.root), "goldens": project.size, "message": project.why or None},
            "judged": [each.as_json() for each in project.judged],
            "rest": [each.as_json() for each in project.rest],
            "git": {"top": _path(git.top), "shallow": git.shallow, "uncommitted": git.loose, "message": git.why or None},
            "disk": {
                "free": storage.free,
                "runs": {"count": storage.runs, "bytes": storage.runs_size},
                "uv": {"version": storage.uv, "cache": _path(storage.uv_cache), "bytes": storage.uv_size},
                "environments": [made.as_json() for made in storage.environments],
            },
        }


def _path(path: Path | None) -> str | None:
    return None if path is None else str(path)
