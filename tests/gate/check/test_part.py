"""Options of the environment that take part of the tests: what they left out was not checked."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from gate import config
from gate.check.judge import Asked
from gate.check.result import Word
from gate.check.session import MAIN
from gate.evidence import commands
from gate.progress import Silent
from gate.verdict import Reason
from tests.gate.repositories import commit, init

FILES = {
    "pyproject.toml": "[tool.gate]\n[tool.pytest.ini_options]\nmarkers = ['slow']\n",
    "test_lib.py": "def test_double():\n    assert 1 + 1 == 2\n",
    "test_other.py": "import pytest\n\n@pytest.mark.slow\ndef test_slow():\n    pass\n",
    "conftest.py": """
import pytest


def pytest_addoption(parser):
    for name in ("--few", "--silently", "--aside", "--harmless"):
        parser.addoption(name, action="store_true")


def pytest_collection_modifyitems(config, items):
    few = [item for item in items if item.name != "test_double"]
    if config.getoption("--few"):
        config.hook.pytest_deselected(items=[item for item in items if item not in few])
    if config.getoption("--few") or config.getoption("--silently"):
        items[:] = few


def pytest_ignore_collect(collection_path, config):
    return True if config.getoption("--aside") and collection_path.name == "test_lib.py" else None
""",
    "zplug.py": "def pytest_collection_modifyitems(items):\n    items[:] = [item for item in items if item.name != 'test_double']\n",
    "zquiet.py": "",
    "other.ini": "[pytest]\n",
    ".gitignore": ".gate/\n__pycache__/\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    init(tmp_path)
    commit(tmp_path, FILES)
    return tmp_path


def records(folder: Path) -> list[Path]:
    return sorted((folder / ".gate/evidence").glob("*.json"))


@pytest.mark.parametrize(
    "given",
    ["-k double", "-m 'not slow'", "test_lib.py", "--deselect=test_other.py::test_slow", "--ignore test_other.py",
     "-o python_files=test_l*.py", "--few", "-p no:unittest"],
)  # fmt: skip
def test_part_of_the_tests_is_not_judged_and_leaves_no_record(folder: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", given)
    found = commands.check(config.find(folder), Asked(everything=True, jobs=1), Silent())
    assert (found.verdict, found.reason, found.exit_code) == (Word.NOT_JUDGED, Reason.BASELINE_FAILED, 3)
    assert found.message == f"PYTEST_ADDOPTS={given} takes part of the tests, so that the others were not asked. Unset it"
    assert records(folder) == []


@pytest.mark.parametrize("given", ["", "-q -ra --color=no", "-x --tb=short -p no:cacheprovider --harmless -p zquiet"])
def test_options_that_leave_out_nothing_are_as_good_as_none(folder: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", given)
    found = commands.check(config.find(folder), Asked(everything=True, jobs=1), Silent())
    assert (found.verdict, len(found.outcomes)) == (Word.PASSED, 2)
    assert len(records(folder)) == 1


HARMLESS = (
    "", "-q", "--strict-markers --strict-config", "--log-level=INFO --import-mode=importlib", "--harmless -p zquiet",
    "--runxfail -p no:nosuch --show-capture=no",
)  # fmt: skip
PARTS = (
    "--few", "--silently", "--aside", "-p zplug", "-m slow", "--lf", "--co", "-c other.ini", "-k test", "--fixtures", "--doctest-glob=*.md",
    "-o strict=true -o python_files=x.py", "--ignore=test_lib.py", "test_lib.py", "--deselect=test_lib.py::test_double",
)  # fmt: skip


@pytest.fixture(scope="module")
def selecting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose own configuration deselects tests."""
    folder = tmp_path_factory.mktemp("selecting")
    init(folder)
    commit(folder, {**FILES, "pyproject.toml": FILES["pyproject.toml"] + "addopts = ['-m', 'not slow']\n"})
    return folder


def part(folder: Path, given: str) -> str | None:
    """What the plugin says of a run that collects the tests."""
    out = folder / ".gate" / secrets.token_hex(4)
    out.mkdir(parents=True)
    request = {
        "root": str(folder),
        "folder": str(out),
        "cache": str(out / "cache"),
        "mode": "collect",
        "jobs": 0,
        "ids": None,
        "files": None,
    }
    (out / "request.json").write_text(json.dumps(request))
    variables = {**os.environ, "PYTEST_ADDOPTS": given, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run([sys.executable, str(MAIN), str(out / "request.json")], cwd=folder, env=variables, capture_output=True, check=False)
    return (out / "part").read_text() if (out / "part").exists() else None


@pytest.mark.parametrize("given", HARMLESS)
def test_what_the_projects_configuration_selects_is_all(selecting: Path, given: str) -> None:
    """It is part of the record; the environment may add what selects nothing."""
    assert part(selecting, given) is None


@pytest.mark.parametrize("given", PARTS)
def test_what_the_environment_selects_besides_is_a_part(selecting: Path, given: str) -> None:
    """By an option of a plugin, too, whether or not it says so to pytest, and by a plugin that is loaded for that."""
    assert part(selecting, given) == given


def test_a_record_is_left_of_what_the_projects_configuration_selects(selecting: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--strict-markers")
    found = commands.check(config.find(selecting), Asked(everything=True, jobs=1), Silent())
    assert (found.verdict, len(found.outcomes), len(records(selecting))) == (Word.PASSED, 1, 1)
