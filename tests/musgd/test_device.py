"""What `CudaDevice` asks of torch and of the driver, in which order and after which failures, on stand-ins for both.

Whether CUDA then does what it is asked for is seen on a GPU alone: test_replay_cuda.py.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from musgd import device as seam
from musgd import driver
from musgd.device import CudaDevice, UnsupportedError, is_captured, mark_written, open_device

SECOND = torch.device("cuda", 1)


class Cuda:
    """Keeps what was asked for; `fails["end"] = 1` makes the next end of a capture raise."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.fails: Counter[str] = Counter()
        self.graphs: list[weakref.ref[StandInGraph]] = []
        self.pools = 0

    def meet(self, event: str, kind: type[Exception] = RuntimeError) -> None:
        self.log.append(event)
        name = event.split()[0]
        if self.fails[name] > 0:
            self.fails[name] -= 1
            raise kind(f"{name} failed")

    def pool(self) -> tuple[int, int]:
        self.pools += 1
        return 0, self.pools

    def graph(self) -> StandInGraph:
        made = StandInGraph(self)
        self.graphs.append(weakref.ref(made))
        return made

    @contextlib.contextmanager
    def on(self, stream: StandInStream) -> Iterator[None]:
        self.log.append(f"on {stream.name}")
        try:
            yield
        finally:
            self.log.append(f"off {stream.name}")


class StandInStream:
    cuda_stream = 77

    def __init__(self, cuda: Cuda, name: str) -> None:
        self.cuda, self.name = cuda, name

    def wait_stream(self, other: StandInStream) -> None:
        self.cuda.log.append(f"{self.name} waits for {other.name}")


class StandInGraph:
    def __init__(self, cuda: Cuda) -> None:
        self.cuda = cuda

    def capture_begin(self, *, pool: tuple[int, int], capture_error_mode: str) -> None:
        self.cuda.meet(f"begin {pool[1]} {capture_error_mode}", torch.OutOfMemoryError)

    def capture_end(self) -> None:
        self.cuda.meet("end")

    def replay(self) -> None:
        self.cuda.meet("replay")

    def reset(self) -> None:
        self.cuda.meet("reset")


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    made = Cuda()
    monkeypatch.setattr(seam, "_STREAMS", {})
    monkeypatch.setattr(torch.version, "hip", None)
    for name, stand_in in {
        "Stream": lambda device: StandInStream(made, f"side of {device}"),
        "current_stream": lambda device: StandInStream(made, f"current of {device}"),
        "current_device": lambda: 3,
        "stream": made.on,
        "graph_pool_handle": made.pool,
        "CUDAGraph": made.graph,
        "synchronize": lambda device: made.log.append(f"synchronize {device}"),
        "empty_cache": lambda: made.log.append("empty"),
        "mem_get_info": lambda device: {SECOND: (30, 100)}[device],
        "memory_reserved": lambda device: {SECOND: 50}[device],
        "memory_snapshot": lambda: [{"total_size": 8, "segment_pool_id": [0, 1]}, {"total_size": 4, "segment_pool_id": (0, 0)}],
    }.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)
    monkeypatch.setattr(seam, "begin_capture", lambda stream: made.meet(f"bare-begin {stream}", OSError))
    monkeypatch.setattr(seam, "end_capture", lambda stream: made.meet(f"bare-end {stream}"))
    return made


def work(cuda: Cuda) -> Callable[[], str]:
    def function() -> str:
        cuda.meet("function", ZeroDivisionError)
        return "outputs"

    return function


BEGUN = ["synchronize cuda:1", "on side of cuda:1", "begin 1 thread_local"]


