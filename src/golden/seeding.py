"""What a run's process sets in torch before the scenario's file is imported: threads, algorithms, precision, seeds."""

from __future__ import annotations

import random
import warnings

import numpy as np
import torch


def prepare(seed: int, profile: str, fill: bool = True) -> None:
    """Makes this process fit to be repeated; call once, after `golden.profile.environment` made its variables.

    Under either profile: deterministic algorithms, no cuDNN benchmark, seeded generators. Under "portable" also one thread, and no TF32.

    Args:
        seed: 0 to 2**32 - 1.
        profile: "portable" or "native".
        fill: whether torch fills new memory, its default under deterministic algorithms.
    """
    if profile == "portable":
        _one_thread()
        _full_precision()
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = fill  # type: ignore[attr-defined]
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)  # every device's; CUDA's generators take it when CUDA starts


def _one_thread() -> None:
    torch.set_num_threads(1)
    if torch.get_num_interop_threads() != 1:  # torch allows it once a process
        torch.set_num_interop_threads(1)


def _full_precision() -> None:
    """Turns TF32 off by the older flags alone: once the newer ones are set, reading an older one raises, in the scenario too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch 2.9 announces the end of the older flags
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
