"""The trainings that this project's goldens hold: real data, small models, every part of a usual loop.

Shapes: B batch, C channels, H and W height and width, T tokens, D width of the transformer, V size of the vocabulary.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import golden
from musgd import MuSGD, param_groups

HERE = Path(__file__).parent


def digits(record: golden.Recorder) -> None:
    """A convolutional network on handwritten digits by MuSGD: hybrid and SGD groups, momentum warm-up, cosine schedule, EMA.

    Parameters are further options of the optimizer, such as those of its replay, which has the same bits.
    """
    model = convolutional().to(record.device)
    optimizer = MuSGD(param_groups(model, weight_decay=5e-4), lr=0.1, momentum=0.8, nesterov=True, **record.parameters)
    fit_digits(record, model, optimizer)


def digits_adamw(record: golden.Recorder) -> None:
    """The same network and schedule by torch.optim.AdamW: golden knows nothing of the optimizer that it judges."""
    model = convolutional().to(record.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=5e-4)
    fit_digits(record, model, optimizer)


def digits_resume(record: golden.Recorder) -> None:
    """The digits again, checkpointed after each step; a process that resumes goes on from the checkpoint alone."""
    model = convolutional().to(record.device)
    optimizer = MuSGD(param_groups(model, weight_decay=5e-4), lr=0.1, momentum=0.8, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=record.steps)
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)  # type: ignore[no-untyped-call]
    images, labels = digit_images()
    source = Batches(len(labels), 64)
    saved = Checkpoint(record, {"model": model, "optimizer": optimizer, "scheduler": scheduler, "ema": ema, "source": source})
    if record.first > 1:
        saved.load()
    for step in range(record.first, record.steps + 1):
        if step > 1:
            scheduler.step()  # before anything that reads the learning rate, so that a schedule which went astray is the first to differ
        warm_up(optimizer, step)
        index = source.draw()
        loss = forward(record.device, model, images[index], labels[index])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        ema.update_parameters(model)
        record(
            scheduler=scheduler,
            batch=index,
            loss=loss,
            grads=golden.gradients(model),
            optimizer=optimizer,
            model=model,
            ema=ema,
        )
        optimizer.zero_grad()
        saved.save()


class Checkpoint:
    """The whole state of a training in one file of `record.folder`, torch's generators included."""

    def __init__(self, record: golden.Recorder, parts: dict[str, Any]) -> None:
        assert record.folder is not None
        self.path = record.folder / "checkpoint.pt"
        self.parts = parts

    def save(self) -> None:
        """Write the parts' state_dicts and the generators' states."""
        states = {name: part.state_dict() for name, part in self.parts.items()}
        torch.save({**states, "rng": torch.get_rng_state()}, self.path)

    def load(self) -> None:
        """Restore what `save` wrote."""
        states = torch.load(self.path, map_location="cpu", weights_only=True)  # each part brings its own to its device
        for name, part in self.parts.items():
            part.load_state_dict(states[name])
        torch.set_rng_state(states["rng"])


def fit_digits(record: golden.Recorder, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Train on `record.steps` batches of 64 digits; every phase stands in its order of execution."""
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=record.steps)
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)  # type: ignore[no-untyped-call]
    record.start(model=model, optimizer=optimizer, ema=ema, scheduler=scheduler)
    images, labels = digit_images()
    source = Batches(len(labels), 64)
    for step in range(1, record.steps + 1):
        warm_up(optimizer, step)
        index = source.draw()
        loss = forward(record.device, model, images[index], labels[index])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        ema.update_parameters(model)
        scheduler.step()
        record(
            batch=index,
            loss=loss,
            grads=golden.gradients(model),
            optimizer=optimizer,
            model=model,
            ema=ema,
            scheduler=scheduler,
        )
        optimizer.zero_grad()


def forward(device: torch.device, model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy, float32 0-d, of images (B, 1, 8, 8) and labels (B,), brought to the device here."""
    with mixed(device):
        return F.cross_entropy(model(images.to(device)), labels.to(device))


def text(record: golden.Recorder) -> None:
    """A transformer with tied embedding on this repository's licence by MuSGD: accumulation over two batches, clipping.

    Parameters are further options of the optimizer.
    """
    tokens, size = licence_tokens()
    model = Transformer(size).to(record.device)
    optimizer = MuSGD(param_groups(model, weight_decay=1e-3), lr=0.02, momentum=0.9, **record.parameters)
    record.start(model=model, optimizer=optimizer)
    for _ in range(record.steps):
        losses, starts = [], []
        for _ in range(2):
            start = torch.randint(len(tokens) - 33, (8,))
            window = torch.stack([tokens[i : i + 33] for i in start.tolist()]).to(record.device)
            with mixed(record.device):
                logits = model(window[:, :-1])
                loss = F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten()) / 2
            loss.backward()  # type: ignore[no-untyped-call]
            losses.append(loss.detach())
            starts.append(start)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        record(
            batch=torch.stack(starts),
            loss=torch.stack(losses).sum(),
            norm=norm,
            grads=golden.gradients(model),
            optimizer=optimizer,
            model=model,
        )
        optimizer.zero_grad()


