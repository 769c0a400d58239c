"""Everything around a run that can move its bits, as JSON; and how two such environments differ.

What varies from run to run without moving a bit never goes in: paths, process ids, host names, times, free memory.
[held by tests/golden/test_environment.py::test_it_holds_nothing_that_varies_without_meaning] Two machines with other CPUs, both under the
portable profile, differ below "cpu" alone.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from golden.distributions import imported
from golden.flags import flags
from golden.hardware import cpu_facts, cpu_model, slug, torch_cuda
from golden.profile import moves_bits

# First what most likely moved the bits; keys not named here follow, by name.
_ORDER = ("torch", "hardware", "gpu", "cuda", "variables", "flags", "threads", "interop_threads", "cpu", "numpy", "libraries", "python")
_DRIVER = Path("/sys/module/nvidia/version")
_CPU_FEATURES = ("fma", "avx2", "avx512f", "amx_tile", "asimd", "sve")  # as /proc/cpuinfo names them


def collect(device: str, profile: str, before: frozenset[str] = frozenset(), project: Path | None = None) -> dict[str, Any]:
    """The environment of this process; call it when the scenario has run. Imports torch and numpy.

    Args:
        device: "cpu" or "cuda"; on "cuda" the GPU and CUDA's libraries are part of it.
        profile: "portable" or "native", which names the hardware.
        before: `golden.distributions.baseline()`, taken before the scenario's file was imported.
        project: the project's folder, which is no distribution of its own.
    """
    import torch

    gpu = torch_cuda() if device == "cuda" else None
    found = {
        "torch": str(torch.__version__),
        "hardware": slug(device, profile, gpu),
        **flags(),
        "variables": variables(os.environ),
        "cpu": _cpu(),
        "numpy": _numpy(),
        "libraries": _libraries(torch.__config__.show()),
        "python": platform.python_version(),
        "python_implementation": platform.python_implementation(),
        "glibc": _glibc(),
        "os": _system(),
        "distributions": imported(before, project),
    }
    if gpu is not None:
        found["gpu"] = {"name": gpu.name, "capability": gpu.capability, "multiprocessors": gpu.multiprocessors}
        found["cuda"] = _cuda()
    return found


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that can move bits. Of LD_PRELOAD the names of the files, as their folders do not matter."""
    found = {name: value for name, value in sorted(environ.items()) if moves_bits(name)}
    if environ.get("LD_PRELOAD"):
        found["LD_PRELOAD"] = " ".join(Path(item).name for item in re.split(r"[ :]+", environ["LD_PRELOAD"]) if item)
    return found


def difference(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> list[dict[str, Any]]:
    """How two environments differ, the weightiest first.

    Returns:
        `[{"path": "threads", "expected": 1, "actual": 2}]`; a path joins keys by dots ("variables.ONEDNN_MAX_CPU_ISA"), and a side
        that does not have it gives None.
    """
    one, other = dict(_flat("", expected)), dict(_flat("", actual))
    paths = [path for path in {**one, **other} if _typed(one.get(path)) != _typed(other.get(path))]
    return [{"path": path, "expected": one.get(path), "actual": other.get(path)} for path in sorted(paths, key=_weight)]


def _flat(prefix: str, tree: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flat(f"{path}.", value)
        else:
            yield path, value


def _typed(value: object) -> tuple[type, object]:
    return type(value), value  # 1, 1.0 and True are three values


def _weight(path: str) -> tuple[int, str]:
    top = path.partition(".")[0]
    return (_ORDER.index(top) if top in _ORDER else len(_ORDER), path)


def _cpu() -> dict[str, Any]:
    import torch

    facts = cpu_facts()
    held = set((facts.get("flags") or facts.get("Features") or "").split())
    return {
        "model": cpu_model(),
        "family": " ".join(facts[key] for key in ("cpu family", "model", "stepping") if key in facts) or None,
        "features": [feature for feature in _CPU_FEATURES if feature in held],
        "capability": torch.backends.cpu.get_cpu_capability(),
    }


def _numpy() -> dict[str, Any]:
    import numpy as np

    config: Mapping[str, Any] = np.show_config(mode="dicts") or {}  # type: ignore[func-returns-value,unused-ignore]
    blas = config.get("Build Dependencies", {}).get("blas", {})
    return {
        "version": np.__version__,
        "blas": f"{blas.get('name')} {blas.get('version')}",
        "blas_core": _openblas_core(),
        "features": list(config.get("SIMD Extensions", {}).get("found", [])),  # that it chooses by, and this process may use
    }


def _openblas_core() -> str | None:
    """Whose kernels numpy's OpenBLAS uses, "Nehalem"; None where numpy has another library, or the system cannot tell."""
    for path in _loaded("openblas"):
        library = ctypes.CDLL(path)
        for name in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename64_", "openblas_get_corename"):
            if hasattr(library, name):
                function = getattr(library, name)
                function.restype = ctypes.c_char_p
                return str(function().decode("ascii", "replace"))
    return None


def _loaded(part: str) -> list[str]:
    """Paths of the shared libraries in this process whose file name holds `part`, sorted; none where the system cannot tell."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []
    paths = {fields[5] for line in lines if len(fields := line.split(maxsplit=5)) == 6}
    return sorted(path for path in paths if part in Path(path).name and ".so" in Path(path).name)


def _libraries(config: str) -> dict[str, str]:
    """The libraries that torch was built with, out of `torch.__config__.show()`."""
    patterns = {
        "mkl": r"Math Kernel Library Version (\S+)",
        "onednn": r"MKL-DNN v(\S+)",
        "blas": r"BLAS_INFO=(\w+)",
        "lapack": r"LAPACK_INFO=(\w+)",
    }
    return {key: match[1] for key, pattern in patterns.items() if (match := re.search(pattern, config))}


def _cuda() -> dict[str, Any]:
    import torch

    has_nccl = torch.distributed.is_available() and torch.distributed.is_nccl_available()
    nccl = torch.cuda.nccl.version() if has_nccl else None  # type: ignore[no-untyped-call,unused-ignore]
    return {
        "runtime": torch.version.cuda,
        "driver": _driver(),
        "cudnn": torch.backends.cudnn.version(),  # type: ignore[no-untyped-call,unused-ignore]
        "cublas": _cublas(),
        "nccl": ".".join(map(str, nccl)) if isinstance(nccl, tuple) else nccl,
    }


def _driver() -> str | None:
    try:
        return _DRIVER.read_text(encoding="ascii").strip()
    except OSError:
        pass
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    if library.nvmlInit_v2() != 0:
        return None
    version = ctypes.create_string_buffer(96)  # gate: equivalent [number] NVML asks for 80; more is as good
    known = library.nvmlSystemGetDriverVersion(version, len(version)) == 0
    library.nvmlShutdown()
    return version.value.decode("ascii", "replace") if known else None


def _cublas() -> str | None:
    paths = [path for path in _loaded("libcublas.so") if Path(path).is_file()]
    if not paths:
        return None
    library, value, parts = ctypes.CDLL(paths[0]), ctypes.c_int(), []
    for part in range(3):  # major, minor, patch
        if library.cublasGetProperty(part, ctypes.byref(value)) != 0:
            return None
        parts.append(str(value.value))
    return ".".join(parts)


def _glibc() -> str | None:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, ValueError, OSError):
        return None


def _system() -> str:
    if platform.system() == "Linux":
        try:
            facts = platform.freedesktop_os_release()
        except OSError:
            return "Linux"
        return " ".join(filter(None, ("Linux", facts.get("ID"), facts.get("VERSION_ID"))))
    return f"{platform.system()} {platform.mac_ver()[0] or platform.version()}"
