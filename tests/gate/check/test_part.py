"""Options of the environment that take part of the tests: what they left out was not checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate import config
from gate.check.judge import Asked
from gate.check.result import Word
from gate.evidence import commands
from gate.progress import Silent
from gate.verdict import Reason
from tests.gate.repositories import commit, init

FILES = {
    "pyproject.toml": "[tool.gate]\n[tool.pytest.ini_options]\nmarkers = ['slow']\n",
    "test_lib.py": "def test_double():\n    assert 1 + 1 == 2\n",
    "test_other.py": "import pytest\n\n@pytest.mark.slow\ndef test_slow():\n    pass\n",
    "conftest.py": (
        "def pytest_addoption(parser):\n    parser.addoption('--few', action='store_true')\n\n"
        "def pytest_collection_modifyitems(config, items):\n"
        "    if config.getoption('--few'):\n        config.hook.pytest_deselected(items=items[1:])\n        del items[1:]\n"
    ),
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
     "-o python_files=test_l*.py", "--few"],
)  # fmt: skip
def test_part_of_the_tests_is_not_judged_and_leaves_no_record(folder: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", given)
    found = commands.check(config.find(folder), Asked(everything=True, jobs=1), Silent())
    assert (found.verdict, found.reason, found.exit_code) == (Word.NOT_JUDGED, Reason.BASELINE_FAILED, 3)
    assert found.message == f"PYTEST_ADDOPTS={given} takes part of the tests, so that the others were not asked. Unset it"
    assert records(folder) == []


@pytest.mark.parametrize("given", ["", "-q -ra --color=no", "-x --tb=short -p no:cacheprovider"])
def test_options_that_leave_out_nothing_are_as_good_as_none(folder: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", given)
    found = commands.check(config.find(folder), Asked(everything=True, jobs=1), Silent())
    assert (found.verdict, len(found.outcomes)) == (Word.PASSED, 2)
    assert len(records(folder)) == 1


def test_what_the_projects_configuration_selects_is_all(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is part of the record; the environment may add what selects nothing, and not what may."""
    commit(folder, {"pyproject.toml": FILES["pyproject.toml"] + "addopts = ['-m', 'not slow']\n"})
    for given, verdict in (("", Word.PASSED), ("-q", Word.PASSED), ("--few", Word.NOT_JUDGED)):
        monkeypatch.setenv("PYTEST_ADDOPTS", given)
        found = commands.check(config.find(folder), Asked(everything=True, jobs=1), Silent())
        assert (found.verdict, len(found.outcomes)) == (verdict, 1), given
    assert len(records(folder)) == 1
