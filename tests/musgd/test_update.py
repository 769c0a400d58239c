"""The update as functions of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from musgd.coefficients import Coefficients, Live
from musgd.update import Form, Inputs, Plain, laid_like, orthogonalize, orthogonalize_each, prepare, scale_factor, write

if TYPE_CHECKING:
    from musgd.update import Scale
    from tests.musgd.conftest import Distance, Reference, SameBits

# bfloat16 itself is off by 0.013 to 0.015 on these matrices; another coefficient or number of iterations by 0.027 or more.
NEAR = 0.02


def _matrices(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


class TestOrthogonalize:
    SHAPES = ((4, 16, 9), (4, 9, 16), (2, 64, 288), (2, 128, 64), (4, 32, 32))

    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
    def test_agrees_with_float64(self, shape: tuple[int, ...], dtype: torch.dtype, reference: type[Reference], distance: Distance) -> None:
        X = _matrices(*shape).to(dtype)
        expected = torch.stack([reference.orthogonalize(x.bfloat16()) for x in X])
        assert orthogonalize(X).dtype == torch.bfloat16
        assert distance(orthogonalize(X), expected) < NEAR

    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("wrong", [{"a": 3.4545}, {"b": -4.7850}, {"c": 2.0415}, {"times": 4}, {"times": 6}], ids=str)
    def test_agreement_would_notice_another_constant(
        self, shape: tuple[int, ...], wrong: dict[str, float], reference: type[Reference], distance: Distance
    ) -> None:
        X = _matrices(*shape)
        other = torch.stack([reference.orthogonalize(x.bfloat16(), **wrong) for x in X])  # type: ignore[arg-type]
        assert distance(orthogonalize(X), other) > NEAR

    def test_small_matrices_feel_the_epsilon(self, reference: type[Reference], distance: Distance) -> None:
        """A norm of 1e-8 is 0.09 before the first iteration, which five iterations do not make up for."""
        X = _matrices(1, 4, 6)
        X = X / X.norm() * 1e-8
        bare = reference.orthogonalize(X[0] * 1e8)
        assert distance(orthogonalize(X)[0], reference.orthogonalize(X[0].bfloat16())) < 2 * NEAR
        assert distance(orthogonalize(X)[0], bare) > 4 * NEAR

    def test_singular_values_come_near_one(self) -> None:
        X = _matrices(2, 24, 60)
        before, after = (torch.linalg.svdvals(x.float()) for x in (X, orthogonalize(X)))
        assert before.max() > 10
        assert 0.6 < after.min() < after.max() < 1.3

    @pytest.mark.parametrize("shape", [(1, 1, 7), (1, 7, 1), (1, 1, 1)])
    def test_vectors_are_matrices(self, shape: tuple[int, ...], reference: type[Reference], distance: Distance) -> None:
        X = _matrices(*shape)
        assert distance(orthogonalize(X)[0], reference.orthogonalize(X[0].bfloat16())) < 0.03

    def test_zeros_stay_zeros(self) -> None:
        assert torch.equal(orthogonalize(torch.zeros(2, 3, 5)), torch.zeros(2, 3, 5, dtype=torch.bfloat16))

    @pytest.mark.parametrize("bad", [float("inf"), float("nan")])
    def test_a_bad_matrix_spoils_itself_alone(self, bad: float, same_bits: SameBits) -> None:
        X = _matrices(3, 8, 6)
        spoilt = X.clone()
        spoilt[1, 2, 3] = bad
        before, after = orthogonalize(X), orthogonalize(spoilt)
        assert after[1].isnan().any()
        assert same_bits(before[::2], after[::2])
        assert not same_bits(before[1], after[1])


class TestBatches:
    SHAPES = ((8, 3, 2), (4, 5), (8, 6), (6, 8), (8, 2, 3, 1))

    def test_each_of_a_batch_is_its_row_of_the_batch(self, same_bits: SameBits) -> None:
        u = [_matrices(*shape, seed=i) for i, shape in enumerate(self.SHAPES)]
        batch = orthogonalize(torch.stack([u[i].reshape(8, 6) for i in (0, 2, 4)])).float()
        o = orthogonalize_each(u, [1.0, 2.0, 1.0, 1.0, 1.0])
        assert [x.shape for x in o] == [x.shape for x in u]
        assert all(x.is_contiguous() and x.dtype == torch.float32 for x in o)
        for i, row in zip((0, 2, 4), batch, strict=True):
            assert same_bits(o[i].reshape(8, 6), row)
        assert not same_bits(o[0].reshape(8, 6), batch[1])
        assert same_bits(o[1], 2 * orthogonalize(u[1][None])[0].float())

    def test_same_shapes_are_one_batch(self) -> None:
        u = [_matrices(*shape, seed=i) for i, shape in enumerate(self.SHAPES)]
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            orthogonalize_each(u, [1.0, 1.0, 1.0, 3.0, 1.0])
        products = sum(event.count for event in profile.key_averages() if event.key == "aten::baddbmm")
        assert products == 3 * 5 * 2  # three shapes of matrices, five iterations of two products each


@pytest.mark.case("R9")
@pytest.mark.parametrize(
    ("shape", "matrix", "kernel"),
    [
        ((1, 1, 3, 3), 1.0, 1.0),
        ((16, 1, 3, 3), 1.3333333333333333, 1.0),
        ((64, 1, 3, 3), 2.6666666666666665, 1.0),
        ((64, 32, 3, 3), 1.0, 1.0),
        ((8, 8, 1, 7), 1.0, 1.0),
        ((8, 8, 7, 1), 1.0, 2.6457513110645907),
        ((8, 2), 2.0, 2.0),
        ((2, 8), 1.0, 1.0),
        ((9, 1, 1), 3.0, 1.0),
    ],
    ids=str,
)
def test_r9_the_scale_has_these_values(shape: tuple[int, ...], matrix: float, kernel: float) -> None:
    assert scale_factor(shape, "matrix") == matrix
    assert scale_factor(shape, "kernel") == kernel


class TestPrepare:
    SHAPES = ((4, 3, 3, 3), (6, 2), (5,), ())

    def _prepare(self, inputs: Inputs, form: Form) -> list[Tensor]:
        live = Live(torch.device("cpu"), torch.float32)
        live.write(Coefficients(beta=0.9, decay=0.1, muon=0.3, sgd=0.7))
        return prepare(Plain(inputs, form), live)

    def _inputs(self, seed: int = 0) -> Inputs:
        W, g, m, v = ([_matrices(*shape, seed=10 * i + seed) for shape in self.SHAPES] for i in range(4))
        return Inputs(W, g, m[:2], v)

    def _form(self, *, use_muon: bool = True, nesterov: bool = True, maximize: bool = False, scale: Scale = "matrix") -> Form:
        return Form(use_muon=use_muon, nesterov=nesterov, decays=True, maximize=maximize, scale=scale)

    @pytest.mark.parametrize("use_muon", [True, False])
    @pytest.mark.parametrize("nesterov", [True, False])
    @pytest.mark.parametrize("maximize", [True, False])
    def test_depends_on_its_inputs_alone(self, use_muon: bool, nesterov: bool, maximize: bool, same_bits: SameBits) -> None:
        form = self._form(use_muon=use_muon, nesterov=nesterov, maximize=maximize)
        first, again, other = self._inputs(), self._inputs(), self._inputs(seed=1)
        updates = [self._prepare(inputs, form) for inputs in (first, again, other)]
        for a, b, c in zip(*updates, strict=True):
            assert same_bits(a, b)
            assert not same_bits(a, c)
        assert all(same_bits(a, b) for a, b in zip([*first.v, *first.m], [*again.v, *again.m], strict=True))

    @pytest.mark.parametrize("use_muon", [True, False])
    def test_reads_weights_and_gradients_and_advances_momenta(self, use_muon: bool, same_bits: SameBits) -> None:
        inputs, before = self._inputs(), self._inputs()
        self._prepare(inputs, self._form(use_muon=use_muon))
        for name in ("W", "g"):
            assert all(same_bits(a, b) for a, b in zip(getattr(inputs, name), getattr(before, name), strict=True))
        assert not any(same_bits(a, b) for a, b in zip(inputs.v, before.v, strict=True))
        assert all(same_bits(a, b) != use_muon for a, b in zip(inputs.m, before.m, strict=True))

    @pytest.mark.parametrize("nesterov", [True, False])
    def test_updates_have_the_layout_of_the_weights(self, nesterov: bool) -> None:
        inputs = self._inputs()
        laid = Inputs(
            *([x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x for x in xs] for xs in vars(inputs).values())
        )
        updates = self._prepare(laid, self._form(nesterov=nesterov))
        assert [x.stride() for x in updates] == [x.stride() for x in laid.W]
        assert updates[0].stride() != inputs.W[0].stride()

    def test_write_takes_lr_times_the_updates(self, same_bits: SameBits) -> None:
        W, updates = [torch.tensor([1.0, 2.0]), torch.tensor(3.0)], [torch.tensor([2.0, -4.0]), torch.tensor(8.0)]
        write(W, updates, 0.5)
        assert same_bits(W[0], torch.tensor([0.0, 4.0]))
        assert same_bits(W[1], torch.tensor(-1.0))


def test_laid_like_copies_only_where_layout_or_dtype_differ(same_bits: SameBits) -> None:
    p = _matrices(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    x = _matrices(2, 3, 4, 5, seed=1)
    assert laid_like(p, p) is p
    assert laid_like(x, p).stride() == p.stride()
    assert same_bits(laid_like(x, p), x)
    assert laid_like(x.double(), p).dtype == torch.float32
