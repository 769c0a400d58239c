"""The update of MuSGD, as functions of tensors alone: no groups, no state, no learning rate.

Letters, as in the papers: W weights, g gradients, m Muon momenta, v SGD momenta (lists of tensors of one device and one dtype);
u and q are m and v after Nesterov's look ahead, o the orthogonalised u, X a batch of matrices (n, rows, columns).
Sources: P1 (the update and its constants), P2 (PyTorch's documentation); see docs/provenance.md.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from musgd.coefficients import Live

Scale = Literal["matrix", "kernel"]
Tensors = list[Tensor] | tuple[Tensor, ...]
Orthogonalize = Callable[[Tensors], list[Tensor]]

EPSILON = 1e-7
ABC = (3.4445, -4.7750, 2.0315)
STEPS = 5


@dataclass(frozen=True)
class Inputs:
    """The tensors of one preparation: one device, one dtype, the parameters that are matrices first.

    Attributes:
        W: Weights, any shape. Only read.
        g: Gradients, in the layout of W. Only read.
        m: Muon momenta of the first len(m) parameters, which are matrices (see `is_matrix`). Advanced in place; empty in an SGD group.
        v: SGD momenta, in the layout of W. Advanced in place.
    """

    W: Tensors
    g: Tensors
    m: Tensors
    v: Tensors


@dataclass(frozen=True)
class Form:
    """What decides which operations a preparation consists of, and so seldom changes.

    Attributes:
        use_muon: Hybrid, rather than plain SGD.
        nesterov: Look ahead along both momenta.
        decays: Weight decay is not zero.
        maximize: Climb along the gradient.
        scale: Where the rows and columns of the scale are read from.
    """

    use_muon: bool
    nesterov: bool
    decays: bool
    maximize: bool
    scale: Scale


class Preparation(Protocol):
    """One way to compute the updates of a group's tensors; its three parts follow one another."""

    @property
    def orthogonalize(self) -> Orthogonalize:
        """What makes o of u: a function of the tensors given alone, which holds nothing of the inputs but their shapes."""
        ...

    def blank(self) -> list[Tensor]:
        """Zeros in place of u."""
        ...

    def advance(self, c: Live) -> tuple[list[Tensor], list[Tensor]]:
        """Advance the momenta; return the updates of the SGD half, and u for the Muon half (empty where there is none)."""
        ...

    def combine(self, updates: list[Tensor], o: list[Tensor], c: Live) -> None:
        """Add muon times o to the updates of the matrices. May change o."""
        ...

    def write(self, updates: list[Tensor], lr: float) -> None:
        """W <- W - lr updates."""
        ...


def prepare(preparation: Preparation, c: Live, orthogonalize: Orthogonalize | None = None) -> list[Tensor]:
    """Advance both momenta by one step and return what the weights have to move by, before the learning rate.

    Args:
        preparation: What to compute. Its tensors and c are all that decides.
        c: The numbers of this step.
        orthogonalize: Stands in for the preparation's own; must give its bits.

    Returns:
        One tensor a parameter, with its dtype, shape and layout; in an SGD group without Nesterov these ARE the momenta, so the caller
        must not write to them.
    """
    updates, u = preparation.advance(c)
    if u:
        preparation.combine(updates, (orthogonalize or preparation.orthogonalize)(u), c)
    return updates


@dataclass(frozen=True)
class Plain:
    """The preparation in torch's own operations, for every device."""

    inputs: Inputs
    form: Form

    @property
    def orthogonalize(self) -> Orthogonalize:
        """`orthogonalize_each` with the scales of the shapes."""
        return functools.partial(orthogonalize_each, s=[scale_factor(x.shape, self.form.scale) for x in self.inputs.m])

    def blank(self) -> list[Tensor]:
        """See `Preparation`."""
        return [torch.zeros_like(x) for x in self.inputs.m]

    def advance(self, c: Live) -> tuple[list[Tensor], list[Tensor]]:
        """See `Preparation`. u are tensors of the shapes of m, or m itself."""
        inputs, form = self.inputs, self.form
        g = torch._foreach_neg(inputs.g) if form.maximize else inputs.g
        q = sgd_half(inputs.W, g, inputs.v, c, form)
        if not form.use_muon:
            return list(q), []
        return times(q, c.sgd), list(muon_half(g[: len(inputs.m)], inputs.m, c, form)) if inputs.m else []

    def combine(self, updates: list[Tensor], o: list[Tensor], c: Live) -> None:
        """See `Preparation`."""
        torch._foreach_mul_(o, like(c.muon, o[0]))
        torch._foreach_add_(updates[: len(o)], o)

    def write(self, updates: list[Tensor], lr: float) -> None:
        """See `Preparation`."""
        write(self.inputs.W, updates, lr)


def write(W: Tensors, updates: Tensors, lr: float) -> None:
    """W <- W - lr updates, in one foreach operation; it is fast only while both have the same layouts."""
    torch._foreach_add_(W, updates, alpha=-lr)


def sgd_half(W: Tensors, g: Tensors, v: Tensors, c: Live, form: Form) -> Tensors:
    """Advance v in place and return q: h = g + lambda W; v <- beta v + h; q = h + beta v with Nesterov, else v itself.

    On CPUs the operations, and so the bits, of torch.optim.SGD without dampening (P2).
    """
    # gate: equivalent [decay-place] h reads W and g alone, and what is done to v before it is done to v alone
    h = plus(g, W, c.decay) if form.decays else g
    torch._foreach_mul_(v, like(c.beta, v[0]))
    torch._foreach_add_(v, h)
    return plus(h, v, c.beta) if form.nesterov else v


