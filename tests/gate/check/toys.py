"""A project of a few lines with tests, in a repository of its own, and how to check it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from gate import config
from gate.check.judge import Asked, check
from gate.check.result import Checked
from gate.progress import Silent
from tests.gate.repositories import commit, init, write

LIBRARY = '''"""A library."""

LIMIT = 3


class Scale:
    factor = 2

    def of(self, x):
        return self.factor * x


def double(x):
    return helper(x)


def half(x):
    # in two
    return x / 2


def helper(x):
    return 2 * x


def never():
    return 1
'''

HOOKS = """
def attach(tensor):
    tensor.register_hook(scale)


def scale(gradient):
    return gradient * 2
"""

TESTS = """
import os
import subprocess
import sys

import lib
import pytest


@pytest.fixture(scope="module")
def shared():
    return lib.Scale().of(3)


def test_double():
    assert lib.double(2) == 4


def test_helper():
    assert lib.helper(3) == 6


@pytest.mark.parametrize("x", ["a b", "ü", "[1,2]", "$HOME"])
def test_half_in_a_process(x):
    subprocess.run([sys.executable, "-c", "import lib; assert lib.half(2) == 1"], check=True)


def test_half_in_a_fork():
    child = os.fork()
    if child == 0:
        os._exit(0 if lib.half(4) == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_shared_first(shared):
    assert shared == 6


def test_shared_second(shared):
    assert shared == 6


def test_skipped():
    pytest.skip("not here")
"""

OTHERS = '''
from pathlib import Path


def test_reads():
    assert Path("data.txt").read_text()


def test_hooks():
    """The hook is given away and not called, as far as Python sees."""
    import hooks

    given = []
    hooks.attach(type("Tensor", (), {"register_hook": lambda self, hook: given.append(hook)})())
    assert given


def test_alone():
    assert 1 + 1 == 2
'''

FILES = {
    "pyproject.toml": "[tool.gate]\n[tool.pytest.ini_options]\naddopts = ['-ra']\n",
    "lib.py": LIBRARY,
    "hooks.py": HOOKS,
    "test_lib.py": TESTS,
    "test_others.py": OTHERS,
    "data.txt": "hello\n",
    "README.md": "# A library\n",
}


@dataclass(frozen=True)
class Toy:
    """A project's folder."""

    folder: Path

    @classmethod
    def new(cls, folder: Path, files: Mapping[str, str] = FILES) -> Toy:
        """A project with one commit."""
        init(folder)
        commit(folder, files)
        return cls(folder)

    def copy(self, folder: Path) -> Toy:
        """The same, with what is known of its tests, elsewhere: nothing in it names a folder."""
        shutil.copytree(self.folder, folder)
        return Toy(folder)

    def write(self, files: Mapping[str, str | bytes | None]) -> Toy:
        """Changes files without a commit."""
        write(self.folder, files)
        return self

    def replace(self, path: str, old: str, new: str) -> Toy:
        """Changes a piece of a file."""
        text = (self.folder / path).read_text()
        assert text.count(old) == 1
        return self.write({path: text.replace(old, new)})

    def check(self, since: str | None = "HEAD", *, everything: bool = False, jobs: int = 1) -> Checked:
        """Checks it, in a pytest without plugins of others, whose start takes as long as all the rest."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
            patch.delenv("PYTEST_ADDOPTS", raising=False)
            return check(config.find(self.folder), Asked(since, everything=everything, jobs=jobs), Silent())


def names(checked: Checked) -> list[str]:
    """The selected tests without their files, each function once."""
    return list(dict.fromkeys(key.partition("::")[2].partition("[")[0] for key in checked.reasons))