class TestOpening:
    def test_cuda_has_a_device_and_others_are_refused(self, cuda: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
        """ROCm calls its devices cuda too, and is refused."""
        opened = open_device(SECOND)
        assert isinstance(opened, CudaDevice)
        assert opened.device == SECOND
        with pytest.raises(UnsupportedError, match="its parameters are on mps, where nothing can be recorded"):
            open_device(torch.device("mps"))
        monkeypatch.setattr(torch.version, "hip", "6.2")
        with pytest.raises(UnsupportedError, match="its parameters are on cuda, where nothing can be recorded"):
            open_device(SECOND)

    def test_a_device_without_number_is_the_current_one(self, cuda: Cuda) -> None:
        assert CudaDevice(torch.device("cuda")).device == torch.device("cuda", 3)

    def test_there_is_one_side_stream_a_device_for_good(self, cuda: Cuda) -> None:
        """And a pool for each object, with no graph in it yet."""
        one, same, other = CudaDevice(SECOND), CudaDevice(SECOND), CudaDevice(torch.device("cuda", 0))
        assert one.stream is same.stream
        assert one.stream is not other.stream
        assert [each.pool for each in (one, same, other)] == [(0, 1), (0, 2), (0, 3)]
        assert one.graphs == 0


class TestWarmUp:
    @pytest.mark.parametrize("fails", [0, 1])
    def test_it_runs_on_the_side_after_what_was_and_before_what_follows(self, fails: int, cuda: Cuda) -> None:
        """Also where the function raises."""
        cuda.fails["function"] = fails
        with pytest.raises(ZeroDivisionError) if fails else contextlib.nullcontext():
            CudaDevice(SECOND).warm_up(work(cuda))
        side, current = "side of cuda:1", "current of cuda:1"
        assert cuda.log == [f"{side} waits for {current}", f"on {side}", "function", f"off {side}", f"{current} waits for {side}"]


class TestCapture:
    def test_it_begins_runs_and_ends_on_the_side_after_all_work(self, cuda: Cuda) -> None:
        device = CudaDevice(SECOND)
        graph, outputs = device.capture(work(cuda))
        assert outputs == "outputs"
        assert cuda.log == [*BEGUN, "function", "end", "off side of cuda:1"]
        cuda.log.clear()
        graph.replay()
        assert cuda.log == ["replay"]

    def test_the_pool_stays_while_a_graph_uses_it(self, cuda: Cuda) -> None:
        """All work is done before a graph goes; the last one takes the pool with it."""
        device = CudaDevice(SECOND)
        graphs = [device.capture(work(cuda))[0] for _ in range(3)]
        seen = []
        for graph in graphs:
            cuda.log.clear()
            graph.release()
            assert cuda.log == ["synchronize cuda:1", "reset"]
            seen.append((device.graphs, device.pool))
        assert seen == [(2, (0, 1)), (1, (0, 1)), (0, (0, 2))]

    @pytest.mark.parametrize(
        ("fails", "expected"),
        [
            (("function",), ["function", "end", "reset"]),
            (("function", "end"), ["function", "end", "bare-begin 77", "end", "bare-end 77", "reset"]),
            (("end", "end"), ["function", "end", "end", "bare-begin 77", "end", "bare-end 77", "reset"]),
            (("end",) * 3, ["function", "end", "end", "bare-begin 77", "end", "bare-end 77", "reset"]),
            (("function", "end", "bare-begin"), ["function", "end", "bare-begin 77", "reset"]),
            (("function", "end", "bare-end"), ["function", "end", "bare-begin 77", "end", "bare-end 77", "reset"]),
        ],
        ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
    )
    @pytest.mark.parametrize("others", [0, 1])
    def test_one_that_fails_is_ended_and_its_graph_given_up(
        self, fails: tuple[str, ...], expected: list[str], others: int, cuda: Cuda
    ) -> None:
        """By torch, and where it cannot, in a bare capture; the first failure is what is raised. Without other graphs the pool goes too."""
        device = CudaDevice(SECOND)
        held = [device.capture(work(cuda)) for _ in range(others)]
        cuda.log.clear()
        cuda.fails.update(fails)
        with pytest.raises(ZeroDivisionError if "function" in fails else RuntimeError, match=f"^{fails[0]} failed"):
            device.capture(work(cuda))
        assert cuda.log == [*BEGUN, *expected, "off side of cuda:1"]
        assert (device.graphs, device.pool) == (others, (0, 1 if others else 2))
        assert len(held) == others

    @pytest.mark.parametrize("event", ["begin", "function"])
    def test_a_graph_whose_begin_failed_is_never_destroyed(self, event: str, cuda: Cuda) -> None:
        """torch would abort the process; any other is."""
        device = CudaDevice(SECOND)
        cuda.fails[event] = 1
        with contextlib.suppress(torch.OutOfMemoryError, ZeroDivisionError):
            device.capture(work(cuda))
        gc.collect()
        alive = cuda.graphs[0]() is not None
        assert alive is (event == "begin")
        assert cuda.log == [*BEGUN, *(["function"] if event == "function" else []), "end", "reset", "off side of cuda:1"]
        assert cuda.fails.total() == 0

    def test_a_failed_begin_is_raised_as_it_was(self, cuda: Cuda) -> None:
        cuda.fails["begin"] = 1
        with pytest.raises(torch.OutOfMemoryError, match="begin failed"):
            CudaDevice(SECOND).capture(work(cuda))

    def test_of_the_empty_graph_that_was_ended_nobody_is_told(self, cuda: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of anything else they are."""
        for message, told in (("The CUDA Graph is empty. This usually", False), ("something else", True)):
            monkeypatch.setattr(StandInGraph, "capture_end", lambda self, text=message: warnings.warn(text, stacklevel=1))
            cuda.fails["function"] = 1
            with pytest.warns(UserWarning, match=message) if told else contextlib.nullcontext(), pytest.raises(ZeroDivisionError):
                CudaDevice(SECOND).capture(work(cuda))


class TestMemory:
    def test_the_drivers_is_what_is_taken_but_not_reserved_by_torch(self, cuda: Cuda) -> None:
        assert CudaDevice(SECOND).driver_bytes() == 100 - 30 - 50

    def test_the_pools_is_that_of_its_own_segments(self, cuda: Cuda) -> None:
        """Their ids are tuples or lists, by torch's version."""
        assert CudaDevice(SECOND).pool_bytes() == 8

    def test_it_is_handed_back_when_nothing_uses_it_any_more(self, cuda: Cuda) -> None:
        CudaDevice(SECOND).tidy()
        assert cuda.log == ["synchronize cuda:1", "empty"]


class TestWritten:
    @pytest.mark.parametrize("refusal", [None, TypeError, RuntimeError])
    def test_autograd_is_told_of_each_tensor_once(self, refusal: type[Exception] | None, monkeypatch: pytest.MonkeyPatch) -> None:
        """In one call where torch takes a list, which it is asked about once; torch 2.4 raises RuntimeError."""
        told: list[Any] = []

        def increment(tensors: Any) -> None:
            told.append(tensors)
            if isinstance(tensors, list) and refusal:
                raise refusal("a tensor is wanted")

        monkeypatch.setattr(torch.autograd.graph, "increment_version", increment)
        seam._versions_take_lists.cache_clear()
        one, two = torch.ones(1), torch.ones(2)
        try:
            mark_written([one, two])
            mark_written([two])
        finally:
            seam._versions_take_lists.cache_clear()
        wanted: list[Any] = [[], one, two, two] if refusal else [[], [one, two], [two]]
        assert len(told) == len(wanted)
        for got, expected in zip(told, wanted, strict=True):
            assert (got is expected) or (isinstance(got, list) and [*map(id, got)] == [*map(id, expected)])

    def test_versions_go_up_by_one(self) -> None:
        tensors = [torch.ones(1), torch.ones(2)]
        mark_written(tensors)
        assert [x._version for x in tensors] == [1, 1]


class TestCaptured:
    @pytest.mark.parametrize(
        ("compiling", "initialised", "capturing"),
        [(False, False, True), (False, True, True), (False, True, False), (True, False, False), (True, True, True)],
    )
    def test_somebody_else_captures_or_compiles(
        self, compiling: bool, initialised: bool, capturing: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Without CUDA in use there is no capture, and it is not asked."""
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda: compiling)
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: initialised)
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing)
        assert is_captured() is (compiling or (initialised and capturing))


class Library:
    """Stands in for libcuda: answers with codes, and puts a graph of its own where it is asked for one."""

    def __init__(self, begin: int = 0, end: int = 0, graph: int | None = 99) -> None:
        self.codes, self.graph, self.calls = (begin, end), graph, list[Any]()

    def cuStreamBeginCapture_v2(self, stream: ctypes.c_void_p, mode: ctypes.c_int) -> int:  # noqa: N802
        assert (type(stream), type(mode)) == (ctypes.c_void_p, ctypes.c_int)
        self.calls.append(("begin", stream.value, mode.value))
        return self.codes[0]

    def cuStreamEndCapture(self, stream: ctypes.c_void_p, graph: Any) -> int:  # noqa: N802
        assert type(stream) is ctypes.c_void_p
        graph._obj.value = self.graph
        self.calls.append(("end", stream.value))
        return self.codes[1]

    def cuGraphDestroy(self, graph: ctypes.c_void_p) -> int:  # noqa: N802
        self.calls.append(("destroy", graph.value))
        return 0


class TestDriver:
    """CU_STREAM_CAPTURE_MODE_THREAD_LOCAL is 1, and 0 is success (cuda.h)."""

    def _loaded(self, monkeypatch: pytest.MonkeyPatch, **answers: Any) -> Library:
        library = Library(**answers)
        monkeypatch.setattr(driver, "ctypes", SimpleNamespace(**{**vars(ctypes), "CDLL": {"libcuda.so.1": library}.__getitem__}))
        return library

    def test_a_capture_is_begun_for_this_thread_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        library = self._loaded(monkeypatch)
        driver.begin_capture(1 << 40)
        assert library.calls == [("begin", 1 << 40, 1)]

    def test_the_number_of_an_error_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._loaded(monkeypatch, begin=901)
        with pytest.raises(RuntimeError, match="the driver refused to begin a capture: error 901"):
            driver.begin_capture(5)

    @pytest.mark.parametrize(("code", "graph", "destroyed"), [(0, 99, True), (0, None, False), (901, 99, False), (901, None, False)])
    def test_what_an_ended_capture_made_is_destroyed(
        self, code: int, graph: int | None, destroyed: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing else is, and an error of the ending is none here."""
        library = self._loaded(monkeypatch, end=code, graph=graph)
        driver.end_capture(1 << 40)
        assert library.calls == [("end", 1 << 40), *([("destroy", 99)] if destroyed else [])]

    def test_without_the_drivers_library_there_is_no_capture(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def missing(name: str) -> ctypes.CDLL:
            raise OSError(f"{name} is not there")

        monkeypatch.setattr(driver, "ctypes", SimpleNamespace(**{**vars(ctypes), "CDLL": missing}))
        with pytest.raises(OSError, match=r"libcuda\.so\.1 is not there"):
            driver.begin_capture(5)
