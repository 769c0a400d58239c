"""Many small tensors take time and memory in proportion, and a large state is not held twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.scaled import STEPS

ROOT = Path(__file__).parent.parent.parent
FEW, MANY = 9_999, 99_999  # tensors: weights, gradients and momenta of as many parameters each
MOST = {
    "bytes": 12,
    "seconds": 40,
}  # what is quadratic takes 100 times; a busy machine moves seconds, so how far below is measured, not tested

pytestmark = pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="needs Linux's high-water mark of memory")


def took(part: str, size: int, folder: Path, times: int = 1) -> dict[str, float]:
    """Seconds and bytes that a part takes in a process of its own, the least of some tries."""
    command = [sys.executable, "-m", "tests.golden.scaled", part, str(size), str(folder)]
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    tries = []
    for _ in range(times):
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        tries.append(json.loads(done.stdout))
    return {key: min(found[key] for found in tries) for key in ("seconds", "bytes")}


@pytest.mark.slow
def test_ten_times_the_tensors_take_at_most_twelve_times_the_memory_and_no_quadratic_time(tmp_path: Path) -> None:
    found = {}
    for size in (FEW, MANY):
        folder = tmp_path / str(size)
        found["record", size] = took("record", size, folder)
        took("other", size, folder)
        found["verify", size] = took("verify", size, folder, times=3)
        found["diff", size] = took("diff", size, folder, times=3)
    for part in ("record", "verify", "diff"):
        few, many = found[part, FEW], found[part, MANY]
        assert few["bytes"] > 5e6, "what is compared has to be measurable"
        ratios = {key: many[key] / few[key] for key in few}
        assert all(2 < ratios[key] <= MOST[key] for key in ratios), (part, ratios, few, many)


def test_recording_a_gigabyte_with_digests_holds_it_once(tmp_path: Path) -> None:
    """The state counts; it holds a lazily conjugated and a transposed tensor as well, which have to be read without a whole copy."""
    size = 10**9
    assert size < took("state", size, tmp_path)["bytes"] <= 1.1 * size


def test_the_measure_sees_a_state_that_is_held_twice(tmp_path: Path) -> None:
    program = (
        "import sys; from tests.golden import scaled; import golden.plan as plan; read = plan.Plan.read; held = [];"
        "plan.Plan.read = lambda self, phases: (held.append([t.clone() for t in phases.get('state', [])]), read(self, phases))[1];"
        "scaled.main('state', '100000000', sys.argv[1])"
    )
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["bytes"] > 1.9 * 10**8


def test_every_step_of_what_is_measured_is_recorded(tmp_path: Path) -> None:
    from golden.store import Golden

    took("record", 30, tmp_path)
    golden = Golden.open(tmp_path / "golden")
    assert len(golden.steps) == STEPS
    assert sum(leaf.kind == "tensor" and leaf.phase != "rng" for leaf in golden.leaves(1)) == 30
    assert all(map(golden.kept, golden.steps))
