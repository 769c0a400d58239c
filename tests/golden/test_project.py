"""Finding the configuration of a scenario file."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden import project as module
from golden.errors import UsageError
from golden.project import find, read_gate, scenarios


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "outer" / "project"
    (folder / "goldens").mkdir(parents=True)
    (folder / "goldens" / "scenarios.py").write_text("def digits(record): ...\n")
    return folder


def configure(folder: Path, text: str) -> Path:
    path = folder / "pyproject.toml"
    path.write_text(text)
    return path


DIGITS = '[tool.gate.scenarios.digits]\nrun = "goldens/scenarios.py:digits"\nsteps = 12\n'


def test_the_configured_scenario_is_found_by_its_function(project: Path) -> None:
    """A scenario is found from its file and function, wherever the file is named from."""
    configure(project, DIGITS)
    found = find(project / "goldens" / ".." / "goldens" / "scenarios.py", "scenarios.py:digits")
    assert (found.project, found.settings.name, found.settings.steps, found.configured, found.note) == (project, "digits", 12, True, "")


def test_the_nearest_configuration_counts(project: Path) -> None:
    """A project in a subfolder of another is its own; a pyproject.toml without [tool.gate] is passed by."""
    configure(project.parent, DIGITS.replace("12", "5").replace("goldens/", "project/goldens/"))
    inner = configure(project, DIGITS)
    assert find(project / "goldens/scenarios.py", "f:digits").settings.steps == 12
    inner.write_text("[project]\nname = 'tool.gate'\n")
    found = find(project / "goldens/scenarios.py", "f:digits")
    assert (found.project, found.settings.steps) == (project.parent, 5)


def test_without_a_configuration_there_are_defaults_and_a_note(project: Path) -> None:
    """A scenario without a configuration runs by default, and the user is told."""
    (project / ".git").mkdir()
    found = find(project / "goldens/scenarios.py", "f:digits")
    assert (found.project, found.settings.run, found.settings.steps, found.configured) == (
        project,
        "goldens/scenarios.py:digits",
        10,
        False,
    )
    assert "No pyproject.toml with [tool.gate]" in found.note


def test_a_scenario_that_is_not_configured_gets_a_note(project: Path) -> None:
    """Another function of a configured project is not taken for the configured one."""
    configure(project, DIGITS)
    found = find(project / "goldens/scenarios.py", "f:other")
    assert (found.settings.name, found.settings.steps, found.configured) == ("other", 10, False)
    assert "has no scenario for goldens/scenarios.py:other" in found.note


def test_several_scenarios_of_one_function_need_a_name(project: Path) -> None:
    """Which of two scenarios is meant is not guessed."""
    configure(project, DIGITS + DIGITS.replace("digits]", "twin]").replace("12", "3"))
    with pytest.raises(UsageError, match=r"run by several scenarios: digits, twin. Choose one with --name"):
        find(project / "goldens/scenarios.py", "f:digits")
    assert find(project / "goldens/scenarios.py", "f:digits", "twin").settings.steps == 3


def test_without_a_parser_of_toml_defaults_are_used_and_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Python 3.10 without tomli the configuration cannot be read, which is said and not hidden."""
    path = configure(project, DIGITS)
    monkeypatch.setattr(module, "_parser", lambda: None)
    found = find(project / "goldens/scenarios.py", "f:digits")
    assert (found.settings.steps, found.configured) == (10, False)
    assert f"{path} was not read" in found.note
    with pytest.raises(UsageError, match="Install tomli"):
        read_gate(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.gate\n", "cannot be read"),
        ("[tool]\ngate = 3\n", "tool.gate is 3, but has to be a table"),
        ("[tool.gate]\nscenarios = 3\n", "tool.gate.scenarios is 3"),
        ("[tool.gate.scenarios.digits]\nrum = 1\n", r"unknown key 'rum', did you mean 'run'\?"),
    ],
)
def test_a_wrong_configuration_names_the_file(project: Path, text: str, message: str) -> None:
    """What is wrong in the configuration is told with its path."""
    path = configure(project, text)
    with pytest.raises(UsageError, match=message) as caught:
        scenarios(path)
    assert str(path) in str(caught.value)


def test_a_run_that_names_nothing_is_refused(project: Path) -> None:
    """No function, or no such file, is the caller's mistake."""
    with pytest.raises(UsageError, match="names no function"):
        find(project / "goldens/scenarios.py", "goldens/scenarios.py")
    with pytest.raises(UsageError, match="there is no such file"):
        find(project / "nowhere.py", "nowhere.py:digits")
