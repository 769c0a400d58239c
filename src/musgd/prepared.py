"""Preparations that were recorded whole, with the numbers they read and what they hold on to."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from musgd.bucket import are, lie
from musgd.coefficients import Coefficients, Live
from musgd.device import Device
from musgd.recording import Recording, owned, record
from musgd.update import Form, Inputs, Plain, Preparation, prepare


def choose(inputs: Inputs, form: Form) -> Preparation:
    """The preparation that these inputs take, eagerly and recorded alike."""
    return Plain(inputs, form)


def precision() -> tuple[bool, ...]:
    """The switches of torch that a recording has baked in."""
    return (
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction,
        torch.are_deterministic_algorithms_enabled(),
        torch.utils.deterministic.fill_uninitialized_memory,  # type: ignore[attr-defined]
    )


@dataclass(frozen=True, eq=False)
class Momenta:
    """The momenta of a bucket where they lay when they were read.

    Attributes:
        tensors: Muon momenta, then SGD momenta.
        states: The state of each one's parameter.
        keys: Its key there.
    """

    tensors: list[Tensor]
    states: list[dict[str, Any]]
    keys: list[str]
    addresses: list[int]

    @classmethod
    def of(cls, states: list[dict[str, Any]], keys: list[str]) -> Momenta:
        """Those that the states hold now."""
        tensors = [state[key] for state, key in zip(states, keys, strict=True)]
        return cls(tensors, states, keys, list(map(Tensor.data_ptr, tensors)))

    def are_there(self) -> bool:
        """Whether the states still hold these tensors, unmoved. Costs about 0.1 us a tensor."""
        held = list(map(dict.get, self.states, self.keys))
        return are(held, self.tensors) and list(map(Tensor.data_ptr, self.tensors)) == self.addresses

    def facts(self) -> Hashable:
        """Which these are, and how they lie."""
        return tuple(map(id, self.tensors)), lie(self.tensors)


@dataclass(frozen=True, eq=False)
class Prepared:
    """One bucket's whole preparation, recorded.

    Attributes:
        recording: Reads gradients; its outputs are the updates.
        live: The numbers that it reads.
        form: What it was recorded for, as are momenta and precision.
    """

    recording: Recording
    live: Live
    form: Form
    momenta: Momenta
    precision: tuple[bool, ...]

    @property
    def driver_bytes(self) -> int:
        """See `Recording`."""
        return self.recording.driver_bytes

    @classmethod
    @torch.no_grad()
    def make(cls, device: Device, inputs: Inputs, momenta: Momenta, c: Coefficients, form: Form) -> Prepared:
        """Record; the momenta are as they were before, and the gradients only read."""
        with torch.inference_mode(False), torch.no_grad(), torch.autocast(inputs.W[0].device.type, enabled=False):
            g = owned(inputs.g)
            live = Live(g[0].device, g[0].dtype)
            live.write(c)
            preparation = choose(Inputs(inputs.W, g, inputs.m, inputs.v), form)
            recording = record(device, lambda: prepare(preparation, live), g, momenta.tensors)
        return cls(recording, live, form, momenta, precision())

    def fits(self, form: Form) -> bool:
        """Whether it does what would be recorded now, the parameters being the same."""
        return form == self.form and precision() == self.precision and self.momenta.are_there()

    def replay(self, gradients: list[Tensor], c: Coefficients) -> list[Tensor]:
        """The updates for these gradients and numbers, with the momenta advanced."""
        self.live.write(c)
        return self.recording.replay(gradients)

    def release(self) -> None:
        """Give up the recording."""
        self.recording.release()
