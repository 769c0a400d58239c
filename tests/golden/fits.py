"""Trainings for Lightning's Trainer, each also as a loop written by hand in plain PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.plugins import MixedPrecision
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import CosineAnnealingLR, StepLR
from torch.optim.swa_utils import AveragedModel, get_ema_avg_fn
from torch.utils.data import DataLoader, TensorDataset

import golden
from golden.leaf import Snapshot
from golden.recorder import Recorder

STEPS = 4


@dataclass(frozen=True)
class Variant:
    """How a training runs."""

    accumulate: int = 1
    clip: float | None = None
    algorithm: str = "norm"
    precision: str = "32-true"
    ema: bool = False
    device: str = "cpu"
    overflows: bool = False  # one batch of values too large for float16


class Net(pl.LightningModule):
    """(B, 6) to (B, 3): a layer, batch norm, dropout, and a residual."""

    def __init__(self, variant: Variant) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.variant = variant
        self.first, self.norm, self.drop, self.last = nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Dropout(0.25), nn.Linear(6, 3)

    def loss(self, batch: list[Tensor]) -> Tensor:
        """Cross entropy of a batch."""
        x, labels = batch
        return F.cross_entropy(self.last(x + self.drop(F.relu(self.norm(self.first(x))))), labels)

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        loss = self.loss(batch)
        self.log("train/loss", loss)
        return loss

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
        return [optimizer], [{"scheduler": CosineAnnealingLR(optimizer, T_max=STEPS), "interval": "step"}]


def loader(variant: Variant) -> DataLoader[Any]:
    """Sixteen batches of eight."""
    generator = torch.Generator().manual_seed(3)
    x, labels = torch.randn(128, 6, generator=generator), torch.randint(3, (128,), generator=generator)
    if variant.overflows:
        x[8:16] *= 1e5
    return DataLoader(TensorDataset(x, labels), batch_size=8)


def precision(variant: Variant) -> dict[str, Any]:
    """Arguments of a Trainer: float16 is asked for on the CPU only through the plugin."""
    if variant.precision != "16-mixed" or variant.device != "cpu":
        return {"precision": variant.precision}
    return {"plugins": [MixedPrecision("16-mixed", "cpu", scaler(variant))]}


def scaler(variant: Variant) -> torch.amp.GradScaler:
    """On CUDA as Lightning makes it; on the CPU one whose scale grows within the test."""
    return torch.amp.GradScaler(variant.device, growth_interval=2 if variant.device == "cpu" else 2000)


def trainer(variant: Variant, callbacks: list[Callback], **settings: Any) -> pl.Trainer:
    quiet: dict[str, Any] = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    chosen = {**quiet, "accelerator": variant.device, "devices": 1, "max_epochs": -1, **precision(variant), **settings}
    return pl.Trainer(
        accumulate_grad_batches=variant.accumulate, gradient_clip_val=variant.clip,
        gradient_clip_algorithm=variant.algorithm if variant.clip else None, callbacks=callbacks, **chosen,
    )  # fmt: skip


def recorder(variant: Variant, steps: int = STEPS) -> tuple[Recorder, list[Snapshot]]:
    taken: list[Snapshot] = []
    return Recorder(taken.append, steps=steps, device=variant.device, store="digest"), taken


def moved(batches: Iterator[Any], device: str) -> Iterator[list[Tensor]]:
    return ([part.to(device) for part in batch] for batch in batches)


def by_hand(variant: Variant, grads_before_clipping: bool = False) -> list[Snapshot]:
    """The same training without Lightning's Trainer."""
    record, taken = recorder(variant)
    module = Net(variant).to(variant.device)
    ((optimizer,), (config,)) = module.configure_optimizers()
    scheduler = config["scheduler"]
    scaling = {"scaler": scaler(variant)} if variant.precision == "16-mixed" else {}
    averaged, callbacks = average(variant, module)
    batches = moved(iter(loader(variant)), variant.device)
    state = {"optimizer": optimizer, "model": module, **scaling, "scheduler": scheduler, "callbacks": callbacks}
    record.start(**state)
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(variant.accumulate):
            loss, logged = backward(variant, module, next(batches), scaling.get("scaler"))
        if scaling:
            scaling["scaler"].unscale_(optimizer)
        grads: Any = golden.gradients(module)
        if grads_before_clipping:
            grads = {name: grad.clone() for name, grad in grads.items()}
        clip(variant, module)
        if scaling:
            scaling["scaler"].step(optimizer)
            scaling["scaler"].update()
        else:
            optimizer.step()
        scheduler.step()
        averaged.update_parameters(module)
        record(loss=loss, metrics={"train/loss": logged}, grads=grads, **state)
    record.finish()
    return taken


