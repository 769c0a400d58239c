"""Which Python runs a scenario: one that holds the torch asked for."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from gate import environments, installer, inventory
from gate.config import Config
from gate.environments import Recipe
from gate.errors import NoTorch, UsageError
from gate.inquiry import NoAnswer, ask
from gate.progress import Progress
from gate.requirements import Recorded, wanted
from gate.version import agrees, valid

OLDEST = (3, 10)
# What would lead an interpreter that is not the running one to the packages of another.
_ACTIVE = frozenset(
    {"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT", "CONDA_PREFIX", "__PYVENV_LAUNCHER__"}
)


class Source(str, Enum):
    """Where an interpreter comes from."""

    RUNNING = "running"
    MADE = "uv"
    GIVEN = "--python"


@dataclass(frozen=True)
class Interpreter:
    """A Python that holds a torch and what golden needs.

    Attributes:
        python: the executable.
        torch: the full version, as torch's own files have it; a run's report says what it was.
        source: where it comes from.
        version: Python's own, "3.11.7".
    """

    python: Path
    torch: str
    source: Source
    version: str

    def variables(self, base: Mapping[str, str], project: Path) -> dict[str, str]:
        """The variables that a run inherits: `base`, for another interpreter than the running one without what is meant for the latter.

        PYTHONPATH keeps its entries within the project; a virtual environment that is active does not count.
        """
        return dict(base) if self.source is Source.RUNNING else _apart(base, project)


def running() -> Interpreter:
    """The Python that runs gate.

    Raises:
        NoTorch: it has none; says what to do.
    """
    torch = inventory.torch_version()
    if not torch:
        raise NoTorch(
            f"{sys.executable} has no torch. Install one there (pip install torch), let uv make an environment (--torch 2.13.0), "
            "or give an interpreter that has one (--python PATH)."
        )
    return Interpreter(Path(sys.executable), torch, Source.RUNNING, platform.python_version())


def given(path: str, project: Path) -> Interpreter:
    """An interpreter that the user names: a path, a virtual environment's folder or a command. It is asked, never changed.

    Raises:
        UsageError: it is no Python.
        NoTorch: it has no torch, lacks what golden needs, or is too old.
    """
    python = _executable(path)
    try:
        holding = ask(python, _apart(os.environ, project))
    except NoAnswer as error:
        raise UsageError(f"--python {path}: is no Python that answers ({error}). Name the executable of Python 3.10 or later.") from None
    if tuple(map(int, holding.python.split(".")[:2])) < OLDEST:
        raise NoTorch(f"--python {path} is Python {holding.python}; golden takes 3.10 or later. Name another.")
    if holding.lacking:
        names = " ".join(holding.lacking)
        raise NoTorch(f"--python {path} lacks {names.replace(' ', ', ')}. Install there: {python} -m pip install {names}")
    return Interpreter(python, holding.torch, Source.GIVEN, holding.python)


def provide(
    version: str | None,
    config: Config,
    progress: Progress,
    *,
    python: str | None = None,
    requires: Sequence[str] = (),
    recorded: Recorded | None = None,
) -> Interpreter:
    """The interpreter for a scenario.

    `python` is taken where it is given. The running one serves where no version is asked for, or its torch is that and it holds the
    distributions that the golden was recorded with. Otherwise uv makes an environment with the project's own dependencies, `requires`, what
    golden needs and that torch, in the versions that the golden was recorded with. Its Python is of the minor version that the golden was
    recorded under where this machine has one, else the running one.

    Args:
        version: the torch asked for ("2.9.1": any build of it), None for the running interpreter's.
        config: the project's.
        progress: hears what takes long, and what the user should know.
        python: the interpreter that the user names.
        requires: the scenario's requirements beside the project's.
        recorded: what the golden was recorded with, None where there is none.

    Raises:
        UsageError: `version` is none, or `python` is no Python.
        NoTorch: it cannot be had; says why, and what to do.
    """
    if version is not None and not valid(version):
        raise UsageError(f'--torch {version}: is no version. Write it as 2.9.1, or "all" for those of the configuration.')
    if python is not None:
        return _agreeing(given(python, config.root), version)
    if version is None or (agrees(version, inventory.torch_version()) and _holds(recorded)):
        return running()
    return _made(version, config, progress, requires, recorded or Recorded())


def recipe(version: str, config: Config, progress: Progress, requires: Sequence[str], recorded: Recorded) -> Recipe:
    """What uv would make an environment of; arguments as for `provide`. Raises NoTorch where uv is needed to tell, and is not there."""
    base, python = _base(recorded, progress)
    backend = os.environ.get("UV_TORCH_BACKEND", "")
    return Recipe(version, base, python, wanted(config, requires, progress.say), recorded.pins, backend)


def _made(version: str, config: Config, progress: Progress, requires: Sequence[str], recorded: Recorded) -> Interpreter:
    made_of = recipe(version, config, progress, requires, recorded)
    home = environments.home(os.environ, progress.say)
    environment = environments.find(home, made_of) or environments.make(home, made_of, progress)
    return Interpreter(environment.interpreter, environment.torch, Source.MADE, environment.python)


def _base(recorded: Recorded, progress: Progress) -> tuple[Path, str]:
    """The Python to make an environment from, and its version."""
    here = platform.python_version()
    if recorded.minor in ("", here.rpartition(".")[0]):
        return Path(sys.executable), here
    variables = installer.environment(os.environ)
    found = installer.python(recorded.minor, variables)
    try:
        if found is not None:
            return found, ask(found, variables).python
    except NoAnswer:  # a shim without the version behind it
        pass
    progress.say(f"the golden was recorded under Python {recorded.minor}, which this machine does not have; {here} is used")
    return Path(sys.executable), here


def _holds(recorded: Recorded | None) -> bool:
    """Whether the running interpreter has the versions that a golden was recorded with."""
    if recorded is None or not recorded.pins:
        return True
    held = inventory.distributions()
    return all(held.get(name) == version for name, version in recorded.pins.items())


def _agreeing(found: Interpreter, version: str | None) -> Interpreter:
    if version is not None and not agrees(version, found.torch):
        raise NoTorch(f"--python {found.python} has torch {found.torch}, not {version}. Leave --torch out, or name another interpreter.")
    return found


def _executable(path: str) -> Path:
    named = Path(path)
    if named.is_dir():
        named = named / "bin" / "python"
    elif os.sep not in path and not named.exists():
        named = Path(shutil.which(path) or path)
    if not named.is_file():
        raise UsageError(f"--python {path}: there is no such file. Name a Python, or the folder of a virtual environment.")
    return named.absolute()  # links stay: a virtual environment's Python is one


def _apart(base: Mapping[str, str], project: Path) -> dict[str, str]:
    kept = {key: value for key, value in base.items() if key not in _ACTIVE}
    entries = [entry for entry in base.get("PYTHONPATH", "").split(os.pathsep) if entry and _within(entry, project)]
    return kept | ({"PYTHONPATH": os.pathsep.join(entries)} if entries else {})


def _within(entry: str, project: Path) -> bool:
    return Path(entry).resolve().is_relative_to(project.resolve())
