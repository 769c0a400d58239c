"""A recording: one function of owned inputs, captured once, replayed at will. It knows nothing of optimizers.

Making one is a transaction: whatever fails, the tensors that the function changes have their bits back, and nothing else is left.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from musgd.device import Device, Graph
from musgd.update import Tensors

WARM_UPS = 2


class LaunchError(RuntimeError):
    """A recording did not replay; what it changes is as it was."""


@dataclass(frozen=True, eq=False)
class Recording:
    """A captured function.

    Attributes:
        inputs: What it reads anew at each replay; owned.
        outputs: What it wrote last. The next replay overwrites them.
        graph: Does the work.
        driver_bytes: Device memory that it took outside torch's allocator.
        function: What was captured. Held because the graph reads memory, tables and addresses say, that nothing else may hold.
    """

    inputs: list[Tensor]
    outputs: list[Tensor]
    graph: Graph
    driver_bytes: int
    function: Callable[[], list[Tensor]]

    def replay(self, values: Tensors) -> list[Tensor]:
        """`take` and `launch`."""
        self.take(values)
        return self.launch()

    def take(self, values: Tensors) -> None:
        """Copy values (any layout, the shapes of the inputs) in, in one foreach copy. Only reads them."""
        # The cheapest way into foreach: nothing is made here that could become an inference tensor, and autograd is not asked.
        with torch.inference_mode():
            torch._foreach_copy_(self.inputs, values)

    def launch(self) -> list[Tensor]:
        """Do the work once on the inputs, and return the outputs.

        Raises:
            LaunchError: The device refused, and nothing was done.
        """
        try:
            self.graph.replay()
        except RuntimeError as cause:
            raise LaunchError(f"its graph could not be launched: {cause}") from cause
        return self.outputs

    def release(self) -> None:
        """Give up the graph; the recording is of no use after that."""
        self.graph.release()


def record(device: Device, function: Callable[[], list[Tensor]], inputs: list[Tensor], changed: Tensors) -> Recording:
    """Warm the function up twice and capture it, then put back what it changes.

    Args:
        device: Where to record.
        function: What to record. Reads the inputs and whatever else it holds; returns the outputs.
        inputs: Owned by the recording from now on; hold values on which the function may run.
        changed: All other tensors that the function writes. They have their bits back at the end, also where this raises.
            [held by tests/musgd/test_replay.py::TestTransaction::test_momenta_are_put_back]

    Returns:
        A recording that has not been replayed yet.
    """
    before = device.driver_bytes()
    try:
        graph, outputs = _capture(device, function, changed)
    finally:
        device.tidy()
    return Recording(inputs, outputs, graph, max(0, device.driver_bytes() - before), function)


def _capture(device: Device, function: Callable[[], list[Tensor]], changed: Tensors) -> tuple[Graph, list[Tensor]]:
    kept = [x.clone() for x in changed]
    try:
        for _ in range(WARM_UPS):
            device.warm_up(function)
        with _no_collection():
            return device.capture(function)
    finally:
        if kept:
            torch._foreach_copy_(changed, kept)


def owned(like: Tensors) -> list[Tensor]:
    """Copies of tensors, dense ones in the same layout, to be the inputs of a recording."""
    with torch.inference_mode(False), torch.no_grad():
        return [torch.empty_like(x, requires_grad=False).copy_(x) for x in like]


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Hold off garbage collection: what it frees may belong to other streams, which ends a capture."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
