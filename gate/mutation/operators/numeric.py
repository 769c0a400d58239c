"""Faults of tensor code: coefficients, transpositions, axes, dtypes, memory that is shared or not."""

# ruff: noqa: SIM102  (the outer condition tells the kind of node, the inner one what it says)

from __future__ import annotations

import struct

import libcst as cst
import libcst.matchers as m

from gate.mutation.operator import Found, Registry, Site
from gate.mutation.syntax import index_of, mentions, name, nth, number, positional, receiver, replaced

NUMERIC = Registry("numeric")

_PURE = frozenset(
    f"{word}"
    for word in [
        "add",
        "sub",
        "mul",
        "div",
        "neg",
        "abs",
        "clamp",
        "lerp",
        "addcmul",
        "addcdiv",
        "sqrt",
        "rsqrt",
        "pow",
        "sign",
        "square",
        "exp",
        "log",
        "reciprocal",
        "baddbmm",
        "addmm",
    ]
)
_HALF = ("bfloat16", "bf16", "half()", "float16")
_DTYPES = {
    "float64": "float32", "double": "float32", "float32": "bfloat16", "bfloat16": "float32", "float16": "float32", "half": "float32",
    "int64": "int32", "long": "int32", "complex128": "complex64",
}  # fmt: skip
_CASTS = {"double": "float", "float": "bfloat16", "bfloat16": "float", "half": "float", "long": "int"}


@NUMERIC.rule(
    "coefficient-nudged",
    "a coefficient changes by as little as its dtype can show: a hundredth in half precision, else the next float32",
    ("def f(x):\n    return x.bfloat16() * 3.4445", "def f(x):\n    return x.bfloat16() * 3.478945"),
    ("def f(x):\n    return x * 0.5", "def f(x):\n    return x * 0.5000000596046448"),
)
def _coefficient_nudged(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.Float):
        value = float(node.value.replace("_", ""))
        if value:
            yield cst.Float(repr(_nudged(value, _in_half(node, site))))


def _nudged(value: float, half: bool) -> float:
    if half:
        return float(f"{value * 1.01:.12g}")
    (bits,) = struct.unpack("<i", struct.pack("<f", value))
    (after,) = struct.unpack("<f", struct.pack("<i", bits + 1))
    return float(after)


def _in_half(node: cst.CSTNode, site: Site) -> bool:
    """Whether a number is used in half precision: its function says so, or one that reads the constant it is part of."""
    if site.functions:
        return mentions(site.function_text, *_HALF)
    step: cst.CSTNode | None = node
    while step is not None and not isinstance(step, (cst.Assign, cst.AnnAssign)):
        step = site.parent(step)
    target = name(step.targets[0].target) if isinstance(step, cst.Assign) else name(step.target) if isinstance(step, cst.AnnAssign) else ""
    readers = m.findall(site.module, m.FunctionDef(body=m.MatchIfTrue(lambda body: bool(m.findall(body, m.Name(target))))))
    return bool(target) and any(mentions(site.text(reader), *_HALF) for reader in readers)


@NUMERIC.rule(
    "transpose-dropped",
    "a transposition is left out",
    ("A = X @ X.mT", "A = X @ X"),
    ("y = x.transpose(-2, -1) @ x", "y = x @ x"),
    ("y = x.t()", "y = x"),
)
def _transpose_dropped(node: cst.CSTNode, site: Site) -> Found:
    parent = site.parent(node)
    if isinstance(node, cst.Attribute) and node.attr.value in ("T", "mT", "H", "mH") and not isinstance(parent, cst.AssignTarget):
        yield node.value
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if node.func.attr.value in ("transpose", "permute", "swapaxes", "swapdims", "adjoint", "t", "movedim"):
            yield node.func.value


