"""Faults of training loops: order of optimizer, scheduler, clipping and EMA, schedules, seeds, accumulation, modes."""

from __future__ import annotations

import re
from collections.abc import Callable

import libcst as cst

from gate.mutation.operator import Found, Registry, Site, Text
from gate.mutation.syntax import index_of, mentions, name, receiver, statement_call

TRAINING = Registry("training")

_SEEDS = ("manual_seed", "manual_seed_all", "seed_everything", "set_rng_state", "set_state", "setstate")
_COUNTS = re.compile(r"^(steps?|epochs?|i_?step|iteration|n_steps|total_steps|warm_?ups?|T_max|STEPS|cur_step|last_epoch|global_step)$")


def _is_call(call: cst.Call, *names: str) -> bool:
    return name(call) in names


def _optimizer_step(call: cst.Call) -> bool:
    return _is_call(call, "step") and mentions(receiver(call), "optim", "opt", "scaler") and not mentions(receiver(call), "sched")


def _scheduler_step(call: cst.Call) -> bool:
    return _is_call(call, "step") and mentions(receiver(call), "sched")


def _clip(call: cst.Call) -> bool:
    return mentions(name(call), "clip_grad", "clip_by")


def _ema(call: cst.Call) -> bool:
    return _is_call(call, "update", "update_parameters") and mentions(receiver(call), "ema", "average", "shadow", "swa")


def _call_of(statement: cst.CSTNode) -> cst.Call | None:
    """The call of a statement, also where its value is kept."""
    call = statement_call(statement)
    if call is None and isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        only = statement.body[0]
        call = only.value if isinstance(only, cst.Assign) and isinstance(only.value, cst.Call) else None
    return call


def _swapped(node: cst.CSTNode, site: Site, first: Callable[[cst.Call], bool], second: Callable[[cst.Call], bool]) -> Found:
    """The statement `first` and the next `second` of its block change places."""
    call = _call_of(node)
    if call is None or not first(call):
        return
    block = site.siblings(node)
    place = index_of(block, node)
    for later in range(place + 1, len(block)):
        other = _call_of(block[later])
        if other is not None and second(other):
            texts = [site.text(statement) for statement in block[place : later + 1]]
            yield Text((texts[-1], *texts[1:-1], texts[0]), upto=block[later])
            return


@TRAINING.rule(
    "scheduler-first",
    "the scheduler steps before the optimizer, or after it instead of before",
    ("optimizer.step()\nscheduler.step()", "scheduler.step()\noptimizer.step()"),
    ("scheduler.step()\noptimizer.step()", "optimizer.step()\nscheduler.step()"),
)
def _scheduler_first(node: cst.CSTNode, site: Site) -> Found:
    yield from _swapped(node, site, _optimizer_step, _scheduler_step)
    yield from _swapped(node, site, _scheduler_step, _optimizer_step)


@TRAINING.rule(
    "clip-after-step",
    "gradients are clipped after the step",
    ("clip_grad_norm_(params, 1.0)\noptimizer.step()", "optimizer.step()\nclip_grad_norm_(params, 1.0)"),
)
def _clip_after_step(node: cst.CSTNode, site: Site) -> Found:
    yield from _swapped(node, site, _clip, _optimizer_step)


@TRAINING.rule(
    "average-before-step",
    "the moving average takes the weights before the step",
    ("optimizer.step()\nema.update(model)", "ema.update(model)\noptimizer.step()"),
)
def _average_before_step(node: cst.CSTNode, site: Site) -> Found:
    yield from _swapped(node, site, _optimizer_step, _ema)


@TRAINING.rule(
    "seed-dropped",
    "a generator is not seeded",
    ("torch.manual_seed(0)", "pass"),
    ("g = torch.Generator().manual_seed(1)", "g = torch.Generator()"),
)
def _seed_dropped(node: cst.CSTNode, site: Site) -> Found:
    call = statement_call(node) if isinstance(node, cst.SimpleStatementLine) else None
    seeds = call is not None and (name(call) in _SEEDS or (name(call) == "seed" and receiver(call) in ("random", "np", "numpy")))
    if seeds:
        yield Text(("pass",))
    inside = isinstance(node, cst.Call) and name(node) == "manual_seed" and not isinstance(site.parent(node), cst.Expr)
    if inside and isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        yield node.func.value


