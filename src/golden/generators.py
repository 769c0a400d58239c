"""The random generators that a run has without asking: the last phase of every step."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch

PHASE = "rng"


def states(device: torch.device) -> dict[str, Any]:
    """State of torch's generator on the CPU, that of ``device`` if it is another, numpy's global one and Python's. Draws nothing.

    Args:
        device: of the run.
    """
    found: dict[str, Any] = {"torch": torch.get_rng_state()}
    if device.type != "cpu":
        found[device.type] = torch.get_device_module(device.type).get_rng_state(device)
    version, words, gauss = random.getstate()
    found["numpy"] = np.random.get_state(legacy=False)
    found["python"] = {"version": version, "state": np.array(words, dtype=np.uint32), "gauss_next": gauss}
    return found
