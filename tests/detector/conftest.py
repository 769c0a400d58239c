"""One tiny data set for all tests of a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.detector.folders import coco_folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen training and four validation images of 72x64, three classes; to be read only."""
    return coco_folder(tmp_path_factory.mktemp("coco"))
