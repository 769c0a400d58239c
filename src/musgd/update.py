"""The update of MuSGD, as functions of tensors alone: no groups, no state, no learning rate.

Letters, as in the papers: W weights, g gradients, m Muon momenta, v SGD momenta (lists of tensors of one device and one dtype);
u and q are m and v after Nesterov's look ahead, o the orthogonalised u, X a batch of matrices (n, rows, columns).
Sources: P1 (the update and its constants), P2 (PyTorch's documentation); see docs/provenance.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Scale = Literal["matrix", "kernel"]
Tensors = list[Tensor] | tuple[Tensor, ...]

EPSILON = 1e-7


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


def prepare(inputs: Inputs, c: Coefficients, form: Form) -> list[Tensor]:
    """Advance both momenta by one step and return what the weights have to move by, before the learning rate.

    A function of its arguments alone. Returns one tensor a parameter, with its dtype, shape and layout; in an SGD group without
    Nesterov these ARE the momenta, so the caller must not write to them.
    """
    g = torch._foreach_neg(inputs.g) if form.maximize else inputs.g
    q = sgd_half(inputs.W, g, inputs.v, c, form)
    if not form.use_muon:
        return list(q)
    updates = times(q, c.sgd)
    if inputs.m:
        o = muon_half(g[: len(inputs.m)], inputs.m, c, form)
        torch._foreach_mul_(o, number(c.muon, o[0]))
        torch._foreach_add_(updates[: len(o)], o)
    return updates


def write(W: Tensors, updates: Tensors, lr: float) -> None:
    """W <- W - lr updates, in one foreach operation; it is fast only while both have the same layouts."""
    torch._foreach_add_(W, updates, alpha=-lr)


def sgd_half(W: Tensors, g: Tensors, v: Tensors, c: Coefficients, form: Form) -> Tensors:
    """Advance v in place and return q: h = g + lambda W; v <- beta v + h; q = h + beta v with Nesterov, else v itself.

    The operations, and so the bits, of torch.optim.SGD without dampening (P2).
    """
    h = torch._foreach_add(g, W, alpha=c.decay) if form.decays else g
    torch._foreach_mul_(v, number(c.beta, v[0]))
    torch._foreach_add_(v, h)
    return torch._foreach_add(h, v, alpha=c.beta) if form.nesterov else v


def muon_half(g: Tensors, m: Tensors, c: Coefficients, form: Form) -> list[Tensor]:
    """Advance m in place and return o: m <- beta m + (1 - beta) g; u likewise once more with Nesterov; o = s orthogonalize(u).

    Args:
        g: Gradients of at least two dimensions, not empty.
        m: Their momenta, same shapes. Advanced in place.
        c: The numbers; only beta is read.
        form: Nesterov and the scale are read.

    Returns:
        New contiguous tensors of the shapes and dtype of m.
    """
    torch._foreach_lerp_(m, g, 1 - c.beta)
    u = torch._foreach_lerp(m, g, 1 - c.beta) if form.nesterov else m
    return orthogonalize_each(u, [scale_factor(x.shape, form.scale) for x in u])


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
        bfloat16 (n, rows, columns), not always contiguous.
    """
    a, b, c = (3.4445, -4.7750, 2.0315)
    tall = X.shape[-2] > X.shape[-1]
    X = X.bfloat16()
    X = X.mT if tall else X
    X = X / (torch.linalg.vector_norm(X, dim=(-2, -1), keepdim=True) + EPSILON)
    for _ in range(5):
        A = X @ X.mT
        B = torch.baddbmm(A, A, A, beta=b, alpha=c)
        X = torch.baddbmm(X, B, X, beta=a)
    return X.mT if tall else X


def times(x: Tensors, value: float) -> list[Tensor]:
    """The product with a number: new tensors of the layout and dtype of x."""
    # Two tensors of no dimensions promote each other, so a half-precision scalar comes back wider.
    return [product.to(x[0].dtype) for product in torch._foreach_mul(x, number(value, x[0]))]


def number(value: float, x: Tensor) -> Tensor:
    """The number as a 0-dim tensor on the device of x, for foreach to multiply tensors of its dtype by.

    A Python number foreach rounds, on CPUs, to the dtype of half-precision tensors first: beta = 0.9 would be 0.8984 in bfloat16.
    """
    return torch.full((), value, dtype=torch.promote_types(x.dtype, torch.float32), device=x.device)


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
    return x if is_laid_like(x, p) else torch.empty_like(p, requires_grad=False).copy_(x)
