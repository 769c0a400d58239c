"""When the kernels are taken and what they are launched on: every launch of a preparation, and what only CUDA runs, on stand-ins.

What the kernels compute is asked in test_interpreter.py and, on a GPU, in test_replay_cuda.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor

import musgd
from musgd import packed as module
from musgd.coefficients import Live
from musgd.packed import Packed, addresses, suits, takes, why_not
from musgd.tables import CHUNK, TILE, tables
from musgd.update import ABC, EPSILON, STEPS, Form, Inputs

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 1)
T = TypeVar("T")
FORM = Form(use_muon=True, nesterov=True, decays=True, maximize=False, scale="matrix")
SHAPES = ((70, 5), (3, 20, 20), (7,))


class Elsewhere(Tensor):
    """A tensor that counts as being on a GPU."""

    device = property(lambda self: CUDA)


def elsewhere(*shape: int) -> Tensor:
    return torch.ones(shape).as_subclass(Elsewhere)


def inputs(*shapes: tuple[int, ...], matrices: int) -> Inputs:
    W, g, m, v = ([torch.full(shape, value) for shape in shapes] for value in (1.0, 2.0, 3.0, 4.0))
    return Inputs(W, g, m[:matrices], v)


def noted(notes: list[Any], note: Any, answer: T) -> T:
    """For a stand-in: the answer, with a note that it was asked."""
    notes.append(note)
    return answer


def live() -> Live:
    return Live(CPU, torch.float32)


def place(x: Any) -> Any:
    """Where a tensor lies in its memory, how long it is, and of what."""
    return (x.storage_offset(), x.numel(), x.dtype) if isinstance(x, Tensor) else x


@dataclasses.dataclass
class Launches:
    """What would have been launched."""

    names: list[str] = dataclasses.field(default_factory=list)
    programs: list[int] = dataclasses.field(default_factory=list)
    given: list[tuple[Any, ...]] = dataclasses.field(default_factory=list)
    options: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    modes: set[tuple[bool, bool]] = dataclasses.field(default_factory=set)

    def __call__(self, name: str, programs: int, *given: Any, **options: Any) -> None:
        self.names.append(name)
        self.programs.append(programs)
        self.given.append(given)
        self.options.append(options)
        self.modes.add((torch.is_inference_mode_enabled(), torch.is_grad_enabled()))


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Launches:
    made = Launches()
    monkeypatch.setattr(module, "_launch", made)
    return made


@pytest.fixture
def distinct(monkeypatch: pytest.MonkeyPatch) -> tuple[int, int, int, int]:
    """The tables of SHAPES, but for sizes of which no two are alike."""
    sizes = (1728, 2048, 1984, 8192)
    real = tables(SHAPES, (70**0.5 / 5**0.5, 1.0), CPU)
    assert real.sizes == (1664, 1984, 1984, 8192)
    monkeypatch.setattr(module, "tables", lambda *key: dataclasses.replace(real, sizes=sizes))
    return sizes


def whole(made: Packed) -> int:
    """Elements of bfloat16 of u, X, A, B and the sums of the made one's tables."""
    _, u, x, a = made.tables.sizes
    return u + x + 2 * a + 2 * made.tables.matrix_chunks


