"""Small goldens for tests, made by the real writer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import digest
from golden.leaf import Leaf, Snapshot
from golden.store import Golden
from golden.writer import Writer

Content = npt.NDArray[Any] | str | None

FACTS: dict[str, Any] = {
    "scenario": {"name": "digits", "steps": 3},
    "environment": {"threads": 1, "torch": {"version": "2.13.0+cpu"}},
    "sources": {"src/model.py": "0f" * 32},
    "hardware": "cpu",
    "torch": "2.13.0",
}


def leaf(full: str, content: Content, **facts: Any) -> Leaf:
    """A tensor for an array, an int for text, a dict for None."""
    phase, _, path = full.partition("/")
    if isinstance(content, np.ndarray):
        return Leaf(phase, path, "tensor", facts.pop("dtype", content.dtype.name), facts.pop("shape", content.shape), **facts)
    return Leaf(phase, path, *(("container", "dict") if content is None else ("scalar", "int")), **facts)


def raw(content: Content) -> bytes:
    return content.tobytes() if isinstance(content, np.ndarray) else (content or "").encode()


def snapshot(step: int, state: Mapping[str, Content], *, keep: bool = True) -> Snapshot:
    data = [raw(content) for content in state.values()]
    return Snapshot(step, tuple(leaf(full, content) for full, content in state.items()), digest.of(data), data if keep else None)


def state(seed: int) -> dict[str, Content]:
    """A state whose bits follow a seed."""
    random = np.random.default_rng(seed)
    weight = random.standard_normal((3, 2)).astype(np.float32)
    return {
        "loss": random.standard_normal(()).astype(np.float32),
        "optimizer": None,
        "optimizer/step": str(seed),
        "optimizer/w/momentum_buffer": weight * 2,
        "model/w": weight,
        "model/empty": np.zeros((0, 3), np.int64),
    }


def write(
    folder: Path, states: Sequence[Mapping[str, Content]], *, kept: Sequence[int] | None = None, begin: int = 1, **facts: Any
) -> Golden:
    """Writes a golden with a state a step; those of the steps in ``kept`` whole, all of them without it."""
    writer = Writer(folder)
    for step, content in enumerate(states, begin):
        writer.add(snapshot(step, content, keep=kept is None or step in kept))
    writer.finish(**{**FACTS, **facts})
    return Golden.open(folder)


def golden(folder: Path, seed: int = 0, steps: int = 3, **facts: Any) -> Golden:
    """A golden whose bits follow a seed."""
    return write(folder, [state(100 * seed + step) for step in range(1, steps + 1)], **facts)


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
