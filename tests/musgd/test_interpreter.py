"""The kernels in Triton's interpreter within this process, on few small tensors: fast enough to be asked of every planted fault.

test_kernels.py asks the same of more shapes and dtypes, in a process of its own.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import musgd
from musgd.packed import Packed, _launch, suits
from musgd.tables import CHUNK, TILE, Column, Tables, tables
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


# Several tiles each way, a tall one, a row, and what is no matrix; no two have anything in common.
PARTS = ((66, 130), (70, 5), (1, 9), (7,))
FENCE = 2048
DTYPES = (torch.float32, torch.bfloat16)


class Fenced:
    """Memory between two fences, which stay as they are; NaN shows where one is read, 7 where one is written."""

    def __init__(self, values: Tensor, fence: float = 7.0) -> None:
        self.all = torch.full((values.numel() + 2 * FENCE,), fence, dtype=values.dtype)
        self.here = self.all[FENCE : FENCE + values.numel()].view(values.shape)
        self.here.copy_(values)
        self.fence = fence

    def whole(self) -> bool:
        ends = torch.cat([self.all[:FENCE], self.all[-FENCE:]])
        return bool((ends.isnan() if self.fence != self.fence else ends == self.fence).all())


def rounded(x: Tensor, dtype: torch.dtype) -> Tensor:
    """float32 in a dtype as the interpreter rounds it: bfloat16 towards zero in some versions, unlike every GPU."""
    return (x.view(torch.int32) & -65536).view(torch.float32).to(dtype) if dtype == torch.bfloat16 and _cuts() else x.to(dtype)


@functools.cache
def _cuts() -> bool:
    """Shown by writing one and three quarters of a bfloat16 step."""
    t, one = tables(((),), (), torch.device("cpu")), torch.ones((), dtype=torch.bfloat16)
    updates = torch.ones(t.sizes[0], dtype=torch.bfloat16)
    _launch("write", 1, torch.tensor([[one.data_ptr(), 0, 0, 0]]), t.meta, t.chunks, updates, 1.75 / 128, CHUNK=CHUNK)
    return one.item() == 1 + 1 / 128


def numbers(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 5) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def small(*shape: int, seed: int = 5) -> Tensor:
    """Whole numbers, of which sums of products are exact."""
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(seed)).to(torch.bfloat16)


def parts() -> Tables:
    return tables(PARTS, (2.0, 0.5, 1.5), torch.device("cpu"))


def matrices(t: Tables) -> list[dict[str, int]]:
    """The rows of the table, by name."""
    return [{column.name: int(row[column]) for column in Column} for row in t.meta[: len(t.scales)]]


def block(flat: Tensor, start: int, rows: int, columns: int) -> Tensor:
    return flat[start : start + rows * columns].view(rows, columns)


@pytest.fixture
def _true_hints(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the compiler is told of divisibility is so."""

    def checked(self: Any, key: str, value: Any) -> None:
        assert key == "tt.divisibility"
        divisors: Any = value if isinstance(value, (list, tuple)) else [value]
        for divisor in divisors:
            assert not (self.data % int(getattr(divisor, "value", divisor))).any()

    monkeypatch.setattr(sys.modules["triton.runtime.interpreter"].TensorHandle, "set_attr", checked)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_advance_moves_momenta_and_leaves_updates_and_u(form: Form, dtype: torch.dtype) -> None:
    """v, q, m and u by the formulas in float32, rounded to the dtype where they are stored, and nothing beside them is written."""
    t = parts()
    W, g, m, v = ([Fenced(numbers(*shape, dtype=dtype, seed=10 * k + i)) for i, shape in enumerate(PARTS)] for k in range(4))
    updates, u = Fenced(torch.full((t.sizes[0],), 7.0, dtype=dtype)), Fenced(torch.full((t.sizes[1],), 7.0, dtype=torch.bfloat16))
    pointers = [[W[i].here.data_ptr(), g[i].here.data_ptr(), m[i].here.data_ptr() * (i < 3), v[i].here.data_ptr()] for i in range(4)]
    c = torch.tensor([0.9, 0.1, 0.3, 0.6, 0.7])
    wanted_updates, wanted_u = updates.here.clone(), u.here.clone()
    wanted: list[tuple[Tensor, Tensor]] = []
    for i, offset in enumerate(t.offsets):
        G, w, old, momentum = (x[i].here.float().flatten() for x in (g, W, v, m))
        G = -G if form.maximize else G
        h = G + c[2] * w if form.decays else G
        new = rounded(c[0] * old + h, dtype)
        q = h + c[0] * new.float() if form.nesterov else new.float()
        wanted_updates[offset : offset + len(q)] = rounded(c[4] * q if form.use_muon else q, dtype)
        moved = rounded(c[0] * momentum + c[1] * G, dtype) if form.use_muon and i < 3 else m[i].here.flatten().clone()
        if form.use_muon and i < 3:
            ahead = c[0] * moved.float() + c[1] * G if form.nesterov else moved.float()
            wanted_u[offset : offset + len(q)] = rounded(ahead, torch.bfloat16)
        wanted.append((new, moved))
    kept = [x.here.clone() for x in (*W, *g)]
    _launch("advance", len(t.chunks), torch.tensor(pointers), t.meta, t.chunks, c, updates.here, u.here,
            HYBRID=form.use_muon, NESTEROV=form.nesterov, DECAYS=form.decays, MAXIMIZE=form.maximize, CHUNK=CHUNK)  # fmt: skip
    for i, (new, moved) in enumerate(wanted):
        assert torch.equal(v[i].here.flatten(), new)
        assert torch.equal(m[i].here.flatten(), moved)
    assert torch.equal(updates.here, wanted_updates)
    assert torch.equal(u.here, wanted_u)
    assert all(torch.equal(x.here, y) for x, y in zip((*W, *g), kept, strict=True))
    assert all(x.whole() for x in (*W, *g, *m, *v, updates, u))


