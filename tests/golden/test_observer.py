"""The recorder changes nothing: a run has the same bits with and without it."""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.optim.swa_utils import AveragedModel

from golden.grads import gradients
from golden.recorder import Recorder


class Residual(nn.Module):
    """Gradients reach each block on two ways, so that their order of accumulation matters."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding=1)
        self.one = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.1))
        self.two = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.head = nn.Linear(8, 3)
        self.last: Any = self.stem

    def forward(self, images: Tensor) -> Tensor:
        hidden = self.stem(images)
        hidden = hidden + self.one(hidden) + 0.5 * self.one(hidden)
        hidden = hidden + self.two(hidden)
        output: Tensor = self.head(hidden.mean((2, 3)))
        return output


def train(record: Recorder | None) -> list[bytes]:
    """Every bit that a step leaves behind, of every step."""
    torch.manual_seed(1)
    np.random.seed(1)
    random.seed(1)
    model = Residual()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = CosineAnnealingLR(optimizer, 5)
    ema = AveragedModel(model, use_buffers=True)
    bits: list[bytes] = []
    if record:
        record.start(model=model, optimizer=optimizer, ema=ema)
    for _ in range(4):
        images = torch.randn(4, 1, 8, 8) + float(np.random.rand()) + random.random()
        loss = nn.functional.cross_entropy(model(images), torch.arange(4) % 3)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        scheduler.step()
        ema.update_parameters(model)
        if record:
            record(loss=loss, grads=gradients(model), optimizer=optimizer, model=model, ema=ema, scheduler=scheduler)
        everything = [loss, *model.state_dict().values(), *ema.state_dict().values()]
        everything += [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        everything += [value for state in optimizer.state.values() for value in state.values()]
        bits += [tensor.detach().clone().numpy().tobytes() for tensor in everything]
        bits += [repr(scheduler.state_dict()).encode(), torch.get_rng_state().numpy().tobytes(), repr(random.getstate()).encode()]
        bits.append(np.random.get_state(legacy=False)["state"]["key"].tobytes())
        optimizer.zero_grad()
    return bits


@pytest.mark.case("G12")
@pytest.mark.case("G11")
@pytest.mark.parametrize("store", ["full", "digest"])
def test_a_residual_network_trains_to_the_same_bits_with_and_without_the_recorder(store: str) -> None:
    bare = train(None)
    assert bare == train(None)
    digests: list[Any] = []
    recorded = train(Recorder(lambda snapshot: digests.append(snapshot.digests), steps=4, store=store))
    assert len(digests) == 5
    assert recorded == bare


def test_other_bits_would_have_been_seen() -> None:
    def disturb(*_: object) -> None:
        torch.rand(1)

    assert train(Recorder(disturb, steps=4)) != train(None)


def test_the_recorder_leaves_threads_modes_and_tensors_as_they_are() -> None:
    record = Recorder(lambda snapshot: None, steps=2)
    model = Residual()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    weight = model.head.weight
    loss = model(torch.ones(1, 1, 8, 8)).sum()
    before = (
        torch.get_num_threads(), threading.active_count(), torch.is_grad_enabled(), torch.is_inference_mode_enabled(),
        weight._version, weight.requires_grad, weight.grad, len(optimizer.state), loss.grad_fn, len(model._forward_hooks),
        torch.are_deterministic_algorithms_enabled(),
    )  # fmt: skip
    record(loss=loss, grads=gradients(model), optimizer=optimizer, model=model)
    assert before == (
        torch.get_num_threads(), threading.active_count(), torch.is_grad_enabled(), torch.is_inference_mode_enabled(),
        weight._version, weight.requires_grad, weight.grad, len(optimizer.state), loss.grad_fn, len(model._forward_hooks),
        torch.are_deterministic_algorithms_enabled(),
    )  # fmt: skip
    loss.backward()
    weight.detach().resize_(0)
    assert weight.untyped_storage().resizable()


def test_recording_inside_inference_mode_and_no_grad_works() -> None:
    record = Recorder(lambda snapshot: None, steps=2)
    with torch.inference_mode():
        record(a=torch.ones(2))
    with torch.no_grad():
        record(a=torch.ones(2))
    record.finish()
