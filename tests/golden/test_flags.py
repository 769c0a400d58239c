"""torch's switches."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
import torch

from golden import flags as switches
from golden.flags import UNREADABLE, flag_changes, flags


@pytest.fixture
def restored() -> Iterator[None]:
    """Puts back the switches that a test sets."""
    threads, benchmark = torch.get_num_threads(), torch.backends.cudnn.benchmark
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_num_threads(threads)
    torch.set_flush_denormal(False)
    torch.backends.cudnn.benchmark = benchmark


@pytest.mark.case("G22")
@pytest.mark.usefixtures("restored")
def test_a_switch_thrown_after_the_model_was_built_is_reported() -> None:
    """What changes between two moments of a run is told with both values and both moments; what does not change is not."""
    torch.set_num_threads(1)
    at_import = flags()
    at_build = flags()
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(2)
    torch.set_flush_denormal(True)
    moments = [("import", at_import), ("build", at_build), ("step 1", flags())]
    between = ["build", "step 1"]
    assert flag_changes(moments) == [
        {"path": "flags.flush_denormal", "expected": False, "actual": True, "between": between},
        {"path": "flags.torch.are_deterministic_algorithms_enabled()", "expected": False, "actual": True, "between": between},
        {"path": "threads", "expected": 1, "actual": 2, "between": between},
    ]
    assert flag_changes(moments[:2]) == []


def test_using_torch_changes_no_switch() -> None:
    """What torch loads at first use (einsum, attention) is no change."""
    before = flags()
    torch.einsum("ij,jk,kl->il", torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2))
    torch.nn.MultiheadAttention(4, 2)(*[torch.ones(1, 2, 4)] * 3)
    assert flag_changes([("build", before), ("step 1", flags())]) == []


@pytest.mark.case("G15")
def test_reading_never_raises() -> None:
    """Where both kinds of TF32 flags were set, torch raises on reading; here the flag is unreadable, and the others are read."""
    program = """
import torch
from golden.flags import flags
torch.backends.cuda.matmul.allow_tf32 = False
before = flags()["flags"]
if hasattr(torch.backends.cudnn, "conv"):
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    torch.backends.cudnn.conv.fp32_precision = "ieee"
after = flags()["flags"]
print(sorted(name for name, value in after.items() if value == "unreadable"), before == after)
print(after.get("torch.backends.cuda.matmul.fp32_precision"), after.get("torch.backends.cudnn.conv.fp32_precision"))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    if hasattr(torch.backends.cudnn, "conv"):
        assert "'torch.backends.cuda.matmul.allow_tf32'" in done.stdout
        assert done.stdout.endswith("False\ntf32 ieee\n")
    else:
        assert done.stdout == "[] True\nNone None\n"


@pytest.mark.case("G15")
def test_products_convolutions_and_recurrent_nets_are_listed_apart() -> None:
    """Each has its own precision in torch 2.9 and later; before, products and the rest."""
    names = set(flags()["flags"])
    assert {"torch.backends.cuda.matmul.allow_tf32", "torch.backends.cudnn.allow_tf32"} <= names
    if hasattr(torch.backends.cudnn, "conv"):
        parts = ("cuda.matmul", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn")
        assert {f"torch.backends.{part}.fp32_precision" for part in parts} <= names


@pytest.mark.case("G16")
def test_the_preferred_libraries_are_listed() -> None:
    """Which library multiplies and which factorises on CUDA is part of the environment."""
    found = flags()["flags"]
    assert found["torch.backends.cuda.preferred_blas_library()"] != UNREADABLE
    assert found["torch.backends.cuda.preferred_linalg_library()"] != UNREADABLE


def test_a_switch_that_this_torch_does_not_have_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither an attribute nor a function of another version of torch is listed; what it has beside them is."""
    monkeypatch.setattr(switches, "_NAMES", ("backends.of_another_version", "get_default_dtype()", "of_another_version()"))
    assert [name for name in flags()["flags"] if name.startswith("torch.")] == ["torch.get_default_dtype()"]


def test_pythons_own_switch_is_listed() -> None:
    """Under -O a scenario's assertions are not asked."""
    assert flags()["flags"]["sys.flags.optimize"] == sys.flags.optimize


def test_reading_is_cheap() -> None:
    """All switches together take less than a millisecond, the quickest of ten tries."""
    times = []
    for _ in range(10):
        start = time.perf_counter()
        flags()
        times.append(time.perf_counter() - start)
    assert min(times) < 1e-3
