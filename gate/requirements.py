"""What has to be installed for a project's scenarios, and in which versions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

from gate.config import Config
from gate.inventory import canonical

OURS = ("numpy>=1.26", "safetensors>=0.4.5", "xxhash>=3.4")  # what golden needs beside torch
_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")
_EXTRA = re.compile(r";.*\bextra\s*==")


@dataclass(frozen=True)
class Recorded:
    """What a golden was recorded with.

    Attributes:
        distributions: names to versions of those that the scenario imported.
        python: the interpreter's version, empty when not known.
    """

    distributions: Mapping[str, str] = field(default_factory=dict)
    python: str = ""

    @classmethod
    def of(cls, environment: Mapping[str, Any]) -> Recorded:
        """What the environment of a manifest says."""
        held, python = environment.get("distributions"), environment.get("python")
        pins = {canonical(name): str(version) for name, version in held.items()} if isinstance(held, Mapping) else {}
        return cls(pins, python if isinstance(python, str) else "")

    @property
    def pins(self) -> dict[str, str]:
        """Versions to install again. torch's own is what is asked for."""
        return {name: version for name, version in self.distributions.items() if name != "torch"}

    @property
    def minor(self) -> str:
        """The Python as uv names it, "3.11"; empty when not known."""
        match = re.match(r"\d+\.\d+", self.python)
        return match[0] if match else ""


def wanted(config: Config, requires: Iterable[str], say: Callable[[str], object]) -> tuple[str, ...]:
    """Everything but torch that an environment needs: golden's own needs, the project's dependencies and the scenario's `requires`."""
    items = [*OURS, *_dependencies(config, say), *requires]
    apart = {"torch", canonical(config.name or "")}
    return tuple(sorted({item.strip() for item in items if name(item) not in apart}))


def name(requirement: str) -> str:
    """The distribution that a requirement asks for, as registries compare it."""
    match = _NAME.match(requirement)
    return canonical(match[1]) if match else ""


def _dependencies(config: Config, say: Callable[[str], object]) -> Iterable[str]:
    """The project's requirements without extras; where the build backend computes them, those that the installed project has."""
    if not (config.dynamic and config.name):
        return config.dependencies
    try:
        return [item for item in metadata.requires(config.name) or [] if not _EXTRA.search(item)]
    except metadata.PackageNotFoundError:
        say(
            f"{config.file}: dependencies are dynamic and {config.name} is not installed here, so that they are not known; "
            "what a scenario needs can stand in its requires"
        )
        return ()
