"""Scenarios of the projects that the cases judge with `gate`, as the text of their files."""

from __future__ import annotations

# Two layers whose arithmetic follows the machine: oneDNN's convolutions the instruction set and threads, means of many elements threads.
NATIVE = """
import torch
import golden


def train(record, model, shape):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(record.steps):
        output = model(torch.randn(shape))
        loss = output.square().mean() * output.exp().mean()
        loss.backward()
        optimizer.step()
        record(loss=loss, grads=golden.gradients(model), optimizer=optimizer, model=model)
        optimizer.zero_grad()


def conv(record):
    train(record, torch.nn.Sequential(torch.nn.Conv2d(4, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3)), (8, 4, 48, 48))


def linear(record):
    train(record, torch.nn.Linear(64, 16), (4000, 64))
"""

# Two epochs of two batches, stopped between them: what a checkpoint may forget is named by the parameter.
RESUMED = """
import torch
import golden


def epochs(record):
    lost = record.parameters.get("lost")
    samples = torch.arange(12.0).reshape(4, 3)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    order, done = torch.Generator().manual_seed(record.seed), 0
    if record.first > 1:
        saved = torch.load(record.folder / "checkpoint.pt", weights_only=False)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"])
        order = order if lost == "order" else order.set_state(saved["order"])
        done = done if lost == "counter" else saved["done"]
    record.start(model=model)
    for step in range(record.first, record.steps + 1):
        if step % 2 == 1:
            indices = torch.randperm(4, generator=order)
        batch = indices[:2] if step % 2 == 1 else indices[2:]
        done += 1
        optimizer.param_groups[0]["lr"] = 0.01 / done
        loss = model(samples[batch]).square().mean()
        loss.backward()
        optimizer.step()
        record(batch=batch, loss=loss, grads=golden.gradients(model), optimizer=optimizer, model=model, done=done)
        optimizer.zero_grad()
        if step == 2:
            states = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}
            torch.save({**states, "order": order.get_state(), "done": done}, record.folder / "checkpoint.pt")
"""

# A switch that is thrown before the model is built, and one that is thrown after it.
SWITCHED = """
import torch


def early(record):
    torch.backends.cudnn.benchmark = True
    train(record)


def late(record):
    train(record, lambda: torch.use_deterministic_algorithms(False))


def train(record, after=lambda: None):
    model = torch.nn.Linear(2, 1)
    record.start(model=model)
    after()
    for _ in range(record.steps):
        record(model=model)
"""
