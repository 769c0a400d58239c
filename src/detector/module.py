"""The training: what Lightning's Trainer runs."""

from __future__ import annotations

from typing import Any, Literal

import lightning.pytorch as pl
import torch
from lightning.pytorch.utilities import rank_zero_info
from torch import Tensor

from detector.augment import Batch
from detector.average import Average
from detector.captured import CapturedStep
from detector.coco import DataError
from detector.data import CocoData
from detector.loss import Loss, detection_loss
from detector.model import PRIOR, Network, Output
from detector.schedule import Plan, Schedule
from detector.score import Found, average_precision, candidates, found
from musgd import MuSGD, param_groups

FLAGS = ("capture_orthogonalization", "capture_updates")


class Detector(pl.LightningModule):
    """A detector and how it is trained: by MuSGD, with warm-up, half a cosine and an average of its weights.

    Args:
        names: of the classes.
        size: side of the images in pixels, a multiple of 32.
        width: factor on the channels, 1 for the nano network.
        lr: highest learning rate.
        momentum: after the warm-up.
        weight_decay: of the weights that are matrices or kernels.
        warmup: part of the training in which learning rate and momentum rise.
        floor: the last learning rate, as a part of the highest.
        decay: of the average.
        capture_orthogonalization: record and replay the optimizer's orthogonalisation, on CUDA, with the same bits.
        capture_updates: record and replay all that the optimizer does before it writes the weights.
        capture_step: record and replay forward, loss and backward, on CUDA, with the same bits.
        on_fallback: "warn", or "raise" where a step cannot be replayed.
    """

    def __init__(
        self,
        names: list[str],
        size: int = 640,
        width: float = 1.0,
        lr: float = 0.1,
        momentum: float = 0.9,
        weight_decay: float = 5e-4,
        warmup: float = 0.05,
        floor: float = 0.02,
        decay: float = 0.998,
        capture_orthogonalization: bool = False,
        capture_updates: bool = False,
        capture_step: bool = False,
        on_fallback: Literal["warn", "raise"] = "warn",
    ) -> None:
        super().__init__()
        for name, value, fits in (
            ("width", width, width > 0),
            ("warmup", warmup, 0 <= warmup <= 1),
            ("floor", floor, 0 <= floor <= 1),
            ("decay", decay, 0 <= decay < 1),
        ):
            if not fits:
                raise DataError(f"--model.{name} is {value}, and has to be {'above 0' if name == 'width' else 'from 0 to 1'}")
        self.save_hyperparameters()
        self.names, self.size = names, size
        self.network = Network(len(names), width, min(0.1, PRIOR * 640 / size))  # of fewer locations more answer for a box
        self.average = Average(self.network, decay)
        self.captured: CapturedStep | None = None
        self._counted: tuple[CapturedStep, ...] = ()
        self.told: tuple[Loss, float] | None = None  # the last batch's loss, and its learning rate
        self._looked: list[tuple[Tensor, ...]] = []  # of each batch of a validation: the images' numbers, and `candidates`

    def forward(self, images: Tensor) -> Output:
        """What the averaged network says of images (B, 3, S, S), float in 0 to 1."""
        output: Output = self.average.network(images)
        return output

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """The loss of a batch, 0-d."""
        several = self.trainer.accumulate_grad_batches  # which a callback may change from epoch to epoch
        if batch_idx % several == 0:
            self.trainer.optimizers[0].zero_grad()
        if self.captured:
            self.captured.seed = 1 / several
        replayed = self.captured(batch.images, batch.boxes, batch.labels) if self.captured else None
        loss = detection_loss(self.network(batch.images), batch.boxes, batch.labels) if replayed is None else Loss(*replayed.unbind())
        rate = float(self.trainer.optimizers[0].param_groups[0]["lr"])
        self.told = Loss(*(part.detach() for part in loss)), rate
        # `Lines` writes the log. What callbacks may ask for is put where Lightning's own `log` would bring it, by way of a metric each.
        total, classes, boxes = self.told[0]
        self.trainer.callback_metrics.update(
            {"train/loss": total, "train/classes": classes, "train/boxes": boxes, "train/lr": torch.tensor(rate)}
        )
        if self.trainer.progress_bar_callback is not None:
            self.log("train/loss", total, prog_bar=True, logger=False)
        return loss.total

    def optimizer_zero_grad(self, epoch: int, batch_idx: int, optimizer: Any) -> None:
        """Nothing: `training_step` has dropped them, so that no replay has to put the last batch's gradients aside first."""

    def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        """The optimizer's step, and the average's."""
        super().optimizer_step(*args, **kwargs)
        with self.trainer.profiler.profile("average"):  # type: ignore[attr-defined]  # an attribute that Trainer does not declare
            self.average.update(self.trainer.global_step + 1)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Raises DataError for a checkpoint of other classes, or of a network of another width."""
        made = checkpoint.get("hyper_parameters", {})
        for name in ("names", "width"):
            if name in made and made[name] != self.hparams[name]:
                raise DataError(f"The checkpoint was made with {name} = {made[name]}, and here it is {self.hparams[name]}.")

    def configure_optimizers(self) -> Any:
        """MuSGD over the network's hybrid and plain groups, and its schedule."""
        options = self.hparams
        flags: dict[str, Any] = {flag: options[flag] and self._possible() for flag in FLAGS}
        optimizer = MuSGD(
            param_groups(self.network, weight_decay=options["weight_decay"]),
            lr=options["lr"],
            momentum=options["momentum"],
            nesterov=True,
            on_fallback=options["on_fallback"],
            **flags,
        )
        steps = self._steps()
        momentum = (min(0.8, options["momentum"]), options["momentum"])
        plan = Plan(steps, max(1, round(options["warmup"] * steps)), options["floor"], momentum)
        return [optimizer], [{"scheduler": Schedule(optimizer, plan), "interval": "step"}]

    def on_fit_start(self) -> None:
        """Says of each replay flag whether it is active, and why not."""
        self.average.follow(self.network)  # both have come to their device
        trainer = self.trainer
        told = activity(self.device.type, trainer.scaler is not None, trainer.accumulate_grad_batches, trainer.world_size)
        for flag in FLAGS:
            rank_zero_info(f"{flag}: {told if self.hparams[flag] else 'off'}")
        told = step_activity(self.device.type, trainer.scaler is not None, trainer.accumulate_grad_batches, trainer.world_size)
        rank_zero_info(f"capture_step: {told if self.hparams['capture_step'] else 'off'}")
        if self.hparams["capture_step"] and self._possible() and trainer.scaler is None and trainer.world_size == 1:
            self.captured = CapturedStep(self.network, self._losses, on_fallback=self.hparams["on_fallback"])
            self._counted = (self.captured,)

    def replay_status(self) -> tuple[CapturedStep, ...]:
        """Who counts the last training's recorded steps, also when it has ended; nobody where `capture_step` was not active."""
        return self._counted

    def on_train_end(self) -> None:
        """Says what came of replay, where it was asked for and possible, and gives up the recorded steps."""
        if self.captured:
            captured, self.captured = self.captured, None
            captured.release()
            counts = f"{captured.recordings} recorded, {captured.replays} replayed, {captured.fallbacks} fell back"
            rank_zero_info(f"forward, loss and backward: {counts}")
        optimizer = self.trainer.optimizers[0]
        if isinstance(optimizer, MuSGD) and self.device.type == "cuda" and any(self.hparams[flag] for flag in FLAGS):
            for status in optimizer.replay_status():
                counts = f"{status.recordings} recorded, {status.replays} replayed, {status.fallbacks} fell back"
                rank_zero_info(f"group {status.group} ({status.dtype}): {counts}{f', the last: {status.reason}' if status.reason else ''}")

    def on_validation_epoch_start(self) -> None:
        """Forgets what was found before."""
        self._looked = []

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Keeps a batch's candidates where they are: about 8 KiB an image."""
        self._looked.append((batch.keys[:, 2], *candidates(self(batch.images))))

    def on_validation_epoch_end(self) -> None:
        """Logs mean average precision over all ranks' images."""
        results = self._found()
        if self.trainer.world_size > 1:
            shares: list[dict[int, list[Found]]] = [{}] * self.trainer.world_size
            torch.distributed.all_gather_object(shares, results)
            results = {key: several for share in shares for key, several in share.items()}
        pictures = [picture for picture in self._data().sets["val"].pictures if picture.id in results]
        for name, value in average_precision(pictures, self.names, results).items():
            self.log(f"val/{name}", torch.tensor(value, device=self.device), prog_bar=True)

    def _found(self) -> dict[int, list[Found]]:
        """What was found on the validation's images, by their ids; all batches come to the host at once."""
        looked, self._looked = self._looked, []
        if not looked:
            return {}
        numbers, *parts = (torch.cat(several).cpu() for several in zip(*looked, strict=True))
        results = {}
        for number, scores, labels, boxes in zip(numbers.tolist(), *parts, strict=True):
            picture = self._data().sets["val"].pictures[number]
            results[picture.id] = found(scores, labels, boxes, picture.size, self.size)
        return results

    def _losses(self, images: Tensor, boxes: Tensor, labels: Tensor) -> Tensor:
        """The parts of a batch's loss, (3,); only the first has a gradient."""
        loss = detection_loss(self.network(images), boxes, labels)
        return torch.stack([loss.total, loss.classes.detach(), loss.boxes.detach()])

    def _data(self) -> CocoData:
        data = self.trainer.datamodule  # type: ignore[attr-defined]  # an attribute that Trainer does not declare
        assert isinstance(data, CocoData)
        return data

    def _steps(self) -> int:
        """Optimizer steps of the whole training."""
        trainer = self.trainer
        if trainer.max_steps > 0:
            return trainer.max_steps
        if not trainer.max_epochs or trainer.max_epochs < 0:
            raise DataError("The schedule needs an end: give --trainer.max_epochs or --trainer.max_steps")
        return max(1, trainer.max_epochs * self._data().epoch(trainer.accumulate_grad_batches, trainer.limit_train_batches))

    def _possible(self) -> bool:
        """Whether the optimizer is to try: elsewhere than on CUDA it cannot, which is an error where fallbacks are errors."""
        return self.trainer.strategy.root_device.type == "cuda" or self.hparams["on_fallback"] == "raise"


