"""Which device and profile a hardware folder's name stands for, and what a machine can judge."""

from __future__ import annotations

import pytest

from gate.machine import Machine, device_of


@pytest.mark.parametrize(
    ("slug", "device"),
    [("cpu", "cpu"), ("cpu-arm64", "cpu"), ("cpu-amd-epyc-9654", "cpu"), ("h200", "cuda"), ("a100-sxm4-80gb", "cuda"), ("cpux", "cuda")],
)
def test_a_slug_tells_its_device(slug: str, device: str) -> None:
    assert device_of(slug) == device


def test_a_cpu_slug_of_this_machine_tells_its_profile() -> None:
    machine = Machine("cpu", "cpu-amd", "l4")
    assert [machine.profile(slug) for slug in ("cpu", "cpu-amd", "l4")] == ["portable", "native", None]


def test_a_machine_lists_what_a_device_and_a_profile_can_be() -> None:
    machine = Machine("cpu", "cpu-amd", "l4")
    assert machine.slugs() == ("cpu", "cpu-amd", "l4")
    assert machine.slugs("cpu", "native") == ("cpu-amd",)
    assert machine.slugs("cuda", "native") == ("l4",)
    assert machine.default("cpu") == "cpu"
    assert machine.default("cpu", "native") == "cpu-amd"


def test_without_a_gpu_there_is_no_cuda_slug() -> None:
    machine = Machine("cpu", "cpu-amd")
    assert machine.slugs("cuda") == ()
    assert machine.default("cuda") is None


def test_this_machine_has_two_different_cpu_slugs() -> None:
    machine = Machine.here()
    assert machine.portable in ("cpu", "cpu-arm64")
    assert machine.native.startswith("cpu-")
    assert machine.native != machine.portable
