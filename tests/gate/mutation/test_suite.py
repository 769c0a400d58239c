"""Which of a project's files are read for what they promise."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate.mutation.suite import Suite


def test_documents_beside_the_configuration_are_read(tmp_path: Path) -> None:
    """In every form that claims are looked for in; lists of packages are none, nor is what lies in a folder."""
    documents = ("README.MD", "GUIDE.markdown", "NOTES.txt", "INDEX.rst")
    others = ("requirements.txt", "step.py", "docs/page.md")
    for name in (*documents, *others):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    assert Suite.of(tmp_path, (*documents, *others)).documents() == {name: name for name in documents}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ["tests/test_a.py"]),
        ({"pyproject.toml": "[tool.pytest.ini_options]\ntestpaths = 'more ./odd/*'\n"}, ["more/test_b.py", "odd/deep/b_test.py"]),
        ({"pytest.ini": "[pytest]\ntestpaths = more\n"}, ["more/test_b.py"]),
        ({"pytest.ini": "[pytest]\n", "pyproject.toml": "[tool.pytest.ini_options]\ntestpaths = 'more'\n"}, ["tests/test_a.py"]),
        ({"tox.ini": "[pytest]\npython_files = check_*.py\n"}, ["tests/check_c.py"]),
        ({"setup.cfg": "[tool:pytest]\ntestpaths = .\n"}, ["more/test_b.py", "odd/deep/b_test.py", "tests/test_a.py"]),
    ],
)
def test_tests_are_looked_for_where_pytest_does(tmp_path: Path, settings: dict[str, str], expected: list[str]) -> None:
    """By the first file that holds its configuration; without any below tests."""
    files = dict.fromkeys(("tests/test_a.py", "tests/check_c.py", "more/test_b.py", "odd/deep/b_test.py", "step.py"), "")
    for name, text in {**files, **settings}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert sorted(Suite.of(tmp_path, sorted(files)).files()) == expected
