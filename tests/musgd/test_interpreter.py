"""The kernels in Triton's interpreter within this process, on few small tensors: fast enough to be asked of every planted fault.

test_kernels.py asks the same of more shapes and dtypes, in a process of its own.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

import musgd
from musgd.packed import Packed, suits
from musgd.update import Form, Inputs, Plain, is_matrix, prepare

_KEPT = os.environ.get("TRITON_INTERPRET")
from tests.musgd.interpreted import far, live, writes  # noqa: E402  (sets the variable for its own process)

if _KEPT is None:
    del os.environ["TRITON_INTERPRET"]

pytest.importorskip("triton")
SHAPES = ((3, 2, 1, 2), (70, 5), (5, 70), (1, 9), (7,), (), (0,), (1100,))
FORMS = [
    Form(use_muon=use_muon, nesterov=nesterov, decays=decays, maximize=maximize, scale="matrix")
    for use_muon, nesterov, decays, maximize in (
        (True, True, True, False), (True, False, False, True), (False, True, True, True), (False, False, False, False),
    )
]  # fmt: skip


def _ours(module: str) -> bool:
    """Python's part of Triton, which decides when it is imported whether it interprets; its library stays."""
    return module == "musgd.kernels" or (module.split(".")[0] == "triton" and not module.startswith("triton._C"))


@pytest.fixture(autouse=True, scope="module")
def _interpreted() -> Iterator[None]:
    """Kernels, and a Triton of their own, made anew to be interpreted; what was there comes back afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        for name in [name for name in sys.modules if _ours(name)]:
            patch.delitem(sys.modules, name)
        patch.setattr(musgd, "kernels", importlib.import_module("musgd.kernels"), raising=False)
        yield
        for name in [name for name in sys.modules if _ours(name)]:
            del sys.modules[name]


def inputs(dtype: torch.dtype, use_muon: bool) -> Inputs:
    generator = torch.Generator().manual_seed(3)
    W, g, m, v = ([torch.randn(shape, generator=generator).to(dtype) for shape in SHAPES] for _ in range(4))
    return Inputs(W, g, [x for x in m if is_matrix(x)] if use_muon else [], v)


def compared(form: Form, owning: bool) -> tuple[Packed, list[Tensor], list[Tensor], Inputs, Inputs]:
    """Ours, our updates, those of torch's operations, and both inputs."""
    ours, theirs = inputs(torch.float32, form.use_muon), inputs(torch.float32, form.use_muon)
    assert suits(ours)
    packed = Packed.owning(ours, form) if owning else Packed(ours, form)
    c = live(torch.float32)
    return packed, prepare(packed, c), prepare(Plain(theirs, form), c), ours, theirs


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("owning", [False, True])
def test_small_tensors_have_the_updates_of_the_operations(form: Form, owning: bool) -> None:
    packed, updates, expected, ours, theirs = compared(form, owning)
    assert [x.stride() for x in updates] == [x.stride() for x in theirs.W]
    matrices = len(ours.m)
    assert not matrices or far(updates[:matrices], expected[:matrices]) < 0.02
    assert far(updates[matrices:], expected[matrices:]) < 1e-6
    assert far([*ours.m, *ours.v], [*theirs.m, *theirs.v]) < 1e-6
    assert [torch.equal(x, y) for x, y in zip(ours.g, theirs.g, strict=True)] == [True] * len(SHAPES), "gradients are read alone"
    assert writes(packed, updates)


def test_another_gradient_would_be_noticed() -> None:
    _, updates, expected, _, _ = compared(FORMS[3], False)
    expected[1].neg_()
    assert far(updates, expected) > 0.1
