"""Rules for all tests: no terminal of the caller, one thread, and who may use the CUDA device.

What needs one is skipped, and counted so, where there is none; what looks at all of its memory has it to itself.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# Parallel workers are given the width of the terminal that they do not have; what gate prints would be wrapped to it.
for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
    os.environ.pop(name, None)
# Before torch is imported: workers that each start as many threads as there are cores wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is marked `cuda` without a device; torch is asked only where something is so marked."""
    marked = [item for item in items if item.get_closest_marker("cuda")]
    if not marked:
        return
    import torch

    if not torch.cuda.is_available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))


@pytest.fixture(autouse=True)
def _device(request: pytest.FixtureRequest) -> Iterator[None]:
    """Parallel workers share the device, but with a test that is marked `alone`."""
    if not request.node.get_closest_marker("cuda"):
        yield
        return
    with (Path(tempfile.gettempdir()) / f"gate-tests-device-{os.getuid()}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if request.node.get_closest_marker("alone") else fcntl.LOCK_SH)
        yield