@NUMERIC.rule(
    "axis-changed",
    "a size or a reduction reads the wrong axis",
    ("s = x.shape[0]", "s = x.shape[1]"),
    ("s = x.shape[-2]", "s = x.shape[-1]"),
    ("y = x.sum(dim=-1)", "y = x.sum(dim=-2)"),
    ("s = x.size(1)", "s = x.size(0)"),
)
def _axis_changed(node: cst.CSTNode, site: Site) -> Found:
    parent = site.parent(node)
    place = nth(node)
    if place is None or not isinstance(node, cst.BaseExpression):
        return
    indexed = isinstance(parent, cst.Index) and _is_shape(parent, site)
    argument = isinstance(parent, cst.Arg) and (
        (parent.keyword is not None and parent.keyword.value in ("dim", "axis"))
        or (parent.keyword is None and _called(parent, site) == "size")
    )
    if indexed or argument:
        yield number({0: 1, 1: 0, -1: -2, -2: -1}.get(place, place - 1))


def _is_shape(index: cst.Index, site: Site) -> bool:
    element = site.parent(index)
    subscript = site.parent(element) if element is not None else None
    return isinstance(subscript, cst.Subscript) and mentions(name(subscript.value), "shape", "size", "stride")


def _called(arg: cst.Arg, site: Site) -> str:
    call = site.parent(arg)
    return name(call) if isinstance(call, cst.Call) and arg in call.args else ""


@NUMERIC.rule(
    "scale-axes-swapped",
    "a scale divides columns by rows",
    ("s = max(1, rows / columns) ** 0.5", "s = max(1, columns / rows) ** 0.5"),
    ("s = max(1, x.shape[-2] / x.shape[-1])", "s = max(1, x.shape[-1] / x.shape[-2])"),
)
def _scale_axes_swapped(node: cst.CSTNode, site: Site) -> Found:
    sizes = ("row", "col", "height", "width", "fan", "shape", "size(")
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide):
        if mentions(site.text(node.left), *sizes) and mentions(site.text(node.right), *sizes):
            yield node.with_changes(left=node.right, right=node.left)


@NUMERIC.rule(
    "in-place",
    "an operation writes into its input",
    ("y = x.mul(2)", "y = x.mul_(2)"),
    ("y = torch.add(x, z)", "y = x.add_(z)"),
    ("q = torch._foreach_mul(v, b)", "q = (torch._foreach_mul_(v, b), v)[1]"),
)
def _in_place(node: cst.CSTNode, site: Site) -> Found:
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return
    called, given = node.func.attr.value, positional(node)
    if called.startswith("_foreach_") and called.removeprefix("_foreach_") in _PURE and given:
        inner = node.with_changes(func=node.func.with_changes(attr=cst.Name(f"{called}_")))
        pair = cst.Tuple([cst.Element(inner), cst.Element(given[0].value)])
        yield cst.Subscript(pair, [cst.SubscriptElement(cst.Index(cst.Integer("1")))])
    elif called in _PURE and name(node.func.value) == "torch":
        if given and isinstance(given[0].value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)):
            yield node.with_changes(func=cst.Attribute(given[0].value, cst.Name(f"{called}_")), args=node.args[1:])
    elif called in _PURE and name(node.func.value) not in ("math", "np", "numpy", "torch", "F"):
        yield node.with_changes(func=node.func.with_changes(attr=cst.Name(f"{called}_")))


