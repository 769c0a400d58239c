"""The preparation by the kernels of kernels.py: the order of launches, and when it is taken.

Elements are taken in the order of storage. A weight whose first dimension has the longest stride is so a matrix whose columns are permuted
at most (channels_last), and what is orthogonalised is permuted likewise.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from musgd.coefficients import Live
from musgd.device import mark_written
from musgd.tables import CHUNK, TABLES, TILE, Key, Tables, tables
from musgd.update import ABC, EPSILON, STEPS, Form, Inputs, Orthogonalize, Tensors, scale_factor

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_REASONS: dict[torch.device, str | None] = {}


def addresses(inputs: Inputs) -> Tensor:
    """Addresses of W, g, m and v on the device, int64 (n, 4); 0 in place of m where there is none."""
    m = [*map(Tensor.data_ptr, inputs.m), *[0] * (len(inputs.W) - len(inputs.m))]
    W, g, v = (map(Tensor.data_ptr, tensors) for tensors in (inputs.W, inputs.g, inputs.v))
    values = [value for row in zip(W, g, m, v, strict=True) for value in row]
    device = inputs.W[0].device
    if device.type == "cpu":
        return torch.tensor(values)
    if not torch.cuda.is_current_stream_capturing():
        # torch keeps pinned memory until the copy has read it, so the buffer may go at once.
        return torch.tensor(values, pin_memory=True).to(device, non_blocking=True)
    # A graph must not copy from memory that may be gone when it is replayed: the numbers become arguments of its kernels.
    out = torch.zeros(len(values), dtype=torch.int64, device=device)
    torch._foreach_add_(list(out.unbind()), values)
    return out


def takes(inputs: Inputs, form: Form) -> bool:
    """Whether the kernels do this preparation: device, dtype, size, and a layout in which matrices are matrices.

    In somebody else's capture only what was done outside one before: nothing can be compiled or brought to the device there.
    """
    device = inputs.W[0].device
    if device.type != "cuda" or not suits(inputs):
        return False
    if torch.cuda.is_current_stream_capturing() and not (device in _REASONS and _key(inputs, form) in TABLES):
        return False
    return why_not(device) is None


def suits(inputs: Inputs) -> bool:
    """Whether these tensors are such that the kernels can take them, on whatever device."""
    return inputs.W[0].dtype in DTYPES and all(p.numel() < 2**31 - CHUNK and _is_plain(p) for p in inputs.W)


def _key(inputs: Inputs, form: Form) -> Key:
    s = tuple(scale_factor(x.shape, form.scale) for x in inputs.m)
    return tuple(tuple(p.shape) for p in inputs.W), s, inputs.W[0].device


class Packed:
    """A `Preparation` in as few launches as its operations depend on one another; u and o are one tensor each."""

    def __init__(self, inputs: Inputs, form: Form, flat: Tensor | None = None) -> None:
        """Bring the tables to the device: nothing that follows copies anything there.

        Args:
            inputs: Tensors that `suits` accepts. Held, since the device is told their addresses.
            form: What to compute.
            flat: Where the updates go; new memory each time where None.
        """
        self.inputs, self.form, self.flat = inputs, form, flat
        self.tables = tables(*_key(inputs, form))
        self.addresses = addresses(inputs)
        self._versioned = [p for p in inputs.W if not p.is_inference()]

    @classmethod
    def owning(cls, inputs: Inputs, form: Form) -> Packed:
        """One that has copies of the gradients, and puts each update where its gradient was: `inputs.g` are both.

        Every element is read before it is written, by the one thread that does either.
        """
        t = tables(*_key(inputs, form))
        flat = torch.empty(t.sizes[0], dtype=inputs.W[0].dtype, device=inputs.W[0].device)
        g = _views(flat, inputs.W, t)
        torch._foreach_copy_(g, inputs.g)
        return cls(Inputs(inputs.W, g, inputs.m, inputs.v), form, flat)

    @property
    def orthogonalize(self) -> Orthogonalize:
        """See `Preparation`."""
        return functools.partial(orthogonalize_packed, tables=self.tables)

    def blank(self) -> list[Tensor]:
        """See `Preparation`."""
        return [torch.zeros(self.tables.sizes[1], dtype=torch.bfloat16, device=self.inputs.W[0].device)]

    def advance(self, c: Live) -> tuple[list[Tensor], list[Tensor]]:
        """See `Preparation`."""
        t, form, W = self.tables, self.form, self.inputs.W
        if self.flat is None:
            updates, room = torch.empty(t.sizes[0], dtype=W[0].dtype, device=W[0].device), t.sizes[1]
        else:  # A recording's: with all behind u that orthogonalising takes, its pool reserves but one segment, and no larger than that.
            updates, room = self.flat, t.sizes[1] + sum(t.behind)
        u = torch.empty(room, dtype=torch.bfloat16, device=W[0].device)
        if len(t.chunks):
            _launch("advance", len(t.chunks), self.addresses, t.meta, t.chunks, c.vector, updates, u,
                    HYBRID=form.use_muon, NESTEROV=form.nesterov, DECAYS=form.decays, MAXIMIZE=form.maximize, CHUNK=CHUNK)  # fmt: skip
        return _views(updates, W, t), [u] if self.inputs.m else []

    def combine(self, updates: list[Tensor], o: list[Tensor], c: Live) -> None:
        """See `Preparation`. The updates are those that `advance` returned: views of one tensor, of which the first is the beginning."""
        t = self.tables
        _launch("combine", t.matrix_chunks, o[0], t.meta, t.scales, t.chunks, c.vector, _flat(updates, t), CHUNK=CHUNK)

    def write(self, updates: list[Tensor], lr: float) -> None:
        """See `Preparation`. The updates as in `combine`. Autograd is told: what was saved of these weights is not to be used any more."""
        t = self.tables
        if len(t.chunks):
            _launch("write", len(t.chunks), self.addresses, t.meta, t.chunks, _flat(updates, t), -lr, CHUNK=CHUNK)
        mark_written(self._versioned)


def orthogonalize_packed(u: Tensors, tables: Tables) -> list[Tensor]:
    """Orthogonalise all matrices of u, in the steps of `update.orthogonalize`; bfloat16 in the layout of X, s not yet applied.

    u is one tensor. Where it is longer than u itself, what lies behind it is memory for X, A, B and the sums. That of u serves as the
    second X, and is what is returned.
    """
    t, (memory,) = tables, u
    flat, block = memory[: t.sizes[1]], memory[t.sizes[1] :]
    if not len(block):
        block = torch.empty(sum(t.behind), dtype=torch.bfloat16, device=memory.device)
    X, A, B, rest = torch.split(block, t.behind)
    sums, Y = rest.view(torch.float32), flat
    a, b, c = ABC
    shared = {"TILE": TILE, "WIDE": memory.device.type == "cpu"}
    _launch("square", t.matrix_chunks, flat, t.meta, t.chunks, sums, CHUNK=CHUNK)
    _launch("normalise", len(t.stretches), flat, t.meta, t.stretches, sums, X, epsilon=EPSILON, CHUNK=CHUNK)
    for _ in range(STEPS):
        _launch("gram", len(t.squares), X, A, t.meta, t.squares, num_stages=4, **shared)
        _launch("polynomial", len(t.squares), A, B, t.meta, t.squares, b=b, c=c, num_stages=2, **shared)
        _launch("apply", len(t.tiles), B, X, Y, t.meta, t.tiles, a=a, num_stages=2, **shared)
        X, Y = Y, X
    return [X]


def _views(flat: Tensor, like: Tensors, t: Tables) -> list[Tensor]:
    return [flat.as_strided(p.shape, p.stride(), offset) for p, offset in zip(like, t.offsets, strict=True)]


def _flat(updates: list[Tensor], t: Tables) -> Tensor:
    """The one tensor of which all updates are views."""
    return updates[0].as_strided((t.sizes[0],), (1,))


def _launch(name: str, programs: int, first: Tensor, *others: Tensor | float, **options: Any) -> None:
    from musgd import kernels

    kernel = getattr(kernels, name)
    if first.device.type == "cpu":
        kernel[(programs,)](first, *others, **options)
        return
    with torch.cuda.device(first.device):
        kernel[(programs,)](first, *others, num_warps=4, **options)


def why_not(device: torch.device) -> str | None:
    """Why the kernels do not run on that device, or None where they do: tried once, on a small tensor.

    A machine without Triton or without the C compiler that Triton asks for takes torch's operations instead.
    """
    if device not in _REASONS:
        _REASONS[device] = _try(device)
    return _REASONS[device]


def _try(device: torch.device) -> str | None:
    if device.type != "cuda" or torch.version.hip is not None:
        return f"there are no kernels for {device.type}"
    if torch.cuda.get_device_capability(device) < (8, 0):
        return "the device has no bfloat16 matrix units"
    form = Form(use_muon=True, nesterov=True, decays=True, maximize=False, scale="matrix")
    try:
        with torch.inference_mode(False), torch.no_grad():
            W, g, m, v = (torch.ones(2, 3, device=device) for _ in range(4))
            live = Live(device, torch.float32)
            live.vector.fill_(0.5)
            packed = Packed(Inputs([W], [g], [m], [v]), form)
            updates, u = packed.advance(live)
            packed.combine(updates, packed.orthogonalize(u), live)
            packed.write(updates, 0.5)
            torch.cuda.synchronize(device)
    except Exception as cause:  # Triton has no family of errors: a compiler that is missing shows as any of them
        return f"{type(cause).__name__}: {cause}".splitlines()[0]
    return None


def _is_plain(p: Tensor) -> bool:
    if p.is_contiguous():
        return True
    return (p.dim() == 4 and p.is_contiguous(memory_format=torch.channels_last)) or (
        p.dim() == 5 and p.is_contiguous(memory_format=torch.channels_last_3d)
    )
