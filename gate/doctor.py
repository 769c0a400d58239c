"""Examines this machine: what it is, what of the project can be judged on it, and what it takes to judge the rest."""

from __future__ import annotations

import os
import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gate import config as configuration
from gate import disk, environments, installer, interpreter, known, need, prospect, runs
from gate.cleaning import DAYS, Swept, clean
from gate.config import Config
from gate.diagnosis import Cache, Diagnosis, History, Profile, Project, Storage, Torch
from gate.errors import BaselineFailed, GoldenError, NoTorch, Unconfigured, UsageError
from gate.history import Repository
from gate.inquiry import NoAnswer
from gate.interpreter import Interpreter
from gate.machine import Machine
from gate.progress import Progress, Silent
from gate.trial import Means


def examine(start: Path, progress: Progress) -> Diagnosis:
    """Examines this machine for the project that a folder belongs to. Changes nothing, and runs no scenario.

    Args:
        start: the current folder.
        progress: hears what takes long.
    """
    config, wrong = _configured(start)
    machine = Machine.here()
    torch, python = _torch()
    with progress.task("asking torch, and measuring caches"), ThreadPoolExecutor(2) as pool:
        profile = pool.submit(_profile, python, start)
        cuda = pool.submit(_cuda, python, start) if machine.cuda else None
        storage = pool.submit(_storage, config, start)
        project = _project(config, machine, torch.version, home()) if config else Project(None, wrong)
        return Diagnosis(
            python=platform.python_version(),
            executable=Path(sys.executable),
            machine=machine,
            torch=Torch(torch.version, torch.why, cuda.result() if cuda else None),
            profile=profile.result(),
            project=project,
            history=history(config.root if config else start, config),
            storage=storage.result(),
        )


def sweep(start: Path, *, dry: bool, days: float | None) -> Swept:
    """Removes what is left over; arguments as for `examine` and `cleaning.clean`.

    Raises:
        ConfigurationError: the project's configuration is wrong, so that what its goldens need is not known.
        StoreError: a folder cannot be read.
    """
    try:
        config: Config | None = configuration.find(start)
    except Unconfigured:
        config = None
    return clean(config, home(), dry=dry, days=DAYS if days is None else days)


def home() -> Path | None:
    """The folder of cached environments, None where none can be had."""
    try:
        return environments.home(os.environ, Silent().say)
    except (GoldenError, OSError):
        return None


def _configured(start: Path) -> tuple[Config | None, str]:
    """The project's configuration, or why there is none."""
    try:
        config = configuration.find(start)
        config.select()
    except UsageError as error:
        return None, str(error)
    return config, ""


def _torch() -> tuple[Torch, Interpreter | None]:
    try:
        python = interpreter.running()
    except NoTorch as error:
        return Torch("", str(error)), None
    return Torch(python.torch), python


def _profile(python: Interpreter | None, start: Path) -> Profile:
    """Whether the known answers of the portable profile are right here."""
    if python is None:
        return Profile(None, "there is no torch to ask")
    try:
        answers = known.answer(python.python, python.variables(os.environ, start), "known")
    except NoAnswer as error:
        return Profile(None, f"torch could not be asked: {error}")
    expected, actual = answers["expected"], answers["actual"]
    if not expected:
        return Profile(None, f"no answers are known for {platform.system()} on {platform.machine()}")
    return Profile(answers["honoured"], "", {aspect: actual.get(aspect) == digest for aspect, digest in expected.items()})


def _cuda(python: Interpreter | None, start: Path) -> str | None:
    """What torch says of the CUDA device here; None where it cannot use it."""
    try:
        if python is None:
            return None
        found = known.answer(python.python, python.variables(os.environ, start), "environment", "--device", "cuda")
        return f"{found['gpu']['name']}, CUDA {found['cuda']['runtime']}, driver {found['cuda']['driver']}"
    except (NoAnswer, KeyError, TypeError):
        return None


def _project(config: Config, machine: Machine, version: str, cache: Path | None) -> Project:
    means = Means(config, None, None, Silent())
    try:
        judged = prospect.judged(means, machine, version)
    except UsageError as error:
        return Project(None, str(error))
    return Project(config.root, "", tuple(judged), tuple(prospect.others(config, machine, judged, cache)), disk.size(config.goldens))


def history(folder: Path, config: Config | None) -> History:
    """What git knows; a drift is traced to its commit through it."""
    try:
        repository = Repository.of(folder)
        changed = repository.state().changed
    except BaselineFailed as error:
        return History(None, False, str(error))
    goldens = config.goldens.relative_to(config.root).as_posix() if config and config.goldens.is_dir() else None
    loose = goldens is not None and any(path.rstrip("/") == goldens or path.startswith(f"{goldens}/") for path in changed)
    return History(repository.top, repository.shallow, "", loose)


def _storage(config: Config | None, start: Path) -> Storage:
    cache = home()
    cached = environments.cached(cache) if cache else []
    serving = need.needed(config, cached) if config else cached
    kept = runs.newest_first(config.root / ".gate" / "runs") if config else []
    return Storage(
        free=disk.free(start),
        home=cache,
        environments=tuple(Cache(made.folder, made.torch, made.python, environments.size(made)[0], made in serving) for made in cached),
        uv=_uv("--version"),
        uv_cache=(folder := Path(told) if (told := _uv("cache", "dir")) else None),
        uv_size=disk.size(folder) if folder else 0,
        runs=len(kept),
        runs_size=sum(map(disk.size, kept)),
    )


def _uv(*arguments: str) -> str | None:
    """What uv prints; None where there is no uv."""
    try:
        return installer.run(list(arguments), installer.environment(os.environ)).strip()
    except (NoTorch, installer.Failed, OSError):
        return None
