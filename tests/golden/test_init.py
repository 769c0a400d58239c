"""The package's names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import golden

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.mark.parametrize("name", golden.__all__)
def test_every_exported_name_is_there(name: str) -> None:
    assert getattr(golden, name) is getattr(golden, name)
    assert name in dir(golden)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="module 'golden' has no attribute 'Gradients'"):
        golden.Gradients  # noqa: B018


@pytest.mark.parametrize(
    ("statement", "loaded"),
    [("golden", []), ("golden.Golden, golden.GoldenError, golden.compare", ["numpy"]), ("golden.gradients", ["numpy", "torch"])],
)
def test_nothing_is_imported_before_it_is_used(statement: str, loaded: list[str]) -> None:
    code = f"import golden, sys; {statement}; print(*sorted({{'numpy', 'torch'}} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == loaded


@pytest.mark.parametrize("first", ["golden.compare", "golden.store"])
def test_compare_is_the_module_whatever_was_imported_first(first: str) -> None:
    """A name that means one thing or another by the order of imports would be worse than a longer one."""
    code = f"import {first}, golden; print(golden.compare.__name__, golden.compare.compare.__name__)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["golden.compare", "compare"]


def test_the_version_is_the_projects() -> None:
    assert f'\nversion = "{golden.__version__}"\n' in PYPROJECT.read_text(encoding="utf-8")


def test_gradients_is_the_function_whatever_was_imported_before() -> None:
    """No module of the package shares its name: importing one would put itself in the function's place."""
    code = "import golden.state, golden.recorder, golden; print(callable(golden.gradients))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["True"]
