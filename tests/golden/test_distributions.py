"""Which distributions a run imported."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from golden.distributions import imported, normalised
from tests.golden.prepared import report

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Lays an installed distribution, as pip would, into a folder that is on the path."""
    site = tmp_path / "site-packages"
    site.mkdir()
    monkeypatch.syspath_prepend(site)

    def lay(name: str, number: str, *files: str, top_level: str = "", editable: Path | None = None) -> None:
        info = site / f"{name.replace('-', '_')}-{number}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n")
        for file in files:
            path = site / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
        (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
        if top_level:
            (info / "top_level.txt").write_text(top_level)
        if editable:
            (info / "direct_url.json").write_text(json.dumps({"url": editable.as_uri(), "dir_info": {"editable": True}}))
        importlib.invalidate_caches()

    return lay


def new(before: frozenset[str], project: Path | None = None) -> dict[str, str]:
    """What was imported, without what every process has."""
    return {name: number for name, number in imported(before, project).items() if name not in ("numpy", "opt-einsum", "torch")}


def test_what_is_imported_counts_and_nothing_else(install: Install) -> None:
    """A distribution counts once a module of it is imported, under its normalised name; one that is only installed does not."""
    install("Gold_Dist.A", "1.2", "gold_package_a/__init__.py")
    install("gold-dist-b", "3", "gold_module_b.py", top_level="gold_module_b\n")
    install("gold-dist-c", "9", "gold_module_c.py")
    before = frozenset(sys.modules)
    assert new(before) == {}
    importlib.import_module("gold_package_a")
    assert new(before) == {"gold-dist-a": "1.2"}
    importlib.import_module("gold_module_b")
    assert new(before) == {"gold-dist-a": "1.2", "gold-dist-b": "3"}
    assert new(frozenset(sys.modules)) == {}


def test_of_a_shared_namespace_the_owner_counts(install: Install) -> None:
    """Where two distributions lie below one name, the one whose file was imported is meant."""
    install("gold-one", "1", "gold_space/one/__init__.py")
    install("gold-two", "2", "gold_space/two/__init__.py")
    before = frozenset(sys.modules)
    importlib.import_module("gold_space.two")
    assert new(before) == {"gold-two": "2"}


def test_the_project_itself_is_left_out(install: Install, tmp_path: Path) -> None:
    """A distribution installed from the project in editable form is no distribution of its own; that of another project is."""
    project = tmp_path / "my project"
    install("gold-mine", "0", "gold_mine.py", top_level="gold_mine", editable=project)
    before = frozenset(sys.modules)
    importlib.import_module("gold_mine")
    assert new(before, project) == {}
    assert new(before, tmp_path / "other") == {"gold-mine": "0"}
    assert new(before) == {"gold-mine": "0"}


def test_what_golden_brings_along_is_left_out() -> None:
    """safetensors and xxhash are golden's, and say nothing about the scenario."""
    program = """
import sys; before = frozenset(sys.modules)
import json, safetensors.numpy, xxhash
from golden.distributions import imported
print(json.dumps(imported(before)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"numpy": version("numpy")}


def test_a_scenario_of_torch_alone_has_torch_and_numpy() -> None:
    """What torch takes along where it finds it (tqdm, for one) depends on the machine and is not counted."""
    found = dict(report()["environment"]["distributions"])
    assert {name: number for name, number in found.items() if name != "opt-einsum"} == {
        "numpy": version("numpy"),
        "torch": version("torch"),
    }


@pytest.mark.parametrize(("name", "normal"), [("Ruamel.YAML", "ruamel-yaml"), ("scikit_learn", "scikit-learn"), ("A--._b", "a-b")])
def test_names_are_normalised(name: str, normal: str) -> None:
    """Names are written as indexes compare them."""
    assert normalised(name) == normal
