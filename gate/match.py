"""Which goldens below two folders stand for each other."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from gate.errors import UsageError
from golden import manifest, table
from golden.errors import GoldenError, MissingGolden
from golden.manifest import Manifest

Places: TypeAlias = Mapping[str, Path]
"""Goldens by their place below a folder, in order; "" is the folder itself."""

MARKS = {manifest.FILE, table.FILE}


@dataclass(frozen=True)
class Match:
    """Two goldens to compare, and what names them in a report."""

    name: str
    expected: Path
    actual: Path


def goldens(path: Path) -> Places:
    """The goldens at a path or below it; hidden folders below it are left out (what a killed run left behind).

    Raises:
        UsageError: there is no such folder.
        MissingGolden: there is no golden in it.
    """
    if path.name in MARKS and path.is_file():
        path = path.parent
    if not path.is_dir():
        raise UsageError(f"{path}: there is no such folder. Name a golden, a kept run, or a folder that holds some.")
    found = {}
    for folder, below, files in os.walk(path):
        if MARKS & set(files):
            place = Path(folder).relative_to(path).as_posix()
            found["" if place == "." else place] = Path(folder)
            below.clear()
        below[:] = sorted(name for name in below if not name.startswith("."))
    if not found:
        raise MissingGolden(f"{path}: there is no golden in this folder. Name one, or a folder that holds some.")
    return found


def matched(expected: Places, actual: Places) -> tuple[list[Match], list[Path]]:
    """Pairs goldens of the same place; where there is none, of the same hardware, torch and name, else of the same name.

    Returns:
        The pairs, and the goldens that have none.

    Raises:
        MissingGolden: nothing on the one side stands for anything on the other.
    """
    for keyed in (_by_place, _by_row, _by_name):
        one, other = keyed(expected), keyed(actual)
        pairs = [Match(folder.name, folder, other[key]) for key, folder in one.items() if key in other]
        if pairs:
            taken = {folder for pair in pairs for folder in (pair.expected, pair.actual)}
            return pairs, [folder for folder in (*expected.values(), *actual.values()) if folder not in taken]
    raise MissingGolden(f"nothing to compare: {_held(expected)} on the one side, {_held(actual)} on the other. Name two goldens.")


def _by_place(places: Places) -> dict[Hashable, Path]:
    by_place: dict[Hashable, Path] = {}
    by_place.update(places)
    return by_place


def _by_row(places: Places) -> dict[Hashable, Path]:
    return _unique(places, lambda known: (known.hardware, known.torch, str(known.scenario.get("name"))))


def _by_name(places: Places) -> dict[Hashable, Path]:
    return _unique(places, lambda known: str(known.scenario.get("name")))


def _unique(places: Places, key: Callable[[Manifest], Hashable]) -> dict[Hashable, Path]:
    """The goldens by what their manifests say, without those that are not alone in it.

    Raises:
        GoldenError: the only golden there cannot be read.
    """
    found: dict[Hashable, list[Path]] = {}
    for folder in places.values():
        try:
            found.setdefault(key(manifest.read(folder)), []).append(folder)
        except GoldenError:
            if len(places) == 1:
                raise
    return {name: folders[0] for name, folders in found.items() if len(folders) == 1}


def _held(places: Places) -> str:
    names = list(dict.fromkeys(folder.name for folder in places.values()))
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
