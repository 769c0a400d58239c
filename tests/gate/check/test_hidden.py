"""Functions that coverage cannot tell the callers of."""

from __future__ import annotations

import pytest

from gate.check import hidden
from gate.check.outline import Outline


def reason(source: str, name: str = "f") -> str | None:
    outline = Outline.of(source)
    assert outline is not None
    function = outline.function(name)
    assert function is not None
    return hidden.reason(outline, function)


PLAIN = "def f(x):\n    return x\n"
METHOD = "class C({base}):\n    def {name}(self, x):\n        return x\n"


@pytest.mark.parametrize(
    ("source", "name", "expected"),
    [
        (f"{PLAIN}t.register_hook(f)\n", "f", hidden.HOOK),
        (f"{PLAIN}p.register_post_accumulate_grad_hook(partial(f, 1))\n", "f", hidden.HOOK),
        (f"{PLAIN}m.register_full_backward_hook(lambda *a: f(a))\n", "f", hidden.HOOK),
        ("class C:\n    def a(self, t):\n        t.register_hook(self.f)\n\n    def f(self, g):\n        return g\n", "C.f", hidden.HOOK),
        ("def a(t):\n    def f(g):\n        return g\n    t.register_hook(f)\n", "a.f", hidden.HOOK),
        (METHOD.format(base="torch.autograd.Function", name="backward"), "C.backward", hidden.FUNCTION),
        (f"@torch.compile\n{PLAIN}", "f", hidden.COMPILED),
        (f"@torch.compile(dynamic=True)\n{PLAIN}", "f", hidden.COMPILED),
        (f"{PLAIN}g = torch.compile(f)\n", "f", hidden.COMPILED),
        (f"@triton.jit\n{PLAIN}", "f", hidden.COMPILED),
        (METHOD.format(base="Dataset", name="__getitem__"), "C.__getitem__", hidden.LOADED),
        (f"{PLAIN}DataLoader(data, collate_fn=f)\n", "f", hidden.LOADED),
        (f"@functools.lru_cache(maxsize=None)\n{PLAIN}", "f", hidden.CACHED),
        ("def f(x):\n    return x.cuda()\n", "f", hidden.DEVICE),
        ("def f(x):\n    return x.to('cuda:0')\n", "f", hidden.DEVICE),
    ],
)
def test_what_torch_calls_unseen_is_hidden(source: str, name: str, expected: str) -> None:
    assert reason(source, name) == expected


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (PLAIN, "f"),
        (f"{PLAIN}re.compile(f)\n", "f"),
        (f"{PLAIN}t.register_buffer(f)\n", "f"),
        (METHOD.format(base="Module", name="backward"), "C.backward"),
        (METHOD.format(base="Mapping", name="__getitem__"), "C.__getitem__"),
    ],
)
def test_what_python_calls_is_not(source: str, name: str) -> None:
    """The negative control: the same functions, given to nobody."""
    assert reason(source, name) is None
