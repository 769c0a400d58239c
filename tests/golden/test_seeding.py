"""What a run's process sets before the scenario's file is imported."""

from __future__ import annotations

import pytest
import torch

from tests.golden.prepared import INHERITED, TWO_THREADS, report


def test_a_seed_gives_the_same_draws_whatever_is_inherited() -> None:
    """torch, numpy, Python and the hashes of strings follow the seed alone."""
    first, again, other = report(), report(inherited=INHERITED), report(seed=5)
    assert first["draws"] == again["draws"]
    assert all(one != two for one, two in zip(first["draws"], other["draws"], strict=True))


def test_the_portable_profile_runs_one_thread() -> None:
    """One thread within an operation and one between operations, both by the variables and by torch's own switch."""
    assert report(forced=TWO_THREADS)["inherited_threads"] == 2
    environment = report(forced=TWO_THREADS)["environment"]
    assert (environment["threads"], environment["interop_threads"]) == (1, 1)


def test_a_native_run_keeps_the_machines_threads() -> None:
    """The native profile leaves threads as they are, and is deterministic all the same."""
    environment = report("native", forced=TWO_THREADS)["environment"]
    assert environment["threads"] == 2
    assert environment["flags"]["torch.are_deterministic_algorithms_enabled()"] is True


@pytest.mark.case("G15")
def test_tf32_is_off_and_every_flag_can_still_be_read() -> None:
    """TF32 is off for products and convolutions, and the way it was turned off leaves both the older and newer flags readable."""
    flags, native = report()["environment"]["flags"], report("native", forced=TWO_THREADS)["environment"]["flags"]
    assert flags["torch.backends.cudnn.allow_tf32"] is False
    assert flags["torch.backends.cuda.matmul.allow_tf32"] is False
    assert "unreadable" not in flags.values()
    assert native["torch.backends.cudnn.allow_tf32"] is True


def test_algorithms_are_deterministic() -> None:
    """Deterministic algorithms are on, not as a warning; new memory is filled; cuDNN measures nothing."""
    flags = report()["environment"]["flags"]
    assert flags["torch.are_deterministic_algorithms_enabled()"] is True
    assert flags["torch.is_deterministic_algorithms_warn_only_enabled()"] is False
    assert flags["torch.utils.deterministic.fill_uninitialized_memory"] is True
    assert (flags["torch.backends.cudnn.benchmark"], flags["torch.backends.cudnn.deterministic"]) == (False, True)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_is_seeded() -> None:
    """Draws on the device follow the seed."""
    assert report(device="cuda")["draws"] == report(device="cuda", inherited=INHERITED)["draws"]
    assert report(device="cuda")["draws"][1] != report(device="cuda", seed=5)["draws"][1]
