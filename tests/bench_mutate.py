"""Mutants a second, side by side with mutmut, on a small optimizer project with decorated methods: `python -m tests.bench_mutate`.

mutmut goes into a throw-away environment, by uv, that sees this one's torch. Both use tests alone and two processes, and both times hold
everything: reading, the unmutated tests, every mutant.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

OPTIMIZER = '''"""Momentum SGD with decoupled weight decay."""

import torch


class Momentum(torch.optim.Optimizer):
    """Text."""

    def __init__(self, params, lr=0.1, momentum=0.9, weight_decay=0.0, nesterov=False):
        if lr < 0 or not 0 <= momentum < 1:
            raise ValueError("out of range")
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "nesterov": nesterov})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.mul_(1 - group["lr"] * group["weight_decay"])
                buffer = self.state[p].setdefault("momentum_buffer", torch.zeros_like(p))
                buffer.mul_(group["momentum"]).add_(p.grad)
                update = p.grad + group["momentum"] * buffer if group["nesterov"] else buffer
                p.add_(update, alpha=-group["lr"])

    @torch.no_grad()
    def reset(self):
        for state in self.state.values():
            state["momentum_buffer"].zero_()
'''
SCHEDULE = '''"""A schedule and a moving average."""

import functools
import math

import torch


@functools.lru_cache(maxsize=None)
def cosine(step, steps, warm_up=2):
    if step < warm_up:
        return (step + 1) / (warm_up + 1)
    return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / (steps - warm_up)))


def scale(rows, columns):
    return math.sqrt(max(1, rows / columns))


def clip(gradients, limit):
    norm = math.sqrt(sum(float(g.square().sum()) for g in gradients))
    if norm > limit:
        for g in gradients:
            g.mul_(limit / norm)
    return norm


class Average:
    def __init__(self, params, decay=0.9):
        self.decay = decay
        self.shadow = [p.detach().clone() for p in params]

    @torch.no_grad()
    def update(self, params):
        for s, p in zip(self.shadow, params):
            s.lerp_(p, 1 - self.decay)
'''
TESTS = """
import math

import pytest
import torch

from training.optimizer import Momentum
from training.schedule import Average, clip, cosine, scale


def stepped(steps=2, **options):
    p = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    optimizer = Momentum([p], **options)
    for _ in range(steps):
        p.grad = torch.tensor([0.5, 1.0])
        optimizer.step()
    return p.detach(), optimizer


def test_momentum():
    p, _ = stepped()
    assert torch.allclose(p, torch.tensor([1.0 - 0.05 - 0.095, -2.0 - 0.1 - 0.19]))


def test_decay():
    p, _ = stepped(1, weight_decay=0.5)
    assert torch.allclose(p, torch.tensor([0.95 - 0.05, -1.9 - 0.1]))


def test_nesterov():
    p, _ = stepped(1, nesterov=True)
    assert torch.allclose(p, torch.tensor([1.0 - 0.1 * 0.95, -2.0 - 0.1 * 1.9]))


def test_reset():
    _, optimizer = stepped()
    optimizer.reset()
    assert all(not s["momentum_buffer"].any() for s in optimizer.state.values())


def test_options():
    for options in ({"lr": -1.0}, {"momentum": 1.0}, {"momentum": -0.1}):
        with pytest.raises(ValueError):
            stepped(**options)
    stepped(lr=0.0)


def test_cosine():
    assert cosine(0, 10) == pytest.approx(1 / 3)
    assert cosine(2, 10) == 1.0
    assert cosine(6, 10) == pytest.approx(0.5)
    assert cosine(10, 10) == pytest.approx(0.0)


def test_scale():
    assert scale(4, 1) == 2
    assert scale(1, 4) == 1


def test_clip():
    g = [torch.tensor([3.0]), torch.tensor([4.0])]
    assert clip(g, 10) == 5 and g[0] == 3
    assert clip(g, 1) == 5
    assert math.isclose(clip(g, 1), 1, rel_tol=1e-6)


def test_average():
    p = torch.ones(2)
    average = Average([p])
    p.zero_()
    assert average.shadow[0].tolist() == [1, 1]
    average.update([p])
    assert torch.allclose(average.shadow[0], torch.full((2,), 0.9))
