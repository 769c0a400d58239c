"""A device that records on the CPU: a replay runs the function again. All of the transaction but CUDA itself is tested on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from musgd.device import Graph


class StandInGraph:
    """Runs the function, and leaves what it returns where the capture left it, as a graph does."""

    def __init__(self, function: Callable[[], Any], outputs: list[torch.Tensor], owner: StandIn) -> None:
        self.function, self.outputs, self.owner = function, outputs, owner

    def replay(self) -> None:
        self.owner.meet("launch")
        assert self in self.owner.graphs, "a graph that was released is replayed"
        with torch.inference_mode(False), torch.no_grad():
            for kept, new in zip(self.outputs, self.function(), strict=True):
                if kept is not new:
                    kept.copy_(new)

    def release(self) -> None:
        self.owner.graphs.remove(self)


class StandIn:
    """Fails where it is told to: `fails["second warm-up"] = 1` makes the next one raise after it has run."""

    def __init__(self) -> None:
        self.fails: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self.graphs: set[StandInGraph] = set()
        self.held = 0
        self.at_capture: Callable[[], object] = lambda: None

    def meet(self, event: str) -> None:
        self.seen[event] += 1
        if self.fails[event] > 0:
            self.fails[event] -= 1
            raise torch.OutOfMemoryError(f"no memory at the {event}")

    def warm_up(self, function: Callable[[], object]) -> None:
        self.held += 1
        function()
        odd = self.seen["first warm-up"] == self.seen["second warm-up"]
        self.meet("first warm-up" if odd else "second warm-up")

    def capture(self, function: Callable[[], Any]) -> tuple[Graph, Any]:
        outputs = function()
        self.at_capture()
        self.meet("capture")
        graph = StandInGraph(function, outputs, self)
        self.graphs.add(graph)
        return graph, outputs

    def driver_bytes(self) -> int:
        return 1000 * len(self.graphs)

    def pool_bytes(self) -> int:
        return 10 * len(self.graphs)

    def tidy(self) -> None:
        self.held = 0
