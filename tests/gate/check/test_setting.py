"""What a pyproject.toml says of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate import config
from gate.check import setting
from gate.errors import ConfigurationError

PROJECT = """
[project]
name = "x"
version = "1"

[project.optional-dependencies]
test = ["hypothesis"]
docs = ["sphinx"]

[dependency-groups]
dev = [{ include-group = "lint" }, "pytest-timeout"]
lint = ["ruff"]

[tool.gate]
"""


def needed(folder: Path, more: str = "") -> set[str]:
    (folder / "pyproject.toml").write_text(PROJECT + more)
    return set(setting.requirements(config.find(folder))) - set(setting.TESTING)


def test_tests_need_the_extras_of_the_usual_names_or_those_that_are_named(tmp_path: Path) -> None:
    """What runs them is needed always; a group may include another one."""
    assert needed(tmp_path) == {"hypothesis", "pytest-timeout", "ruff"}
    assert needed(tmp_path, '[tool.gate.check]\nextras = ["docs"]\n') == {"sphinx"}
    assert needed(tmp_path, "[tool.gate.check]\nextras = []\n") == set()


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ('[tool.gate.check]\nextras = ["tset"]\n', "did you mean 'test'"),
        ('[tool.gate.check]\nextras = "test"\n', "extras"),
        ("[tool.gate.check]\nextra = []\n", "extra"),
        ("check = 1\n", "extras"),
    ],
)
def test_a_wrong_table_is_an_error_that_names_it(tmp_path: Path, more: str, named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        needed(tmp_path, more)


def test_settings_of_formatters_do_not_concern_tests() -> None:
    """Those of pytest do, and so does what cannot be read."""
    old = PROJECT.encode()
    assert setting.same_for_tests(old, old + b"[tool.ruff]\nline-length = 100\n")
    assert not setting.same_for_tests(old, old + b"[tool.pytest.ini_options]\nxfail_strict = true\n")
    assert not setting.same_for_tests(old, old + b"broken [")
    assert not setting.same_for_tests(None, old)