@NUMERIC.rule(
    "out-of-place",
    "an operation no longer writes into what it is called on",
    ("m.mul_(beta)", "m.mul(beta)"),
    ("torch._foreach_add_(v, h)", "torch._foreach_add(v, h)"),
)
def _out_of_place(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value.endswith("_"):
        plain = node.func.attr.value[:-1]
        if plain.removeprefix("_foreach_") in _PURE:
            yield node.with_changes(func=node.func.with_changes(attr=cst.Name(plain)))


@NUMERIC.rule("clone-dropped", "a copy is left out", ("y = x.clone()", "y = x"), ("y = copy.deepcopy(x)", "y = x"))
def _clone_dropped(node: cst.CSTNode, site: Site) -> Found:
    if not isinstance(node, cst.Call):
        return
    called = name(node)
    if called == "clone" and isinstance(node.func, cst.Attribute) and not positional(node):
        yield node.func.value
    elif (called in ("clone", "deepcopy") or (called == "copy" and receiver(node) == "copy")) and positional(node):
        yield positional(node)[0].value


@NUMERIC.rule("detach-dropped", "a tensor stays in the graph", ("y = x.detach()", "y = x"), ("y = x.data", "y = x"))
def _detach_dropped(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.Call) and name(node) == "detach" and isinstance(node.func, cst.Attribute):
        yield node.func.value
    if isinstance(node, cst.Attribute) and node.attr.value == "data" and mentions(name(node.value), "grad", "param", "tensor", "x"):
        if not isinstance(site.parent(node), (cst.AssignTarget, cst.Call)):
            yield node.value


@NUMERIC.rule("contiguous-dropped", "a tensor keeps the layout that it has", ("y = x.contiguous().view(-1)", "y = x.view(-1)"))
def _contiguous_dropped(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.Call) and name(node) == "contiguous" and isinstance(node.func, cst.Attribute):
        yield node.func.value


@NUMERIC.rule(
    "foreach-reordered",
    "the list of a foreach operation is in another order",
    ("torch._foreach_add_(params, updates)", "torch._foreach_add_(params, updates[::-1])"),
    ("torch._foreach_copy_(a, b[:n])", "torch._foreach_copy_(a, b[:n][::-1])"),
)
def _foreach_reordered(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.Call) and name(node).startswith("_foreach_"):
        lists = [arg for arg in positional(node)[1:] if isinstance(arg.value, (cst.Name, cst.Attribute, cst.Subscript))]
        scalars = ("like(", "item", "alpha", "lr", "beta")
        for arg in lists[:1]:
            if not mentions(site.text(arg.value), *scalars):
                backwards = cst.SubscriptElement(
                    cst.Slice(None, None, cst.UnaryOperation(cst.Minus(), cst.Integer("1")), cst.Colon(), cst.Colon())
                )
                yield replaced(node, arg, cst.Subscript(arg.value, [backwards]))


@NUMERIC.rule(
    "dtype-changed",
    "something between is computed in another dtype",
    ("y = x.float()", "y = x.bfloat16()"),
    ("y = x.to(torch.float32)", "y = x.to(torch.bfloat16)"),
    ("y = x.bfloat16()", "y = x.float()"),
)
def _dtype_changed(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.Attribute) and name(node.value) == "torch" and node.attr.value in _DTYPES:
        yield node.with_changes(attr=cst.Name(_DTYPES[node.attr.value]))
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and not node.args and node.func.attr.value in _CASTS:
        yield node.with_changes(func=node.func.with_changes(attr=cst.Name(_CASTS[node.func.attr.value])))


@NUMERIC.rule("cast-dropped", "a conversion of dtype is left out", ("y = x.to(p.dtype)", "y = x"))
def _cast_dropped(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.Call) and name(node) == "to" and len(node.args) == 1 and isinstance(node.func, cst.Attribute):
        if mentions(site.text(node.args[0].value), "dtype", "float", "promote_types"):
            yield node.func.value


@NUMERIC.rule("product-turned", "the factors of a matrix product change places", ("A = X @ Y", "A = Y @ X"))
def _product_turned(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.MatrixMultiply):
        yield node.with_changes(left=node.right, right=node.left)


@NUMERIC.rule(
    "reduction-changed",
    "a mean becomes a sum, a sum a mean",
    ("loss = x.mean()", "loss = x.sum()"),
    ("y = x.sum(dim=1)", "y = x.mean(dim=1)"),
)
def _reduction_changed(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in ("mean", "sum"):
        yield node.with_changes(func=node.func.with_changes(attr=cst.Name("sum" if node.func.attr.value == "mean" else "mean")))


@NUMERIC.rule(
    "keepdim-changed", "a reduction keeps its axis, or does not", ("n = norm(x, dim=1, keepdim=True)", "n = norm(x, dim=1, keepdim=False)")
)
def _keepdim_changed(node: cst.CSTNode, site: Site) -> Found:
    parent = site.parent(node)
    if isinstance(node, cst.Name) and isinstance(parent, cst.Arg) and parent.keyword is not None and parent.keyword.value == "keepdim":
        if index_of(("True", "False"), node.value) >= 0 or node.value in ("True", "False"):
            yield cst.Name("False" if node.value == "True" else "True")
