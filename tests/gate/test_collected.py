"""Whether pytest collects a test from a file, held to pytest itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from gate.collected import Answer, Collected
from tests.gate.repositories import write

SOURCE = """
import unittest
from functools import partial
import pytest
import sub.base
from sub import base as case
from sub.base import Base as Far, Unit, TestFar, test_far, Chosen
from sub.stars import *

if True:
    def test_under_a_condition(): pass
    class TestUnderACondition:
        def test_o(self): pass
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
test_again = test_plain

class TestA:
    if True:
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

class TestAllowed(TestDenied):
    __test__ = True

class Chosen(Chosen):
    pass

class Base:
    def test_g(self): pass

class TestDerived(Base):
    def test_h(self): pass

class TestTwice(TestDerived):
    test_g = None

TestBound = TestTwice
Unbound = TestTwice

class Arithmetic(unittest.TestCase):
    def test_i(self): pass
    def helper(self): pass

class More(Arithmetic):
    def test_j(self): pass

class TestEmpty:
    def helper(self): pass

class TestNear(Far): pass
class TestNearer(case.Base): pass
class TestNearest(sub.base.Base): pass
class UnitFar(Unit): pass
class TestStarred(Starred): pass

@pytest.mark.skipif(False, reason="")
class TestMarked(Far):
    pass
"""
BASE = """
import unittest
from .deep.module import Deep

class Base(Deep):
    def test_k(self): pass
    def helper(self): pass

class Unit(unittest.TestCase):
    def test_l(self): pass

class TestFar(Base):
    def test_m(self): pass

class Chosen:
    __test__ = True
    def test_n(self): pass

def test_far(): pass
"""
PACKAGE = {
    "sub/__init__.py": "",
    "sub/base.py": BASE,
    "sub/stars.py": "from .base import Base as Starred\n\ndef test_star(): pass\n",
    "sub/deep/module.py": "from .. import other\n\nclass Deep(other.Deeper):\n    def test_p(self): pass\n",
    "sub/other.py": "class Deeper:\n    def test_q(self): pass\n",
}
SETTINGS = {
    "none": {},
    "pyproject": {"pyproject.toml": '[tool.pytest.ini_options]\npython_files = ["check_*.py"]\npython_functions = "test *per"\n'},
    "ini": {"pytest.ini": "[pytest]\npython_files = check_*.py\npython_classes = Test Other Ba?e\n"},
    "an empty ini comes first": {
        ".pytest.ini": "", "pyproject.toml": '[tool.pytest.ini_options]\npython_files = ["check_*.py"]\n'
    },
    "setup.cfg": {"setup.cfg": "[tool:pytest]\npython_files = more/test_*.py\npythonpath = .\n"},
    "tox": {"tox.ini": "[pytest]\npython_files =\n    check_*.py\n    *_test.py\n"},
}  # fmt: skip
FILES = ("test_a.py", "a_test.py", "check_a.py", "a.py", "more/test_b.py")


def collected(folder: Path) -> set[str]:
    """What pytest says that it collects."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-W", "ignore"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "error" not in done.stdout, done.stdout
    return {line for line in done.stdout.splitlines() if "::" in line}


def candidates() -> set[str]:
    """Every function's name, alone and in every class, and in a class of every class."""
    nodes = [node for text in (SOURCE, *PACKAGE.values()) for node in ast.walk(ast.parse(text))]
    functions = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    functions |= {"test_number", "test_made", "test_again", "test_nowhere"}
    classes = {node.name for node in nodes if isinstance(node, ast.ClassDef)} | {"TestBound", "Unbound", "Far", "Starred", "TestNowhere"}
    inner = {f"{outer}::{name}" for outer in ("TestA", "TestDerived", "TestEmpty") for name in ("TestInner", "Other", "Base")}
    return functions | {f"{scope}::{name}" for scope in classes | inner for name in functions}


@pytest.mark.parametrize("setting", SETTINGS)
def test_it_is_what_pytest_collects(tmp_path: Path, setting: str) -> None:
    """And nothing else: of every name that could be there."""
    write(tmp_path, {**dict.fromkeys(FILES, SOURCE), **PACKAGE, **SETTINGS[setting]})
    tests = Collected(lambda file: (tmp_path / file).read_text() if (tmp_path / file).is_file() else None)
    ours = {f"{file}::{name}" for file in FILES for name in candidates() if tests.answer(file, name) is not Answer.NONE}
    expected = collected(tmp_path)
    assert len(expected) > 20
    assert ours == expected


