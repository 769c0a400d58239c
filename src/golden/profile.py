"""The portable profile: which variables a run's process gets and which it must not inherit, so that its bits do not follow the CPU."""

from __future__ import annotations

from collections.abc import Mapping

CUDA = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}


def variables(profile: str, device: str, seed: int) -> dict[str, str]:
    """What to set for a run, before torch and numpy are imported."""
    raise NotImplementedError


def removed(name: str) -> bool:
    """Whether a variable is kept from a run under the portable profile."""
    raise NotImplementedError


def environment(base: Mapping[str, str], profile: str, device: str, seed: int) -> dict[str, str]:
    """The whole environment of the run's process: `base`, less what is removed, plus what is set."""
    raise NotImplementedError
