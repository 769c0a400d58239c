"""Which of the cached environments the goldens of a project need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gate import interpreter
from gate.config import Config
from gate.environments import Environment, Recipe
from gate.errors import GoldenError
from gate.layout import hardware_folders, torch_folders, version_of
from gate.progress import Silent
from gate.requirements import Recorded
from golden import manifest
from golden.settings import Settings


def needed(config: Config, environments: list[Environment]) -> list[Environment]:
    """Those that would serve one of the project's goldens; all of them where that cannot be told.

    An environment counts also where the running interpreter happens to serve the same golden.
    """
    try:
        made_of = list(recipes(config))
    except GoldenError:
        return environments
    return [environment for environment in environments if any(environment.serves(each) for each in made_of)]


def recipes(config: Config) -> Iterator[Recipe]:
    """What `verify --torch` would have made for each golden, of whatever hardware. Raises NoTorch without uv."""
    for hardware in hardware_folders(config.goldens):
        for folder in torch_folders(hardware):
            for settings in config.scenarios.values():
                made_of = recipe(config, settings, folder)
                if made_of is not None:
                    yield made_of


def recipe(config: Config, settings: Settings, folder: Path) -> Recipe | None:
    """What `verify --torch` would have made for the golden of a scenario in a torch folder; None where there is none."""
    try:
        recorded = Recorded.of(manifest.read(folder / (settings.same_as or settings.name)).environment)
    except GoldenError:
        return None
    return interpreter.recipe(version_of(folder), config, Silent(), settings.requires, recorded)
