"""Copies from a device, shown with tensors of the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from golden.generators import states
from golden.memory import View, whole
from golden.plan import Plan
from golden.staging import ROUND, Staging
from tests.golden.states import read, same

TENSORS = [
    torch.arange(5, dtype=torch.int16),
    torch.arange(12.0).reshape(3, 4).t(),
    torch.arange(100.0)[7:9],
    torch.ones(1, dtype=torch.float64).expand(3),
    torch.zeros(0, 2),
    torch.tensor(7, dtype=torch.uint8),
    torch.arange(3, dtype=torch.uint8).view(torch.float8_e4m3fn),
]


def logical(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.contiguous().view(-1).view(torch.uint8).tolist()) if tensor.numel() else b""


def address(view: View) -> int:
    return int(np.asarray(view).ctypes.data)


@pytest.mark.parametrize("most", [1, 64, 100, 1 << 20])
def test_copies_are_the_logical_bytes_in_rounds_of_any_size(most: int) -> None:
    staging = Staging(most)
    for _ in range(2):
        seen = {number: bytes(whole(view)) for number, view in staging.fetch(enumerate(TENSORS))}
        assert seen == {number: logical(tensor) for number, tensor in enumerate(TENSORS)}


def test_a_round_holds_no_more_than_it_may() -> None:
    staging = Staging(4096)
    list(staging.fetch(enumerate([torch.ones(256)] * 100)))
    assert staging._buffer.numel() <= 4096


def test_a_round_holds_as_much_as_it_may() -> None:
    """Four tensors that fill it lie behind one another, the fifth where the first was."""
    staging = Staging(4096)
    places = []
    for number, view in staging.fetch(enumerate([torch.ones(256)] * 12)):
        places.append(address(view) - staging._buffer.data_ptr())
        assert staging._buffer.numel() == 4096, number
    assert places == [0, 1024, 2048, 3072] * 3


def test_a_round_is_256_mib_by_default() -> None:
    assert (ROUND, Staging()._most) == (256 * 1024**2,) * 2


def test_a_copy_is_aligned_as_its_elements_need_it() -> None:
    views = dict(Staging().fetch(enumerate([torch.ones(5, dtype=torch.complex128)] * 3)))
    assert [address(view) % 16 for view in views.values()] == [0, 0, 0]


def test_the_buffer_is_kept_from_step_to_step() -> None:
    """One that is large enough stays, one that is not is replaced."""
    staging = Staging()
    list(staging.fetch(enumerate(TENSORS)))
    kept = staging._buffer
    list(staging.fetch(enumerate(TENSORS)))
    assert staging._buffer is kept
    list(staging.fetch(enumerate([*TENSORS, torch.ones(1)])))
    assert staging._buffer is not kept


def test_a_buffer_made_in_inference_mode_is_written_outside_of_it() -> None:
    staging = Staging()
    with torch.inference_mode():
        assert len(list(staging.fetch(enumerate(TENSORS)))) == len(TENSORS)
    seen = {number: bytes(whole(view)) for number, view in staging.fetch(enumerate(TENSORS))}
    assert seen == {number: logical(tensor) for number, tensor in enumerate(TENSORS)}


def test_nothing_is_copied_where_nothing_is_asked_for() -> None:
    staging = Staging()
    assert list(staging.fetch([])) == []
    assert staging._buffer.numel() == 0


class Remote(torch.Tensor):
    """A tensor of the host that says that it is on a CUDA device."""

    is_cuda = True


def test_a_device_is_waited_for_between_the_last_copy_of_a_round_and_its_first_view(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a round, shown with a stand-in for the device's stream; tensors of the host are not waited for."""
    events: list[object] = []

    class Stream:
        def __init__(self, device: torch.device) -> None:
            self.device = device

        def synchronize(self) -> None:
            events.append(("waited", self.device))

    class Told(Staging):
        def _queue(self, tensor: torch.Tensor, start: int) -> int:
            events.append("queued")
            return super()._queue(tensor, start)

    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    staging = Told(128)
    list(staging.fetch(enumerate([torch.ones(32)])))  # the buffer, which could not be pinned here
    assert events == ["queued"]
    events.clear()
    for number, view in staging.fetch(enumerate(torch.full((16,), float(n)).as_subclass(Remote) for n in range(3))):
        events.append(number)
        assert bytes(whole(view)) == logical(torch.full((16,), float(number)))
    waited = ("waited", torch.device("cpu"))
    assert events == ["queued", "queued", waited, 0, 1, "queued", waited, 2]


CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@CUDA
@pytest.mark.cuda
def test_a_state_on_a_device_has_the_digests_that_it_has_on_the_host() -> None:
    # Without expanded ones: bringing them to a device lays them out anew.
    state: dict[str, Any] = {str(number): tensor for number, tensor in enumerate(TENSORS) if 0 not in tensor.stride()}
    state |= {"conj": torch.tensor([1 + 2j]).conj(), "sparse": torch.eye(3).to_sparse(), "last": torch.ones(1, 3, 2, 2)}
    state["last"] = state["last"].to(memory_format=torch.channels_last)
    there = {key: value.to("cuda") for key, value in state.items()}
    plan = Plan()
    for _ in range(2):
        assert (read(plan, s=there).digests == read(s=state).digests).all()
        assert [leaf.line() for leaf in read(plan, s=there).leaves] == [leaf.line() for leaf in read(s=state).leaves]
    there["0"].add_(1)
    assert not same(read(plan, s=there), read(s=state))


@CUDA
@pytest.mark.cuda
def test_a_module_that_moves_to_the_device_and_back_keeps_its_leaves() -> None:
    plan = Plan()
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    before = read(plan, model=model)
    assert same(before, read(plan, model=model.cuda()))
    assert same(before, read(plan, model=model.cpu()))


@CUDA
@pytest.mark.cuda
def test_work_that_is_still_queued_is_waited_for() -> None:
    tensor = torch.zeros(1 << 20, device="cuda")
    for _ in range(200):
        tensor.add_(1)
    assert same(read(a=tensor), read(a=torch.full((1 << 20,), 200.0)))


@CUDA
@pytest.mark.cuda
def test_the_generator_of_the_device_is_recorded_beside_that_of_the_host() -> None:
    device = torch.device("cuda")
    before = read(rng=states(device))
    assert "rng/cuda" in {leaf.full for leaf in before.leaves}
    torch.rand(1, device=device)
    assert not same(before, read(rng=states(device)))
