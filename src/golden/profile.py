"""The profiles: which variables a run's process gets, and which it must not inherit, so that its bits do not follow the machine.

`portable` gives one thread and the instructions that every x86-64 CPU since 2008 has (on 64-bit ARM: NEON). Variables alone do
not reach everything: the C library's exp, log and pow follow the CPU's FMA, which the environment records.

- Linux on x86-64: measured, on CPUs of two makers and emulated ones; `golden.known` says whether a machine keeps it.
- Linux on 64-bit ARM: the same variables, with the ARM names of numpy and OpenBLAS; not measured.
- macOS: threads and seeds hold, but Accelerate, which torch and numpy may use there, follows the chip, and no variable stops it.
- Windows: all variables hold for torch and numpy; its C library's mathematics is another one.

`native` leaves the machine as it is.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping

# Features are named as numpy 1.26 to 2.5 name them; a name that a version does not know gives an ImportWarning, ignored by default.
# None of them is in the baseline of numpy's wheels, which numpy would refuse to disable.
_X86 = {
    "NPY_DISABLE_CPU_FEATURES": "AVX F16C FMA3 AVX2 AVX512F AVX512CD AVX512_KNL AVX512_KNM AVX512_SKX AVX512_CLX AVX512_CNL "
    "AVX512_ICL AVX512_SPR XOP FMA4 X86_V3 X86_V4",
    # Prescott's kernels crash in OpenBLAS 0.3.34 where the second-level cache holds 1 MiB; Nehalem's do not.
    "OPENBLAS_CORETYPE": "Nehalem",
}
_ARM = {"NPY_DISABLE_CPU_FEATURES": "ASIMDHP ASIMDDP ASIMDFHM SVE", "OPENBLAS_CORETYPE": "ARMV8"}

_THREADS = (
    *(f"{name}_NUM_THREADS" for name in ("OMP", "MKL", "OPENBLAS", "GOTO", "BLIS", "NUMEXPR", "NUMBA")),
    "VECLIB_MAXIMUM_THREADS",
)

_PORTABLE = {
    **dict.fromkeys(_THREADS, "1"),
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "ONEDNN_DEFAULT_FPMATH_MODE": "STRICT",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "OPENBLAS_L2_SIZE": "256",  # OpenBLAS 0.3.34 cuts its float64 products by the size of the cache, in KiB
}
_CUDA = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}

# What can move bits: how many threads, which instructions, which algorithm, how memory is filled.
REMOVED = (
    *("ARMPL_", "ATEN_", "BLIS_", "CUBLAS", "CUDNN_", "DNNL_", "FBGEMM_", "GOMP_", "GOTO_", "KMP_", "MALLOC_", "MKLDNN_", "MKL_"),
    *("NPY_", "NUMBA_", "NUMEXPR_", "NUMPY_", "NVPL_", "OMP_", "ONEDNN_", "OPENBLAS_", "PYTORCH_", "TORCHDYNAMO_", "TORCHINDUCTOR_"),
    *("TORCH_", "VECLIB_", "XNNPACK_"),
    *("CUDA_DISABLE_PTX_JIT", "CUDA_FORCE_PTX_JIT", "DISABLE_ADDMM_CUDA_LT", "GLIBC_TUNABLES", "NVIDIA_TF32_OVERRIDE", "PYTHONOPTIMIZE"),
)
# Folders, logs, memory and workarounds: a machine may need them, and no result follows from them.
_KEPT = re.compile(
    r"TORCH_(HOME|EXTENSIONS_DIR|CUDA_ARCH_LIST|LOGS.*|TRACE|CPP_LOG_LEVEL|SHOW_CPP_STACKTRACES|DISABLE_ADDR2LINE|NCCL_.*|DISTRIBUTED_DEBUG)"
    r"|PYTORCH_((CUDA_)?ALLOC_CONF|KERNEL_CACHE_PATH|NO_CUDA_MEMORY_CACHING|NVML_BASED_CUDA_CHECK)"
    r"|TORCHINDUCTOR_CACHE_DIR|NUMBA_CACHE_DIR|KMP_DUPLICATE_LIB_OK|MKL_(THREADING|INTERFACE)_LAYER|MKL_SERVICE_FORCE_INTEL|CUBLASLT?_LOG.*|CUDNN_LOG.*|\w+_VERBOSE"
)
# Not removed, as a cluster may not work without them, but part of the environment.
_RECORDED = re.compile(r"NCCL_(ALGO|PROTO|NTHREADS|M(IN|AX)_N?CHANNELS|N?CHANNELS\w*|NVLS_ENABLE|COLLNET_ENABLE|P2P_\w+|BUFFSIZE)")
_NUMPY_WARNING = "ignore:During parsing environment variable:ImportWarning"


def variables(profile: str, device: str, seed: int, machine: str | None = None) -> dict[str, str]:
    """What to set for a run before torch and numpy are imported.

    Args:
        profile: "portable" or "native".
        device: "cpu" or "cuda"; a CUDA run's data is made on the CPU, so it gets the CPU's variables as well.
        seed: 0 to 2**32 - 1, as PYTHONHASHSEED takes it.
        machine: `platform.machine()` of where it will run, this one's when None.
    """
    found = {"PYTHONHASHSEED": str(seed)}
    if device == "cuda":
        found.update(_CUDA)
    if profile == "portable":
        found.update(_PORTABLE)
        found.update({"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}.get((machine or platform.machine()).lower(), {}))
    return found


def removed(name: str) -> bool:
    """Whether the portable profile keeps a run from inheriting the variable `name`."""
    return name.upper().startswith(REMOVED) and not _KEPT.fullmatch(name.upper())


def moves_bits(name: str) -> bool:
    """Whether the variable `name` belongs into the environment that a golden records."""
    return removed(name) or _RECORDED.fullmatch(name.upper()) is not None


def environment(base: Mapping[str, str], profile: str, device: str, seed: int) -> dict[str, str]:
    """The whole environment of a run's process: `base`, less what the profile removes, plus what it sets. `base` is not changed."""
    kept = {name: value for name, value in base.items() if profile != "portable" or not removed(name)}
    if profile == "portable" and (kept.get("PYTHONWARNINGS") or kept.get("PYTHONDEVMODE")):
        # numpy tells the names it does not know as a warning, which PYTHONWARNINGS=error would make a failed import.
        kept["PYTHONWARNINGS"] = ",".join(filter(None, (kept.get("PYTHONWARNINGS"), _NUMPY_WARNING)))
    return {**kept, **variables(profile, device, seed)}