class TestLaunches:
    def test_advance_takes_all_chunks_and_memory_as_long_as_the_tables_say(self, launches: Launches, distinct: tuple[int, ...]) -> None:
        one = inputs(*SHAPES, matrices=2)
        made, c = Packed(one, FORM), live()
        updates, u = made.advance(c)
        assert (launches.names, launches.programs) == (["advance"], [len(made.tables.chunks)])
        (given,) = launches.given
        assert all(x is y for x, y in zip(given[:4], (made.addresses, made.tables.meta, made.tables.chunks, c.vector), strict=True))
        assert [place(x) for x in given[4:]] == [(0, distinct[0], torch.float32), (0, distinct[1], torch.bfloat16)]
        assert launches.options == [{"HYBRID": True, "NESTEROV": True, "DECAYS": True, "MAXIMIZE": False, "CHUNK": CHUNK}]
        assert [(x.shape, x.stride(), x.storage_offset()) for x in updates] == [
            (x.shape, x.stride(), offset) for x, offset in zip(one.W, made.tables.offsets, strict=True)
        ]
        assert [x is given[5] for x in u] == [True]

    def test_without_matrices_there_is_no_u(self, launches: Launches) -> None:
        made = Packed(inputs((7,), matrices=0), FORM)
        assert made.advance(live())[1] == []

    def test_an_owning_one_puts_updates_where_its_gradients_are(self, launches: Launches, distinct: tuple[int, ...]) -> None:
        one = inputs(*SHAPES, matrices=2)
        made = Packed.owning(one, FORM)
        assert [torch.equal(x, y) for x, y in zip(made.inputs.g, one.g, strict=True)] == [True] * 3
        updates, _ = made.advance(live())
        assert [x.data_ptr() for x in updates] == [x.data_ptr() for x in made.inputs.g]
        assert updates[0].untyped_storage().nbytes() == 4 * distinct[0]

    def test_an_owning_one_has_room_behind_u(self, launches: Launches, distinct: tuple[int, ...]) -> None:
        """For X, A, B and the sums."""
        made = Packed.owning(inputs(*SHAPES, matrices=2), FORM)
        _, (u,) = made.advance(live())
        assert place(u) == (0, whole(made), torch.bfloat16)

    def test_where_there_are_no_matrices_there_is_room_for_nothing(self, launches: Launches) -> None:
        Packed.owning(inputs((7,), matrices=0), FORM).advance(live())
        assert place(launches.given[0][5]) == (0, 0, torch.bfloat16)

    def test_a_blank_u_is_zeros_as_long_as_u(self, distinct: tuple[int, ...]) -> None:
        (blank,) = Packed(inputs(*SHAPES, matrices=2), FORM).blank()
        assert place(blank) == (0, distinct[1], torch.bfloat16)
        assert not blank.count_nonzero()

    def test_a_blank_u_of_one_matrix(self) -> None:
        (blank,) = Packed(inputs((2, 3), matrices=1), FORM).blank()
        assert place(blank) == (0, tables(((2, 3),), (1.0,), CPU).sizes[1], torch.bfloat16)

    @pytest.mark.parametrize("there", [CPU, CUDA], ids=str)
    @pytest.mark.parametrize("roomy", [False, True])
    def test_orthogonalisation_is_five_rounds_in_two_memories(
        self, there: torch.device, roomy: bool, launches: Launches, distinct: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """X, A, B and the sums in one block, behind u where there is room. u is the second X, and the result. float32 on CPUs alone."""
        made = Packed(inputs(*SHAPES, matrices=2), FORM)
        t, (_, U, X, A) = made.tables, distinct
        u = torch.zeros(whole(made), dtype=torch.bfloat16) if roomy else made.blank()[0]
        empty, asked = torch.empty, list[Any]()
        if there == CUDA:
            u = u.as_subclass(Elsewhere)
            monkeypatch.setattr(torch, "empty", lambda *size, device, **more: noted(asked, device, empty(*size, **more)))
        (o,) = made.orthogonalize([u])
        assert asked == [CUDA] * (there == CUDA and not roomy)
        assert (o.data_ptr(), place(o)) == (u.data_ptr(), (0, U, torch.bfloat16))
        wide = {"TILE": TILE, "WIDE": there == CPU}
        squares, tiles = len(t.squares), len(t.tiles)
        assert launches.names == ["square", "normalise", *["gram", "polynomial", "apply"] * STEPS]
        assert launches.programs == [t.matrix_chunks, len(t.stretches), *[squares, squares, tiles] * STEPS]
        start = U * roomy
        first, second = ((start, X, torch.bfloat16), place(o))
        a, b = ((start + X, A, torch.bfloat16), (start + X + A, A, torch.bfloat16))
        sums = ((start + X + 2 * A) // 2, t.matrix_chunks, torch.float32)  # in its own elements, of twice the length
        seen = [[place(x) for x in given] for given in launches.given]
        assert seen[:2] == [
            [place(o), place(t.meta), place(t.chunks), sums],
            [place(o), place(t.meta), place(t.stretches), sums, first],
        ]
        for step in range(STEPS):
            x, y = (second, first) if step % 2 else (first, second)
            rest = place(t.meta), place(t.squares)
            assert seen[2 + 3 * step : 5 + 3 * step] == [[x, a, *rest], [a, b, *rest], [b, x, y, place(t.meta), place(t.tiles)]]
        assert launches.options == [
            {"CHUNK": CHUNK},
            {"CHUNK": CHUNK, "epsilon": EPSILON},
            *[
                {"num_stages": 4, **wide},
                {"num_stages": 2, "b": ABC[1], "c": ABC[2], **wide},
                {"num_stages": 2, "a": ABC[0], **wide},
            ]
            * STEPS,
        ]
        block = launches.given[2][0].untyped_storage()
        assert block.nbytes() == 2 * (start + X + 2 * A + 2 * t.matrix_chunks)
        assert (block.data_ptr() == u.untyped_storage().data_ptr()) == roomy

    def test_combining_takes_the_chunks_of_matrices_alone(self, launches: Launches, distinct: tuple[int, ...]) -> None:
        made, c = Packed(inputs(*SHAPES, matrices=2), FORM), live()
        updates, u = made.advance(c)
        made.combine(updates, u, c)
        t, given = made.tables, launches.given[1]
        assert (launches.names[1], launches.programs[1], launches.options[1]) == ("combine", t.matrix_chunks, {"CHUNK": CHUNK})
        assert all(x is y for x, y in zip(given[:5], (u[0], t.meta, t.scales, t.chunks, c.vector), strict=True))
        assert (given[5].data_ptr(), given[5].stride(), given[5].numel()) == (updates[0].data_ptr(), (1,), distinct[0])

    def test_writing_takes_all_chunks_and_counts_as_a_write(self, launches: Launches, distinct: tuple[int, ...]) -> None:
        """Of weights that have a version: an inference tensor has none."""
        one = inputs(*SHAPES, matrices=2)
        with torch.inference_mode():
            bare = Inputs([torch.ones(70, 5), *one.W[1:]], one.g, one.m, one.v)
        for each, versions in ((one, [1, 1, 1]), (bare, [2, 2])):
            made = Packed(each, FORM)
            updates, _ = made.advance(live())
            made.write(updates, 0.25)
            t, given = made.tables, launches.given[-1]
            assert (launches.names[-1], launches.programs[-1], launches.options[-1]) == ("write", len(t.chunks), {"CHUNK": CHUNK})
            assert all(x is y for x, y in zip(given[:3], (made.addresses, t.meta, t.chunks), strict=True))
            assert (given[3].data_ptr(), given[3].numel(), given[4]) == (updates[0].data_ptr(), distinct[0], -0.25)
            assert [p._version for p in each.W if not p.is_inference()] == versions

    def test_nothing_is_launched_where_all_is_empty(self, launches: Launches) -> None:
        made = Packed(inputs((0,), (0, 3), matrices=0), FORM)
        updates, u = made.advance(live())
        made.write(updates, 0.25)
        assert (launches.names, [tuple(x.shape) for x in updates], u) == ([], [(0,), (0, 3)], [])

    @pytest.mark.parametrize("there", [CPU, CUDA], ids=str)
    def test_a_launch_is_on_the_device_of_its_tensors(self, there: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever the current one is; with four warps on a GPU."""
        log: list[Any] = []

        class Kernel:
            def __getitem__(self, grid: tuple[int, ...]) -> Any:
                return lambda *given, **options: log.append((grid, given, options))

        @contextmanager
        def on(device: torch.device) -> Iterator[None]:
            log.append(device)
            yield
            log.append("off")

        monkeypatch.setattr(musgd, "kernels", SimpleNamespace(square=Kernel()), raising=False)
        monkeypatch.setattr(torch.cuda, "device", on)
        first = torch.ones(1) if there == CPU else elsewhere(1)
        module._launch("square", 7, first, 2.0, CHUNK=5)
        if there == CPU:
            assert log == [((7,), (first, 2.0), {"CHUNK": 5})]
        else:
            assert log == [CUDA, ((7,), (first, 2.0), {"CHUNK": 5, "num_warps": 4}), "off"]


class TestAddresses:
    """Of W, g, m and v of each parameter; 0 where there is no m."""

    def _wanted(self, one: Inputs) -> list[int]:
        rows = [[W.data_ptr(), g.data_ptr(), 0, v.data_ptr()] for W, g, v in zip(one.W, one.g, one.v, strict=True)]
        rows[0][2] = one.m[0].data_ptr()
        return [value for row in rows for value in row]

    def test_on_the_cpu(self) -> None:
        one = inputs((2, 3), (7,), (1,), matrices=1)
        got = addresses(one)
        assert (got.tolist(), got.dtype) == (self._wanted(one), torch.int64)

    def _there(self) -> Inputs:
        one = inputs((2, 3), (7,), (1,), matrices=1)
        return Inputs([one.W[0].as_subclass(Elsewhere), *one.W[1:]], one.g, one.m, one.v)

    def test_they_are_brought_to_a_gpu_from_pinned_memory_without_waiting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[Any] = []

        def tensor(values: list[int], *, pin_memory: bool) -> Any:
            asked.append((values, pin_memory))
            return SimpleNamespace(to=lambda device, *, non_blocking: noted(asked, (device, non_blocking), "there"))

        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
        monkeypatch.setattr(torch, "tensor", tensor)
        one = self._there()
        assert addresses(one) == "there"
        assert asked == [(self._wanted(one), True), (CUDA, True)]

    def test_in_a_capture_nothing_is_copied_from_the_hosts_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The numbers are added, as arguments, to zeros made there."""
        zeros, asked = torch.zeros, list[Any]()
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
        monkeypatch.setattr(torch, "zeros", lambda *size, device, **more: noted(asked, device, zeros(*size, **more)))
        monkeypatch.setattr(torch, "tensor", None)
        one = self._there()
        got = addresses(one)
        assert (got.tolist(), got.dtype, asked) == (self._wanted(one), torch.int64, [CUDA])


class TestTaken:
    """Kernels are taken on a GPU where they run, for the tensors that they are made for."""

    def _inputs(self) -> Inputs:
        return Inputs([elsewhere(2, 3)], [torch.ones(2, 3)], [torch.ones(2, 3)], [torch.ones(2, 3)])

    @pytest.fixture
    def state(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
        state = {"capturing": False}
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: state["capturing"])
        monkeypatch.setattr(module, "_REASONS", {CUDA: None})
        monkeypatch.setattr(module, "TABLES", {})
        return state

    def test_on_a_gpu_where_they_run(self, state: dict[str, bool], monkeypatch: pytest.MonkeyPatch) -> None:
        assert takes(self._inputs(), FORM) is True
        monkeypatch.setattr(module, "_REASONS", {CUDA: "no compiler"})
        assert takes(self._inputs(), FORM) is False

    def test_not_on_a_cpu_nor_in_another_dtype(self, state: dict[str, bool], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_REASONS", {CUDA: None, CPU: None})
        assert takes(inputs((2, 3), matrices=1), FORM) is False
        double = self._inputs()
        assert takes(Inputs([torch.ones(2, 3).double().as_subclass(Elsewhere)], double.g, double.m, double.v), FORM) is False

    @pytest.mark.parametrize(("tried", "tabled"), [(True, True), (True, False), (False, True), (False, False)])
    def test_in_somebody_elses_capture_only_what_was_done_before_it(
        self, tried: bool, tabled: bool, state: dict[str, bool], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The kernels tried and the tables there: neither can be made inside."""
        state["capturing"] = True
        monkeypatch.setattr(module, "_REASONS", {CUDA: None} if tried else {})
        monkeypatch.setattr(module, "_try", lambda device: None)
        monkeypatch.setattr(module, "TABLES", {(((2, 3),), (1.0,), CUDA): None} if tabled else {})
        assert takes(self._inputs(), FORM) is (tried and tabled)

    @pytest.mark.parametrize(("dtype", "ok"), [(torch.float32, 1), (torch.bfloat16, 1), (torch.float16, 1), (torch.float64, 0)], ids=str)
    def test_dtypes(self, dtype: torch.dtype, ok: int) -> None:
        W = [torch.ones(2, 3, dtype=dtype)]
        assert suits(Inputs(W, W, W, W)) is bool(ok)

    def test_positions_of_elements_and_a_chunk_more_fit_into_31_bits(self) -> None:
        for more, fits in ((-1, True), (0, False)):
            W = [torch.empty(1, device="meta"), torch.empty(2**31 - CHUNK + more, device="meta")]
            assert suits(Inputs(W, W, [], W)) is fits

    def test_layouts_in_which_the_first_dimension_has_the_longest_stride(self) -> None:
        four, five = torch.ones(2, 3, 4, 5), torch.ones(2, 3, 4, 5, 6)
        plain = [
            four, five, torch.ones(()), four.contiguous(memory_format=torch.channels_last),
            five.contiguous(memory_format=torch.channels_last_3d),
        ]  # fmt: skip
        others = [torch.ones(2, 3).T, four.transpose(0, 1), five.transpose(0, 1), torch.ones(4, 4)[:, :2], five.transpose(3, 4)]
        assert [suits(Inputs([x], [x], [], [x])) for x in plain] == [True] * len(plain)
        assert [suits(Inputs([x], [x], [], [x])) for x in others] == [False] * len(others)


class TestTrial:
    def test_each_device_is_tried_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[torch.device] = []
        monkeypatch.setattr(module, "_REASONS", {})
        monkeypatch.setattr(module, "_try", lambda device: noted(asked, device, f"not on {device}"))
        assert [why_not(device) for device in (CUDA, CPU, CUDA)] == ["not on cuda:1", "not on cpu", "not on cuda:1"]
        assert asked == [CUDA, CPU]

    def test_other_devices_have_no_kernels(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """ROCm calls its devices cuda too; multiplying bfloat16 takes compute capability 8.0."""
        monkeypatch.setattr(torch.version, "hip", None)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: {CUDA: (7, 5)}[device])
        assert module._try(CPU) == "there are no kernels for cpu"
        assert module._try(CUDA) == "the device has no bfloat16 matrix units"
        monkeypatch.setattr(torch.version, "hip", "6.2")
        assert module._try(CUDA) == "there are no kernels for cuda"

    @pytest.fixture
    def made(self, launches: Launches, monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
        """A GPU of compute capability 8.0 whose tensors lie on the CPU; the tensors of ones that were made there."""
        ones, made = torch.ones, list[Tensor]()
        monkeypatch.setattr(torch.version, "hip", None)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: {CUDA: (8, 0)}[device])
        monkeypatch.setattr(torch.cuda, "synchronize", lambda device: launches.names.append(f"synchronize {device}"))
        monkeypatch.setattr(torch, "ones", lambda *size, device: noted(made, one := ones(*size), one))
        monkeypatch.setattr(module, "Live", lambda device, dtype: Live({(CUDA, torch.float32): CPU}[device, dtype], dtype))
        return made

    def test_all_kernels_run_on_a_small_matrix_and_are_waited_for(self, made: list[Tensor], launches: Launches) -> None:
        """In the form that compiles most of them; with no number left to chance; outside inference mode and autograd."""
        with torch.inference_mode():
            assert module._try(CUDA) is None
        rounds = ["gram", "polynomial", "apply"] * STEPS
        assert launches.names == ["advance", "square", "normalise", *rounds, "combine", "write", "synchronize cuda:1"]
        assert launches.options[0] == {"HYBRID": True, "NESTEROV": True, "DECAYS": True, "MAXIMIZE": False, "CHUNK": CHUNK}
        assert launches.modes == {(False, False)}
        assert [tuple(x.shape) for x in made] == [(2, 3)] * 4
        assert launches.given[0][0].tolist() == [x.data_ptr() for x in made]
        assert launches.given[0][3].tolist() == [0.5] * 5
        updates, u = launches.given[0][4:]
        assert launches.given[-2][0].data_ptr() == u.data_ptr()
        assert launches.given[-2][5].data_ptr() == updates.data_ptr()
        assert launches.given[-1][4] == -0.5

    def test_autograd_is_off_outside_inference_mode_too(self, made: list[Tensor], launches: Launches) -> None:
        assert module._try(CUDA) is None
        assert launches.modes == {(False, False)}

    def test_whatever_fails_is_the_reason_in_one_line(self, made: list[Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*given: Any, **options: Any) -> None:
            raise FileNotFoundError("no compiler\nand more")

        monkeypatch.setattr(module, "_launch", fail)
        assert module._try(CUDA) == "FileNotFoundError: no compiler"
