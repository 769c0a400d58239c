"""Faults of optimizers: weight decay, momentum, Nesterov, epsilon, the sign of the update, the place of gradients."""

# ruff: noqa: SIM102  (the outer condition tells the kind of node, the inner one what it says)

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from gate.mutation.operator import Found, Registry, Site, Text
from gate.mutation.syntax import (
    DECAY,
    EPS,
    MOMENTUM,
    complement,
    index_of,
    keyword,
    mentions,
    name,
    negative,
    one_minus,
    positional,
    receiver,
    replaced,
    statement_call,
    wrapped,
)

OPTIMIZER = Registry("optimizer")
_RATES = ("lr", "learning_rate", "step_size")


@OPTIMIZER.rule(
    "decay-coupled",
    "decoupled weight decay becomes coupled, and the other way round",
    (
        "def f(p, grad, lr, weight_decay):\n    p.mul_(1 - lr * weight_decay)",
        "def f(p, grad, lr, weight_decay):\n    grad.add_(p, alpha=weight_decay)",
    ),
    (
        "def f(p, grad, lr, weight_decay):\n    grad = grad.add(p, alpha=weight_decay)",
        "def f(p, grad, lr, weight_decay):\n    p.mul_(1 - lr * weight_decay)",
    ),
    ("def f(g, W, c):\n    h = plus(g, W, c.decay) if c.decays else g", "def f(g, W, c):\n    h = g"),
)
def _decay_coupled(node: cst.CSTNode, site: Site) -> Found:
    text = site.function_text
    if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
        yield from _decoupled(node.body[0], site, text)
    if isinstance(node, cst.IfExp) and isinstance(node.body, cst.Call) and any(DECAY.search(name(a.value)) for a in node.body.args):
        yield node.orelse


def _decoupled(node: cst.CSTNode, site: Site, text: str) -> Found:
    call = statement_call(node)
    if call is not None and name(call.func) == "mul_" and len(call.args) == 1 and isinstance(call.func, cst.Attribute):
        product = complement(call.args[0].value)
        gradient = next((word for word in ("grad", "g", "d_p", "gradient") if f"{word}" in _names(site)), None)
        if isinstance(product, cst.BinaryOperation) and gradient:
            decay = next((side for side in (product.left, product.right) if DECAY.search(name(side))), None)
            if decay is not None:
                yield Text((f"{gradient}.add_({site.text(call.func.value)}, alpha={site.text(decay)})",))
    if isinstance(node, cst.Assign) and isinstance(node.value, cst.Call) and name(node.value.func) in ("add", "add_"):
        alpha, given = keyword(node.value, "alpha"), positional(node.value)
        rate = next((word for word in _RATES if word in _names(site)), 'group["lr"]' if 'group["lr"]' in text else None)
        if alpha is not None and given and DECAY.search(name(alpha.value)) and rate:
            yield Text((f"{site.text(given[0].value)}.mul_(1 - {rate} * {site.text(alpha.value)})",))


def _names(site: Site) -> set[str]:
    """The parameters and assigned names of the innermost function."""
    if not site.functions:
        return set()
    found = {p.name.value for p in (*site.functions[-1].params.params, *site.functions[-1].params.kwonly_params)}
    for target in m.findall(site.functions[-1], m.AssignTarget(target=m.Name())):
        found.add(name(target.target))  # type: ignore[attr-defined]
    for loop in m.findall(site.functions[-1], m.For()):
        found.update(n.value for n in m.findall(loop.target, m.Name()))  # type: ignore[attr-defined]
    return found


@OPTIMIZER.rule(
    "decay-sign",
    "weight decay gets the other sign",
    ("g.add(p, alpha=weight_decay)", "g.add(p, alpha=-weight_decay)"),
    ("h = g + wd * p", "h = g + (-wd) * p"),
    ("plus(g, W, c.decay)", "plus(g, W, -c.decay)"),
)
def _decay_sign(node: cst.CSTNode, site: Site) -> Found:
    parent = site.parent(node)
    if isinstance(node, (cst.Name, cst.Attribute, cst.Subscript)) and DECAY.search(name(node)):
        factor = isinstance(parent, cst.BinaryOperation) and isinstance(parent.operator, (cst.Multiply, cst.Add, cst.Subtract))
        handed = isinstance(parent, cst.Arg) and (parent.keyword is None or parent.keyword.value in ("alpha", "value"))
        if (factor or handed) and isinstance(node, cst.BaseExpression):
            yield negative(node)


