from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gate.config import find
from gate.errors import ConfigurationError, UsageError
from golden.errors import GoldenError

ONE = '[tool.gate.scenarios.digits]\nrun = "goldens/scenarios.py:digits"\n'


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "pyproject.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_every_key_has_a_default(tmp_path: Path) -> None:
    """A scenario's run is the one key that has to be written."""
    write(tmp_path, ONE)
    config = find(tmp_path)
    assert (config.root, config.goldens, config.torch) == (tmp_path, tmp_path / "goldens", ())
    assert config.scenarios["digits"].steps == 10
    assert (config.name, config.dependencies, config.dynamic) == (None, (), False)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Goldens' folder, versions, scenarios in their order and the project's requirements."""
    project = '[project]\nname = "toy"\ndependencies = ["torch>=2.4", "rich"]\n'
    gate = '[tool.gate]\ngoldens = "data/goldens"\ntorch = ["2.4.0", "2.9.1+cpu"]\n'
    write(tmp_path, project + gate + ONE + '[tool.gate.scenarios.a]\nrun = "x.py:a"\nsteps = 3\n')
    config = find(tmp_path)
    assert (config.goldens, config.torch, list(config.scenarios)) == (tmp_path / "data/goldens", ("2.4.0", "2.9.1+cpu"), ["digits", "a"])
    assert (config.name, config.dependencies) == ("toy", ("torch>=2.4", "rich"))
    assert config.scenarios["a"].steps == 3


def test_dynamic_requirements_are_noticed(tmp_path: Path) -> None:
    """Requirements that the build backend computes are not in the file."""
    write(tmp_path, '[project]\nname = "toy"\ndynamic = ["version", "dependencies"]\n' + ONE)
    assert find(tmp_path).dynamic


def test_the_nearest_configuration_above_holds(tmp_path: Path) -> None:
    """A pyproject.toml without [tool.gate] is passed by, the next one above is taken, the inner of two wins."""
    write(tmp_path, ONE)
    write(tmp_path / "a", "[project]\nname = 'inner'\n")
    (tmp_path / "a/b").mkdir()
    assert find(tmp_path / "a/b").root == tmp_path
    write(tmp_path / "a/b", ONE)
    assert find(tmp_path / "a/b").root == tmp_path / "a/b"


def test_repositories_in_repositories_have_their_own(tmp_path: Path) -> None:
    """A repository inside another, as a submodule is, is judged by its own configuration."""
    write(tmp_path, ONE)
    inner = tmp_path / "vendor/inner"
    write(inner, ONE.replace("digits", "other"))
    for folder in (tmp_path, inner):
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (inner / "src").mkdir()
    assert list(find(inner / "src").scenarios) == ["other"]
    assert list(find(tmp_path / "vendor").scenarios) == ["digits"]


def test_paths_with_spaces_links_and_other_alphabets(tmp_path: Path) -> None:
    """The folder may be called anything, and a link to it means the same project."""
    write(tmp_path / "größe 模型/p", ONE)
    (tmp_path / "link").symlink_to(tmp_path / "größe 模型/p")
    assert find(tmp_path / "link").root == find(tmp_path / "größe 模型/p").root == tmp_path / "größe 模型/p"


def test_a_mark_at_the_file_s_beginning_is_no_error(tmp_path: Path) -> None:
    """Editors on Windows write a byte order mark and CRLF."""
    (tmp_path / "pyproject.toml").write_bytes(b"\xef\xbb\xbf" + ONE.replace("\n", "\r\n").encode())
    assert list(find(tmp_path).scenarios) == ["digits"]


def test_names_of_later_keys_are_known(tmp_path: Path) -> None:
    """What other commands read is no unknown key here."""
    write(tmp_path, '[tool.gate]\nrequired = ["a"]\ntrailers = {}\n[tool.gate.bench.x]\ny = 1\n' + ONE)
    config = find(tmp_path)
    assert list(config.scenarios) == ["digits"]
    assert config.later == {"required": ["a"], "trailers": {}, "bench": {"x": {"y": 1}}}


def test_selecting_keeps_the_order_named(tmp_path: Path) -> None:
    """All scenarios without a name, the named ones otherwise, each once."""
    write(tmp_path, ONE + '[tool.gate.scenarios.a]\nrun = "x.py:a"\n')
    config = find(tmp_path)
    assert [s.name for s in config.select()] == ["digits", "a"]
    assert [s.name for s in config.select(["a", "digits", "a"])] == ["a", "digits"]


def test_an_unknown_scenario_names_the_nearest(tmp_path: Path) -> None:
    """A slip of the finger is answered with the name meant and the file that was read."""
    file = write(tmp_path, ONE)
    with pytest.raises(UsageError, match=r"'digit' in .*did you mean 'digits'") as error:
        find(tmp_path).select(["digit"])
    assert str(file) in str(error.value)


def test_no_scenario_at_all_is_an_error(tmp_path: Path) -> None:
    """An empty configuration judges nothing, which is no success; the error shows what to write."""
    write(tmp_path, "[tool.gate]\n")
    with pytest.raises(ConfigurationError, match=r"holds no scenario(.|\n)*run = "):
        find(tmp_path).select()


def test_no_configuration_says_what_to_write(tmp_path: Path) -> None:
    """Nothing found is told with the folder searched and the table to write."""
    write(tmp_path, "[project]\nname = 'x'\n")
    with pytest.raises(
        ConfigurationError, match=r"No pyproject\.toml with a table \[tool\.gate\](.|\n)*\[tool\.gate\.scenarios\.NAME\]"
    ) as error:
        find(tmp_path)
    assert str(tmp_path) in str(error.value)


WRONG = {
    "line of a syntax error": ("[tool.gate]\ngoldens = \n", ["line 2"]),
    "a key twice": ('[tool.gate]\ngoldens = "a"\ngoldens = "b"\n', ["line 3"]),
    "unknown key": ('[tool.gate]\ngolden = "x"\n', ["unknown key 'golden'", "did you mean 'goldens'"]),
    "unknown table": ('[tool.gate.scenario.digits]\nrun = "a.py:b"\n', ["unknown key 'scenario'", "did you mean 'scenarios'"]),
    "unknown key of a scenario": (ONE + "step = 3\n", ["[tool.gate.scenarios.digits]", "'step'", "'steps'"]),
    "gate no table": ("[tool]\ngate = 3\n", ["tool.gate is 3", "[tool.gate]"]),
    "tool no table": ("tool = 3\n", ["tool is 3"]),
    "scenarios no table": ('[tool.gate]\nscenarios = ["digits"]\n', ["tool.gate.scenarios"]),
    "scenario no table": ('[tool.gate.scenarios]\ndigits = "a.py:b"\n', ["[tool.gate.scenarios.digits]"]),
    "run missing": ("[tool.gate.scenarios.digits]\nsteps = 3\n", ["run is missing"]),
    "unsafe name": ('[tool.gate.scenarios."../x"]\nrun = "a.py:b"\n', ["../x", "Rename"]),
    "name of a folder": ('[tool.gate.scenarios.".."]\nrun = "a.py:b"\n', ["..", "Rename"]),
    "names that share a folder": (ONE + ONE.replace("s.digits", "s.Digits", 1), ["'digits' and 'Digits'", "folder"]),
    "run outside": ('[tool.gate.scenarios.a]\nrun = "../a.py:b"\n', ["[tool.gate.scenarios.a] run", "../a.py:b"]),
    "goldens outside": ('[tool.gate]\ngoldens = "../goldens"\n', ["[tool.gate] goldens", "../goldens"]),
    "goldens absolute": ('[tool.gate]\ngoldens = "/goldens"\n', ["[tool.gate] goldens", "/goldens"]),
    "goldens the project": ('[tool.gate]\ngoldens = "."\n', ["[tool.gate] goldens"]),
    "goldens where runs go": ('[tool.gate]\ngoldens = ".gate/x"\n', ["[tool.gate] goldens", ".gate"]),
    "goldens no text": ("[tool.gate]\ngoldens = 3\n", ["[tool.gate] goldens = 3"]),
    "goldens empty": ('[tool.gate]\ngoldens = ""\n', ["[tool.gate] goldens"]),
    "torch no list": ('[tool.gate]\ntorch = "2.4.0"\n', ["[tool.gate] torch", '["2.4.0", "2.9.1"]']),
    "torch empty": ("[tool.gate]\ntorch = []\n", ["[tool.gate] torch"]),
    "torch a number": ("[tool.gate]\ntorch = [2.4]\n", ["[tool.gate] torch", "2.4", "string"]),
    "torch a range": ('[tool.gate]\ntorch = [">=2.4"]\n', ["[tool.gate] torch", ">=2.4"]),
    "torch twice": ('[tool.gate]\ntorch = ["2.4", "2.4.0"]\n', ["[tool.gate] torch", "2.4.0 twice"]),
    "same_as unknown": (ONE + 'same_as = "digit"\n', ["[tool.gate.scenarios.digits]", "'digit'"]),
    "same_as itself": (ONE + 'same_as = "digits"\n', ["[tool.gate.scenarios.digits] same_as"]),
    "same_as chain": (
        ONE + 'same_as = "a"\n[tool.gate.scenarios.a]\nrun = "x.py:a"\nsame_as = "b"\n[tool.gate.scenarios.b]\nrun = "x.py:b"\n',
        ["[tool.gate.scenarios.digits]", "a has no golden of its own"],
    ),
    "same_as of other steps": (ONE + 'same_as = "a"\n[tool.gate.scenarios.a]\nrun = "x.py:a"\nsteps = 3\n', ["steps is 10", "a", "3"]),
    "same_as of another seed": (ONE + 'same_as = "a"\n[tool.gate.scenarios.a]\nrun = "x.py:a"\nseed = 3\n', ["seed is 0", "a", "3"]),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_configuration_names_file_and_key(tmp_path: Path, case: str) -> None:
    """Each mistake is told with the file, the key and what is allowed, as an error of usage."""
    text, told = WRONG[case]
    file = write(tmp_path, text)
    with pytest.raises(ConfigurationError) as error:
        find(tmp_path)
    assert isinstance(error.value, UsageError)
    assert isinstance(error.value, GoldenError)
    for part in (str(file), *told):
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("key", "line"), [("goldens", '[tool.gate]\ngoldens = "out"\n'), ("run", '[tool.gate.scenarios.a]\nrun = "out/a.py:a"\n')]
)
def test_links_do_not_lead_outside(tmp_path: Path, key: str, line: str) -> None:
    """A link inside the project that points outside is refused, one that stays inside is not."""
    (tmp_path / "elsewhere").mkdir()
    write(tmp_path / "project", line)
    link = tmp_path / "project/out"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match=rf"{key} = .*leads outside the project, to .*elsewhere"):
        find(tmp_path / "project")
    link.unlink()
    (tmp_path / "project/inside").mkdir()
    link.symlink_to("inside")
    assert find(tmp_path / "project").root == tmp_path / "project"


def test_text_that_is_not_utf_8(tmp_path: Path) -> None:
    """The error names the file and the byte."""
    (tmp_path / "pyproject.toml").write_bytes(b'[tool.gate]\ngoldens = "\xff"\n')
    with pytest.raises(ConfigurationError, match=r"pyproject\.toml: is not UTF-8 \(byte 23\)"):
        find(tmp_path)
