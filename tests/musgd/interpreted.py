"""Runs the kernels in Triton's interpreter on the CPU, against torch's operations, in a process of its own.

Prints one line a case: how far the updates of matrices, those of the rest, and the momenta are off. Exits with 1 where one is far.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"

import sys

import torch
from torch import Tensor

from musgd.coefficients import Coefficients, Live
from musgd.packed import Packed, suits
from musgd.update import Form, Inputs, Plain, is_matrix, prepare

SHAPES = ((8, 3, 3, 3), (70, 5), (5, 70), (130, 66, 1, 1), (16, 200), (1, 9), (9, 1), (64, 64), (7,), (), (0,), (2000,))


def inputs(dtype: torch.dtype, use_muon: bool, channels_last: bool) -> Inputs:
    """Random tensors, the same ones each time."""
    generator = torch.Generator().manual_seed(3)
    lists: list[list[Tensor]] = []
    for _ in range(4):
        xs = [torch.randn(shape, generator=generator).to(dtype) for shape in SHAPES]
        lists.append([x.contiguous(memory_format=torch.channels_last) if channels_last and x.dim() == 4 else x for x in xs])
    W, g, m, v = lists
    return Inputs(W, g, [x for x in m if is_matrix(x)] if use_muon else [], v)


def live(dtype: torch.dtype) -> Live:
    """As CUDA has it: float32."""
    made = Live(torch.device("cpu"), dtype)
    made.vector = made.vector.float()
    made.beta, made.rest, made.decay, made.muon, made.sgd = made._each = list(made.vector.unbind())
    made.write(Coefficients(beta=0.9, decay=0.1, muon=0.3, sgd=0.7))
    return made


def writes(packed: Packed, updates: list[Tensor]) -> bool:
    """Whether the kernel's write is foreach's but for the one rounding that the interpreter does more, and counts as a write."""
    W, versions = packed.inputs.W, [p._version for p in packed.inputs.W]
    expected = [p.double() - 0.3 * x.double() for p, x in zip(W, updates, strict=True)]
    packed.write(updates, 0.3)
    near = all(torch.allclose(p.double(), x, rtol=3 * torch.finfo(p.dtype).eps, atol=1e-3) for p, x in zip(W, expected, strict=True))
    return near and [p._version for p in W] == [version + 1 for version in versions]


def far(a: list[Tensor], b: list[Tensor]) -> float:
    """The largest distance of two tensors over the norm of the second."""
    return max(float((x.double() - y.double()).norm() / (y.double().norm() + 1e-30)) for x, y in zip(a, b, strict=True))


def main() -> int:
    """0 where all are near."""
    worst = 0
    wrongly = "wrong" in sys.argv
    for dtype, near in ((torch.float32, 1e-6), (torch.bfloat16, 1.2e-2), (torch.float16, 1.5e-3)):
        for use_muon, nesterov, decays, maximize, channels_last in (
            (True, True, True, False, False),
            (True, False, False, True, True),
            (False, True, True, True, False),
            (False, False, False, False, True),
        ):
            form = Form(use_muon=use_muon, nesterov=nesterov, decays=decays, maximize=maximize, scale="matrix")
            ours, theirs = (inputs(dtype, use_muon, channels_last) for _ in range(2))
            assert suits(ours)
            c = live(dtype)
            packed = Packed(ours, form) if nesterov else Packed.owning(ours, form)
            updates = prepare(packed, c)
            if wrongly:
                theirs.g[2].neg_()
            expected = prepare(Plain(theirs, form), c)
            assert [x.stride() for x in updates] == [x.stride() for x in theirs.W]
            first = len(ours.m)
            distances = far(updates[:first], expected[:first]) if first else 0.0, far(updates[first:], expected[first:])
            momenta = far([*ours.m, *ours.v], [*theirs.m, *theirs.v])
            wrong = distances[0] > 0.05 or distances[1] > near or momenta > near or not writes(packed, updates)
            worst += wrong
            print(f"{dtype} {form} {distances[0]:.2e} {distances[1]:.2e} {momenta:.2e}{' FAR' if wrong else ''}")  # noqa: T201
    return int(worst > 0)


if __name__ == "__main__":
    sys.exit(main())
