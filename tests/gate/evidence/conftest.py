"""A repository in which everything is fresh, and a copy of it for each test that changes something."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.gate.evidence.records import Toy


@pytest.fixture(scope="package")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository in which everything is fresh; nobody may change it."""
    toy = Toy.new(tmp_path_factory.mktemp("fresh") / "toy")
    toy.everything()
    return toy.folder


@pytest.fixture
def toy(fresh: Path, tmp_path: Path) -> Toy:
    """A copy of it."""
    return Toy(Path(shutil.copytree(fresh, tmp_path / "toy")))