@OPTIMIZER.rule(
    "decay-place",
    "weight decay comes a statement later",
    ("h = g + decay * p\nv = beta * v + h\n", "v = beta * v + h\nh = g + decay * p\n"),
)
def _decay_place(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 and _decays(node.body[0], site):
        block = site.siblings(node)
        place = index_of(block, node)
        after = block[place + 1] if 0 <= place < len(block) - 1 else None
        if isinstance(after, (cst.SimpleStatementLine, cst.For, cst.If)) and not m.matches(after, m.SimpleStatementLine(body=[m.Return()])):
            yield Text((site.text(after), site.text(node)), upto=after)


def _decays(statement: cst.BaseSmallStatement, site: Site) -> bool:
    computes = isinstance(statement, (cst.Assign, cst.AugAssign)) or statement_call(statement) is not None
    words = m.findall(statement, m.Name() | m.SimpleString())
    named = any(DECAY.search(site.text(word).strip("\"'")) for word in words)
    return computes and named and bool(m.findall(statement, m.BinaryOperation() | m.Call())) and "Coefficients(" not in site.text(statement)


@OPTIMIZER.rule(
    "momentum-complement",
    "momentum and its complement change places",
    ("buf.lerp_(g, 1 - beta)", "buf.lerp_(g, beta)"),
    ("buf.mul_(momentum)", "buf.mul_((1 - momentum))"),
    (
        "def f(m, g, c):\n    m.mul_(c.beta)\n    return times(g, c.rest)",
        "def f(m, g, c):\n    m.mul_(c.beta)\n    return times(g, c.beta)",
    ),
)
def _momentum_complement(node: cst.CSTNode, site: Site) -> Found:
    inner = complement(node)
    if inner is not None and MOMENTUM.search(name(inner)):
        yield inner
    if isinstance(node, cst.Attribute) and node.attr.value in ("rest", "beta") and not isinstance(site.parent(node), cst.AssignTarget):
        other = "beta" if node.attr.value == "rest" else "rest"
        if f".{other}" in site.module.code and isinstance(site.parent(node), (cst.Arg, cst.Attribute)):
            yield node.with_changes(attr=cst.Name(other))
            return
    parent = site.parent(node)
    if isinstance(node, (cst.Name, cst.Attribute, cst.Subscript)) and MOMENTUM.search(name(node)):
        scaled = isinstance(parent, cst.Arg) and parent.keyword is None and mentions(_called(parent, site), "mul", "lerp", "times")
        factor = isinstance(parent, cst.BinaryOperation) and isinstance(parent.operator, cst.Multiply)
        if scaled or factor:
            yield one_minus(node)


def _called(arg: cst.Arg, site: Site) -> str:
    call = site.parent(arg)
    return name(call.func) if isinstance(call, cst.Call) else ""


@OPTIMIZER.rule(
    "nesterov-dropped",
    "Nesterov's look ahead is never taken",
    ("u = g + beta * v if nesterov else v", "u = v"),
    ("if group['nesterov']:\n    g = g + v", "if False:\n    g = g + v"),
    ("if not form.nesterov:\n    f()", "if True:\n    f()"),
)
def _nesterov_dropped(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.IfExp) and mentions(name(node.test), "nesterov"):
        yield node.orelse
    parent = site.parent(node)
    if isinstance(parent, cst.If) and parent.test is node:
        negated = isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not)
        tested = node.expression if isinstance(node, cst.UnaryOperation) else node
        if mentions(name(tested), "nesterov"):
            yield cst.Name("True" if negated else "False")


@OPTIMIZER.rule("nesterov-forced", "Nesterov's look ahead is always taken", ("u = g + beta * v if nesterov else v", "u = g + beta * v"))
def _nesterov_forced(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.IfExp) and mentions(name(node.test), "nesterov"):
        yield node.body


@OPTIMIZER.rule(
    "epsilon-moved",
    "epsilon goes into the root or the norm, or out of it",
    ("d = v.sqrt() + eps", "d = (v + eps).sqrt()"),
    ("d = (v + eps).sqrt()", "d = v.sqrt() + eps"),
    ("X = X / (norm(X) + EPSILON)", "X = X / norm(X) + EPSILON"),
    ("d = torch.sqrt(v) + eps", "d = torch.sqrt(v + eps)"),
    ("d = v.sqrt().add_(eps)", "d = v.add(eps).sqrt()"),
)
def _epsilon_moved(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.BinaryOperation):
        yield from _added(node)
        yield from _divided(node)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        yield from _chained(node, node.func)


