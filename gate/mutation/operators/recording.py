"""Faults of code that records work once and replays it: what it puts back, what it gives up, what it waits for, what it reads anew."""

# ruff: noqa: SIM102  (the outer condition tells the kind of node, the inner one what it says)

from __future__ import annotations

import re

import libcst as cst

from gate.mutation.operator import Found, Registry, Site, Text
from gate.mutation.syntax import DECAY, MOMENTUM, index_of, mentions, name, statement_call

RECORDING = Registry("recording")

_RESTORES = re.compile(r"restore|copy_$|load_state|put_back|reset|set_rng|wait_stream|synchronize|enable|tidy|release|rollback|undo")
_RELEASES = ("release", "clear", "reset", "invalidate", "drop", "discard", "popitem")
_RELOADS = ("load_state_dict", "__setstate__", "add_param_group", "load", "reload", "_apply", "release", "drop")
_RATE = re.compile(r"^(lr|learning_rate|coefficients?|c|scale|alpha|step_size)$")


@RECORDING.rule(
    "restore-dropped",
    "what a failure changed is not put back",
    ("try:\n    f()\nfinally:\n    restore()", "try:\n    f()\nfinally:\n    pass"),
    ("try:\n    f()\nexcept ValueError:\n    x.copy_(kept)\n    raise", "try:\n    f()\nexcept ValueError:\n    pass\n    raise"),
)
def _restore_dropped(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.SimpleStatementLine) and not isinstance(node.body[0], (cst.Raise, cst.Pass, cst.Return, cst.Continue)):
        if _in_failure_path(node, site) and statement_call(node) is not None:
            yield Text(("pass",))


def _in_failure_path(node: cst.CSTNode, site: Site) -> bool:
    step = site.parent(node)
    while step is not None and not isinstance(step, (cst.FunctionDef, cst.Lambda)):
        if isinstance(step, (cst.Finally, cst.ExceptHandler)):
            return True
        step = site.parent(step)
    return False


@RECORDING.rule(
    "warm-up-restore-dropped",
    "one of two restores around warm-ups is dropped, or one warm-up of several",
    (
        "def f():\n    warm_up()\n    restore(x)\n    capture()\n    restore(x)",
        "def f():\n    warm_up()\n    pass\n    capture()\n    restore(x)",
    ),
    ("def f():\n    for _ in range(WARM_UPS):\n        warm_up()", "def f():\n    for _ in range(WARM_UPS - 1):\n        warm_up()"),
)
def _warm_up_restore_dropped(node: cst.CSTNode, site: Site) -> Found:
    call = statement_call(node) if isinstance(node, cst.SimpleStatementLine) else None
    warm = mentions(site.function_text, "warm")
    if call is not None and site.functions and warm and _RESTORES.search(name(call)) and site.function_text.count(site.text(call)) > 1:
        yield Text(("pass",))
    if isinstance(node, cst.Call) and name(node) == "range" and len(node.args) == 1 and mentions(site.text(node.args[0].value), "warm"):
        yield node.with_changes(args=[cst.Arg(cst.BinaryOperation(node.args[0].value, cst.Subtract(), cst.Integer("1")))])


@RECORDING.rule(
    "recording-kept",
    "a recording outlives what it was made for",
    (
        "def load_state_dict(self, state):\n    self.release()\n    self.state = state",
        "def load_state_dict(self, state):\n    pass\n    self.state = state",
    ),
    ("def release(self):\n    self.graphs.clear()", "def release(self):\n    pass"),
)
def _recording_kept(node: cst.CSTNode, site: Site) -> Found:
    call = statement_call(node) if isinstance(node, cst.SimpleStatementLine) else None
    if call is not None and site.function_name in _RELOADS and name(call) in _RELEASES:
        yield Text(("pass",))


@RECORDING.rule(
    "coefficient-frozen",
    "a coefficient stays what it was when the work was recorded",
    ("live.write(coefficients)", "pass"),
    ("self.lr.fill_(lr)", "pass"),
    ("if bits != self._written:\n    self.vector.fill_(1)", "if self._written is None:\n    self.vector.fill_(1)"),
)
def _coefficient_frozen(node: cst.CSTNode, site: Site) -> Found:
    call = statement_call(node) if isinstance(node, cst.SimpleStatementLine) else None
    if call is not None and name(call) in ("write", "fill_", "copy_", "set_", "update") and call.args:
        words = [name(arg.value) for arg in call.args]
        if any(_RATE.match(w) or DECAY.search(w) or MOMENTUM.search(w) or "coefficient" in w for w in words):
            yield Text(("pass",))
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1 and isinstance(node.comparisons[0].operator, cst.NotEqual):
        other = node.comparisons[0].comparator
        if isinstance(other, cst.Attribute) and mentions(name(other), "written", "last", "previous", "captured"):
            yield cst.Comparison(other, [cst.ComparisonTarget(cst.Is(), cst.Name("None"))])


@RECORDING.rule(
    "wait-dropped",
    "nobody waits for the other stream or the device",
    ("torch.cuda.synchronize()", "pass"),
    ("current.wait_stream(self.stream)", "pass"),
)
def _wait_dropped(node: cst.CSTNode, site: Site) -> Found:
    call = statement_call(node) if isinstance(node, cst.SimpleStatementLine) else None
    if call is not None and name(call) in ("synchronize", "wait_stream", "wait_event", "record_event", "barrier", "wait"):
        yield Text(("pass",))


@RECORDING.rule(
    "key-shortened",
    "what a recording is found by lacks its last part",
    ('def key():\n    return "updates", shapes, form', 'def key():\n    return "updates", shapes'),
)
def _key_shortened(node: cst.CSTNode, site: Site) -> Found:
    if isinstance(node, cst.Tuple) and len(node.elements) > 2 and mentions(site.function_name, "key", "facts", "signature"):
        if isinstance(site.parent(node), cst.Return):
            last = node.elements[-2].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            yield node.with_changes(elements=[*node.elements[:-2], last])


@RECORDING.rule(
    "guard-dropped",
    "a context that switches gradients, autocast or collection off does nothing",
    ("with torch.no_grad():\n    f()", "with __import__('contextlib').nullcontext():\n    f()"),
    ("@torch.no_grad()\ndef step(self):\n    f()", "# no_grad dropped\ndef step(self):\n    f()"),
)
def _guard_dropped(node: cst.CSTNode, site: Site) -> Found:
    guards = ("no_grad", "inference_mode", "autocast", "enable_grad", "_no_collection", "set_grad_enabled", "device", "stream")
    parent = site.parent(node)
    if isinstance(node, cst.Call) and name(node) in guards and isinstance(parent, cst.WithItem) and parent.asname is None:
        yield cst.parse_expression("__import__('contextlib').nullcontext()")
    if isinstance(node, cst.Decorator) and name(node.decorator) in guards:
        holder = site.parent(node)
        if isinstance(holder, cst.FunctionDef) and index_of(holder.decorators, node) >= 0:
            yield Text(("# no_grad dropped",))
