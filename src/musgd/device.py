"""The seam to what can record: everything that replay asks of a device, and CUDA's answer.

What torch's versions lack or do otherwise around captures is handled here alone, by feature (P4, P6).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import warnings
from collections.abc import Callable
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from musgd.driver import begin_capture, end_capture

T = TypeVar("T")
# One for good: torch keeps a workspace for cuBLAS with each stream that ever multiplied, 32 MiB of it on Hopper.
_STREAMS: dict[torch.device, torch.cuda.Stream] = {}


class UnsupportedError(Exception):
    """These inputs cannot be recorded; the text says why."""


class Graph(Protocol):
    """Work that was captured once."""

    def replay(self) -> None:
        """Do the work again, on the current stream. After an error nothing was done."""
        ...

    def release(self) -> None:
        """Give up the graph and its claim on the pool."""
        ...


class Device(Protocol):
    """Records work, all of it into one pool of memory."""

    def warm_up(self, function: Callable[[], object]) -> None:
        """Run the function for real, as the capture will: after all work given so far, before all that follows."""
        ...

    def capture(self, function: Callable[[], T]) -> tuple[Graph, T]:
        """Record the function; whether it also runs is undefined. After an error neither a graph nor memory stays behind."""
        ...

    def driver_bytes(self) -> int:
        """Memory of the device that is taken, but not by torch's allocator."""
        ...

    def pool_bytes(self) -> int:
        """Memory that the pool has reserved."""
        ...

    def tidy(self) -> None:
        """Hand back the memory that warm-ups, or graphs given up, no longer use."""
        ...


def open_device(device: torch.device) -> Device:
    """What records on that device.

    Raises:
        UnsupportedError: Nothing does.
    """
    if device.type != "cuda" or torch.version.hip is not None:
        raise UnsupportedError(f"its parameters are on {device.type}, where nothing can be recorded")
    return CudaDevice(device)


def mark_written(tensors: list[Tensor]) -> None:
    """Tell autograd of tensors that were written where it does not look. None may be an inference tensor."""
    if _versions_take_lists():
        torch.autograd.graph.increment_version(tensors)
        return
    for tensor in tensors:
        torch.autograd.graph.increment_version(tensor)


@functools.cache
def _versions_take_lists() -> bool:
    try:
        torch.autograd.graph.increment_version([])
    except (RuntimeError, TypeError):  # the one from 2.4, which has no lists
        return False
    return True


def is_captured() -> bool:
    """Whether somebody else is recording what happens now."""
    if torch.compiler.is_compiling():
        return True
    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())  # type: ignore[no-untyped-call]


class CudaDevice:
    """CUDA graphs on a side stream. All graphs of one object share a pool, so no two may run at the same time."""

    def __init__(self, device: torch.device) -> None:
        self.device = torch.device(device.type, torch.cuda.current_device() if device.index is None else device.index)
        if self.device not in _STREAMS:
            _STREAMS[self.device] = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        self.stream = _STREAMS[self.device]
        self.pool = torch.cuda.graph_pool_handle()
        self.graphs = 0

    def warm_up(self, function: Callable[[], object]) -> None:
        """See `Device`."""
        current = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(current)
        try:
            with torch.cuda.stream(self.stream):
                function()
        finally:
            current.wait_stream(self.stream)

    def capture(self, function: Callable[[], T]) -> tuple[Graph, T]:
        """See `Device`."""
        torch.cuda.synchronize(self.device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(self.stream):
            try:
                self._begin(graph)
                outputs = function()
                graph.capture_end()
            except BaseException:
                self._abandon(graph)
                raise
        self.graphs += 1
        return CudaGraph(graph, self), outputs

    def driver_bytes(self) -> int:
        """See `Device`."""
        free, total = torch.cuda.mem_get_info(self.device)
        return total - free - torch.cuda.memory_reserved(self.device)

    def pool_bytes(self) -> int:
        """See `Device`."""
        segments = torch.cuda.memory_snapshot()  # type: ignore[no-untyped-call]
        return sum(segment["total_size"] for segment in segments if tuple(segment["segment_pool_id"]) == tuple(self.pool))

    def tidy(self) -> None:
        """See `Device`."""
        torch.cuda.synchronize(self.device)
        torch.cuda.empty_cache()

    def let_go(self) -> None:
        """Take another pool once no graph uses this one: torch's host allocator refuses one that had users and has none."""
        if not self.graphs:
            self.pool = torch.cuda.graph_pool_handle()

    def _begin(self, graph: torch.cuda.CUDAGraph) -> None:
        try:
            # Loaders that pin memory and watchdogs that query events would end a capture of the strict default mode.
            graph.capture_begin(pool=self.pool, capture_error_mode="thread_local")
        except BaseException:
            # Where memory ends in here, torch has half registered the graph with its random generator, and aborts the process once the
            # graph is destroyed. It never is: a few hundred bytes of the host's memory.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(graph))
            raise

    def _abandon(self, graph: torch.cuda.CUDAGraph) -> None:
        """End a capture that failed, or never began.

        Where the driver has ended it already, torch's ending stops half-way: its allocators go on taking the capture for under way, and the
        random generator waits for a graph. A bare capture gives torch something that it can end, and all is put right by torch itself.
        """
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The CUDA Graph is empty")
            try:
                graph.capture_end()
            except RuntimeError:
                # gate: equivalent [arguments-swapped] a set of errors
                with contextlib.suppress(RuntimeError, OSError):
                    begin_capture(self.stream.cuda_stream)
                    try:
                        graph.capture_end()
                    finally:
                        end_capture(self.stream.cuda_stream)
            graph.reset()
        self.let_go()


class CudaGraph:
    """One graph of a `CudaDevice`."""

    def __init__(self, graph: torch.cuda.CUDAGraph, owner: CudaDevice) -> None:
        self._graph, self._owner = graph, owner

    def replay(self) -> None:
        """See `Graph`."""
        self._graph.replay()

    def release(self) -> None:
        """See `Graph`."""
        torch.cuda.synchronize(self._owner.device)
        self._graph.reset()
        self._owner.graphs -= 1
        self._owner.let_go()
