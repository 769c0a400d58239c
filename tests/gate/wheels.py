"""Small wheels, so that the real uv makes real environments without a network."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from gate.progress import Silent

ANY = "py3-none-any"


class Heard(Silent):
    """Progress that remembers what it was told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


def wheel(folder: Path, name: str, version: str, code: str = "", *, requires: Iterable[str] = (), tag: str = ANY) -> Path:
    """A wheel of one package with `__init__.py` and, as torch has it, `version.py`."""
    described = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(f"Requires-Dist: {item}\n" for item in requires)
    about = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": f"from .version import __version__\n{code}",
        f"{name}/version.py": f"__version__ = '{version}'\n",
        f"{about}/METADATA": described,
        f"{about}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    path = folder / f"{name}-{version}-{tag}.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        for inner, text in files.items():
            file.writestr(inner, text)
        file.writestr(f"{about}/RECORD", "".join(f"{inner},,\n" for inner in [*files, f"{about}/RECORD"]))
    return path


def registry(folder: Path) -> Path:
    """A folder of wheels: torch 90.0.0 to 94.0.0, each odd in its own way, and what golden needs."""
    wheel(folder, "torch", "90.0.0")
    wheel(folder, "torch", "91.0.0+cpu")
    wheel(folder, "torch", "92.0.0", tag="cp38-cp38-linux_x86_64")
    wheel(folder, "torch", "93.0.0", "raise ImportError('libodd.so: cannot open shared object file')\n")
    wheel(folder, "torch", "94.0.0", "__version__ = '94.0.1'\n")
    for name, versions in {"numpy": ("2.0.0", "2.1.0"), "safetensors": ("1.0.0",), "xxhash": ("4.0.0",), "extra": ("1.0",)}.items():
        for version in versions:
            wheel(folder, name, version)
    wheel(folder, "indirect", "1.0", requires=["numpy<2.1"])
    return folder


def see_only(wheels: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has uv take wheels from a folder alone, and keep its cache in another."""
    for name in [name for name in os.environ if name.startswith("UV_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(wheels))
    monkeypatch.setenv("UV_CACHE_DIR", str(cache))
