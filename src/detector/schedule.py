"""How learning rate and momentum change from step to step."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler


@dataclass(frozen=True)
class Plan:
    """Warm-up, then half a cosine.

    Attributes:
        steps: of the whole training, at least 1.
        warmup: steps until learning rate and momentum are what they are to be.
        floor: the last learning rate, as a part of the highest.
        momentum: at the first step and after the warm-up.
    """

    steps: int
    warmup: int
    floor: float
    momentum: tuple[float, float]

    def rate(self, step: int) -> float:
        """Factor on the learning rate of a step, counted from 0."""
        if step < self.warmup:
            return (step + 1) / (self.warmup + 1)
        done = min(1.0, (step - self.warmup) / max(1, self.steps - self.warmup))
        return self.floor + (1 - self.floor) * (1 + math.cos(math.pi * done)) / 2

    def momentum_at(self, step: int) -> float:
        """Momentum of a step."""
        first, last = self.momentum
        return first + (last - first) * min(1.0, step / max(1, self.warmup))


class Schedule(LRScheduler):
    """Sets both in every group of an optimizer by a plan; to be stepped after each of the optimizer's steps."""

    def __init__(self, optimizer: Optimizer, plan: Plan) -> None:
        self.plan = plan
        super().__init__(optimizer)

    def get_lr(self) -> list[float | Tensor]:
        """The groups' learning rates; momentum is set on the way."""
        for group in self.optimizer.param_groups:
            group["momentum"] = self.plan.momentum_at(self.last_epoch)
        return [base * self.plan.rate(self.last_epoch) for base in self.base_lrs]

    def state_dict(self) -> dict[str, object]:
        """What torch keeps, without the plan: that is the training's own."""
        return {key: value for key, value in super().state_dict().items() if key != "plan"}
