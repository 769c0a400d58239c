"""Preparations that were recorded whole, with the numbers they read and what they hold on to."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from musgd.coefficients import Coefficients, Live
from musgd.device import Device
from musgd.momenta import Momenta
from musgd.packed import Packed, takes
from musgd.recording import Recording, owned, record
from musgd.update import Form, Inputs, Plain, Preparation, prepare


def choose(inputs: Inputs, form: Form) -> Preparation:
    """The preparation that these inputs take, eagerly and recorded alike."""
    return Packed(inputs, form) if takes(inputs, form) else Plain(inputs, form)


def own(inputs: Inputs, form: Form) -> tuple[Preparation, list[Tensor]]:
    """The same on copies of the gradients, and those copies."""
    if takes(inputs, form):
        packed = Packed.owning(inputs, form)
        return packed, list(packed.inputs.g)
    g = owned(inputs.g)
    return Plain(Inputs(inputs.W, g, inputs.m, inputs.v), form), g


def precision() -> tuple[bool, ...]:
    """The switches of torch that a recording has baked in."""
    return (
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction,
        torch.are_deterministic_algorithms_enabled(),
        torch.utils.deterministic.fill_uninitialized_memory,  # type: ignore[attr-defined]
    )


@dataclass(frozen=True, eq=False)
class Prepared:
    """One bucket's whole preparation, recorded.

    Attributes:
        recording: Reads gradients; its outputs are the updates.
        preparation: What was recorded.
        live: The numbers that it reads.
        form: What it was recorded for, as are momenta and precision.
    """

    recording: Recording
    preparation: Preparation
    live: Live
    form: Form
    momenta: Momenta
    precision: tuple[bool, ...]

    @property
    def driver_bytes(self) -> int:
        """See `Recording`."""
        return self.recording.driver_bytes

    @classmethod
    @torch.no_grad()  # gate: equivalent [guard-dropped] all that makes tensors stands in a block that switches gradients off too
    def make(cls, device: Device, inputs: Inputs, momenta: Momenta, c: Coefficients, form: Form) -> Prepared:
        """Record; the momenta are as they were before, and the gradients only read."""
        device.tidy()  # else what is kept from now on lies in memory that was reserved for larger things, which then reserve more
        with torch.inference_mode(False), torch.no_grad(), torch.autocast(inputs.W[0].device.type, enabled=False):
            preparation, g = own(inputs, form)
            live = Live(g[0].device, g[0].dtype)
            live.write(c)
            recording = record(device, lambda: prepare(preparation, live), g, momenta.tensors)
        return cls(recording, preparation, live, form, momenta, precision())

    def fits(self, form: Form) -> bool:
        """Whether it does what would be recorded now, the parameters being the same."""
        return form == self.form and precision() == self.precision and self.momenta.are_there()

    def replay(self, gradients: list[Tensor] | None, c: Coefficients) -> list[Tensor]:
        """The updates for these gradients (None: those that the recording has taken) and numbers, with the momenta advanced."""
        self.live.write(c)
        return self.recording.launch() if gradients is None else self.recording.replay(gradients)

    def write(self, lr: float) -> None:
        """Move the weights by what the last replay came to."""
        self.preparation.write(self.recording.outputs, lr)

    def release(self) -> None:
        """Give up the recording."""
        self.recording.release()