@TRAINING.rule("generator-dropped", "a draw takes the global generator", ("x = torch.randn(3, generator=g)", "x = torch.randn(3)"))
def _generator_dropped(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.Call) and any(arg.keyword is not None and arg.keyword.value == "generator" for arg in node.args):
        rest = [arg for arg in node.args if arg.keyword is None or arg.keyword.value != "generator"]
        if rest:
            rest[-1] = rest[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        yield node.with_changes(args=rest)


@TRAINING.rule(
    "schedule-off-by-one",
    "a schedule is one step early or late",
    ("lr = base * min(1, step / warm)", "lr = base * min(1, (step + 1) / warm)"),
    ("for _ in range(steps):\n    f()", "for _ in range(steps - 1):\n    f()"),
)
def _schedule_off_by_one(node: cst.CSTNode, site: Site) -> Found:
    parent = site.parent(node)
    if isinstance(node, (cst.Name, cst.Attribute)) and _COUNTS.match(name(node)):
        if (
            isinstance(parent, cst.Arg)
            and isinstance(call := site.parent(parent), cst.Call)
            and name(call) == "range"
            and len(call.args) == 1
        ):
            yield cst.BinaryOperation(node, cst.Subtract(), cst.Integer("1"))
        elif isinstance(parent, cst.BinaryOperation) and isinstance(
            parent.operator, (cst.Divide, cst.Multiply, cst.FloorDivide, cst.Modulo)
        ):
            yield cst.BinaryOperation(node, cst.Add(), cst.Integer("1"), lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


@TRAINING.rule(
    "accumulation-unscaled",
    "a loss, or the gradient that it starts from, is not divided by the number of batches",
    ("loss = loss / accumulate", "loss = loss"),
    ("seed = 1 / trainer.accumulate_grad_batches", "seed = 1"),
)
def _accumulation_unscaled(node: cst.CSTNode, site: Site) -> Found:
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Divide):
        return
    if mentions(site.text(node.left), "loss") or mentions(site.text(node.right), "accumulate"):
        yield node.left


@TRAINING.rule("backward-dropped", "gradients are not computed", ("loss.backward()", "pass"))
def _backward_dropped(node: cst.CSTNode, site: Site) -> Found:
    call = statement_call(node) if isinstance(node, cst.SimpleStatementLine) else None
    if call is not None and name(call) == "backward":
        yield Text(("pass",))


@TRAINING.rule("step-dropped", "the optimizer or the scheduler does not step", ("optimizer.step()", "pass"))
def _step_dropped(node: cst.CSTNode, site: Site) -> Found:
    call = statement_call(node) if isinstance(node, cst.SimpleStatementLine) else None
    if call is not None and (_optimizer_step(call) or _scheduler_step(call)):
        yield Text(("pass",))


@TRAINING.rule("mode-changed", "training and evaluation mode change places", ("model.train()", "model.eval()"))
def _mode_changed(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in ("train", "eval") and not node.args:
        yield node.with_changes(func=node.func.with_changes(attr=cst.Name("eval" if node.func.attr.value == "train" else "train")))


@TRAINING.rule(
    "frozen-trained",
    "requires_grad is the other way round",
    ("p.requires_grad_(False)", "p.requires_grad_(True)"),
    ("f(x, requires_grad=False)", "f(x, requires_grad=True)"),
)
def _frozen_trained(node: cst.CSTNode, site: Site) -> Found:
    parent = site.parent(node)
    if isinstance(node, cst.Name) and node.value in ("True", "False") and isinstance(parent, cst.Arg):
        call = site.parent(parent)
        keyword = parent.keyword.value if parent.keyword is not None else ""
        if keyword == "requires_grad" or (isinstance(call, cst.Call) and name(call) == "requires_grad_"):
            yield cst.Name("False" if node.value == "True" else "True")