def _added(node: cst.BinaryOperation) -> Found:
    if not (isinstance(node.operator, cst.Add) and EPS.match(name(node.right)) and isinstance(node.left, cst.Call)):
        return
    call = node.left
    if isinstance(call.func, cst.Attribute) and name(call) == "sqrt" and not call.args:
        inner = node.with_changes(left=call.func.value, lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        yield call.with_changes(func=call.func.with_changes(value=inner))
    elif mentions(name(call), "sqrt", "norm") and positional(call):
        first = positional(call)[0]
        yield replaced(call, first, cst.BinaryOperation(wrapped(first.value), cst.Add(), node.right))


def _divided(node: cst.BinaryOperation) -> Found:
    below = node.right
    if isinstance(node.operator, cst.Divide) and isinstance(below, cst.BinaryOperation) and isinstance(below.operator, cst.Add):
        if EPS.match(name(below.right)):
            yield cst.BinaryOperation(node.with_changes(right=wrapped(below.left)), cst.Add(), below.right)


def _chained(node: cst.Call, function: cst.Attribute) -> Found:
    inner = function.value
    if function.attr.value == "sqrt" and isinstance(inner, cst.BinaryOperation) and isinstance(inner.operator, cst.Add):
        if EPS.match(name(inner.right)):
            root = node.with_changes(func=function.with_changes(value=wrapped(inner.left)))
            yield cst.BinaryOperation(root, cst.Add(), inner.right)
    if function.attr.value in ("add", "add_") and isinstance(inner, cst.Call) and name(inner) == "sqrt" and len(node.args) == 1:
        if EPS.match(name(node.args[0].value)) and isinstance(inner.func, cst.Attribute):
            moved = node.with_changes(func=cst.Attribute(inner.func.value, cst.Name("add")))
            yield inner.with_changes(func=inner.func.with_changes(value=moved))


@OPTIMIZER.rule(
    "epsilon-dropped", "epsilon is left out", ("d = v.sqrt() + eps", "d = v.sqrt()"), ("X = X / (norm(X) + EPSILON)", "X = X / (norm(X))")
)
def _epsilon_dropped(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add) and EPS.match(name(node.right)):
        yield node.left


@OPTIMIZER.rule(
    "update-sign",
    "the update gets the other sign",
    ("p.add_(update, alpha=-lr)", "p.add_(update, alpha=lr)"),
    ("g = torch._foreach_neg(grads) if maximize else grads", "g = grads if maximize else torch._foreach_neg(grads)"),
    ("g = -g", "g = g"),
)
def _update_sign(node: cst.CSTNode, site: Site) -> Found:
    parent = site.parent(node)
    if isinstance(parent, cst.Arg) and parent.keyword is not None and parent.keyword.value in ("alpha", "value"):
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
            yield node.expression
    if isinstance(node, cst.IfExp) and mentions(site.text(node.body), "neg(", "neg_("):
        yield node.with_changes(body=node.orelse, orelse=node.body)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus) and name(node.expression) in ("g", "grad", "update"):
        yield node.expression


@OPTIMIZER.rule(
    "gradient-copy-dropped",
    "a gradient is not copied to where it is read",
    ("self.buffer.copy_(p.grad)", "pass"),
    ("torch._foreach_copy_(self.inputs, gradients)", "pass"),
    ("g = torch.empty_like(p).copy_(grad)", "g = torch.empty_like(p)"),
)
def _gradient_copy_dropped(node: cst.CSTNode, site: Site) -> Found:
    call = statement_call(node) if isinstance(node, cst.SimpleStatementLine) else None
    if call is not None and name(call) in ("copy_", "_foreach_copy_"):
        yield Text(("pass",))
    inside = isinstance(node, cst.Call) and name(node) == "copy_" and not isinstance(site.parent(node), cst.Expr)
    if inside and isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        yield node.func.value


@OPTIMIZER.rule(
    "zero-grad-dropped",
    "gradients are not cleared",
    ("optimizer.zero_grad()", "pass"),
    ("self.optimizer.zero_grad(set_to_none=True)", "pass"),
)
def _zero_grad_dropped(node: cst.CSTNode, site: Site) -> Found:
    call = statement_call(node) if isinstance(node, cst.SimpleStatementLine) else None
    if call is not None and name(call) == "zero_grad":
        yield Text(("pass",))


@OPTIMIZER.rule(
    "zero-grad-doubled",
    "gradients are cleared once more, before the step that needs them",
    (
        "loss.backward()\noptimizer.step()\noptimizer.zero_grad()",
        "loss.backward()\noptimizer.zero_grad()\noptimizer.step()\noptimizer.zero_grad()",
    ),
)
def _zero_grad_doubled(node: cst.CSTNode, site: Site) -> Found:
    call = statement_call(node) if isinstance(node, cst.SimpleStatementLine) else None
    if call is not None and name(call) == "step" and mentions(receiver(call), "opt") and isinstance(call.func, cst.Attribute):
        yield Text((f"{site.text(call.func.value)}.zero_grad()", site.text(node)))