def average(variant: Variant, module: nn.Module) -> tuple[AveragedModel, dict[str, Any]]:
    """An average of a module, and how it is recorded: not at all where the variant has none."""
    averaged = AveragedModel(module, use_buffers=True, avg_fn=get_ema_avg_fn(0.9))  # type: ignore[no-untyped-call]
    return averaged, {"EMAWeightAveraging": {"average_model": averaged}} if variant.ema else {}


def backward(variant: Variant, module: Net, batch: list[Tensor], scaler: torch.amp.GradScaler | None) -> tuple[Tensor, Tensor]:
    """Loss of a micro-batch as it is back-propagated, but for the scaler, and as it is logged."""
    dtype = torch.float16 if variant.precision == "16-mixed" else torch.bfloat16
    with torch.autocast(variant.device, dtype=dtype, cache_enabled=False, enabled=variant.precision != "32-true"):
        whole = module.loss(batch)
    loss = whole / variant.accumulate
    (loss if scaler is None else scaler.scale(loss)).backward()  # type: ignore[no-untyped-call]
    return loss.detach(), whole.detach()


def clip(variant: Variant, module: nn.Module) -> None:
    if variant.clip is not None and variant.algorithm == "norm":
        nn.utils.clip_grad_norm_(module.parameters(), variant.clip)
    elif variant.clip is not None:
        nn.utils.clip_grad_value_(module.parameters(), variant.clip)


class Adversaries(pl.LightningModule):
    """Two networks with an optimizer each, stepped by hand; the gradients are gone as soon as an optimizer has stepped."""

    def __init__(self, variant: Variant) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.automatic_optimization = False
        self.generator, self.critic = nn.Linear(6, 6), nn.Linear(6, 1)

    def losses(self, batch: list[Tensor]) -> list[Callable[[], Tensor]]:
        """What each optimizer minimises in turn."""
        x = batch[0]
        return [
            lambda: self.critic(self.generator(x)).square().mean(),
            lambda: (self.critic(self.generator(x).detach()) - self.critic(x)).square().mean(),
        ]

    def training_step(self, batch: list[Tensor], batch_idx: int) -> None:
        optimizers: Any = self.optimizers()
        for optimizer, loss in zip(optimizers, self.losses(batch), strict=True):
            value = loss()
            self.manual_backward(value)
            self.log("loss", value)
            optimizer.step()
            optimizer.zero_grad()
        schedulers: Any = self.lr_schedulers()
        for scheduler in schedulers:
            scheduler.step()

    def configure_optimizers(self) -> Any:
        optimizers = [torch.optim.Adam(self.generator.parameters(), lr=0.01), torch.optim.SGD(self.critic.parameters(), lr=0.1)]
        return optimizers, [StepLR(optimizer, 1, gamma=0.5) for optimizer in optimizers]


def adversaries_by_hand(variant: Variant, grads: Callable[[nn.Module], Any] = golden.gradients) -> list[Snapshot]:
    """Records as an optimizer has stepped; averages at the end of a batch, so that its second step sees what its first saw."""
    record, taken = recorder(variant)
    module = Adversaries(variant)
    optimizers, schedulers = module.configure_optimizers()
    averaged, callbacks = average(variant, module)
    batches = iter(loader(variant))
    state = {"optimizers": optimizers, "model": module, "schedulers": schedulers, "callbacks": callbacks}
    record.start(**state)
    for _ in range(STEPS // 2):
        for optimizer, loss in zip(optimizers, module.losses(next(batches)), strict=True):
            value = loss()
            value.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            record(loss=value, metrics={"loss": value.detach().clone()}, grads=grads(module), **state)
            optimizer.zero_grad()
        for scheduler in schedulers:
            scheduler.step()
        averaged.update_parameters(module)
    return taken


class Manual(Net):
    """One optimizer, stepped by hand."""

    def __init__(self, variant: Variant) -> None:
        super().__init__(variant)
        self.automatic_optimization = False

    def training_step(self, batch: list[Tensor], batch_idx: int) -> None:  # type: ignore[override]
        optimizer: Any = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(self.loss(batch))
        optimizer.step()


def manual_by_hand(variant: Variant) -> list[Snapshot]:
    """Records a step before the scaler is updated, and one that is skipped after that."""
    record, taken = recorder(variant)
    module = Manual(variant)
    ((optimizer,), (config,)) = module.configure_optimizers()
    scaling = scaler(variant)
    batches = iter(loader(variant))
    state = {"optimizer": optimizer, "model": module, "scaler": scaling, "scheduler": config["scheduler"], "callbacks": {}}
    record.start(**state)
    for _ in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16, cache_enabled=False):
            loss = module.loss(next(batches))
        loss = scaling.scale(loss)
        loss.backward()  # type: ignore[no-untyped-call]
        scaling.unscale_(optimizer)
        grads = golden.gradients(module)
        skipped = not all(bool(grad.isfinite().all()) for grad in grads.values())
        scaling.step(optimizer)
        if skipped:
            scaling.update()
        record(loss=loss, metrics={}, grads=grads, **state)
        if not skipped:
            scaling.update()
    return taken
