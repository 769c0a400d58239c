"""The generators that a run has without asking."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from golden.generators import states
from tests.golden.states import lines, read, same

CPU = torch.device("cpu")


def seed() -> None:
    torch.manual_seed(1)
    np.random.seed(1)
    random.seed(1)


@pytest.mark.parametrize(
    "draw",
    [lambda: torch.rand(1), np.random.rand, random.random, lambda: random.gauss(0, 1)],
    ids=["torch", "numpy", "python", "gauss"],
)
def test_a_draw_from_any_of_them_is_seen(draw: Any) -> None:
    seed()
    before = read(rng=states(CPU))
    assert same(before, read(rng=states(CPU)))
    draw()
    assert not same(before, read(rng=states(CPU)))
    seed()
    assert same(before, read(rng=states(CPU)))


def test_reading_them_draws_nothing() -> None:
    seed()
    expected = torch.rand(1), np.random.rand(), random.random()
    seed()
    read(rng=states(CPU))
    assert (torch.rand(1), np.random.rand(), random.random()) == expected


def test_they_take_few_leaves_and_few_bytes() -> None:
    snapshot = read(rng=states(CPU))
    assert snapshot.data is not None
    assert len(snapshot.leaves) < 20
    assert sum(map(len, map(bytes, snapshot.data))) < 11_000
    assert "rng torch: uint8[5056]" in lines(rng=states(CPU))


@pytest.mark.case("G27")
def test_their_digests_are_the_same_in_every_process() -> None:
    code = """
import torch, random, numpy
from golden.generators import states
from golden.plan import Plan
torch.manual_seed(1); numpy.random.seed(1); random.seed(1)
torch.randn(3)
print(Plan().read({"rng": states(torch.device("cpu")), "own": torch.Generator()}).snapshot(1, False).digests.tobytes().hex())
"""
    found = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in range(3)}
    assert len(found) == 1
    assert len(found.pop()) > 100