def convolutional() -> nn.Module:
    """A network of about 1,600 parameters: (B, 1, 8, 8) to (B, 10) logits; 3x3 and 1x1 kernels, batch norm, a linear head."""
    return nn.Sequential(
        *block(1, 8, 3),
        *block(8, 12, 3, stride=2),
        *block(12, 12, 1),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(12 * 2 * 2, 10),
    )


def block(inputs: int, outputs: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    """Convolution without bias, batch norm, ReLU."""
    return [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]


class Transformer(nn.Module):
    """Causal transformer, two layers of width D = 32: (B, T) token ids to (B, T, V) logits; output and embedding share one weight."""

    def __init__(self, size: int, width: int = 32, layers: int = 2, length: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size, width)
        self.position = nn.Parameter(torch.randn(length, width) * 0.02)
        self.layers = nn.ModuleList(Layer(width) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, size, bias=False)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T) int64 to (B, T, V)."""
        x = self.embedding(tokens) + self.position[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return torch.as_tensor(self.head(self.norm(x)))


class Layer(nn.Module):
    """Attention of two heads and a feed-forward part, each behind its norm: (B, T, D) to (B, T, D).

    The attention is written out: a fused kernel would choose its algorithm by the machine.
    """

    def __init__(self, width: int, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        x = x + self.out(self.attend(self.norm1(x)))
        return x + torch.as_tensor(self.down(F.relu(self.up(self.norm2(x)))))

    def attend(self, x: Tensor) -> Tensor:
        """Softmax(Q K^T / sqrt(D / heads)) V with the future masked: (B, T, D) to (B, T, D)."""
        length, width = x.shape[1:]
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = (q @ k.transpose(-2, -1)) / (width // self.heads) ** 0.5
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        return torch.as_tensor((scores.masked_fill(future, -torch.inf).softmax(-1) @ v).transpose(1, 2).flatten(2))


def mixed(device: torch.device) -> torch.autocast:
    """bfloat16 autocast on CUDA, none on the CPU (where the portable profile makes bfloat16 slow)."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda")


def warm_up(optimizer: torch.optim.Optimizer, step: int) -> None:
    """Momentum from 0.8 to 0.95 over the first five steps, where the optimizer has one."""
    for group in optimizer.param_groups:
        if "momentum" in group:
            group["momentum"] = 0.8 + 0.15 * min(step - 1, 5) / 5


class Batches:
    """`size` of `samples` indices at a time, int64, epoch after epoch in an order drawn from torch's global generator."""

    def __init__(self, samples: int, size: int) -> None:
        self.samples, self.size = samples, size
        self.order = torch.empty(0, dtype=torch.int64)

    def draw(self) -> Tensor:
        """The next batch of indices (B,)."""
        if len(self.order) < self.size:
            self.order = torch.randperm(self.samples)
        batch, self.order = self.order[: self.size], self.order[self.size :]
        return batch

    def state_dict(self) -> dict[str, Tensor]:
        """What is left of the epoch."""
        return {"order": self.order}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on where that was saved."""
        self.order = state["order"]


def digit_images() -> tuple[Tensor, Tensor]:
    """Images (1797, 1, 8, 8) float32 in 0 to 1 and labels (1797,) int64."""
    table = np.loadtxt(HERE / "data" / "digits.csv.gz", delimiter=",", dtype=np.float32)
    return torch.from_numpy(table[:, :64].reshape(-1, 1, 8, 8) / 16), torch.from_numpy(table[:, 64].astype(np.int64))


def licence_tokens() -> tuple[Tensor, int]:
    """The licence as character ids, int64, and how many characters there are."""
    letters = (HERE.parent / "LICENSE").read_text(encoding="utf-8")
    vocabulary = {letter: index for index, letter in enumerate(sorted(set(letters)))}
    return torch.tensor([vocabulary[letter] for letter in letters]), len(vocabulary)
