"""Where goldens lie: `<root>/<hardware>/torch-<version>/<name>`."""

from __future__ import annotations

import re
from pathlib import Path

from gate.machine import device_of
from gate.version import agrees, public

_PREFIX = "torch-"


def shown_version(slug: str | None, version: str) -> str:
    """The version that decides a golden's folder: the public one on CPUs, the full one on GPUs, where two builds are two things."""
    return version if slug is not None and device_of(slug) == "cuda" else public(version)


def golden_folder(root: Path, slug: str, version: str, name: str) -> Path:
    """The folder of one golden under a full version."""
    return root / slug / f"{_PREFIX}{shown_version(slug, version)}" / name


def version_of(folder: Path) -> str:
    """The version that a torch folder is named after."""
    return folder.name.removeprefix(_PREFIX)


def torch_folders(hardware: Path) -> list[Path]:
    """The torch folders of one hardware folder, oldest version first; none where there is no such folder."""
    found = [path for path in hardware.iterdir() if path.name.startswith(_PREFIX) and path.is_dir()] if hardware.is_dir() else []
    return sorted(found, key=lambda path: (_numbers(version_of(path)), path.name))


def hardware_folders(root: Path) -> list[Path]:
    """The folders below the goldens' root that hold torch folders, by name."""
    return sorted(path for path in root.iterdir() if torch_folders(path)) if root.is_dir() else []


def builds(hardware: Path, asked: str, name: str) -> list[Path]:
    """The goldens of one name under every build of the version asked for."""
    return [folder / name for folder in torch_folders(hardware) if belongs(folder, asked) and (folder / name).is_dir()]


def belongs(folder: Path, asked: str) -> bool:
    """Whether a torch folder is one of the version asked for; a public version stands for any build of it."""
    return agrees(shown_version(folder.parent.name, asked), version_of(folder))


def nearest(root: Path, slug: str | None, version: str, name: str) -> Path | None:
    """The golden most like a missing one: same hardware and nearest torch, then other hardware of the same device, then any."""

    def distance(golden: Path) -> tuple[bool, bool, list[int], str]:
        theirs = golden.parent.parent.name
        other_device = slug is not None and device_of(theirs) != device_of(slug)
        apart = [abs(a - b) for a, b in zip(_numbers(version_of(golden.parent)), _numbers(version), strict=True)]
        return theirs != slug, other_device, apart, str(golden)

    found = (folder / name for hardware in hardware_folders(root) for folder in torch_folders(hardware))
    return min((path for path in found if path.is_dir()), key=distance, default=None)


def _numbers(version: str) -> list[int]:
    return ([int(number) for number in re.findall(r"\d+", public(version))] + [0, 0, 0])[:3]
