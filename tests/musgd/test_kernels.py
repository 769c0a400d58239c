"""The Triton kernels, in Triton's interpreter; on a GPU test_replay_cuda.py runs them for real."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [False, True], ids=["right", "one-gradient-negated"])
def test_kernels_do_what_the_operations_do(wrong: bool) -> None:
    """Ragged, tall, wide, tiny, empty and laid-out shapes, three dtypes; a gradient of other sign is noticed."""
    pytest.importorskip("triton")
    run = subprocess.run(
        [sys.executable, "-m", "tests.musgd.interpreted", *(["wrong"] if wrong else [])],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == int(wrong), run.stdout + run.stderr
    assert run.stdout.count("Form(") == 12
    assert run.stdout.count("FAR") == (12 if wrong else 0)