def _u(t: Tables) -> tuple[Fenced, list[Tensor]]:
    """u with NaN wherever nobody writes, and its matrices."""
    u = Fenced(torch.full((t.sizes[1],), torch.nan, dtype=torch.bfloat16), torch.nan)
    xs = [numbers(*shape, dtype=torch.bfloat16, seed=i) for i, shape in enumerate(PARTS[:3])]
    for x, offset in zip(xs, t.offsets, strict=False):
        u.here[offset : offset + x.numel()] = x.flatten()
    return u, xs


def test_square_sums_each_chunk_in_single_precision() -> None:
    t = parts()
    u, xs = _u(t)
    sums = Fenced(torch.full((t.matrix_chunks,), 7.0))
    _launch("square", t.matrix_chunks, u.here, t.meta, t.chunks, sums.here, CHUNK=CHUNK)
    expected = torch.stack([xs[i].flatten()[first : first + CHUNK].double().square().sum() for i, first in t.chunks[: t.matrix_chunks]])
    torch.testing.assert_close(sums.here.double(), expected, rtol=1e-6, atol=0)
    assert sums.whole()


def test_normalise_divides_by_the_norm_and_epsilon_and_pads_with_zeros() -> None:
    """Turned where the matrix is tall; nothing but X is written, and nothing read that is not u's and its sums."""
    t = parts()
    u, xs = _u(t)
    sums = Fenced(torch.arange(1.0, t.matrix_chunks + 1), torch.nan)
    X = Fenced(torch.full((t.sizes[2],), 7.0, dtype=torch.bfloat16))
    _launch("normalise", len(t.stretches), u.here, t.meta, t.stretches, sums.here, X.here, epsilon=0.5, CHUNK=CHUNK)
    expected = torch.full_like(X.here, 7.0)
    for x, row in zip(xs, matrices(t), strict=True):
        norm = sums.here[row["SUMS"] : row["SUMS"] + row["COUNT"]].sum().sqrt() + 0.5
        laid = (x.mT if row["TALL"] else x).float() / norm
        here = block(expected, row["X"], row["ROWS"], row["LD"]).zero_()
        here[:, : row["COLUMNS"]] = rounded(laid.contiguous(), torch.bfloat16)
    assert torch.equal(X.here, expected)
    assert X.whole()


@pytest.mark.parametrize("count", [255, 256, 257, 600])
def test_normalise_takes_as_many_sums_as_there_are(count: int) -> None:
    """256 at a time."""
    t = tables(((1, 9),), (1.0,), torch.device("cpu"))
    meta = t.meta.clone()
    meta[0, Column.COUNT] = count
    u, X = torch.ones(t.sizes[1], dtype=torch.bfloat16), torch.zeros(t.sizes[2], dtype=torch.bfloat16)
    sums = Fenced(torch.arange(count).float() % 7 + 1, torch.nan)
    sums.here[255::256] *= 1000
    sums.here[256::256] *= 1000
    Xs = Fenced(X)
    _launch("normalise", len(t.stretches), u, meta, t.stretches, sums.here, Xs.here, epsilon=0.0, CHUNK=CHUNK)
    assert Xs.here[:9].tolist() == [float(rounded(1 / sums.here.sum().sqrt(), torch.bfloat16))] * 9


def _padded(t: Tables) -> tuple[Fenced, list[Tensor]]:
    """X with its padding, between NaN; and its matrices."""
    X = Fenced(torch.zeros(t.sizes[2], dtype=torch.bfloat16), torch.nan)
    xs = []
    for i, row in enumerate(matrices(t)):
        here = block(X.here, row["X"], row["ROWS"], row["LD"])
        here[:, : row["COLUMNS"]] = small(row["ROWS"], row["COLUMNS"], seed=i)
        xs.append(here.clone())
    return X, xs


