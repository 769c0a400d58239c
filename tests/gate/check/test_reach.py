"""Which files import which."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest

from gate.check.reach import Reach

PACKAGE = {
    "src/lib/__init__.py": "",
    "src/lib/a.py": "from . import b\n",
    "src/lib/b.py": "X = 1\n",
    "src/lib/deep/__init__.py": "",
    "src/lib/deep/c.py": "from ..b import X\n",
    "src/lib/alone.py": "",
    "tests/conftest.py": "",
    "tests/projects.py": "",
}


def reach(files: Mapping[str, str], path: str) -> set[str]:
    trees = {name: ast.parse(text) for name, text in {**PACKAGE, **files}.items()}
    return set(Reach(trees).of(path)) - {path, "tests/conftest.py"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import lib.a", {"__init__", "a", "b"}),
        ("from lib import b", {"__init__", "b"}),
        ("from lib.deep.c import X", {"__init__", "deep/__init__", "deep/c", "b"}),
        ("def f():\n    import lib.b", {"__init__", "b"}),
        ("import importlib\nimportlib.import_module('lib.b')", {"__init__", "b"}),
        ("run([sys.executable, '-m', 'lib.b'])", {"__init__", "b"}),
        ("SCRIPT = 'src/lib/b.py'", {"b"}),
        ("NAME = 'lib.b'", set()),
        ("import os", set()),
    ],
)
def test_imports_are_followed_wherever_they_stand(source: str, expected: set[str]) -> None:
    """Within functions, relative ones, names in strings where modules are run by name; not where they are not."""
    assert reach({"tests/test_x.py": source}, "tests/test_x.py") == {f"src/lib/{name}.py" for name in expected}


def test_a_test_reaches_the_conftest_above_it_and_what_that_imports() -> None:
    trees = {name: ast.parse(text) for name, text in {**PACKAGE, "tests/conftest.py": "import lib.b", "tests/deep/test_x.py": ""}.items()}
    assert {"tests/conftest.py", "src/lib/b.py"} <= Reach(trees).of("tests/deep/test_x.py")
    assert "tests/conftest.py" not in Reach(trees).of("src/lib/a.py")


def test_a_folder_that_is_no_package_is_found_by_every_name_it_may_have() -> None:
    for name in ("tests.projects", "projects"):
        assert reach({"tests/test_x.py": f"import {name}"}, "tests/test_x.py") == {"tests/projects.py"}


def test_a_module_of_the_standard_library_is_not_taken_for_one_of_ours() -> None:
    assert reach({"tests/types.py": "", "tests/test_x.py": "import types"}, "tests/test_x.py") == set()


def test_a_script_of_a_bare_name_stands_beside_who_names_it() -> None:
    files = {"a/run.py": "NAME = 'main.py'", "a/deep/main.py": "", "b/main.py": ""}
    assert reach(files, "a/run.py") == {"a/deep/main.py"}
