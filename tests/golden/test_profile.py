"""The variables of the profiles."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from golden import profile

ENVIRONMENT = {"PATH": "/bin", "HOME": "/h", "CUDA_VISIBLE_DEVICES": "1", "UV_OFFLINE": "1", "TORCH_HOME": "/t", "PYTHONPATH": "/x"}
REMOVED = [
    "OMP_NUM_THREADS", "OMP_DYNAMIC", "KMP_AFFINITY", "GOMP_CPU_AFFINITY", "MKL_CBWR", "MKL_NUM_THREADS", "ONEDNN_MAX_CPU_ISA",
    "DNNL_MAX_CPU_ISA", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "GOTO_NUM_THREADS", "BLIS_NUM_THREADS", "NPY_DISABLE_CPU_FEATURES",
    "NPY_PROMOTION_STATE", "ATEN_CPU_CAPABILITY", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "TORCH_BLAS_PREFER_CUBLASLT",
    "PYTORCH_TUNABLEOP_ENABLED", "CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE", "CUDNN_FORCE", "NVIDIA_TF32_OVERRIDE",
    "GLIBC_TUNABLES", "MALLOC_PERTURB_", "PYTHONOPTIMIZE", "TORCHINDUCTOR_EMULATE_PRECISION_CASTS", "NVPL_BLAS_DEBUG_CPU_TYPE",
]  # fmt: skip
KEPT = ["TORCH_LOGS", "TORCH_EXTENSIONS_DIR", "TORCH_NCCL_BLOCKING_WAIT", "PYTORCH_CUDA_ALLOC_CONF", "KMP_DUPLICATE_LIB_OK", "NCCL_DEBUG"]


@pytest.mark.parametrize("name", REMOVED)
def test_no_variable_that_moves_bits_is_inherited(name: str) -> None:
    """Whatever a shell sets, the run's process has the profile's value or none."""
    child = profile.environment({**ENVIRONMENT, name: "inherited"}, "portable", "cpu", 0)
    assert child.get(name) != "inherited"
    assert profile.moves_bits(name)


@pytest.mark.parametrize("name", [*ENVIRONMENT, *KEPT])
def test_what_a_machine_needs_is_inherited(name: str) -> None:
    """Folders, devices, logs and memory settings stay."""
    child = profile.environment({**ENVIRONMENT, name: "inherited"}, "portable", "cpu", 0)
    assert child[name] == "inherited"
    assert not profile.moves_bits(name)


def test_the_portable_profile_sets_threads_instructions_and_seed() -> None:
    """The variables that the contract names have their values, on any machine they are asked for."""
    found = profile.variables("portable", "cpu", 7, machine="x86_64")
    assert found["OMP_NUM_THREADS"] == found["MKL_NUM_THREADS"] == found["OPENBLAS_NUM_THREADS"] == "1"
    assert (found["ATEN_CPU_CAPABILITY"], found["MKL_CBWR"]) == ("default", "COMPATIBLE")
    assert (found["ONEDNN_MAX_CPU_ISA"], found["ONEDNN_DEFAULT_FPMATH_MODE"]) == ("SSE41", "STRICT")
    assert {"FMA3", "AVX2", "AVX512_SKX", "X86_V3", "X86_V4"} <= set(found["NPY_DISABLE_CPU_FEATURES"].split())
    assert found["PYTHONHASHSEED"] == "7"
    assert "CUBLAS_WORKSPACE_CONFIG" not in found
    assert profile.variables("portable", "cuda", 7)["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"


def test_each_architecture_gets_names_of_its_own() -> None:
    """ARM is given ARM's names, and a machine that is not known none of either."""
    arm, other = (profile.variables("portable", "cpu", 0, machine=machine) for machine in ("aarch64", "riscv64"))
    assert arm["OPENBLAS_CORETYPE"] == "ARMV8"
    assert "AVX2" not in arm["NPY_DISABLE_CPU_FEATURES"]
    assert not {"OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES"} & set(other)
    assert other["ATEN_CPU_CAPABILITY"] == "default"


def test_the_native_profile_leaves_the_machine_as_it_is() -> None:
    """Under native nothing is removed, and nothing set but the hash seed and, on CUDA, the workspace."""
    base = {**ENVIRONMENT, "OMP_NUM_THREADS": "2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
    assert profile.environment(base, "native", "cpu", 3) == {**base, "PYTHONHASHSEED": "3"}
    assert profile.variables("native", "cuda", 3) == {"PYTHONHASHSEED": "3", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}


def test_the_inherited_environment_is_not_changed() -> None:
    """The parent's mapping is read, never written."""
    base = {**ENVIRONMENT, "OMP_NUM_THREADS": "2"}
    profile.environment(base, "portable", "cpu", 0)
    assert base == {**ENVIRONMENT, "OMP_NUM_THREADS": "2"}


NUMPY = """
import json, numpy
core = numpy._core if hasattr(numpy, "_core") else numpy.core
print(json.dumps([numpy.show_config(mode="dicts")["SIMD Extensions"].get("found", []), numpy.ones(3).tolist()]))
"""


@pytest.mark.parametrize("warnings", [None, "error"])
def test_numpy_obeys_and_is_imported_without_complaint(warnings: str | None) -> None:
    """numpy chooses by no feature above the baseline, and the names that this version does not know are no error even under -W error."""
    inherited = {**os.environ, **({"PYTHONWARNINGS": warnings} if warnings else {})}
    inherited.pop("NPY_DISABLE_CPU_FEATURES", None)
    child = profile.environment(inherited, "portable", "cpu", 0)
    done = subprocess.run([sys.executable, "-c", NUMPY], env=child, capture_output=True, text=True, check=True)
    found, ones = json.loads(done.stdout)
    assert set(found) <= {"SSSE3", "SSE41", "POPCNT", "SSE42"}
    assert ones == [1.0, 1.0, 1.0]
    assert done.stderr == ""