def activity(device: str, scaled: bool = False, accumulated: int = 1, ranks: int = 1) -> str:
    """What a replay flag that is on does in a fit, and what it shares the step with.

    Args:
        device: "cuda", or another kind, where nothing can be recorded.
        scaled: whether a GradScaler is at work.
        accumulated: batches a step.
        ranks: processes that share the batches.
    """
    if device != "cuda":
        return "not active (no CUDA device)"
    beside = []
    if scaled:
        beside.append("the GradScaler unscales before it, and steps that it skips are not replayed")
    if accumulated > 1:
        beside.append(f"a step every {accumulated} batches")
    if ranks > 1:
        beside.append(f"each of {ranks} ranks replays its own, on gradients already averaged")
    return f"active ({'; '.join(beside)})" if beside else "active"


def step_activity(device: str, scaled: bool = False, accumulated: int = 1, ranks: int = 1) -> str:
    """The same for `capture_step`, which a GradScaler's changing scale and the exchange between ranks keep from being recorded."""
    reasons = [
        ("no CUDA device", device != "cuda"),
        ("a GradScaler scales each loss anew", scaled),
        ("ranks exchange gradients", ranks > 1),
    ]
    for reason, holds in reasons:
        if holds:
            return f"not active ({reason})"
    return f"active (a recorded batch is one of {accumulated} of a step)" if accumulated > 1 else "active"
