"""Finds the project that a scenario file belongs to, and what its pyproject.toml says about it."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from golden.errors import UsageError
from golden.keys import shown
from golden.settings import Settings

_GATE = re.compile(r"^\s*\[\s*tool\s*\.\s*gate\s*[.\]]", re.MULTILINE)


@dataclass(frozen=True)
class Found:
    """What `find` found.

    Attributes:
        project: the project's folder, absolute.
        settings: the configured scenario, or one with every setting by default, named after the function.
        configured: whether the settings come from a configuration.
        note: what the user should know about where the settings come from; empty when all was read.
    """

    project: Path
    settings: Settings
    configured: bool
    note: str = ""


def find(start_file: Path, run: str, name: str | None = None) -> Found:
    """The settings of the scenario `run`, from the nearest pyproject.toml above its file that holds [tool.gate].

    Args:
        start_file: the scenario's file.
        run: "FILE:FUNCTION" as the user wrote it; only the function is read from it.
        name: the scenario, where several run the same function.

    Raises:
        UsageError: no such file, no function named, a configuration that is wrong, or several scenarios and no name.
    """
    file = start_file.resolve()
    function = run.rpartition(":")[2]
    if ":" not in run or not function.isidentifier():
        raise UsageError(f"{run}: names no function. Write it as FILE:FUNCTION, for example goldens/scenarios.py:digits")
    if not file.is_file():
        raise UsageError(f"{start_file}: there is no such file. Name the scenario's file relative to the current folder.")
    config = next((folder / "pyproject.toml" for folder in file.parents if _has_gate(folder / "pyproject.toml")), None)
    project = config.parent if config else _unconfigured(file)
    plain = Settings.from_table(name or function, {"run": f"{file.relative_to(project).as_posix()}:{function}"})
    if config is None:
        return Found(project, plain, configured=False, note=f"No pyproject.toml with [tool.gate] above {file}: settings by default.")
    if _parser() is None:
        return Found(
            project, plain, configured=False, note=f"{config} was not read, which takes Python 3.11 or tomli: settings by default."
        )
    return _choose(project, plain, scenarios(config), name)


def read_gate(pyproject: Path) -> Mapping[str, Any] | None:
    """The table [tool.gate] of a pyproject.toml, None where it has none; UsageError names the file where it does not parse."""
    parser = _parser()
    if parser is None:
        raise UsageError(f"{pyproject}: reading it takes Python 3.11 or tomli. Install tomli, or use a newer Python.")
    try:
        document = parser.loads(pyproject.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{pyproject}: cannot be read: {error}. Correct the file.") from None
    tool = document.get("tool", {})
    gate = tool.get("gate") if isinstance(tool, Mapping) else None
    if gate is not None and not isinstance(gate, Mapping):
        raise UsageError(f"{pyproject}: tool.gate is {shown(gate)}, but has to be a table. Write it as [tool.gate].")
    return gate


def scenarios(pyproject: Path) -> dict[str, Settings]:
    """Every configured scenario by name; UsageError names the file, the key and what is allowed."""
    tables = (read_gate(pyproject) or {}).get("scenarios", {})
    if not isinstance(tables, Mapping):
        raise UsageError(f"{pyproject}: tool.gate.scenarios is {shown(tables)}, but has to hold tables, [tool.gate.scenarios.NAME].")
    try:
        return {name: Settings.from_table(name, table) for name, table in tables.items()}
    except UsageError as error:
        raise UsageError(f"{pyproject}: {error}") from None


def _choose(project: Path, plain: Settings, known: Mapping[str, Settings], name: str | None) -> Found:
    fitting = {key: settings for key, settings in known.items() if settings.run == plain.run and name in (None, key)}
    if not fitting:
        return Found(
            project, plain, configured=False, note=f"{project / 'pyproject.toml'} has no scenario for {plain.run}: settings by default."
        )
    if len(fitting) > 1:
        raise UsageError(f"{plain.run} is run by several scenarios: {', '.join(sorted(fitting))}. Choose one with --name.")
    return Found(project, next(iter(fitting.values())), configured=True)


def _has_gate(pyproject: Path) -> bool:
    try:
        return _GATE.search(pyproject.read_text(encoding="utf-8", errors="replace")) is not None
    except OSError:
        return False


def _unconfigured(file: Path) -> Path:
    marked = (folder for folder in file.parents if (folder / "pyproject.toml").is_file() or (folder / ".git").exists())
    return next(marked, file.parent)


def _parser() -> ModuleType | None:
    for name in ("tomllib", "tomli"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    return None
