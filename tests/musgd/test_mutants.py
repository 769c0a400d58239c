"""What planted faults (gate mutate) showed that no test without a GPU looked at."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from musgd.bucket import Bucket
from musgd.coefficients import Coefficients, Live
from musgd.momenta import Momenta
from musgd.prepared import Prepared
from musgd.recording import Recording
from musgd.replay import GroupStatus, Slot
from musgd.update import Form, Inputs, Plain, is_matrix, muon_half, plus


class Elsewhere(Tensor):
    """A number that counts as being on a device, where it is read by kernels rather than as a Python number."""

    is_cpu = property(lambda self: False)


def number(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64).as_subclass(Elsewhere)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("nesterov", [False, True])
def test_muon_momenta_advance_alike_where_the_numbers_are_on_a_device(nesterov: bool, count: int) -> None:
    """m <- beta m + (1 - beta) g, and once more for u, in float64 against the formula; g stays as it is."""
    g = [torch.tensor([[1.0, -2.0]], dtype=torch.float64), torch.tensor([[0.5], [4.0]], dtype=torch.float64)][:count]
    m = [torch.full_like(x, 3.0) for x in g]
    before = [x.clone() for x in g]
    c = cast(Live, SimpleNamespace(beta=number(0.75), rest=number(0.25)))
    u = muon_half(g, m, c, Form(True, nesterov, False, False, "matrix"))
    advanced = [0.75 * 3.0 + 0.25 * x for x in before]
    wanted = [0.75 * x + 0.25 * y for x, y in zip(advanced, before, strict=True)] if nesterov else advanced
    for got, expected in [*zip(m, advanced, strict=True), *zip(u, wanted, strict=True), *zip(g, before, strict=True)]:
        assert torch.equal(got.as_subclass(Tensor), expected)
    assert all((x is y) is not nesterov for x, y in zip(u, m, strict=True))


def test_a_sum_with_a_number_on_a_device_is_new() -> None:
    """x + a y, without writing to either."""
    one, two = torch.tensor([1.0, 2.0]), torch.tensor([4.0, 8.0])
    got, turned = plus([one, two], [two, one], number(0.25))
    assert torch.equal(got.as_subclass(Tensor), torch.tensor([2.0, 4.0]))
    assert torch.equal(turned.as_subclass(Tensor), torch.tensor([4.25, 8.5]))
    assert torch.equal(one, torch.tensor([1.0, 2.0]))
    assert torch.equal(two, torch.tensor([4.0, 8.0]))


def test_what_is_computed_of_what_cannot_be_changed_meanwhile() -> None:
    """A recording holds these: one that changed would be replayed as it was."""
    W = [torch.ones(2, 3)]
    made = Inputs(W, W, W, W)
    form = Form(True, True, True, False, "matrix")
    for fact in (made, form, Plain(made, form)):
        for field in dataclasses.fields(fact):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(fact, field.name, None)


def test_one_element_is_a_matrix_where_it_has_two_dimensions() -> None:
    assert is_matrix(torch.ones(1, 1))
    assert not any(map(is_matrix, (torch.ones(1), torch.ones(0, 3), torch.ones(()))))


THING: Any = object()
HOLDERS: list[Callable[[], Any]] = [
    lambda: Bucket(0, [THING], [0], True),
    lambda: Momenta([THING], [{}], [""], [0]),
    lambda: Recording([THING], [THING], THING, 0, THING),
    lambda: Prepared(THING, THING, THING, THING, THING, ()),
]


def test_what_a_recording_was_made_for_cannot_be_changed_meanwhile() -> None:
    status = GroupStatus(0, "cpu", "float32", "eager", None, 0, 0, 0, 0, 0, 0, None)
    for fact in (Coefficients(0.9, 0.1, 0.5, 0.5), status, *(make() for make in HOLDERS)):
        for field in dataclasses.fields(fact):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(fact, field.name, None)


@pytest.mark.parametrize("make", [*HOLDERS, Slot])
def test_what_holds_tensors_is_itself_alone(make: Callable[[], Any]) -> None:
    """Comparing two would compare their tensors, element by element."""
    one, other = make(), make()
    assert one != other
    assert {one, other} >= {one}


@pytest.mark.parametrize(
    ("device", "dtype", "wide"),
    [
        ("cpu", torch.bfloat16, torch.float64), ("cpu", torch.float32, torch.float64), ("meta", torch.bfloat16, torch.float32),
        ("meta", torch.float16, torch.float32), ("meta", torch.float64, torch.float64),
    ],
)  # fmt: skip
def test_numbers_have_the_precision_that_a_kernel_would_round_them_to(device: str, dtype: torch.dtype, wide: torch.dtype) -> None:
    """On CPUs, where they are read back, all of it."""
    made = Live(torch.device(device), dtype)
    assert (made.vector.dtype, tuple(made.vector.shape)) == (wide, (5,))


def test_numbers_are_written_where_they_differ_alone() -> None:
    """A replay would else launch two kernels for nothing."""
    made = Live(torch.device("cpu"), torch.float32)
    seen = []
    for decay in (0.1, 0.1, 0.2, 0.2, 0.1):
        before = made.vector._version
        made.write(Coefficients(0.75, decay, 0.5, 0.25))
        seen.append(made.vector._version > before)
        assert made.vector.tolist() == [0.75, 0.25, decay, 0.5, 0.25]
    assert seen == [True, False, True, False, True]
