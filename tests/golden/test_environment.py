"""What a run's environment is, and how two differ."""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch

from golden import environment
from golden.environment import difference, variables
from tests.golden.prepared import INHERITED, OTHER_PRODUCTS, TWO_THREADS, report


def portable() -> dict[str, Any]:
    found: dict[str, Any] = report()["environment"]
    return found


def test_all_that_can_move_bits_is_named() -> None:
    """Versions, hardware, threads, variables and switches each have their place."""
    found = portable()
    assert found["torch"] == str(torch.__version__)
    assert found["hardware"] == "cpu"
    assert (found["threads"], found["interop_threads"]) == (1, 1)
    assert found["cpu"]["model"]
    assert found["cpu"]["capability"] in ("DEFAULT", "NO AVX")
    assert found["numpy"]["version"] == version("numpy")
    assert found["numpy"]["blas"] != "None None"
    assert found["libraries"]["onednn"]
    assert found["variables"]["ONEDNN_MAX_CPU_ISA"] == "SSE41"
    assert found["flags"]["torch.get_default_dtype()"] == "torch.float32"
    assert set(found) == {
        "torch", "hardware", "threads", "interop_threads", "variables", "flags", "cpu", "numpy", "libraries", "python",
        "python_implementation", "glibc", "os", "distributions",
    }  # fmt: skip


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the loaded libraries are read from /proc")
def test_openblas_uses_the_kernels_that_the_profile_asks_for() -> None:
    """What numpy's library says of itself is what was set, and something else where nothing was."""
    if "openblas" not in portable()["numpy"]["blas"]:
        pytest.skip("numpy has another library for products")
    forced = report(forced=OTHER_PRODUCTS)["environment"]
    assert (portable()["numpy"]["blas_core"], forced["numpy"]["blas_core"]) == ("Nehalem", "Haswell")


def test_it_holds_nothing_that_varies_without_meaning() -> None:
    """Two processes of other inherited variables have equal environments, and no path, host or process is in them."""
    again = report(inherited=INHERITED)["environment"]
    assert difference(portable(), again) == []
    text = json.dumps(portable())
    for private in (str(Path.home()), os.uname().nodename, str(Path.cwd()), "/site-packages", str(os.getpid())):
        assert len(private) < 4 or private not in text


def test_what_the_cpu_offers_stands_below_cpu_alone() -> None:
    """Under the portable profile numpy counts no feature above the baseline, so that another CPU's list would be the same."""
    assert set(portable()["numpy"]["features"]) <= {"SSSE3", "SSE41", "POPCNT", "SSE42"}
    native = report("native", forced=TWO_THREADS)["environment"]
    assert native["hardware"] != "cpu"
    assert native["cpu"]["model"] == portable()["cpu"]["model"]


@pytest.mark.case("G13")
def test_one_variable_undone_is_named() -> None:
    """Of two runs that differ in variables, each is a line of its own."""
    forced = report(forced=OTHER_PRODUCTS)["environment"]
    paths = {item["path"]: (item["expected"], item["actual"]) for item in difference(portable(), forced)}
    assert paths["variables.MKL_CBWR"] == ("COMPATIBLE", "AVX2")
    assert {path for path in paths if path.startswith("variables.")} == {
        "variables.MKL_CBWR", "variables.OPENBLAS_CORETYPE", "variables.NPY_DISABLE_CPU_FEATURES"
    }  # fmt: skip


@pytest.mark.case("G14")
def test_another_number_of_threads_is_named() -> None:
    """The number of threads has the path that a report shows."""
    native = report("native", forced=TWO_THREADS)["environment"]
    assert {"path": "threads", "expected": 1, "actual": 2} in difference(portable(), native)


@pytest.mark.case("G18")
def test_differences_lead_with_the_weightiest() -> None:
    """torch comes first, then hardware, variables, switches and threads; a distribution last. A missing side is None."""
    one = {
        "distributions": {"a": "1"}, "threads": 1, "flags": {"f": False}, "variables": {"B": "1", "A": "1"}, "os": "x",
        "hardware": "cpu", "torch": "2.9.1", "gpu": {"name": "L4"},
    }  # fmt: skip
    two = {
        "torch": "2.13.0", "hardware": "l4", "variables": {"A": "2", "C": "1"}, "flags": {"f": True}, "threads": 2,
        "os": "y", "distributions": {"a": "2"}, "zzz": 1,
    }  # fmt: skip
    assert difference(one, two) == [
        {"path": "torch", "expected": "2.9.1", "actual": "2.13.0"},
        {"path": "hardware", "expected": "cpu", "actual": "l4"},
        {"path": "gpu.name", "expected": "L4", "actual": None},
        {"path": "variables.A", "expected": "1", "actual": "2"},
        {"path": "variables.B", "expected": "1", "actual": None},
        {"path": "variables.C", "expected": None, "actual": "1"},
        {"path": "flags.f", "expected": False, "actual": True},
        {"path": "threads", "expected": 1, "actual": 2},
        {"path": "distributions.a", "expected": "1", "actual": "2"},
        {"path": "os", "expected": "x", "actual": "y"},
        {"path": "zzz", "expected": None, "actual": 1},
    ]


def test_equal_values_of_other_types_differ() -> None:
    """1, 1.0 and True are three values."""
    assert difference({"a": 1}, {"a": 1}) == []
    assert [item["path"] for item in difference({"a": 1, "b": 1.0}, {"a": True, "b": 1})] == ["a", "b"]


def test_variables_are_those_that_move_bits() -> None:
    """Of a shell's variables the recorded ones are listed, by name; of preloaded libraries the names, not where they lie."""
    environ = {"HOME": "/h", "OMP_NUM_THREADS": "2", "NCCL_ALGO": "Ring", "LD_PRELOAD": "/usr/lib/libm.so /opt/x/libfake.so", "PATH": "/"}
    assert variables(environ) == {"LD_PRELOAD": "libm.so libfake.so", "NCCL_ALGO": "Ring", "OMP_NUM_THREADS": "2"}
    assert variables({"HOME": "/h", "LD_PRELOAD": ""}) == {}


def test_the_libraries_are_read_from_torchs_own_words() -> None:
    """MKL, oneDNN and the libraries for linear algebra; what torch does not name is left out."""
    text = "  - Intel(R) oneAPI Math Kernel Library Version 2024.2-Product Build 1\n  - Intel(R) MKL-DNN v3.7.1 (Git)\n BLAS_INFO=mkl, "
    assert environment._libraries(text) == {"mkl": "2024.2-Product", "onednn": "3.7.1", "blas": "mkl"}
    assert environment._libraries("") == {}


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_cuda_run_names_the_gpu_and_its_libraries() -> None:
    """GPU, driver, CUDA, cuDNN, cuBLAS and NCCL are there, and the GPU's slug is the hardware."""
    found = report(device="cuda")["environment"]
    assert found["gpu"]["name"] == torch.cuda.get_device_name()
    assert found["gpu"]["multiprocessors"] > 0
    assert set(found["cuda"]) == {"runtime", "driver", "cudnn", "cublas", "nccl"}
    assert all(found["cuda"][key] for key in ("runtime", "driver", "cudnn", "cublas"))
    assert found["variables"]["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
