"""A fresh process under a profile, and what it says of itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

from golden import profile

PROGRAM = """
import json, random, sys
from golden import known, seeding

seed, name, device = int(sys.argv[1]), sys.argv[2], sys.argv[3]
answers = known.check()
import torch
inherited_threads = torch.get_num_threads()
seeding.prepare(seed, name)
import numpy
from golden.distributions import baseline
from golden.environment import collect

before = baseline()
draws = [torch.rand(2).tolist(), torch.rand(2, device=device).tolist(), numpy.random.rand(2).tolist(), random.random(), hash("a")]
torch.einsum("ij,jk->ik", torch.ones(2, 2), torch.ones(2, 2))
print(json.dumps({
    "honoured": answers.honoured, "broken": answers.broken, "actual": answers.actual, "draws": draws,
    "inherited_threads": inherited_threads, "environment": collect(device, name, before),
}))
"""


# What a shell may ask for, and what undoes one thread; shared, as each process takes seconds to start.
INHERITED = "PYTHONHASHSEED=7;OMP_NUM_THREADS=2;MKL_NUM_THREADS=2;MKL_CBWR=AVX2;ONEDNN_MAX_CPU_ISA=AVX2;OPENBLAS_CORETYPE=Haswell;NPY_X=1"
TWO_THREADS = "OMP_NUM_THREADS=2;MKL_NUM_THREADS=2"
OTHER_PRODUCTS = "MKL_CBWR=AVX2;OPENBLAS_CORETYPE=Haswell;NPY_DISABLE_CPU_FEATURES="


@cache
def report(name: str = "portable", seed: int = 0, device: str = "cpu", inherited: str = "", forced: str = "") -> dict[str, Any]:
    """What a process says that starts under the profile `name`.

    Args:
        name: the profile.
        seed: the seed.
        device: "cpu" or "cuda".
        inherited: variables that the profile may remove, "A=1;B=2".
        forced: variables that it cannot, set afterwards.
    """
    child = profile.environment({**os.environ, **_pairs(inherited)}, name, device, seed) | _pairs(forced)
    command = [sys.executable, "-c", PROGRAM, str(seed), name, device]
    done = subprocess.run(command, env=child, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _pairs(text: str) -> dict[str, str]:
    return dict(item.split("=", 1) for item in text.split(";") if item)
