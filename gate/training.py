"""Finds in a syntax tree where an optimizer steps, and what the variables around it are called."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MODULE = "<module>"  # Python's name of the code outside any function
_NO_OPTIMIZER = re.compile(r"sched|scaler|prof|writer|(^|[._])(ema|swa|env|p?bar)$", re.IGNORECASE)
_WRAPPER = re.compile(r"fabric|accelerator|engine|manager", re.IGNORECASE)  # what calls backward for others
_SCHEDULER = re.compile(r"lr_scheduler|LR$|Scheduler$|Restarts$|_scheduler$|_schedule_\w+$")


@dataclass(frozen=True)
class Training:
    """Where a script trains. Everything but the function's name is an expression of that function: "model", "self.optimizer".

    Attributes:
        function: the function that calls the optimizer's step, "<module>" for code outside any.
        optimizers: in the order of their steps; at least one.
        models: whose parameters they change; at least one.
        losses: of which backward is called there, in that order.
        schedulers: of learning rates.
    """

    function: str
    optimizers: tuple[str, ...]
    models: tuple[str, ...]
    losses: tuple[str, ...] = ()
    schedulers: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Scope:
    """A function, or the code outside any, with the nodes that are its own."""

    name: str
    nodes: tuple[ast.AST, ...]
    names: frozenset[str]  # that it assigns, or is given


@dataclass(frozen=True)
class Construction:
    """`target = Optimizer(model.parameters(), ...)`; no target where it is returned or passed on."""

    target: str | None
    models: tuple[str, ...]
    text: str


def find(tree: ast.Module, made: tuple[Construction, ...]) -> Training | None:
    """The first place that both steps and calls backward, else the first that steps."""
    scopes = list(_scopes(tree))
    schedulers = {target for target, call in _assigned_calls(tree) if _SCHEDULER.search(source(call.func))}
    found = [training for scope in scopes if (training := _in(scope, scopes[0], made, schedulers))]
    return next((training for training in found if training.losses), found[0] if found else None)


def _in(scope: _Scope, outside: _Scope, made: tuple[Construction, ...], schedulers: set[str]) -> Training | None:
    calls = [node for node in scope.nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    calls.sort(key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0))
    known = {item.target for item in made}
    optimizers = list(dict.fromkeys(filter(None, (_stepping(call, known, schedulers) for call in calls))))
    visible = scope.names | outside.names
    makers = [item for item in made if item.target in optimizers] or list(made)
    models = [model for item in makers for model in item.models if _root(model) in visible] or _guessed(scope, calls)
    losses = [loss for call in calls if (loss := _loss(call, scope.names))]
    if not optimizers or not models:
        return None
    here = sorted(text for text in schedulers if _root(text) in visible)
    return Training(scope.name, tuple(optimizers), _unique(models), _unique(losses), tuple(here))


def _stepping(call: ast.Call, known: set[str | None], schedulers: set[str]) -> str | None:
    """The optimizer that a call steps: `optimizer.step()`, `scaler.step(optimizer)`."""
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr != "step":
        return None
    owner, given = _chain(call.func.value), _chain(call.args[0]) if call.args else None
    if given is not None and (given in known or (owner not in known and "opt" in given.lower())):
        return given
    if owner is None or owner in schedulers:
        return None
    by_name = "opt" in owner.lower()
    return owner if by_name or (owner in known and not _NO_OPTIMIZER.search(owner)) else None


def _loss(call: ast.Call, names: frozenset[str]) -> str | None:
    """The loss of a backward: `loss.backward()`, `scaler.scale(loss / 2).backward()`, `fabric.backward(loss)`."""
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr != "backward":
        return None
    wrapped = call.args and _WRAPPER.search(source(call.func.value))
    return _variable(call.args[0] if wrapped else call.func.value, names)


def _variable(node: ast.expr, names: frozenset[str]) -> str | None:
    """The variable that an expression scales, divides or reduces; None for what has no name, as a loss that is computed right there."""
    if isinstance(node, ast.BinOp):
        return _variable(node.left, names) or _variable(node.right, names)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("scale", "mean", "sum"):
        return _variable(node.args[0] if node.args else node.func.value, names)
    chain = _chain(node)
    return chain if chain is not None and _root(chain) in names else None


def _guessed(scope: _Scope, calls: list[ast.Call]) -> list[str]:
    """The model where the optimizer was made elsewhere: what is told `train()`, else what is called by a name like model or net."""
    methods = [call.func for call in calls if isinstance(call.func, ast.Attribute) and not call.args]
    told = [_chain(method.value) for method in methods if method.attr == "train"]
    called = [_chain(node.func) for node in scope.nodes if isinstance(node, ast.Call)]
    named = [text for text in called if text and re.search(r"model|net", text, re.IGNORECASE)]
    return [text for text in (*told, *named) if text and _root(text) in scope.names and text != "self"][:1]


def constructions(tree: ast.Module) -> Iterator[Construction]:
    """The calls that make an optimizer: of torch.optim, or given somebody's parameters."""
    origins = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "torch.optim"]
    names = {alias.asname or alias.name for node in origins for alias in node.names}
    targets = {id(call): target for target, call in _assigned_calls(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (node.args or node.keywords):
            called, models = source(node.func), tuple(_owners(node))
            a_class = called.rpartition(".")[2][:1].isupper()
            ours = called in names or re.search(r"\boptim\.\w+$", called)
            if (ours or (models and a_class)) and not _SCHEDULER.search(called):
                yield Construction(targets.get(id(node)), models, source(node))


def _owners(call: ast.Call) -> Iterator[str]:
    """Whose parameters are given: `model.parameters()`, `param_groups(model)`."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    for node in (node for argument in given for node in ast.walk(argument)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("parameters", "named_parameters"):
            owner = _chain(node.func.value)
        elif isinstance(node, ast.Call) and "param" in source(node.func) and node.args:
            owner = _chain(node.args[0])
        else:
            continue
        if owner is not None:
            yield owner


def _assigned_calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from (
                    (text, value) for one, value in _pairs(target, node.value) if isinstance(value, ast.Call) and (text := _chain(one))
                )


def _pairs(target: ast.expr, value: ast.expr | None) -> list[tuple[ast.expr, ast.expr | None]]:
    """What is assigned to what: `a, b = f(), g()` is two."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=False))
    return [(target, value)]


def _scopes(tree: ast.Module) -> Iterator[_Scope]:
    """The code outside any function, then every function, methods and nested ones too."""
    yield _scope(MODULE, tree.body, ())
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            arguments = node.args
            given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
            yield _scope(node.name, node.body, (argument.arg for argument in given if argument))


def _scope(name: str, body: Iterable[ast.stmt], given: Iterable[str]) -> _Scope:
    nodes = tuple(_own(body))
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    imported = {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
    return _Scope(name, nodes, frozenset(stored | imported | set(given)))


def _own(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes below some statements but those of functions and classes in them."""
    for node in body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield node
            yield from _own(ast.iter_child_nodes(node))


def _chain(node: ast.AST) -> str | None:
    """A variable with attributes, as text; None for any other expression."""
    text = source(node)
    return text if re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", text) else None


def source(node: ast.AST) -> str:
    """The source of a node, in one form."""
    return ast.unparse(node)


def _root(text: str) -> str:
    return text.partition(".")[0]


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
