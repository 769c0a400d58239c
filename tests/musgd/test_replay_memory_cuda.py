"""What recordings that were given up leave behind. Looks at the whole device's memory: no other test may use it meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.musgd.twins import ROOT

pytestmark = [pytest.mark.cuda, pytest.mark.alone]

CLEAR = """
import torch
from tests.musgd.twins import counts, pair, reserved, same, train
replayed, eager = pair()
seen = []
for step in range(100):
    train((replayed, eager), [step])
    replayed.release()
    seen.append(reserved())
free = torch.cuda.mem_get_info()[0]
for step in range(100, 120):
    train((replayed, eager), [step])
    replayed.release()
    seen.append(reserved())
assert seen[-1] <= seen[2], seen
assert free - torch.cuda.mem_get_info()[0] <= 4 << 20
assert same(replayed, eager) and counts(replayed) == (120, 120)
"""


@pytest.mark.case("R17")
@pytest.mark.parametrize("config", [None, ":4096:8", ":16:8"])
@pytest.mark.parametrize("operations", [False, True], ids=["kernels", "operations"])
def test_r17_recorded_and_cleared_100_times(config: str | None, operations: bool) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    environment.pop("CUBLAS_WORKSPACE_CONFIG", None)
    if config:
        environment["CUBLAS_WORKSPACE_CONFIG"] = config
    told = 'import musgd.packed, torch\nmusgd.packed._REASONS[torch.device("cuda", 0)] = "as told"\n' if operations else ""
    run = subprocess.run([sys.executable, "-c", told + CLEAR], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