UNREAD = """
import outside
from outside import Far, test_far, Thing
from made import make, Local

class TestFar(Far):
    def test_own(self): pass
class TestDotted(outside.case.Far): pass
class TestMade(make(Local)): pass
class TestMeta(metaclass=outside.Meta): pass
class TestMissing(Local.Inner): pass
class Helper(Far): pass
class TestGeneric(outside.Generic[int], Local): pass

@outside.extend
class TestDecorated: pass

TestCalled = make()
class TestClosed(Local): pass
class TestObject(object): pass
"""
MADE = "class Local:\n    def test_near(self): pass\ndef make(*_): return Local\n"


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("test_far", "unread"),
        ("TestFar::test_own", "test"),
        *((f"{name}::test_x", "unread") for name in ("TestFar", "TestDotted", "TestMade", "TestMeta", "TestMissing", "Helper", "Thing")),
        *((f"{name}::test_x", "unread") for name in ("TestDecorated", "TestCalled")),
        ("TestFar::runTest", "unread"),
        ("TestFar::helper", "none"),
        ("TestFar", "class"),
        ("TestGeneric::test_near", "test"),
        ("TestGeneric::test_x", "none"),
        ("TestClosed::test_near", "test"),
        ("TestClosed::test_x", "none"),
        ("TestClosed", "class"),
        ("TestObject::test_x", "none"),
        ("TestObject", "none"),
        ("test_x", "none"),
        ("TestGone::test_x", "none"),
    ],
)
def test_what_its_syntax_does_not_tell_is_said_to_be_unread(name: str, answer: str) -> None:
    """A base or a decorator of another project, or one that is made as the file runs; a name that begins as no test's is none anyway."""
    read = {"tests/test_a.py": UNREAD, "tests/made.py": MADE}
    assert Collected(read.get).answer("tests/test_a.py", name).value == answer


@pytest.mark.parametrize(
    "text", ["globals()['test_x'] = f", "from outside import *", "class TestA:\n    locals()['test_x'] = f", "setattr(A, 'b', f)"]
)
def test_names_that_come_as_a_file_runs_are_unread(text: str) -> None:
    names = ("test_x", "helper", "TestB")
    expected = [Answer.UNREAD, Answer.NONE, Answer.UNREAD]
    assert [Collected({"test_a.py": text}.get).answer("test_a.py", name) for name in names] == expected
    quiet = "def test_a(monkeypatch):\n    monkeypatch.setattr(A, 'b', f)\n    exec('x = 1')\n"
    assert [Collected({"test_a.py": quiet}.get).answer("test_a.py", name) for name in names] == [Answer.NONE] * 3


@pytest.mark.parametrize("text", ["def test_a(:", "test_a = 1\0", "(" * 100_000])
def test_what_does_not_parse_holds_no_test(text: str) -> None:
    assert Collected({"test_a.py": text}.get).answer("test_a.py", "test_a") is Answer.NONE


@pytest.mark.parametrize(
    "text",
    [
        "class TestA(TestA): pass", "class TestA(TestB): pass\nclass TestB(TestA): pass", "TestA = TestA\nTestA = TestA",
        "from test_a import TestA", "from test_a import *",
        "class TestA:\n    class TestB(TestA): pass\nclass TestA(TestA):\n    TestB = TestA\n",
    ],
)  # fmt: skip
def test_circles_end(text: str) -> None:
    tests = Collected({"test_a.py": text}.get)
    assert {tests.answer("test_a.py", name) for name in ("helper", "TestA::helper")} == {Answer.NONE}
    assert tests.answer("test_a.py", "TestA::test_b") in (Answer.NONE, Answer.UNREAD)


@pytest.mark.parametrize("text", ["[pytest", "[pytest]\npython_files = 'open", "python_files = x"])
def test_a_configuration_that_cannot_be_read_leaves_the_usual_names(text: str) -> None:
    tests = Collected({"pytest.ini": text, "test_a.py": "def test_a(): pass", "x": "def test_a(): pass"}.get)
    assert [tests.answer(file, "test_a") for file in ("test_a.py", "x")] == [Answer.TEST, Answer.NONE]
