"""Recordings made in this process the way a scenario's process makes them, and what a comparison says of two."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from golden.compare import Difference, compare
from golden.recorder import Recorder
from golden.store import Golden, same_bits
from golden.writer import Writer

FACTS: dict[str, Any] = {"scenario": {"name": "case"}, "environment": {}, "sources": {}, "hardware": "cpu", "torch": "2.13.0"}


def record(folder: Path, scenario: Callable[[Recorder], object], *, steps: int = 1, seed: int | None = 0) -> Golden:
    """Runs a scenario and opens what it recorded, every byte of it checked; without a seed, generators stay as they are."""
    if seed is not None:
        seed_all(seed)
    writer = Writer(folder)
    recorder = Recorder(writer.add, steps=steps, seed=seed or 0, store="full")
    scenario(recorder)
    recorder.finish()
    writer.finish(**FACTS)
    golden = Golden.open(folder)
    golden.check()
    return golden


def state(folder: Path, **phases: Any) -> Golden:
    """A recording of one step whose state this is."""
    return record(folder, lambda recorder: recorder(**phases))


def seed_all(seed: int) -> None:
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


def differences(expected: Golden, actual: Golden) -> tuple[Difference, ...]:
    """All differences; whoever asks otherwise (from the other side, by root digests, by the result's own summary) hears the same."""
    found = compare(expected, actual)
    assert found.identical is (found.first is None) is (found.structure + found.bits == 0)
    assert len(compare(actual, expected).differences) == len(found.differences)
    assert same_bits(expected, actual) is found.identical
    return found.differences


def kinds(expected: Golden, actual: Golden) -> list[tuple[str, str]]:
    """Kind and path of all differences."""
    return [(difference.kind.value, difference.path) for difference in differences(expected, actual)]


def only(expected: Golden, actual: Golden) -> Difference:
    """The only difference."""
    (found,) = differences(expected, actual)
    return found
