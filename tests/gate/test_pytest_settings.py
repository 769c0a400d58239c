"""Which file pytest takes its configuration from, and what stands in it, held to pytest itself."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import pytest
from _pytest.config.exceptions import UsageError
from _pytest.config.findpaths import locate_config

from gate.pytest_settings import FILES, TABLES, Settings, file_of
from tests.gate.repositories import write

TOX = "[pytest]\naddopts = -q\n  # no word\n  --Strict ; neither\nMarkers: a: b\n"
TEXTS = {
    "pytest.toml": "[pytest]\naddopts = ['-x']\n",
    ".pytest.toml": "",
    "pytest.ini": "[DEFAULT]\na = 1\n[pytest]\nb = %d\n",
    ".pytest.ini": "[other]\n",
    "pyproject.toml": "[tool.pytest.ini_options]\nmarkers = ['a']\n",
    "tox.ini": TOX,
    "setup.cfg": "[tool:pytest]\naddopts = -x\n[pytest]\naddopts = -q\n",
}
NONE = {
    "pyproject.toml": ("[tool.pytest]\n", "[tool.other]\n", ""),
    "tox.ini": ("[tox]\n", "[tool:pytest]\nx = 1\n", ""),
    "setup.cfg": ("[flake8]\n",),
}
NATIVE = {"pyproject.toml": ("[tool.pytest]\naddopts = ['-x']\n", "[tool.pytest.ini_options]\n")}
REFUSED = {
    "pytest.toml": ("[pytest",),
    "pytest.ini": ("x = 1\n", "[pytest]\nx = 1\nx = 2\n", "[pytest]\n[pytest]\n"),
    "tox.ini": ("[pytest\n",),
    "setup.cfg": ("[pytest]\nx = 1\n",),
}


def told(folder: Path) -> tuple[str, dict[str, object]]:
    """The file that pytest itself takes, "" for none that holds anything, and the options in it."""
    _, file, options, _ = locate_config(folder, [])
    ours = file if file is not None and file.parent == folder and (options or file.name != "pyproject.toml") else None
    return ours.name if ours else "", {name: found.value for name, found in options.items()}


def only(several: Mapping[str, tuple[str, ...]]) -> list[dict[str, str]]:
    return [{file: text} for file, texts in several.items() for text in texts]


PAIRS = [{name: TEXTS[name] for name in pair} for pair in combinations(FILES, 2)]

SHARED = {name: TEXTS[name] for name in FILES[4:]}


@pytest.mark.parametrize("files", [*PAIRS, TEXTS, {}, *({**SHARED, **files} for files in only(NONE)), *only(NATIVE)])
def test_the_first_file_that_holds_a_configuration_is_it(tmp_path: Path, files: dict[str, str | None]) -> None:
    write(tmp_path, files)
    found = Settings.at(tmp_path)
    assert (found.file if found.options or found.file != "pyproject.toml" else "", dict(found.options)) == told(tmp_path)
    assert [file_of(table) for table in TABLES if found.table(table) is not None] == ([found.file] if found.file else [])


@pytest.mark.parametrize("files", only(NONE))
def test_a_file_that_is_none_holds_nothing(tmp_path: Path, files: dict[str, str | None]) -> None:
    write(tmp_path, files)
    assert Settings.at(tmp_path) == Settings()


@pytest.mark.parametrize("files", only(REFUSED))
def test_a_file_that_pytest_refuses_is_its_text(tmp_path: Path, files: dict[str, str | None]) -> None:
    """A later one is not asked, for pytest does not come so far."""
    write(tmp_path, {**files, **({} if "setup.cfg" in files else {"setup.cfg": TEXTS["setup.cfg"]})})
    with pytest.raises((UsageError, pytest.fail.Exception)):
        told(tmp_path)
    ((file, text),) = files.items()
    assert Settings.at(tmp_path) == Settings(file, text)


def test_words_are_those_of_a_list_or_a_text() -> None:
    read = {"tox.ini": "[pytest]\na = x 'y z'\nb = 'open\n"}
    assert [Settings.of(read.get).words(name) for name in "abc"] == [("x", "y z"), (), ()]
    assert Settings.of({"pytest.toml": "[pytest]\na = ['x y', 1]\n"}.get).words("a") == ("x y", "1")
