"""Which way imports point, read from the syntax trees, and what importing costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = {"golden": ROOT / "src/golden", "musgd": ROOT / "src/musgd", "detector": ROOT / "src/detector", "gate": ROOT / "gate"}
OURS = set(PACKAGES)
STANDARD = set(sys.stdlib_module_names) | {"__future__"}

# What each package may import besides itself and the standard library.
ALLOWED = {
    "golden": {"torch", "numpy", "safetensors", "xxhash", "tomli", "lightning"},
    "musgd": {"torch"},
    "gate": {"golden", "numpy", "click", "rich", "deepdiff", "uv", "tomli", "coverage", "libcst", "pytest"},
    "detector": {"musgd", "golden", "torch", "numpy", "lightning", "jsonargparse", "pycocotools", "PIL", "matplotlib"},
}
# A library that one module alone may know.
ALONE = {"click": {"gate/cli.py"}, "lightning": {"src/golden/lightning.py"}}
# golden reads, compares and judges without torch, so that gate's own process never loads it.
TORCHLESS = ("leaf", "digest", "manifest", "store", "compare", "census", "errors", "profile", "hardware", "sources", "settings")


def modules(package: str) -> list[Path]:
    return sorted(PACKAGES[package].rglob("*.py")) if PACKAGES[package].is_dir() else []


def imported(tree: ast.AST) -> Iterator[str]:
    """Top-level names of the absolute imports in a syntax tree, also those inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]


def offences(package: str, path: str, source: str) -> list[str]:
    """What a module of a package imports against the rules."""
    names = set(imported(ast.parse(source))) - STANDARD - {package}
    wrong = {name for name in names if name not in ALLOWED[package]}
    wrong |= {name for name in names & set(ALONE) if name in ALLOWED[package] and package != "detector" and path not in ALONE[name]}
    return sorted(wrong)


@pytest.mark.parametrize("package", sorted(OURS))
def test_imports_point_one_way(package: str) -> None:
    """golden knows neither gate nor musgd, musgd knows torch alone, gate never reaches the code under test."""
    files = modules(package)
    assert files
    wrong = {str(p.relative_to(ROOT)): offences(package, p.relative_to(ROOT).as_posix(), p.read_text(encoding="utf-8")) for p in files}
    assert not {path: names for path, names in wrong.items() if names}


@pytest.mark.parametrize(
    ("package", "path", "source"),
    [
        ("golden", "src/golden/state.py", "import musgd"),
        ("golden", "src/golden/state.py", "def f():\n    from gate.config import find"),
        ("musgd", "src/musgd/update.py", "import numpy"),
        ("gate", "gate/verify.py", "import click"),
        ("gate", "gate/verify.py", "import torch"),
        ("gate", "gate/verify.py", "from musgd import MuSGD"),
    ],
)
def test_the_rule_sees_an_offence(package: str, path: str, source: str) -> None:
    """Each forbidden import is found, also inside a function."""
    assert offences(package, path, source)


def test_no_module_is_a_heap() -> None:
    """No module is called utils, helpers, common or misc."""
    names = {path.stem for package in OURS for path in modules(package)} | {path.stem for path in (ROOT / "tests").rglob("*.py")}
    assert names
    assert not names & {"utils", "util", "helpers", "helper", "common", "misc"}


def loaded_after(statement: str) -> set[str]:
    """Top-level modules that a fresh interpreter holds after one statement."""
    code = f"{statement}; import sys; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    return set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split())


def test_the_command_line_starts_without_torch() -> None:
    """Importing gate.cli loads no torch; importing golden.recorder does, so the question can be answered both ways."""
    assert "torch" not in loaded_after("import gate.cli")
    assert "torch" in loaded_after("import golden.recorder")


def test_the_judge_reads_without_torch() -> None:
    """golden's reading side, and golden itself, load no torch."""
    assert "torch" not in loaded_after("import golden, " + ", ".join(f"golden.{name}" for name in TORCHLESS))
