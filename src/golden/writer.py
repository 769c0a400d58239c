"""Writes a golden into a folder that nobody reads yet: step files as they come, then the digests, the manifest last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from golden import files, stepfile, table
from golden.canonical import Json
from golden.digest import Roots
from golden.errors import ScenarioFailed, StoreError
from golden.leaf import Leaf, Snapshot
from golden.manifest import FILE, Layout, Manifest, Reason, Step, follows, parse


@dataclass(frozen=True)
class _Part:
    """One phase of a plan: where its leaves stand in a snapshot, and their layout in the manifest."""

    rows: slice
    layout: int


@dataclass(frozen=True)
class _Plan:
    """What is known of a snapshot by its leaves alone."""

    leaves: tuple[Leaf, ...]
    lines: tuple[str, ...]
    parts: tuple[_Part, ...]

    @cached_property
    def file(self) -> stepfile.Plan:
        """Of its step files."""
        return stepfile.Plan(self.leaves, self.lines)


class Writer:
    """Writes one golden.

    Args:
        folder: made if it is not there; must be empty.

    Raises:
        StoreError: if the folder cannot be made, or holds something.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._layouts: list[Layout] = []
        self._roots: list[Roots] = []
        self._known: dict[tuple[Leaf, ...], int] = {}
        self._steps: list[Step] = []
        self._rows: list[npt.NDArray[np.uint64]] = []
        self._plan: _Plan | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            found = next(folder.iterdir(), None)
        except OSError as error:
            raise StoreError.of(error, folder) from error
        if found is not None:
            raise StoreError(found, "is in the way: a golden is written into an empty folder")

    def add(self, snapshot: Snapshot) -> Step:
        """Takes the state after one step: its digests, and where it has data a step file.

        Steps come one by one, each the number after the last; only the start, step 0, may be followed by any.

        Raises:
            StoreError: if the step file cannot be written.
            ValueError: for a step out of order, or leaves that name one path twice.
        """
        previous = self._steps[-1].step if self._steps else None
        if not follows(previous, snapshot.step):
            raise ValueError(f"step {snapshot.step} cannot follow step {previous}")
        plan = self._plan = self._planned(snapshot.leaves)
        if snapshot.data is not None:
            plan.file.write(self.folder / stepfile.name(snapshot.step), snapshot.data)
        roots = tuple(self._roots[part.layout].root(snapshot.digests[part.rows]) for part in plan.parts)
        step = Step(snapshot.step, tuple(part.layout for part in plan.parts), roots, snapshot.data is not None)
        self._steps.append(step)
        self._rows.append(np.array(snapshot.digests, dtype=np.uint64))
        return step

    def finish(
        self,
        *,
        scenario: Mapping[str, Json],
        environment: Mapping[str, Json],
        sources: Mapping[str, str],
        hardware: str,
        torch: str,
        reason: Reason | None = None,
    ) -> Manifest:
        """Writes digests and manifest: from here on the folder is a golden.

        Returns:
            The manifest, as it will be read.

        Raises:
            ScenarioFailed: if no step was added.
            StoreError: if the files cannot be written.
            ValueError: for facts that a manifest cannot hold.
        """
        if not self._steps:
            raise ScenarioFailed("nothing was recorded: call record(...) after each step")
        manifest = Manifest(tuple(self._layouts), tuple(self._steps), scenario, environment, sources, hardware, torch, reason)
        text = manifest.text().encode()
        readable = parse(text)
        table.write(self.folder, manifest, self._rows)
        files.write(self.folder / FILE, [text])
        return readable

    def _planned(self, leaves: tuple[Leaf, ...]) -> _Plan:
        """The plan of these leaves: the last one, while they are the same object."""
        if self._plan is not None and leaves is self._plan.leaves:
            return self._plan
        if len({leaf.full for leaf in leaves}) != len(leaves) or not leaves:
            raise ValueError(f"a state needs leaves with distinct paths, got {_twice(leaves) or 'none'}")
        parts = tuple(_Part(rows, self._layout(leaves[rows])) for rows in _phases(leaves))
        return _Plan(leaves, tuple(line for part in parts for line in self._layouts[part.layout].lines), parts)

    def _layout(self, leaves: tuple[Leaf, ...]) -> int:
        """Place of the layout of a phase among those known, or the next one."""
        place = self._known.setdefault(leaves, len(self._layouts))
        if place == len(self._layouts):
            layout = Layout(leaves[0].phase, leaves)
            self._layouts.append(layout)
            self._roots.append(Roots(leaves, layout.lines))
        return place


def explain(folder: Path, manifest: Manifest, reason: Reason) -> Manifest:
    """Writes a reason into the manifest of a golden that is not published yet.

    Raises:
        StoreError: if it cannot be written.
    """
    path = folder / FILE
    text = replace(manifest, reason=reason).text().encode()
    explained = parse(text)
    try:
        path.unlink()
    except OSError as error:
        raise StoreError.of(error, path) from error
    files.write(path, [text])
    return explained


def _phases(leaves: tuple[Leaf, ...]) -> Iterator[slice]:
    """Where each phase begins and ends.

    Raises:
        ValueError: if the leaves of one phase are not adjacent.
    """
    starts = [index for index, leaf in enumerate(leaves) if index == 0 or leaf.phase != leaves[index - 1].phase]
    if len({leaves[index].phase for index in starts}) != len(starts):
        raise ValueError("the leaves of a phase must stand together")
    yield from map(slice, starts, [*starts[1:], len(leaves)])


def _twice(leaves: tuple[Leaf, ...]) -> str | None:
    """The first path that stands there again."""
    seen: set[str] = set()
    for leaf in leaves:
        if leaf.full in seen:
            return f"{leaf.full} twice"
        seen.add(leaf.full)
    return None
