"""Records a fit of Lightning's Trainer at each optimizer step.

::

    def scenario(record):
        trainer = Trainer(accelerator=record.device.type, devices=1, max_steps=record.steps, callbacks=[GoldenCallback(record)])
        trainer.fit(Module(), data)

What a step sees, in order:

==========  ==============================================================================================================
loss        of the last micro-batch, as it was back-propagated
metrics     ``trainer.callback_metrics``: everything that was logged so far
grads       as the optimizer left them: accumulated, unscaled, clipped
optimizer   ``optimizers``, a list, where there are several
model       the LightningModule
scaler      where the precision has one
scheduler   ``schedulers``, a list, where there are several
callbacks   the Modules that other callbacks hold, an averaged model say, by class and attribute
==========  ==============================================================================================================

Under automatic optimization that is the end of the batch that stepped: schedulers by step have advanced, and all other callbacks but those
that save checkpoints have had their turn. Under manual optimization it is the end of ``optimizer.step()``. docs/lightning.md says more.

Nothing else in golden imports Lightning.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from golden.errors import ScenarioFailed
from golden.recorder import Recorder, gradients

if TYPE_CHECKING:
    from lightning.pytorch import Callback, LightningModule, Trainer


def _library() -> str:
    """Lightning goes by two names: the one that the project has imported, else one that is installed."""
    names = ("lightning.pytorch", "pytorch_lightning")
    there = [name for name in names if name in sys.modules] or [name for name in names if find_spec(name.partition(".")[0])]
    return (there or names)[0]


if not TYPE_CHECKING:
    Callback = import_module(_library()).Callback


class GoldenCallback(Callback):
    """Records each optimizer step, and stops the fit after ``record.steps`` of them. Stands anywhere among the Trainer's callbacks.

    Changes no bit of the fit: registers nothing on Modules, copies and touches no gradient. Under manual optimization it registers torch's
    post hook on the optimizers, the one moment at which gradients and new weights are both there.

    Args:
        record: what the scenario was given.
    """

    def __init__(self, record: Recorder) -> None:
        self.record = record
        self._counted = 0  # trainer.global_step at the last record
        self._loss: Tensor | None = None  # manual optimization: what was back-propagated last
        self._waiting = False  # manual optimization with a scaler: an optimizer is to step, or to be skipped
        self._hooks: list[RemovableHandle] = []

    def phases(self, trainer: Trainer, pl_module: LightningModule) -> dict[str, Any]:
        """What a step sees beside its loss. Override it to leave out what no two runs share, a logged time say, or to add.

        Args:
            trainer: the Trainer.
            pl_module: the module that it fits.
        """
        return {"metrics": dict(trainer.callback_metrics), "grads": gradients(pl_module), **self.state(trainer, pl_module)}

    def state(self, trainer: Trainer, pl_module: LightningModule) -> dict[str, Any]:
        """The part of it that there is before the first step, recorded as step 0. May be overridden as well.

        Args:
            trainer: the Trainer.
            pl_module: the module that it fits.
        """
        schedulers = [config.scheduler for config in trainer.lr_scheduler_configs]
        return {
            **_one_or_more("optimizer", trainer.optimizers),
            "model": pl_module,
            **({} if trainer.scaler is None else {"scaler": trainer.scaler}),
            **_one_or_more("scheduler", schedulers),
            "callbacks": _held(_callbacks(trainer), pl_module),
        }

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Goes behind the callbacks that take part in the training, and before those that save it.

        Raises:
            ScenarioFailed: if the Trainer runs several processes, or elsewhere than the scenario.
        """
        if stage != "fit":
            return
        device, expected = trainer.strategy.root_device, self.record.device
        if trainer.world_size > 1:
            raise ScenarioFailed(f"the Trainer has {trainer.world_size} processes, and one can be recorded: give it devices=1")
        if device.type != expected.type:
            raise ScenarioFailed(f"the Trainer runs on {device}, the scenario on {expected}: give it accelerator=record.device.type")
        savers = trainer.checkpoint_callbacks
        others = [callback for callback in _callbacks(trainer) if callback is not self and callback not in savers]
        trainer.callbacks = [*others, self, *savers]  # type: ignore[attr-defined]  # a new list: Lightning walks through the old one

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Records step 0, unless an earlier fit of the scenario was recorded."""
        self._counted, self._loss, self._waiting = trainer.global_step, None, False
        if self.record.done < self.record.first:
            self.record.start(**self.state(trainer, pl_module))
        if not pl_module.automatic_optimization:
            self._hooks = [optimizer.register_step_post_hook(lambda *_: self._manual(trainer)) for optimizer in trainer.optimizers]

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Records the step of automatic optimization, if the batch made one."""
        if not pl_module.automatic_optimization:
            self._skipped(trainer)
        elif trainer.global_step > self._counted:
            self._counted = trainer.global_step
            self._step(trainer, outputs.get("loss") if isinstance(outputs, Mapping) else outputs)

    def on_before_backward(self, trainer: Trainer, pl_module: LightningModule, loss: Tensor) -> None:
        """Keeps the loss for a manual step: it comes before training_step has returned one."""
        if not pl_module.automatic_optimization:
            self._skipped(trainer)
            self._loss = loss.detach()

    def on_before_optimizer_step(self, trainer: Trainer, pl_module: LightningModule, optimizer: Optimizer) -> None:
        """Waits for a manual step that the scaler may skip."""
        if not pl_module.automatic_optimization:
            self._skipped(trainer)
            self._waiting = trainer.scaler is not None

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Leaves the optimizers as they were."""
        for hook in self._hooks:
            hook.remove()
        self._hooks, self._loss = [], None

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """As on_train_end."""
        self.on_train_end(trainer, pl_module)

    def _manual(self, trainer: Trainer) -> None:
        self._waiting = False
        self._step(trainer, self._loss)

    def _skipped(self, trainer: Trainer) -> None:
        """Records a step that the scaler skipped, which shows at the next thing that happens."""
        if self._waiting:
            self._manual(trainer)

    def _step(self, trainer: Trainer, loss: Tensor | None) -> None:
        """Records one step, if the run still has one."""
        if self.record.done < self.record.steps:
            self.record(loss=loss, **self.phases(trainer, trainer.lightning_module))
        if self.record.done == self.record.steps:
            trainer.should_stop = True


def _callbacks(trainer: Trainer) -> list[Callback]:
    """Those of a Trainer, in order: an attribute that its class does not declare."""
    found: list[Callback] = trainer.callbacks  # type: ignore[attr-defined]
    return found


def _one_or_more(name: str, values: list[Any]) -> dict[str, Any]:
    """``name`` for a single value, its plural for several."""
    if len(values) > 1:
        return {f"{name}s": list(values)}
    return {name: values[0]} if values else {}


def _held(callbacks: list[Callback], module: Module) -> dict[str, dict[str, Module]]:
    """Modules that are attributes of callbacks, without those of the module itself.

    Returns:
        By the callback's class (``EMAWeightAveraging``, the second of it ``EMAWeightAveraging-2``) and the attribute's name.
    """
    own = set(map(id, module.modules()))
    often: Counter[str] = Counter()
    found = {}
    for callback in callbacks:
        held = {name.strip("_"): value for name, value in vars(callback).items() if isinstance(value, Module) and id(value) not in own}
        if held:
            name = type(callback).__name__
            often[name] += 1
            found[name if often[name] == 1 else f"{name}-{often[name]}"] = held
    return found
