"""What pytest collects from a file, held to pytest itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gate.trailers.collected import Names

SOURCE = """
import unittest
from functools import partial
import pytest

if True:
    def test_under_a_condition(): pass
try:
    import nosuchmodule
except ImportError:
    async def test_in_a_handler(): pass

def test_plain(): pass
def helper(): pass
def testing(): pass

@pytest.fixture
def test_fixture(): pass

test_number = 3
test_made = lambda: None

class TestA:
    def test_b(self): pass
    def helper(self): pass
    class TestInner:
        def test_c(self): pass
    class Other:
        def test_d(self): pass

class TestConstructed:
    def __init__(self): pass
    def test_e(self): pass

class TestDenied:
    __test__ = False
    def test_f(self): pass

class Base:
    def test_g(self): pass

class TestDerived(Base):
    def test_h(self): pass

class Arithmetic(unittest.TestCase):
    def test_i(self): pass
    def helper(self): pass

class More(Arithmetic):
    def test_j(self): pass

class TestEmpty:
    def helper(self): pass
"""
SETTINGS = {
    "none": {},
    "pyproject": {"pyproject.toml": '[tool.pytest.ini_options]\npython_files = ["check_*.py"]\npython_functions = "test *per"\n'},
    "ini": {"pytest.ini": "[pytest]\npython_files = check_*.py\npython_classes = Test Other Ba?e\n"},
    "an empty ini comes first": {
        ".pytest.ini": "", "pyproject.toml": '[tool.pytest.ini_options]\npython_files = ["check_*.py"]\n'
    },
    "setup.cfg": {"setup.cfg": "[tool:pytest]\npython_files = more/test_*.py\n"},
    "tox": {"tox.ini": "[pytest]\npython_files =\n    check_*.py\n    *_test.py\n"},
}  # fmt: skip
FILES = ("test_a.py", "a_test.py", "check_a.py", "a.py", "more/test_b.py")


def collected(folder: Path) -> set[str]:
    """What pytest says that it collects."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-W", "ignore"]
    told = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout
    return {line for line in told.splitlines() if "::" in line}


def read(folder: Path, names: Names) -> set[str]:
    """What is read without it; classes are left out."""
    found = {f"{file}::{name}" for file in FILES if names.has_file(file) for name in names.tests((folder / file).read_text())}
    return {name for name in found if not any(other.startswith(f"{name}::") for other in found)}


@pytest.mark.parametrize("setting", SETTINGS)
def test_it_is_what_pytest_collects(tmp_path: Path, setting: str) -> None:
    for name, text in {**dict.fromkeys(FILES, SOURCE), **SETTINGS[setting]}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    names = Names.of(lambda file: (tmp_path / file).read_text() if (tmp_path / file).is_file() else None)
    expected = collected(tmp_path)
    assert len(expected) > 5
    assert read(tmp_path, names) == expected


@pytest.mark.parametrize("text", ["def test_a(:", "test_a = 1\0", "(" * 100_000])
def test_what_does_not_parse_holds_no_test(text: str) -> None:
    assert Names().tests(text) == frozenset()


@pytest.mark.parametrize("text", ["[pytest", "[pytest]\npython_files = 'open", "python_files = x"])
def test_a_configuration_that_cannot_be_read_leaves_the_usual_names(text: str) -> None:
    assert Names.of({"pytest.ini": text}.get) == Names()
