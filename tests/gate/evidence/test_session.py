"""A session of pytest that ran every test leaves a record of it, and any other says why it leaves none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gate.evidence.session import _part
from tests.gate.repositories import commit, git, init, write

TESTS = """
import pytest

from lib import one


class TestOne:
    @pytest.mark.parametrize("n", [1, 2])
    def test_it(self, n):
        assert one() == 1


def test_not_here():
    pytest.skip("not here")


@pytest.mark.xfail
def test_wrong():
    assert 0


@pytest.mark.cuda
def test_gpu():
    pass
"""
EDITS = """
from pathlib import Path


def test_edit():
    Path("src/lib.py").write_text("def one(): return 1\\n")
"""
FILES = {
    "pyproject.toml": '[tool.pytest.ini_options]\ntestpaths = ["tests"]\npythonpath = ["src"]\nmarkers = ["cuda"]\n[tool.gate]\n',
    "src/lib.py": "import json\n\ndef one():\n    return 1\n",
    "src/other.py": "def two():\n    return 2\n",
    "tests/conftest.py": "",
    "tests/test_lib.py": TESTS,
    "data/table.csv": "1\n", "README.md": "# Toy\n", "Makefile": "all:\n", ".gitignore": ".gate/\n__pycache__/\n.pytest_cache/\n",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    init(tmp_path)
    commit(tmp_path, FILES)
    return tmp_path


def session(folder: Path, *arguments: str) -> tuple[int, str]:
    """Runs pytest with the plugin alone: exit code and the plugin's line."""
    command = [sys.executable, "-m", "pytest", "-p", "gate.evidence.session", "-p", "no:cacheprovider", "-q", *arguments]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}, capture_output=True, text=True
    )
    return done.returncode, next(line for line in done.stdout.splitlines() if line.startswith("gate: "))


def record(folder: Path) -> dict[str, Any]:
    (path,) = (folder / ".gate/evidence").iterdir()
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.parametrize("more", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_whole_session_leaves_a_record(folder: Path, more: tuple[str, ...]) -> None:
    """Of what passed, was skipped, was to fail, needs the GPU; of the sources that tests import, and of data; not of documents."""
    assert session(folder, *more) == (0, "gate: evidence was left in .gate/evidence")
    found = record(folder)
    predicate = found["predicate"]
    assert predicate["counts"] == {"passed": 3, "failed": 0, "skipped": 1, "xfailed": 1, "xpassed": 0}
    assert predicate["details"]["passed"] == {"tests/test_lib.py": ["TestOne::test_it[1]", "TestOne::test_it[2]", "test_gpu"]}
    assert predicate["details"]["skipped"] == {"tests/test_lib.py::test_not_here": "Skipped: not here"}
    assert predicate["details"]["cuda"] == {"passed": 1, "failed": 0, "skipped": 0, "xfailed": 0, "xpassed": 0}
    files = [subject["name"] for subject in found["subject"] if "annotations" not in subject]
    assert files == ["data/table.csv", "src/lib.py", "tests/conftest.py", "tests/test_lib.py"]
    packages = [subject["name"] for subject in found["subject"] if subject.get("annotations", {}).get("kind") == "package"]
    assert packages == ["pytest"]


def test_a_failing_session_leaves_a_record_that_says_so(folder: Path) -> None:
    write(folder, {"tests/test_bad.py": "def test_bad():\n    assert 0\n"})
    assert session(folder) == (1, "gate: evidence was left in .gate/evidence")
    assert (record(folder)["predicate"]["result"], record(folder)["predicate"]["counts"]["failed"]) == ("failed", 1)


@pytest.mark.parametrize(
    "arguments", [("tests/test_lib.py",), ("-k", "it"), ("-m", "not cuda"), ("--deselect", "tests/test_lib.py::test_gpu")]
)
def test_part_of_the_tests_leaves_none(folder: Path, arguments: tuple[str, ...]) -> None:
    code, told = session(folder, *arguments)
    assert code == 0
    assert told.startswith("gate: no evidence: ")
    assert not (folder / ".gate").exists()


@pytest.mark.parametrize(
    ("options", "on_gpu", "whole"),
    [
        ({"markexpr": "cuda"}, True, True),
        ({"markexpr": "cuda"}, False, False),
        ({"markexpr": "not cuda"}, True, False),
        ({"markexpr": "cuda", "keyword": "it"}, True, False),
    ],
)
def test_on_a_gpu_the_tests_that_need_it_are_all(options: dict[str, str], on_gpu: bool, whole: bool) -> None:
    Source = Enum("Source", ["ARGS", "TESTPATHS"])
    config = SimpleNamespace(option=SimpleNamespace(**options), args_source=Source.TESTPATHS)
    assert (_part(config, on_gpu) == "") is whole
    config.args_source = Source.ARGS
    assert _part(config, on_gpu) != ""


def test_a_session_that_ended_early_leaves_none(folder: Path) -> None:
    write(folder, {"tests/test_a.py": "def test_bad():\n    assert 0\n"})
    code, told = session(folder, "-x")
    assert (code, told) == (1, "gate: no evidence: the session was cut off, or ran no test")
    assert not (folder / ".gate").exists()


def test_sources_that_move_meanwhile_leave_none(folder: Path) -> None:
    """A test that writes a source is what an editor does while the tests run."""
    write(folder, {"tests/test_edit.py": EDITS})
    code, told = session(folder)
    assert code == 0
    assert told.startswith("gate: no evidence: stale-evidence: src/lib.py was written while the check ran")
    assert list((folder / ".gate").rglob("*.json")) == []
    assert git(folder, "status", "--porcelain") != ""
