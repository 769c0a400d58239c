"""The table of digests: one row a step, one column a leaf, held against the root digests of the manifest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from golden import files, tensorfile
from golden.digest import BYTES, Roots
from golden.errors import CorruptGolden
from golden.manifest import Manifest

FILE = "digests.safetensors"
NAME = "digests"


def write(folder: Path, manifest: Manifest, rows: Sequence[npt.NDArray[np.uint64]]) -> None:
    """Writes the table.

    Args:
        folder: where to.
        manifest: of the golden.
        rows: for each step the digests of its leaves, in order of its layouts: uint64 [leaves, 2].

    Raises:
        StoreError: if it cannot be written.
    """
    table = np.zeros(_shape(manifest), dtype="<u8")
    for index, (step, digests) in enumerate(zip(manifest.steps, rows, strict=True)):
        table[index, columns(manifest, step.layouts)] = digests
    files.write(folder / FILE, [_start(manifest), table.reshape(-1).view(np.uint8)])


def read(folder: Path, manifest: Manifest) -> npt.NDArray[np.uint64]:
    """Reads the table: uint64 [steps, columns, 2], zero where a step has no such leaf.

    Raises:
        CorruptGolden: if it is not the one that the manifest vouches for.
        StoreError: if the system does not let it be read.
    """
    path, shape = folder / FILE, _shape(manifest)
    content = files.read(path)
    try:
        data = tensorfile.check(content, _start(manifest), shape[0] * shape[1] * BYTES)
        table = np.frombuffer(data.tobytes(), dtype="<u8").astype(np.uint64).reshape(shape)
        _check(manifest, table)
    except ValueError as error:
        raise CorruptGolden(path, str(error)) from None
    return table


def columns(manifest: Manifest, layouts: Sequence[int]) -> npt.NDArray[np.intp]:
    """Columns of the leaves of some layouts, in order: intp [leaves]."""
    return np.concatenate([manifest.columns[index] for index in layouts])


def _shape(manifest: Manifest) -> tuple[int, int, int]:
    return len(manifest.steps), manifest.width, 2


def _start(manifest: Manifest) -> bytes:
    return tensorfile.start(tensorfile.listing([(NAME, tensorfile.held("uint64", _shape(manifest)))]))


def _check(manifest: Manifest, table: npt.NDArray[np.uint64]) -> None:
    for what in _astray(manifest, table):
        raise ValueError(f"{what}: it was damaged, or comes from another golden")


def _astray(manifest: Manifest, table: npt.NDArray[np.uint64]) -> Iterator[str]:
    """Digests that the roots in the manifest do not vouch for."""
    roots = [Roots(layout.leaves, layout.lines) for layout in manifest.layouts]
    for step, row in zip(manifest.steps, table, strict=True):
        absent = np.ones(len(row), dtype=bool)
        for index, root in zip(step.layouts, step.roots, strict=True):
            absent[manifest.columns[index]] = False
            if roots[index].root(row[manifest.columns[index]]) != root:
                yield f"digests of step {step.step} do not have the root of the phase {manifest.layouts[index].phase} in the manifest"
        if row[absent].any():
            yield f"step {step.step} has digests of leaves that are not in it"
