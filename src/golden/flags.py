"""torch's own switches that can move bits, read so that no version of torch makes it crash."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any

# Attributes of torch, and functions of no argument. One that this torch does not have is left out.
_NAMES = (
    *("are_deterministic_algorithms_enabled()", "is_deterministic_algorithms_warn_only_enabled()"),
    *("utils.deterministic.fill_uninitialized_memory", "get_default_dtype()", "get_default_device()"),
    *("is_autocast_cache_enabled()", "get_float32_matmul_precision()", "backends.fp32_precision"),
    *("backends.cuda.matmul.allow_tf32", "backends.cuda.matmul.fp32_precision", "backends.cuda.matmul.allow_fp16_accumulation"),
    *("backends.cuda.matmul.allow_fp16_reduced_precision_reduction", "backends.cuda.matmul.allow_bf16_reduced_precision_reduction"),
    *("backends.cuda.preferred_blas_library()", "backends.cuda.preferred_linalg_library()"),
    *("backends.cuda.flash_sdp_enabled()", "backends.cuda.mem_efficient_sdp_enabled()", "backends.cuda.math_sdp_enabled()"),
    *("backends.cuda.cudnn_sdp_enabled()", "backends.cuda.fp16_bf16_reduction_math_sdp_allowed()"),
    *("backends.cudnn.enabled", "backends.cudnn.benchmark", "backends.cudnn.benchmark_limit", "backends.cudnn.deterministic"),
    *("backends.cudnn.allow_tf32", "backends.cudnn.fp32_precision"),
    *("backends.cudnn.conv.fp32_precision", "backends.cudnn.rnn.fp32_precision"),
    *("backends.mkldnn.enabled", "backends.mkldnn.deterministic", "backends.mkldnn.allow_tf32", "backends.mkldnn.fp32_precision"),
    *("backends.mkldnn.matmul.fp32_precision", "backends.mkldnn.conv.fp32_precision", "backends.mkldnn.rnn.fp32_precision"),
    *("backends.mha.get_fastpath_enabled()", "backends.quantized.engine"),
    *("backends.opt_einsum.is_available()", "backends.opt_einsum.enabled", "backends.opt_einsum.strategy"),
)
UNREADABLE = "unreadable"


def flags() -> dict[str, Any]:
    """The state of every switch: `{"flags": {"torch.backends.cudnn.benchmark": False, ...}, "threads": 1, "interop_threads": 1}`.

    A switch that raises when read (torch's older and newer TF32 flags do, once both were set) is "unreadable".
    [held by tests/golden/test_flags.py::test_reading_never_raises] Takes no more than a millisecond, so that it can be asked for at import,
    at build and at step 1.
    """
    import torch
    import torch.backends.opt_einsum  # torch 2.4 brings it along at the first einsum, which would look like a change

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of these names are on their way out
        found = {f"torch.{name}": value for name in _NAMES if (value := _read(torch, name)) is not _ABSENT}
    found["flush_denormal"] = _flushes_denormals()
    found["sys.flags.optimize"] = sys.flags.optimize
    return {"flags": found, "threads": torch.get_num_threads(), "interop_threads": torch.get_num_interop_threads()}


def flag_changes(moments: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """What changed between moments of one run.

    Args:
        moments: pairs of a moment's name and its `flags()`, in order of time: "import", "build", "step 1".

    Returns:
        One mapping a change: "path" as in `golden.environment.difference`, "expected" before, "actual" after, and "between", both moments.
    """
    from golden.environment import difference

    found = []
    for (earlier, before), (later, after) in pairwise(moments):
        found += [{**change, "between": [earlier, later]} for change in difference(before, after)]
    return found


_ABSENT = object()


def _read(torch: object, name: str) -> object:
    try:
        value = attrgetter(name.removesuffix("()"))(torch)
        value = value() if name.endswith("()") else value
    except AttributeError:
        return _ABSENT
    except Exception:
        return UNREADABLE
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def _flushes_denormals() -> bool:
    """Whether this thread takes the smallest numbers for zero; torch can set it, and has no way to ask."""
    return sys.float_info.min * sys.float_info.epsilon == 0.0
