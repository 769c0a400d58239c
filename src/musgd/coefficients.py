"""The numbers of an update: as the groups hold them, and on the device, where recordings read them."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Coefficients:
    """The numbers of one preparation, which may be others at every step.

    Attributes:
        beta: Decay of both momenta a step.
        decay: Weight decay lambda, on the SGD half alone.
        muon: Weight of the orthogonalised half.
        sgd: Weight of the SGD half.
    """

    beta: float
    decay: float
    muon: float
    sgd: float


class Live:
    """Coefficients on a device: a preparation reads them there, so that a recording of it takes new ones at each replay.

    Attributes:
        beta, rest, decay, muon, sgd: 0-dim views of one vector; rest is 1 - beta, rounded once. float64 on CPUs, where they are read
            back as the numbers they were; else the precision that a kernel would round a Python number to.
        vector: All five, in this order.
    """

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        wide = torch.float64 if device.type == "cpu" else torch.promote_types(dtype, torch.float32)
        self.vector = torch.empty(5, dtype=wide, device=device)
        # gate: equivalent [decay-place] two assignments that read nothing of one another
        self.beta, self.rest, self.decay, self.muon, self.sgd = self._each = list(self.vector.unbind())
        self._written: bytes | None = None

    def write(self, c: Coefficients) -> None:
        """Set the numbers where they differ from those written last. They travel as arguments of a kernel: no copy, no synchronisation."""
        values = [c.beta, 1 - c.beta, c.decay, c.muon, c.sgd]
        bits = struct.pack("5d", *values)
        if bits != self._written:
            self.vector.fill_(1.0)
            torch._foreach_mul_(self._each, [float(value) for value in values])
            self._written = bits