@pytest.mark.usefixtures("_true_hints")
def test_gram_is_the_product_with_the_transpose() -> None:
    t = parts()
    X, xs = _padded(t)
    A = Fenced(torch.full((t.sizes[3],), 7.0, dtype=torch.bfloat16))
    _launch("gram", len(t.squares), X.here, A.here, t.meta, t.squares, TILE=TILE, WIDE=True)
    for x, row in zip(xs, matrices(t), strict=True):
        expected = torch.zeros(row["SIDE"], row["SIDE"])
        expected[: len(x), : len(x)] = x.float() @ x.float().mT
        assert torch.equal(block(A.here, row["A"], row["SIDE"], row["SIDE"]), rounded(expected, torch.bfloat16))
    assert A.whole()


@pytest.mark.usefixtures("_true_hints")
def test_polynomial_is_b_times_it_and_c_times_its_square() -> None:
    """In float32, rounded once."""
    t = parts()
    A, B = Fenced(small(t.sizes[3]), torch.nan), Fenced(torch.full((t.sizes[3],), 7.0, dtype=torch.bfloat16))
    _launch("polynomial", len(t.squares), A.here, B.here, t.meta, t.squares, b=0.3, c=0.0078125, TILE=TILE, WIDE=True)
    for row in matrices(t):
        a = block(A.here, row["A"], row["SIDE"], row["SIDE"]).float()
        assert torch.equal(block(B.here, row["A"], row["SIDE"], row["SIDE"]), rounded(0.3 * a + 0.0078125 * (a @ a), torch.bfloat16))
    assert B.whole()


@pytest.mark.usefixtures("_true_hints")
def test_apply_is_a_times_x_and_the_product_with_it() -> None:
    """In float32, rounded once; of B only the columns that X has rows for."""
    t = parts()
    X, xs = _padded(t)
    B, Y = Fenced(small(t.sizes[3]), torch.nan), Fenced(torch.full((t.sizes[2],), 7.0, dtype=torch.bfloat16))
    _launch("apply", len(t.tiles), B.here, X.here, Y.here, t.meta, t.tiles, a=0.3, TILE=TILE, WIDE=True)
    for x, row in zip(xs, matrices(t), strict=True):
        b = block(B.here, row["A"], row["SIDE"], row["SIDE"])[: len(x), : len(x)].float()
        assert torch.equal(block(Y.here, row["X"], row["ROWS"], row["LD"]), rounded(b @ x.float() + 0.3 * x.float(), torch.bfloat16))
    assert Y.whole()


def test_apply_reads_no_row_after_the_last() -> None:
    """What lies there is so large that a times it overflows, of which numpy warns there, as it does where X has such a number."""
    t = parts()
    xs, _ = _padded(t)
    B, Y = (torch.zeros(t.sizes[i], dtype=torch.bfloat16) for i in (3, 2))
    X = Fenced(xs.here, torch.finfo(torch.bfloat16).max)

    def launch() -> None:
        _launch("apply", len(t.tiles), B, X.here, Y, t.meta, t.tiles, a=3.0, TILE=TILE, WIDE=True)

    launch()
    X.here[-1] = X.fence
    with pytest.raises(Exception, match="overflow encountered in multiply"):
        launch()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_combine_adds_the_scaled_matrices_to_their_updates_alone(dtype: torch.dtype) -> None:
    t = parts()
    X, _ = _padded(t)
    X.here.mul_(0.37)
    updates, c = Fenced(numbers(t.sizes[0], dtype=dtype)), torch.tensor([0.9, 0.1, 0.3, 0.6, 0.7])
    expected = updates.here.clone()
    for shape, row, s in zip(PARTS, matrices(t), t.scales, strict=False):
        x = block(X.here, row["X"], row["ROWS"], row["LD"])[:, : row["COLUMNS"]]
        o = s * (x.mT if row["TALL"] else x).float().reshape(shape)
        here = block(expected, row["OFFSET"], *shape)
        here.copy_(rounded(here.float() + c[3] * o, dtype))
    _launch("combine", t.matrix_chunks, X.here, t.meta, t.scales, t.chunks, c, updates.here, CHUNK=CHUNK)
    assert torch.equal(updates.here, expected)
    assert updates.whole()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_write_moves_each_weight_by_its_updates_alone(dtype: torch.dtype) -> None:
    t = parts()
    W = [Fenced(numbers(*shape, dtype=dtype, seed=i)) for i, shape in enumerate(PARTS)]
    updates = Fenced(torch.full((t.sizes[0],), torch.nan, dtype=dtype), torch.nan)
    for w, offset in zip(W, t.offsets, strict=True):
        updates.here[offset : offset + w.here.numel()] = numbers(w.here.numel(), dtype=dtype, seed=offset)
    expected = [
        rounded(w.here.float() - 0.3 * updates.here[offset : offset + w.here.numel()].float().view(w.here.shape), dtype)
        for w, offset in zip(W, t.offsets, strict=True)
    ]
    pointers = torch.tensor([[w.here.data_ptr(), 0, 0, 0] for w in W])
    _launch("write", len(t.chunks), pointers, t.meta, t.chunks, updates.here, -0.3, CHUNK=CHUNK)
    assert all(torch.equal(w.here, x) for w, x in zip(W, expected, strict=True))
    assert all(w.whole() for w in W)
