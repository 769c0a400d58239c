"""What real tests list by a glob is part of their record."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate import config
from gate.check.judge import Asked
from gate.evidence import commands
from gate.evidence.status import View
from gate.machine import Machine
from gate.progress import Silent
from tests.gate.repositories import commit, init

TEST = """from pathlib import Path

def test_data():
    assert [path.name for path in Path("data").glob("*.csv")] == ["a.csv"]
"""
FILES = {
    "pyproject.toml": '[tool.gate.required]\ntests = ["cpu"]\n', "tests/test_data.py": TEST, "data/a.csv": "1\n", "other/a.csv": "1\n",
    ".gitignore": ".gate/\n__pycache__/\n",
}  # fmt: skip


@pytest.mark.skipif(Machine.here().cuda is not None, reason="where a GPU is, tests without need of one are no evidence")
def test_a_new_file_where_tests_have_looked_stales_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them opened the files that were there; a folder that nobody listed is none of theirs."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    init(tmp_path)
    commit(tmp_path, FILES)
    assert commands.check(config.find(tmp_path), Asked(everything=True, jobs=1), Silent()).exit_code == 0
    commit(tmp_path, {"other/b.csv": "2\n", "data/README.md": "# Data\n"})
    (line,) = View.of(config.find(tmp_path)).status().lines
    assert line.state.value == "fresh"
    made = commit(tmp_path, {"data/b.csv": "2\n"}, "More data")
    (line,) = View.of(config.find(tmp_path)).status().lines
    assert (line.state.value, line.reason) == ("stale", f"data/b.csv is new since {made[:7]} (More data)")