def muon_half(g: Tensors, m: Tensors, c: Live, form: Form) -> Tensors:
    """Advance m in place and return u: m <- beta m + (1 - beta) g; u likewise once more with Nesterov, else m itself.

    Args:
        g: Gradients of at least two dimensions, not empty.
        m: Their momenta, same shapes. Advanced in place.
        c: The numbers; only beta is read.
        form: Nesterov is read.
    """
    if c.rest.is_cpu:  # gate: equivalent [momentum-complement] all numbers are parts of one tensor
        torch._foreach_lerp_(m, g, c.rest.item())
        return torch._foreach_lerp(m, g, c.rest.item()) if form.nesterov else m
    step = times(g, c.rest)
    torch._foreach_mul_(m, like(c.beta, m[0]))
    torch._foreach_add_(m, step)
    if not form.nesterov:
        return m
    u = times(m, c.beta)
    torch._foreach_add_(u, step)
    return u


def orthogonalize_each(u: Tensors, s: Sequence[float]) -> list[Tensor]:
    """Orthogonalise tensors of at least two dimensions as matrices; those of the same rows, columns and s are one batch.

    Args:
        u: Tensors that are no empty ones. Only read.
        s: What each result is multiplied by, in the dtype of u.

    Returns:
        New contiguous tensors of the shapes and dtypes of u.
    """
    matrices = [matrix(x) for x in u]
    batches: dict[tuple[torch.Size, float], list[int]] = {}
    for i, (x, factor) in enumerate(zip(matrices, s, strict=True)):
        batches.setdefault((x.shape, factor), []).append(i)
    o: dict[int, Tensor] = {}
    for (_, factor), members in batches.items():
        X = torch.stack([matrices[i] for i in members])
        rows = (orthogonalize(X).to(X.dtype) * factor).contiguous().unbind()
        o.update({i: row.view(u[i].shape) for i, row in zip(members, rows, strict=True)})
    return [o[i] for i in range(len(u))]


def orthogonalize(X: Tensor) -> Tensor:
    """Move the singular values of each matrix towards 1 by five Newton-Schulz steps in bfloat16 (P1).

    Args:
        X: Matrices (n, rows, columns), of any floating dtype. Only read. A matrix of zeros stays zero; one with inf or NaN becomes NaN
            and leaves the others of its batch alone.

    Returns:
        bfloat16 (n, rows, columns), contiguous or transposed.
    """
    a, b, c = ABC
    tall = X.shape[-2] > X.shape[-1]
    X = X.bfloat16()
    X = X.mT if tall else X
    X = X / (torch.linalg.vector_norm(X, dim=(-2, -1), keepdim=True) + EPSILON)
    for _ in range(STEPS):
        A = X @ X.mT
        B = torch.baddbmm(A, A, A, beta=b, alpha=c)
        X = torch.baddbmm(X, B, X, beta=a)
    return X.mT if tall else X


def plus(x: Tensors, y: Tensors, a: Tensor) -> list[Tensor]:
    """x + a y: new tensors of the layout and dtype of x; a is a 0-dim tensor."""
    if a.is_cpu:
        return list(torch._foreach_add(x, y, alpha=a.item()))
    # No form of add with alpha reads alpha on the device with the same bits on every version of torch: multiplied and added apart.
    product = times(y, a)
    torch._foreach_add_(product, x)
    return product


def times(x: Tensors, a: Tensor) -> list[Tensor]:
    """The product with a 0-dim tensor: new tensors of the layout and dtype of x."""
    # Two tensors of no dimensions promote each other, so a half-precision scalar comes back wider.
    return [product.to(x[0].dtype) for product in torch._foreach_mul(x, like(a, x[0]))]


def like(a: Tensor, x: Tensor) -> Tensor:
    """The 0-dim tensor a in the precision that foreach multiplies tensors of the dtype of x in.

    A Python number foreach rounds, on CPUs, to the dtype of half-precision tensors first: beta = 0.9 would be 0.8984 in bfloat16.
    """
    return a.to(torch.promote_types(x.dtype, torch.float32))


def matrix(x: Tensor) -> Tensor:
    """The tensor (rows, ...) as a matrix: first dimension kept, the rest flattened. A view where the layout allows."""
    return x.flatten(1)


def is_matrix(x: Tensor) -> bool:
    """Whether the Muon half applies: at least two dimensions, and not empty."""
    return x.dim() >= 2 and x.numel() > 0


def scale_factor(shape: Sequence[int], scale: Scale) -> float:
    """s = sqrt(max(1, rows / columns)) for a tensor of at least two dimensions.

    "matrix" reads rows and columns from the flattened matrix, "kernel" from the last two dimensions: for a convolution (out, in, height,
    width) those are its kernel's height and width, as several public implementations have it.
    """
    rows, columns = (shape[0], math.prod(shape[1:])) if scale == "matrix" else shape[-2:]
    return math.sqrt(max(1, rows / columns))


def is_laid_like(x: Tensor, p: Tensor) -> bool:
    """Whether x has the dtype and the strides of p, whose shape it has."""
    return x.dtype == p.dtype and x.stride() == p.stride()


def laid_like(x: Tensor, p: Tensor) -> Tensor:
    """Give x the dtype and layout of p, which has its shape: x itself where it has both, else a copy."""
    # gate: equivalent [arguments-swapped] being laid alike is symmetric
    return x if is_laid_like(x, p) else torch.empty_like(p, requires_grad=False).copy_(x)
