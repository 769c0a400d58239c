"""Forward, loss and backward of a training step, recorded as one CUDA graph for each shape of a batch, and replayed with the same bits."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal

import torch
from torch import Tensor, nn

from musgd.device import Device, UnsupportedError, is_captured, open_device
from musgd.recording import Recording, owned, record

KEPT = 2  # recordings; a training has one shape of batches, and perhaps another
FACTS = (Tensor.data_ptr, attrgetter("dtype"), attrgetter("requires_grad"))  # of a weight or a buffer, that a recording has baked in
ATTEMPTS = 3  # failures after which a shape is not tried again


class CaptureWarning(UserWarning):
    """A step is done eagerly although its recording was asked for."""


class CaptureError(RuntimeError):
    """The same, where that is an error. Nothing has been done."""


@dataclass(frozen=True, eq=False)
class Captured:
    """One recording and what belongs to it.

    Attributes:
        recording: reads the batch; its outputs are the losses, then the gradients.
        trained: the parameters that have gradients, in their order.
    """

    recording: Recording
    trained: list[nn.Parameter]

    @property
    def losses(self) -> Tensor:
        """(K,), of the last replay."""
        return self.recording.outputs[0]

    @property
    def gradients(self) -> list[Tensor]:
        """One for each trained parameter, of the last replay. The next one overwrites them."""
        return self.recording.outputs[1:]

    @cached_property
    def alike(self) -> bool:
        """Whether each gradient lies in memory as its parameter does, as autograd wants it."""
        return all(p.stride() == g.stride() for p, g in zip(self.trained, self.gradients, strict=True))

    def is_watched(self) -> bool:
        """Whether somebody is to be told where a parameter has got its gradient."""
        return any(p._post_accumulate_grad_hooks for p in self.trained)

    def hand_over(self) -> None:
        """Does what autograd does where nobody watches: takes each gradient as it is, or adds it."""
        kept, added = [], []
        for p, g in zip(self.trained, self.gradients, strict=True):
            if p.grad is None:
                p.grad = g.detach()  # an alias: who gives a gradient other memory does not take it from the recording
            else:
                kept.append(p.grad)
                added.append(g)
        if kept:
            torch._foreach_add_(kept, added)

    def part(self) -> None:
        """Gives parameters whose gradient is still that of the last replay, summed up or set to zero since, one of their own."""
        pairs = zip(self.trained, self.gradients, strict=True)
        sharing = [p for p, g in pairs if p.grad is not None and p.grad.data_ptr() == g.data_ptr() and g.numel()]
        if sharing:
            values = [p.grad for p in sharing if p.grad is not None]
            own = [torch.empty_like(value) for value in values]
            torch._foreach_copy_(own, values)
            for p, value in zip(sharing, own, strict=True):
                p.grad = value


class CapturedStep:
    """Does the forward, loss and backward of batches by replay, where it can.

    A shape is recorded when it comes a second time in a row: the last batch of an epoch, smaller than the others, never does, and is left
    to the caller, as is the first batch of all. A recording that fails puts the buffers and random states back, and touches no gradient.

    Args:
        module: whose parameters are trained, and whose buffers `losses` may change.
        losses: of a batch's tensors, none of which needs a gradient: (K,), the first one being what is back-propagated.
        seed: gradient of that one, such as 1 / n where gradients of n batches are summed up.
        on_fallback: "warn" (once a reason) or "raise" where a batch should have been replayed and cannot be.
        opens: what records on a device.

    Attributes:
        recordings: made so far.
        replays: batches done so far.
        fallbacks: batches so far that should have been replayed and were not.
    """

    def __init__(
        self,
        module: nn.Module,
        losses: Callable[..., Tensor],
        seed: float = 1.0,
        on_fallback: Literal["warn", "raise"] = "warn",
        opens: Callable[[torch.device], Device] = open_device,
    ) -> None:
        self.module, self.seed, self.on_fallback = module, seed, on_fallback
        self.recordings = self.replays = self.fallbacks = 0
        self._losses, self._opens = losses, opens
        self._modules = list(module.modules())
        self._parameters = list(module.parameters())
        self._places = [(owner, name) for owner in self._modules for name, _ in owner.named_buffers(recurse=False)]
        self._devices: dict[torch.device, Device] = {}
        self._kept: OrderedDict[Hashable, Captured] = OrderedDict()
        self._failures: dict[Hashable, int] = {}
        self._last: Hashable = None
        self._warned: set[str] = set()

    def __call__(self, *batch: Tensor) -> Tensor | None:
        """The losses (K,) of a batch, of which the first is to be back-propagated, with `seed`; None: do it eagerly.

        By `backward()`, once: the weights are not in its graph, so that `torch.autograd.grad` finds none of them.

        Raises:
            CaptureError: it should have been replayed and cannot be, and that is an error.
        """
        key = self._key(batch)
        again, self._last = key == self._last or key in self._kept, key
        if not again:
            return None
        try:
            captured = self._find(key, batch)
            for kept in self._kept.values():  # they share their memory
                kept.part()
            captured.recording.replay(batch)
        except Exception as cause:
            self._drop(key)
            self._fall_back(cause)
            return None
        self.replays += 1
        straight = captured.alike and not captured.is_watched()
        asked = [torch.empty(0, device=captured.losses.device, requires_grad=True)] if straight else captured.trained
        losses: Tensor = _Step.apply(captured, self, straight, *asked)  # type: ignore[no-untyped-call]
        return losses

    def release(self) -> None:
        """Gives up every recording and its memory; the next batches are recorded anew."""
        for key in list(self._kept):
            self._drop(key)
        while self._devices:
            self._devices.popitem()[1].tidy()
        self._failures.clear()
        self._last = None

    def _key(self, batch: Sequence[Tensor]) -> Hashable:
        """All that a recording has baked in."""
        device = batch[0].device.type
        tensors = [*self._parameters, *self._buffers()]
        return (
            tuple((x.shape, x.dtype, x.device) for x in batch),
            *(tuple(map(fact, tensors)) for fact in FACTS),
            self._is_hooked(),
            tuple(module.training for module in self._modules),
            (torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)),
            (torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32),
            (torch.backends.cuda.matmul.allow_tf32, torch.is_grad_enabled(), self.seed),
        )

    def _is_hooked(self) -> bool:
        """Whether a weight has a hook of its own, which a recording would hold, and which autograd would call once more."""
        return any(p._backward_hooks for p in self._parameters)

    def _buffers(self) -> list[Tensor]:
        """A module moved to another device has other buffers, but the same parameters."""
        return [owner._buffers[name] for owner, name in self._places]  # type: ignore[misc]  # None is no named buffer

    def _find(self, key: Hashable, batch: Sequence[Tensor]) -> Captured:
        if key not in self._kept:
            while len(self._kept) >= KEPT:
                self._drop(next(iter(self._kept)))
            self._kept[key] = self._record(key, batch)
            self.recordings += 1
        self._kept.move_to_end(key)
        return self._kept[key]

    def _record(self, key: Hashable, batch: Sequence[Tensor]) -> Captured:
        if self._failures.get(key, 0) >= ATTEMPTS:
            raise UnsupportedError(f"given up after {ATTEMPTS} failures")
        self._failures[key] = self._failures.get(key, 0) + 1
        if is_captured():
            raise UnsupportedError("somebody else is capturing this step")
        if self._is_hooked():
            raise UnsupportedError("a weight has a hook on its gradient (register_hook)")
        device = batch[0].device
        if device not in self._devices:
            self._devices[device] = self._opens(device)
        inputs = owned(list(batch))
        parameters = [p for p in self._parameters if p.requires_grad]
        buffers = [b for b in self._buffers() if b.numel()]
        found: list[bool] = []

        def work() -> list[Tensor]:
            losses, gradients = self._work(inputs, parameters)
            found[:] = [g is not None for g in gradients]
            return [losses, *(g for g in gradients if g is not None)]

        with _random_states(device):
            recording = record(self._devices[device], work, inputs, buffers)
        del self._failures[key]
        return Captured(recording, [p for p, is_found in zip(parameters, found, strict=True) if is_found])

    def _work(self, inputs: list[Tensor], parameters: list[nn.Parameter]) -> tuple[Tensor, tuple[Tensor | None, ...]]:
        """Forward, loss, backward: as eager training does them, the backward outside of autocast."""
        # Weights that autocast has cast before would be read where they are then; those cast here must not be read later.
        torch.clear_autocast_cache()
        with torch.enable_grad():
            losses = self._losses(*inputs)
            with torch.autocast(inputs[0].device.type, enabled=False):
                seed = torch.ones_like(losses[0]).mul_(self.seed)
                gradients = torch.autograd.grad(losses[0], parameters, seed, allow_unused=True)
        torch.clear_autocast_cache()
        return losses.detach(), gradients

    def _drop(self, key: Hashable) -> None:
        captured = self._kept.pop(key, None)
        if captured is not None:
            captured.recording.release()

    def _fall_back(self, cause: Exception) -> None:
        reason = str(cause).strip() or type(cause).__name__
        text = f"this step cannot be replayed: {reason}"
        if self.on_fallback == "raise":
            raise CaptureError(f"{text}; train what can, or let on_fallback be 'warn'") from cause
        self.fallbacks += 1
        if reason not in self._warned:
            self._warned.add(reason)
            warnings.warn(f"{text}; it is done eagerly, with the same bits", CaptureWarning, stacklevel=3)


class _Step(torch.autograd.Function):
    """Puts the gradients that a replay has computed where they belong: `straight`, or by autograd, which tells those who watch."""

    @staticmethod
    def forward(ctx: Any, captured: Captured, step: CapturedStep, straight: bool, *asked: Tensor) -> Tensor:
        ctx.captured, ctx.step, ctx.straight, ctx.replays = captured, step, straight, step.replays
        ctx.is_spent = False
        return captured.losses.clone()

    @staticmethod
    def backward(ctx: Any, *outputs: Any) -> tuple[Tensor | None, ...]:
        captured: Captured = ctx.captured
        if ctx.step.replays != ctx.replays:
            raise CaptureError("another batch was replayed before this one's backward: its gradients are gone")
        if ctx.is_spent:
            raise CaptureError("this batch's gradients have been taken already: a recorded batch has one backward")
        ctx.is_spent = True
        if ctx.straight:
            captured.hand_over()
            return None, None, None, None
        # Aliases, which autograd keeps as the gradients themselves: nothing is copied. `part` looks after them.
        return None, None, None, *(g.detach() for g in captured.gradients)


@contextmanager
def _random_states(device: torch.device) -> Iterator[None]:
    """Puts the random states back that recording draws from."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield
