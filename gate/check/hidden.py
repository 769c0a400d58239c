"""Code that torch, or Python, runs where coverage cannot see whose it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from gate.check.outline import Function, Outline

_HOOK = re.compile(r"register_\w*hook\w*|register_hook|saved_tensors_hooks")
_COMPILE = re.compile(
    r"torch\.compile|torch\._dynamo\.\w+|torch\.jit\.\w+|torch\.export\.\w+|jit\.(script|trace)\w*|triton\.\w*jit|numba\.\w+"
)
_CACHE = re.compile(r"(functools\.)?(cache|lru_cache|cached_property)")
_WORKER = ("collate_fn", "worker_init_fn")
_AUTOGRAD = {"forward", "backward", "jvp", "vjp", "vmap", "setup_context"}
_LOADED = {"__getitem__", "__getitems__", "__iter__", "__next__"}
_DATASET = re.compile(r"(\w+\.)*\w*(Dataset|Sampler|Loader|DataPipe)")

HOOK = "a hook, which autograd may call from threads that coverage does not trace"
FUNCTION = "part of an autograd.Function, which autograd may call from threads that coverage does not trace"
COMPILED = "compiled by torch, so that coverage does not see its lines run"
LOADED = "run by the workers of a DataLoader, whose end may come before they tell what they ran"
CACHED = "kept by a cache, so that only the first one who calls it is seen"
DEVICE = "about a CUDA device, where kernels and threads of the driver run what coverage does not see"


def reason(outline: Outline, function: Function, elsewhere: Mapping[str, str] | None = None) -> str | None:
    """Why coverage cannot tell who runs a function; None where it can.

    Args:
        outline: of its file.
        function: the function.
        elsewhere: what `handed` gives of other files.
    """
    given = {**(elsewhere or {}), **dict(_given(outline.tree))}
    found: Function | None = function
    while found is not None:
        told = _decorated(found) or given.get(found.node.name) or _method(found) or (DEVICE if _mentions_device(found.node) else None)
        if told:
            return told
        found = found.outer
    return None


def handed(tree: ast.Module) -> dict[str, str]:
    """Last names of functions that a file hands, by their names, to what calls them unseen, and why: they may stand in another file."""
    return dict(_given(tree, plainly=True))


def dotted(node: ast.AST) -> str:
    """The names of an expression such as `torch.optim.SGD`; "" for another expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


def _given(tree: ast.Module, *, plainly: bool = False) -> Iterator[tuple[str, str]]:
    """Names of functions that are handed to what calls them unseen, and why; `plainly` leaves out names within other expressions."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = dotted(node.func)
        told = HOOK if _HOOK.fullmatch(called.rpartition(".")[2]) else COMPILED if _COMPILE.fullmatch(called) else None
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)] if told else []
        workers = [keyword.value for keyword in node.keywords if keyword.arg in _WORKER]
        for argument, why in [*((argument, told or "") for argument in arguments), *((argument, LOADED) for argument in workers)]:
            names = _names(argument) if not plainly else [dotted(argument).rpartition(".")[2]] if dotted(argument) else []
            yield from ((name, why) for name in names)


def _names(argument: ast.expr) -> Iterator[str]:
    """Last names in an argument, also within a partial or a lambda: `self._hook` gives "_hook"."""
    for node in ast.walk(argument):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _decorated(function: Function) -> str | None:
    for decorator in function.node.decorator_list:
        name = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if _COMPILE.fullmatch(name):
            return COMPILED
        if _CACHE.fullmatch(name):
            return CACHED
    return None


def _method(function: Function) -> str | None:
    """Methods that a base class calls from elsewhere."""
    bases = [dotted(base) for kind in function.classes[-1:] for base in kind.bases]
    if function.node.name in _AUTOGRAD and any(base.rpartition(".")[2] == "Function" for base in bases):
        return FUNCTION
    if function.node.name in _LOADED and any(_DATASET.fullmatch(base) for base in bases):
        return LOADED
    return None


def _mentions_device(node: ast.AST) -> bool:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and inner.attr in ("cuda", "CUDAGraph", "is_cuda"):
            return True
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and re.fullmatch(r"cuda(:\d+)?", inner.value):
            return True
    return False
