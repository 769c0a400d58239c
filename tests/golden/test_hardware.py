"""Names of hardware."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from golden import hardware
from golden.hardware import Cuda, cpu_slug, cuda_devices, device_slug


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("NVIDIA L4", "l4"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("NVIDIA H100 80GB HBM3", "h100-80gb-hbm3"),
        ("Tesla T4", "t4"),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "a100-sxm4-80gb-mig-1g-10gb"),
        ("NVIDIA GH200 480GB", "gh200-480gb"),
        ("AMD Instinct MI300X", "instinct-mi300x"),
        ("../../x", "x"),
        ("", "cuda"),
    ],
)
def test_a_cuda_device_is_its_name_without_the_vendor(name: str, slug: str) -> None:
    """The slug is in lower case, fit for a folder, and keeps what tells two models apart."""
    assert device_slug(name) == slug
    assert Cuda(name, "9.0", 132).slug == slug


@pytest.mark.parametrize(
    ("system", "machine", "slug"),
    [
        ("Linux", "x86_64", "cpu"),
        ("Linux", "aarch64", "cpu-arm64"),
        ("Linux", "riscv64", "cpu-riscv64"),
        ("Darwin", "arm64", "cpu-arm64-macos"),
        ("Windows", "AMD64", "cpu-x86-64-windows"),
    ],
)
def test_the_portable_profile_makes_cpus_of_one_kind_one(system: str, machine: str, slug: str) -> None:
    """Each system and architecture has its own slug, whatever the model."""
    assert cpu_slug("portable", system, machine, "AMD EPYC") == slug
    assert cpu_slug("portable", system, machine, "Intel(R) Xeon(R)") == slug


@pytest.mark.parametrize(
    ("model", "slug"),
    [
        ("AMD EPYC 9R14 96-Core Processor", "cpu-amd-epyc-9r14"),
        ("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "cpu-intel-xeon-platinum-8481c"),
        ("11th Gen Intel(R) Core(TM) i7-1165G7 @ 2.80GHz", "cpu-11th-gen-intel-core-i7-1165g7"),
        ("aarch64 0x41 0xd4f", "cpu-aarch64-0x41-0xd4f"),
        ("///", "cpu-unknown"),
    ],
)
def test_the_native_profile_names_the_model(model: str, slug: str) -> None:
    """Two models have two slugs, clock and core count left out."""
    assert cpu_slug("native", model=model) == slug


def test_the_model_is_read_from_cpuinfo() -> None:
    """x86 has a model's name there, ARM two numbers; the first processor is read."""
    two = "processor : 0\nmodel name : AMD EPYC\nflags : fma\n\nprocessor : 1\nmodel name : other\n"
    assert hardware.cpu_model(two) == "AMD EPYC"
    assert hardware.cpu_model("processor : 0\nCPU implementer : 0x41\nCPU part : 0xd4f\n").endswith("0x41 0xd4f")
    assert hardware.cpu_model("") != ""


def test_a_cuda_run_without_a_device_has_no_slug() -> None:
    """There is no name for hardware that is not here."""
    assert hardware.slug("cpu", "portable") == cpu_slug("portable")
    assert hardware.slug("cuda", "portable", Cuda("NVIDIA L4", "8.9", 58)) == "l4"
    with pytest.raises(ValueError, match="no slug without a CUDA device"):
        hardware.slug("cuda", "portable")


def test_the_driver_and_torch_agree() -> None:
    """What the driver's library says without torch is what torch says; without a device, nothing."""
    devices = cuda_devices()
    assert bool(devices) == torch.cuda.is_available()
    if devices:
        assert devices[0] == hardware.torch_cuda()


DRIVER = """
#include <string.h>
#include <unistd.h>
#include <stdlib.h>
int cuInit(unsigned flags) { %s return %d; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuDeviceGet(int *device, int index) { *device = 10 + index; return 0; }
int cuDeviceGetName(char *name, int length, int device) { strncpy(name, device == 10 ? "NVIDIA L4" : "NVIDIA H200", length); return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 16 ? 58 : attribute == 75 ? 8 : attribute == 76 ? 9 : -1; return 0; }
"""


def with_driver(folder: Path, monkeypatch: pytest.MonkeyPatch, before: str, code: int) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler to build a driver's library")
    source = folder / "driver.c"
    source.write_text(DRIVER % (before, code))
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(folder / "libcuda.so.1"), str(source)], check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))


def test_devices_are_read_through_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Name, capability and multiprocessors of every device, in the driver's order."""
    with_driver(tmp_path, monkeypatch, "", 0)
    assert cuda_devices() == (Cuda("NVIDIA L4", "8.9", 58), Cuda("NVIDIA H200", "8.9", 58))


@pytest.mark.parametrize(("before", "code"), [("", 100), ("abort();", 0), ("sleep(30);", 0)], ids=["no device", "crash", "hang"])
def test_a_broken_driver_is_no_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, code: int) -> None:
    """A driver that refuses, crashes or hangs costs an answer, never this process."""
    with_driver(tmp_path, monkeypatch, before, code)
    assert cuda_devices(seconds=1.0) is None
