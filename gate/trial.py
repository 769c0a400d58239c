"""One row made ready to run: its interpreter, its golden where there is one, and the request for its process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gate import interpreter
from gate.config import Config
from gate.errors import GoldenError, UsageError
from gate.interpreter import Interpreter
from gate.layout import builds, golden_folder, shown_version, version_of
from gate.progress import Progress
from gate.requirements import Recorded
from gate.row import Row
from gate.runs import Outcome, Runs
from gate.selection import Candidate
from gate.verdict import Reason, Verdict
from golden import manifest
from golden import profile as profiles
from golden.errors import CorruptGolden, StoreError
from golden.launch import steps_done
from golden.settings import Request, Settings
from golden.store import Golden


@dataclass(frozen=True)
class Means:
    """With what a command works.

    Attributes:
        config: the project's.
        python: the interpreter that the user names, None for none.
        jobs: how many run side by side on the CPU, None for as many as it has cores.
        progress: hears what takes long.
    """

    config: Config
    python: str | None
    jobs: int | None
    progress: Progress


@dataclass(frozen=True)
class Trial:
    """A candidate with what it takes to run it.

    Attributes:
        project: the project's folder.
        hardware: its slug.
        folder: where its golden is, or would be.
        golden: None where there is none.
    """

    candidate: Candidate
    project: Path
    hardware: str
    interpreter: Interpreter
    folder: Path
    golden: Golden | None

    @property
    def title(self) -> str:
        """What progress calls it."""
        return f"{self.candidate.settings.name} on {self.hardware}, torch {shown_version(self.hardware, self.interpreter.torch)}"

    @property
    def file(self) -> str:
        """The scenario's file, relative to the project."""
        return self.candidate.settings.run.rpartition(":")[0]

    @property
    def profile(self) -> str:
        """The profile to run under: the candidate's, else the golden's (GPUs), else the portable one."""
        recorded = self.golden.manifest.scenario.get("profile") if self.golden else None
        return self.candidate.profile or (recorded if isinstance(recorded, str) else "portable")

    @property
    def request(self) -> Request:
        """What a plain run of it is asked for, `out` and `report` still to be set; a golden's way of storing holds for its runs too."""
        settings = self.candidate.settings
        stored = self.golden.manifest.scenario.get("store") if self.golden else settings.store
        plain = Request.of(settings, device=self.candidate.device, profile=self.profile, project=self.project, out=Path(), report=Path())
        return replace(plain, store=stored if isinstance(stored, str) else None)

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment of its process."""
        inherited = self.interpreter.variables(os.environ, self.project)
        return profiles.environment(inherited, self.profile, self.candidate.device, self.candidate.settings.seed)

    def execute(self, runs: Runs, progress: Progress, request: Request, arm: str = "") -> Outcome:
        """Runs a request of it, telling how far it is."""
        title = f"{self.title} ({arm})" if arm else self.title

        def step() -> str:
            done = steps_done(request)
            return f"step {done} of {request.end}" if done else "starting"

        with progress.task(title, step):
            return runs.run(self.interpreter.python, request, self.environment)

    def shown(self, path: Path) -> str:
        """A path of the project as a report has it: relative, with forward slashes."""
        return path.relative_to(self.project).as_posix()

    def row(self, verdict: Verdict, **facts: Any) -> Row:
        """A row of it."""
        return row(self.candidate, verdict, **{"version": self.interpreter.torch, **facts})


def row(candidate: Candidate, verdict: Verdict, *, version: str | None = None, **facts: Any) -> Row:
    """A row of a candidate; `version` is the full version of its torch, where it is known."""
    settings, known = candidate.settings, version or candidate.torch
    torch = shown_version(candidate.hardware, known) if known else None
    usual = {"golden": candidate.golden, "against": "golden", "steps": settings.steps}
    return Row(scenario=settings.name, hardware=candidate.hardware, torch=torch, verdict=verdict, **{**usual, **facts})


def not_judged(candidate: Candidate, error: GoldenError, version: str | None = None) -> Row:
    """The row of a candidate that an error kept from being judged, with what to do about it."""
    message = f"{str(error).rstrip('.')}. {_advice(candidate, error)}" if _advice(candidate, error) else str(error)
    return row(candidate, Verdict.NOT_JUDGED, version=version, reason=Reason(error.reason), message=message)


def _advice(candidate: Candidate, error: GoldenError) -> str:
    """What to do about errors that do not say it themselves."""
    if isinstance(error, CorruptGolden):
        return f'Restore it from version control, or record it anew: gate record {candidate.golden} --update --reason "..."'
    if isinstance(error, StoreError):
        return "Free space there or correct the permissions, and run again."
    return ""


def usual(means: Means) -> Interpreter:
    """The interpreter of rows that ask for no version. Raises NoTorch or UsageError."""
    return interpreter.provide(None, means.config, means.progress, python=means.python)


def prepare(means: Means, candidate: Candidate) -> Trial:
    """Finds the golden, and provides the interpreter in the versions that it was recorded with.

    Raises:
        GoldenError: the golden cannot be read, or there is no such interpreter.
    """
    assert candidate.hardware is not None, "a candidate that was refused is not prepared"
    hardware = candidate.root / candidate.hardware
    asked = candidate.torch or usual(means).torch
    exact = golden_folder(candidate.root, candidate.hardware, asked, candidate.golden)
    likely = exact if exact.is_dir() else next(iter(builds(hardware, asked, candidate.golden)), exact)
    golden = _opened(likely)
    python = interpreter.provide(
        candidate.torch,
        means.config,
        means.progress,
        python=means.python,
        requires=candidate.settings.requires,
        recorded=Recorded.of(golden.manifest.environment) if golden else _siblings(likely.parent),
    )
    folder = golden_folder(candidate.root, candidate.hardware, python.torch, candidate.golden)
    if folder != likely:
        golden = _opened(folder)
    return Trial(candidate, means.config.root, candidate.hardware, python, folder, golden)


def _opened(folder: Path) -> Golden | None:
    """The golden in a folder, None where there is none."""
    if not folder.is_dir():
        return None
    golden = Golden.open(folder)
    known = golden.manifest
    if (known.hardware, known.torch) != (folder.parent.parent.name, version_of(folder.parent)):
        raise CorruptGolden(folder, f"was recorded on {known.hardware} under torch {known.torch}, and moved here")
    return golden


def prepare_recording(means: Means, candidate: Candidate) -> Trial:
    """Provides the interpreter alone: what stands in the golden's place does not count.

    Raises:
        GoldenError: there is no such interpreter.
    """
    assert candidate.hardware is not None, "a candidate that was refused is not prepared"
    python = interpreter.provide(candidate.torch, means.config, means.progress, python=means.python, requires=candidate.settings.requires)
    folder = golden_folder(candidate.root, candidate.hardware, python.torch, candidate.golden)
    return Trial(candidate, means.config.root, candidate.hardware, python, folder, None)


def prepared(means: Means, candidates: Iterable[Candidate], prepare: Callable[[Means, Candidate], Trial]) -> Iterator[Trial | Row]:
    """Each candidate made ready as it comes, or the row that says why it cannot be."""
    for candidate in candidates:
        if candidate.refusal:
            reason, message = candidate.refusal
            yield row(candidate, Verdict.NOT_JUDGED, reason=reason, message=message)
            continue
        try:
            yield prepare(means, candidate)
        except UsageError:
            raise
        except GoldenError as error:
            yield not_judged(candidate, error)


def _siblings(folder: Path) -> Recorded | None:
    """What another golden of the same hardware and torch was recorded with, so that one environment serves both."""
    for golden in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            return Recorded.of(manifest.read(golden).environment)
        except GoldenError:
            continue
    return None


def settings_changes(settings: Settings, recorded: Mapping[str, Any], profile: str | None = None) -> list[str]:
    """Where a golden's settings are not those of the scenario, as texts; parameters are free under `same_as`."""
    mine = {"steps": settings.steps, "seed": settings.seed, "parameters": dict(settings.parameters), "profile": profile}
    free = {"parameters" if settings.same_as else "", "profile" if profile is None else ""}
    return [
        f"{key} {recorded.get(key)!r}, now {mine[key]!r}" for key in mine if key not in free and not _same(recorded.get(key), mine[key])
    ]


def _same(one: Any, other: Any) -> bool:
    """Equal with types: 1, 1.0 and True are three parameters."""
    return repr(_ordered(one)) == repr(_ordered(other))


def _ordered(value: Any) -> Any:
    if isinstance(value, Mapping):
        return sorted((key, _ordered(inner)) for key, inner in value.items())
    return [_ordered(inner) for inner in value] if isinstance(value, (list, tuple)) else value