"""
PROJECT = """
[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["src"]

[tool.mutmut]
source_paths = ["src/training"]
tests_dir = ["tests"]
also_copy = ["pyproject.toml"]
"""
FILES = {
    "src/training/__init__.py": "",
    "src/training/optimizer.py": OPTIMIZER,
    "src/training/schedule.py": SCHEDULE,
    "tests/test_training.py": TESTS,
    "pyproject.toml": PROJECT,
    ".gitignore": ".gate/\nmutants/\n__pycache__/\n",
}


@dataclass(frozen=True)
class Measured:
    """One tool's run."""

    tool: str
    mutants: int
    seconds: float
    functions: frozenset[str]

    @property
    def rate(self) -> float:
        """Mutants a second, everything counted."""
        return self.mutants / self.seconds


def functions() -> frozenset[str]:
    """Those of the project that do something, by "Class.name" or name."""
    found = set()
    for source in (OPTIMIZER, SCHEDULE):
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef):
                found.add(node.name)
            if isinstance(node, ast.ClassDef):
                found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return frozenset(found)


def gate(project: Path) -> Measured:
    """`gate mutate` without anything kept from before."""
    target = project.parent / "gate.json"
    command = [sys.executable, "-m", "gate", "mutate", "--jobs", "2", "--fresh", "--json", str(target)]
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begun
    assert done.returncode in (0, 1), done.stderr
    mutants = json.loads(target.read_text(encoding="utf-8"))["mutants"]
    spans = _spans()
    touched = {name for m in mutants for name, (file, first, last) in spans.items() if m["file"] == file and first <= m["line"] <= last}
    return Measured("gate mutate", len(mutants), seconds, frozenset(touched))


def _spans() -> dict[str, tuple[str, int, int]]:
    found: dict[str, tuple[str, int, int]] = {}
    for file, source in FILES.items():
        for node in ast.walk(ast.parse(source)) if file.startswith("src/") else ():
            if isinstance(node, ast.ClassDef):
                inner = [f for f in node.body if isinstance(f, ast.FunctionDef)]
                found |= {f"{node.name}.{f.name}": (file, f.lineno, f.end_lineno or 0) for f in inner}
            elif isinstance(node, ast.FunctionDef):
                found.setdefault(node.name, (file, node.lineno, node.end_lineno or 0))
    return found


def mutmut(project: Path, scratch: Path) -> Measured:
    """mutmut's own run, in an environment of its own."""
    environment, uv = scratch / "environment", Path(sysconfig.get_path("scripts")) / "uv"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, environment], check=True)
    python = environment / "bin/python"
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, "mutmut"], check=True)
    packages = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True, check=True
    )
    Path(packages.stdout.strip(), "zz_torch.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    begun = time.perf_counter()
    variables = {**os.environ, "PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [environment / "bin/mutmut", "run", "--max-children", "2"], cwd=project, env=variables, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - begun
    told = subprocess.run(
        [environment / "bin/mutmut", "results", "--all", "true"], cwd=project, env=variables, capture_output=True, text=True, check=False
    )
    names = re.findall(r"^\s*(\S+__mutmut_\d+):", told.stdout, re.MULTILINE)
    assert names, done.stdout[-2000:] + done.stderr[-2000:]
    return Measured("mutmut", len(names), seconds, frozenset(_plain(name) for name in names))


def _plain(name: str) -> str:
    """`training.optimizer.xǁMomentumǁstep__mutmut_1` as "Momentum.step"."""
    last = name.rpartition("__mutmut_")[0].rpartition(".")[2]
    return last.removeprefix("x_") if "ǁ" not in last else ".".join(last.split("ǁ")[1:])


def main() -> None:
    """Measures and prints a table for docs/benchmarks.md."""
    with tempfile.TemporaryDirectory(prefix="bench-mutate-") as name:
        scratch = Path(name).resolve()
        project = scratch / "project"
        for file, text in FILES.items():
            (project / file).parent.mkdir(parents=True, exist_ok=True)
            (project / file).write_text(text, encoding="utf-8")
        subprocess.run(["git", "init", "--quiet"], cwd=project, check=True)
        rows = [gate(project), mutmut(project, scratch), gate(project)]
    out = sys.stdout.write
    out("| tool | mutants | seconds | mutants a second | functions without a mutant |\n| --- | --- | --- | --- | --- |\n")
    for row in rows:
        blind = ", ".join(f"`{name}`" for name in sorted(functions() - row.functions)) or "none"
        out(f"| {row.tool} | {row.mutants} | {row.seconds:.1f} | {row.rate:.2f} | {blind} |\n")


if __name__ == "__main__":
    main()
