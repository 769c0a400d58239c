"""A pytest that cannot be run, and what a session leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gate.check.session import LACKING, MAIN, NotRun, clear
from tests.gate.check.toys import Toy


def test_a_python_without_pytest_says_what_it_lacks() -> None:
    """Without site-packages this one has neither; what its answer is read from is the last line."""
    done = subprocess.run([sys.executable, "-I", "-S", str(MAIN), "nothing"], capture_output=True, text=True)
    assert done.returncode == LACKING
    assert [name.partition(">")[0] for name in json.loads(done.stdout.splitlines()[-1])] == ["pytest", "coverage"]


def test_a_wrong_configuration_of_pytest_is_told_in_its_words(tmp_path: Path) -> None:
    files = {"pyproject.toml": '[tool.gate]\n[tool.pytest.ini_options]\naddopts = "--nonsense"\n', "test_a.py": "def test_a():\n    pass\n"}
    with pytest.raises(NotRun, match="unrecognized arguments: --nonsense"):
        Toy.new(tmp_path / "toy", files).check(everything=True)


def test_bytecode_of_the_project_is_removed_and_that_of_environments_in_it_kept(tmp_path: Path) -> None:
    """Folders of sessions that were killed are removed, too."""
    store = tmp_path / ".gate" / "check"
    mirror = store / "bytecode" / tmp_path.relative_to(tmp_path.anchor)
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    for name in ("lib.pyc", "deep/lib.pyc", "env/lib/installed.pyc"):
        (mirror / name).parent.mkdir(parents=True, exist_ok=True)
        (mirror / name).touch()
    (store / "session-1").mkdir()
    clear(store)
    assert [path.name for path in store.rglob("*.pyc")] == ["installed.pyc"]
    assert not (store / "session-1").exists()
