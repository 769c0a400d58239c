"""States on a CUDA device: the same leaves and digests as on the host, for every dtype and representation that can be there."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from golden.grads import gradients
from golden.plan import Plan
from golden.recorder import Recorder
from golden.staging import Staging
from tests.golden.states import lines, read, same
from tests.golden.test_tensors import PLAIN, Pair, Weight, filled, sparse

pytestmark = pytest.mark.cuda

VIEWS: list[Callable[[Tensor], Tensor]] = [
    lambda x: x,
    lambda x: x.transpose(0, 1),
    lambda x: x[:, 1],
    lambda x: x[0].expand(2, 2),
    lambda x: x[:0],
]


def there(tensor: Tensor) -> Tensor:
    """A copy on the device, of any dtype: as bytes, for some dtypes have no arithmetic at all, not even a copy."""
    bits = tensor.untyped_storage()
    raw = torch.empty(0, dtype=torch.uint8).set_(bits).cuda()
    return torch.empty(0, dtype=tensor.dtype, device="cuda").set_(raw.untyped_storage(), 0, tensor.shape, tensor.stride())


@pytest.mark.parametrize("dtype", PLAIN, ids=str)
def test_every_dtype_has_the_digests_that_it_has_on_the_host(dtype: torch.dtype) -> None:
    """Contiguous, transposed, strided and expanded; one bit changed is seen on either side."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # complex32 and its like are experimental
        host, other = filled(dtype, 3, 2), filled(dtype, 3, 2, change=1)
        device, changed = there(host), there(other)
    for view in VIEWS:
        assert same(read(a=view(device)), read(a=view(host)))
    assert same(read(a=changed), read(a=other))
    assert not same(read(a=device), read(a=other))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc], ids=str)
def test_sparse_tensors_are_their_parts(layout: torch.layout) -> None:
    """Indices and values, brought from the device; a changed value is seen."""
    host = sparse(layout)
    device = host.cuda()
    assert lines(a=device) == lines(a=host)
    assert same(read(a=device), read(a=host))
    (device._values() if layout is torch.sparse_coo else device.values()).neg_()
    assert not same(read(a=device), read(a=host))


def test_quantized_and_nested_tensors_are_their_parts() -> None:
    """What the device has of them."""
    quantized = torch.quantize_per_tensor(torch.arange(6.0), 0.5, 3, torch.qint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nested tensors are in a prototype stage
        nested = torch.nested.nested_tensor([torch.ones(2), torch.zeros(3)], layout=torch.jagged)
    for host in (quantized, nested):
        assert same(read(a=host.cuda()), read(a=host))
    assert not same(read(a=quantized.cuda()), read(a=torch.quantize_per_tensor(torch.arange(6.0), 0.5, 2, torch.qint8)))


def test_lazy_views_count_as_what_they_read_as() -> None:
    """Conjugated and negated views are resolved on the device."""
    host = torch.tensor([1 + 2j, 3 - 4j])
    device = host.cuda()
    assert same(read(a=device.conj()), read(a=host.conj().resolve_conj()))
    assert same(read(a=device.conj().imag), read(a=host.conj().imag))
    assert not same(read(a=device.conj()), read(a=host))


def test_subclasses_are_their_class_and_what_they_hold() -> None:
    """One with memory of its own, and a wrapper around two tensors; neither is asked to compute."""
    values = torch.arange(3.0)
    weight = values.cuda().as_subclass(Weight)
    assert lines(a=weight) == ["a : Weight", "a tensor: float32[3]"]
    assert same(read(a=weight), read(a=values.as_subclass(Weight)))
    one, two = torch.ones(2), torch.zeros(3, dtype=torch.int8)
    assert same(read(a=Pair(one.cuda(), two.cuda(), {"bits": 4})), read(a=Pair(one, two, {"bits": 4})))
    assert not same(read(a=Pair(one.cuda(), two.cuda() + 1, {"bits": 4})), read(a=Pair(one, two, {"bits": 4})))


def test_a_module_on_two_devices_is_one_state() -> None:
    """Half on the host, half on the device: the leaves of the whole on the host; tied weights on the device stay tied."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
    whole = read(model=model)
    nn.Module.cuda(model[2])
    assert same(read(model=model), whole)
    one, two = nn.Linear(3, 3).cuda(), nn.Linear(3, 3).cuda()
    tied = nn.ModuleDict({"one": one, "two": two})
    two.weight = one.weight
    assert "model two.weight: float32[3,3] shares=model/one.weight" in lines(model=tied)
    two.weight = nn.Parameter(one.weight.detach().clone())
    assert "model two.weight: float32[3,3]" in lines(model=tied)


def test_a_state_larger_than_the_pinned_buffer_comes_in_rounds() -> None:
    """Tensors below, at and far above the buffer's size."""
    host = {str(n): torch.arange(n, dtype=torch.int32) for n in (1, 255, 256, 257, 5000)}
    device = {key: value.cuda() for key, value in host.items()}
    plan = Plan(staging=Staging(1024))
    for _ in range(2):
        assert same(read(plan, a=device), read(a=host))
    device["5000"][4999] += 1
    assert not same(read(plan, a=device), read(a=host))


def train(record: Recorder | None) -> list[bytes]:
    """Weights and momenta after five steps of a convolutional network with batch norm on the device."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    if record is not None:
        record.start(model=model, optimizer=optimizer)
    for _ in range(5):
        loss = nn.functional.cross_entropy(model(torch.randn(8, 1, 8, 8, device="cuda")), torch.arange(8, device="cuda") % 3)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if record is not None:
            record(loss=loss, grads=gradients(model), optimizer=optimizer, model=model)
        optimizer.zero_grad()
    states = [value for state in optimizer.state.values() for value in state.values()]
    return [np.asarray(x.detach().cpu()).tobytes() for x in [*model.state_dict().values(), *states]]


def test_the_recorder_leaves_the_bits_of_a_run_on_the_device_alone() -> None:
    """With and without it: the same weights, buffers and moments; another seed gives others."""
    found: list[Any] = []
    recorder = Recorder(found.append, steps=5, device=torch.device("cuda"), seed=0)
    deterministic = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        bare, recorded = train(None), train(recorder)
    finally:
        torch.use_deterministic_algorithms(deterministic)
    assert len(found) == 6
    assert bare == recorded
    assert not (found[1].digests == found[5].digests).all()
