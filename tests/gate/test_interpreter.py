from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import pytest

from gate import installer, interpreter, inventory
from gate.config import Config
from gate.errors import NoTorch, UsageError
from gate.interpreter import Interpreter, Source, given, provide, running
from gate.progress import Silent
from gate.requirements import OURS, Recorded, name, wanted
from gate.version import agrees
from tests.gate.wheels import Heard, registry, see_only, wheel

HERE = platform.python_version()
MINOR = HERE.rpartition(".")[0]


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return registry(tmp_path_factory.mktemp("wheels"))


@pytest.fixture
def config(tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """A project without dependencies; uv sees the small wheels alone, and environments go into the test's folder."""
    see_only(wheels, tmp_path / "uv", monkeypatch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "project").mkdir()
    return Config(tmp_path / "project", tmp_path / "project/goldens")


def environment(folder: Path, *wheels: Path) -> Path:
    """A virtual environment with wheels unpacked in it; its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    for item in wheels:
        subprocess.run([sys.executable, "-m", "zipfile", "-e", str(item), str(folder / f"lib/python{MINOR}/site-packages")], check=True)
    return folder / "bin/python"


def test_the_running_interpreter_is_known_without_importing_torch() -> None:
    """Its torch's full version is read from torch's files; the process has not loaded it, and another one that does says the same."""
    code = "import sys; from gate.interpreter import running; print(running().torch); sys.exit('torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    loaded = subprocess.run([sys.executable, "-c", "import torch; print(torch.__version__)"], check=True, capture_output=True, text=True)
    assert said == loaded.stdout.strip()
    assert running() == Interpreter(Path(sys.executable), said, Source.RUNNING, HERE)


def test_no_torch_says_what_to_do(tmp_path: Path) -> None:
    """An interpreter without torch names the three ways to one; a folder that happens to be called torch is none."""
    python = environment(tmp_path / "v")
    (tmp_path / "torch").mkdir()
    code = "from gate.interpreter import running; running()"
    root = Path(interpreter.__file__).parents[1]
    path = os.pathsep.join([str(tmp_path), str(root), str(root / "src"), *stub(tmp_path)])
    done = subprocess.run([str(python), "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True)
    assert "gate.errors.NoTorch" in done.stderr
    for way in ("pip install torch", "--torch 2.13.0", "--python PATH"):
        assert way in done.stderr


def stub(folder: Path) -> list[str]:
    """numpy and xxhash where our own packages can import them, without the torch that lies beside them."""
    for module in ("numpy", "xxhash", "safetensors", "numpy.libs"):
        source = Path(metadata.distribution("numpy").locate_file(module))  # type: ignore[arg-type]
        if source.exists():
            (folder / "own").mkdir(exist_ok=True)
            (folder / "own" / module).symlink_to(source)
    return [str(folder / "own")]


def test_a_given_interpreter_is_asked(tmp_path: Path, wheels: Path) -> None:
    """By its path, its environment's folder, or relative; its torch and Python are what it holds; nothing in it changes."""
    names = ("torch-91.0.0+cpu", "numpy-2.0.0", "safetensors-1.0.0", "xxhash-4.0.0")
    python = environment(tmp_path / "v ü", *(wheels / f"{item}-py3-none-any.whl" for item in names))
    before = sorted(tmp_path.rglob("*"))
    for path in (str(python), str(tmp_path / "v ü"), os.path.relpath(python)):
        found = given(path, tmp_path)
        assert (found.torch, found.source, found.version) == ("91.0.0+cpu", Source.GIVEN, HERE)
        assert found.python.samefile(python)
        assert found.python.parent.samefile(tmp_path / "v ü/bin")  # the environment's own, not what it links to
    assert sorted(tmp_path.rglob("*")) == before


def test_a_given_interpreter_that_lacks_something(tmp_path: Path, wheels: Path) -> None:
    """Each missing distribution is named with the command that brings it."""
    python = environment(tmp_path / "v", wheels / "torch-90.0.0-py3-none-any.whl", wheels / "numpy-2.0.0-py3-none-any.whl")
    with pytest.raises(NoTorch, match=r"lacks safetensors, xxhash\. Install there: .*/python -m pip install safetensors xxhash"):
        given(str(python), tmp_path)


def test_what_is_no_interpreter(tmp_path: Path) -> None:
    """A missing file, a folder, a program that is no Python: usage, with the path named."""
    for path, told in ((str(tmp_path / "nope"), "no such file"), (str(tmp_path), "no such file"), ("/bin/false", "no Python that answers")):
        with pytest.raises(UsageError, match=f"--python {path}: .*{told}"):
            given(path, tmp_path)


def test_a_program_that_repeats_what_it_was_given_is_cut_short(tmp_path: Path) -> None:
    """The question is a whole file of code."""
    echo = tmp_path / "echo"
    echo.write_text('#!/bin/sh\nprintf "%s " "cannot access" $2 >&2\nexit 2\n')
    echo.chmod(0o755)
    with pytest.raises(UsageError, match=r"cannot access .*\.\.\.\)\. Name the executable") as error:
        given(str(echo), tmp_path)
    assert len(str(error.value)) < 500


def test_a_command_is_looked_up_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name without a slash is a command."""
    python = environment(tmp_path / "v")
    monkeypatch.setenv("PATH", str(python.parent))
    with pytest.raises(NoTorch, match=rf"--python python3 lacks torch, .*Install there: {python}3 -m pip"):
        given("python3", tmp_path)


def test_a_python_that_is_too_old(tmp_path: Path) -> None:
    """One that answers as Python 3.9 is refused by its version."""
    old = tmp_path / "python"
    old.write_text("""#!/bin/sh\necho '{"python": "3.9.18", "torch": "2.4.0", "distributions": {}}'\n""")
    old.chmod(0o755)
    with pytest.raises(NoTorch, match=r"is Python 3\.9\.18; golden takes 3\.10 or later"):
        given(str(old), tmp_path)


def test_the_version_asked_for_has_to_be_that_of_the_interpreter(tmp_path: Path, wheels: Path, config: Config) -> None:
    """--torch beside --python is held against it, a public version meaning any build."""
    names = ("torch-91.0.0+cpu", "numpy-2.0.0", "safetensors-1.0.0", "xxhash-4.0.0")
    python = str(environment(tmp_path / "v", *(wheels / f"{item}-py3-none-any.whl" for item in names)))
    for version in (None, "91.0.0", "91.0.0+cpu"):
        assert provide(version, config, Silent(), python=python).torch == "91.0.0+cpu"
    with pytest.raises(NoTorch, match=r"has torch 91\.0\.0\+cpu, not 91\.0\.0\+cu129"):
        provide("91.0.0+cu129", config, Silent(), python=python)


def test_the_running_interpreter_serves_where_it_agrees(config: Config) -> None:
    """Without a version, or with its own; also with what a golden was recorded with, while it holds the same versions."""
    here = running()
    held = {"numpy": metadata.version("numpy"), "torch": "1.0", "Safe_Tensors": metadata.version("safetensors")}
    agreeing = Recorded.of({"distributions": {key: value for key, value in held.items() if key != "Safe_Tensors"}, "python": "3.1.4"})
    public = here.torch.partition("+")[0]
    for version, recorded in ((None, None), (public, None), (here.torch, Recorded()), (public, agreeing)):
        assert provide(version, config, Silent(), recorded=recorded) == here
    assert not (config.root.parent / "cache").exists()


def test_other_versions_than_recorded_take_an_environment(config: Config) -> None:
    """The running torch is the one asked for, but numpy is not the golden's: uv is asked, which here has no such torch."""
    public = running().torch.partition("+")[0]
    with pytest.raises(NoTorch, match=f"torch {public} cannot be had"):
        provide(public, config, Silent(), recorded=Recorded({"numpy": "1.0"}))


def test_another_version_takes_an_environment(config: Config) -> None:
    """With the golden's versions, the scenario's requirements and the running Python; the second time it is there already."""
    recorded = Recorded({"numpy": "2.0.0", "torch": "90.0.0"}, HERE)
    found = provide("90.0.0", config, Silent(), requires=["extra"], recorded=recorded)
    assert (found.torch, found.source, found.version) == ("90.0.0", Source.MADE, HERE)
    code = "import numpy, extra, torch; print(numpy.__version__, torch.__version__)"
    said = subprocess.run([str(found.python), "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout == "2.0.0 90.0.0\n"
    assert provide("90.0.0", config, Silent(), requires=["extra"], recorded=recorded) == found
    assert provide("91.0.0", config, Silent()).torch == "91.0.0+cpu"


def test_a_python_that_this_machine_lacks_is_said(config: Config) -> None:
    """A golden of another Python: the running one is used, and the user hears it."""
    heard = Heard()
    assert provide("90.0.0", config, heard, recorded=Recorded(python="3.1.4")).version == HERE
    assert heard.lines == [f"the golden was recorded under Python 3.1, which this machine does not have; {HERE} is used"]


def test_a_python_that_this_machine_has_is_used(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A golden of another Python that is here is judged under that one."""
    versions = Path(sys.base_prefix).parent
    others = [p for p in versions.glob("3.1[0-9].*/bin/python3") if f"/{MINOR}." not in str(p)]
    if not others:
        pytest.skip("takes another Python beside the running one")
    minor, full = others[0].parents[1].name.rpartition(".")[0], others[0].parents[1].name
    monkeypatch.setenv("PATH", str(others[0].parent))
    found = provide("90.0.0", config, Silent(), recorded=Recorded(python=f"{minor}.0"))
    assert found.version == full


@pytest.mark.parametrize("version", ["two", ">=2", "../2.4.0", "all"])
def test_what_is_no_version(config: Config, version: str) -> None:
    """Ranges, paths and words are mistakes of usage, named with their option."""
    with pytest.raises(UsageError, match=rf"--torch {version}: is no version"):
        provide(version, config, Silent())


def test_the_running_interpreter_inherits_everything(tmp_path: Path) -> None:
    """Its own environment is what it was started in."""
    base = {"PYTHONPATH": "/a", "VIRTUAL_ENV": "/v", "X": "1"}
    assert Interpreter(Path("p"), "1", Source.RUNNING, "3").variables(base, tmp_path) == base


@pytest.mark.parametrize("source", [Source.MADE, Source.GIVEN])
def test_another_interpreter_inherits_what_is_the_project_s(tmp_path: Path, source: Source) -> None:
    """Of PYTHONPATH the entries within the project, no active environment, everything else."""
    (tmp_path / "p/src").mkdir(parents=True)
    entries = [str(tmp_path / "p/src"), "/elsewhere", "", str(tmp_path / "p/../other"), str(tmp_path / "p")]
    base = {"PYTHONPATH": os.pathsep.join(entries), "VIRTUAL_ENV": "/v", "PYTHONHOME": "/h", "X": "1", "PYTHONHASHSEED": "7"}
    kept = Interpreter(Path("p"), "1", source, "3").variables(base, tmp_path / "p")
    assert kept == {"X": "1", "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join([entries[0], entries[4]])}
    assert "PYTHONPATH" not in Interpreter(Path("p"), "1", source, "3").variables({"PYTHONPATH": "/elsewhere"}, tmp_path)


def test_what_is_wanted(tmp_path: Path) -> None:
    """golden's needs, the project's dependencies without torch and itself, the scenario's requires; each once, in order."""
    config = Config(
        tmp_path,
        tmp_path,
        name="My_Toy",
        dependencies=("torch[opt]>=2.4; x", "TORCH", "torchvision", "my-toy[x]", "rich >=13", "rich >=13"),
    )
    assert wanted(config, ["scikit-learn", "torch==1"], print) == tuple(sorted([*OURS, "torchvision", "rich >=13", "scikit-learn"]))


def test_dynamic_dependencies_are_the_installed_project_s(tmp_path: Path) -> None:
    """Where the build backend computes them, the installed metadata are read, extras left out; not installed, that is said."""
    heard = Heard()
    config = Config(tmp_path, tmp_path, name="musgd-gate", dynamic=True)
    listed = wanted(config, (), heard.say)
    assert any(name(item) == "click" for item in listed)
    assert not any(name(item) in ("coverage", "torch") for item in listed)
    assert heard.lines == []
    assert wanted(Config(tmp_path, tmp_path, name="nonesuch-x", dynamic=True), (), heard.say) == tuple(sorted(OURS))
    assert "dependencies are dynamic and nonesuch-x is not installed here" in heard.lines[0]


@pytest.mark.parametrize(
    ("said", "pins", "minor"),
    [
        ({"distributions": {"NumPy": "2", "torch": "2", "A_b": "1"}, "python": "3.11.7"}, {"numpy": "2", "a-b": "1"}, "3.11"),
        ({}, {}, ""),
        ({"distributions": None, "python": None}, {}, ""),
    ],
)  # fmt: skip
def test_what_a_golden_was_recorded_with(said: Mapping[str, object], pins: Mapping[str, str], minor: str) -> None:
    """Names as registries compare them, without torch; a manifest that does not say is no fault."""
    recorded = Recorded.of(said)
    assert (recorded.pins, recorded.minor) == (pins, minor)


def test_of_two_distributions_the_first_on_the_path_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an import would find it."""
    for number, version in enumerate(("1.0", "2.0")):
        folder = tmp_path / str(number)
        subprocess.run([sys.executable, "-m", "zipfile", "-e", str(wheel(tmp_path, "Twice", version)), str(folder)], check=True)
        monkeypatch.syspath_prepend(str(folder))
    assert inventory.distributions()["twice"] == "2.0"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_real_torch_is_installed_and_says_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest torch, from uv's own cache where it is there: it imports, and says the version asked for."""
    monkeypatch.setenv("UV_CACHE_DIR", installer.run(["cache", "dir"], installer.environment(os.environ)).strip())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    config = Config(tmp_path, tmp_path)
    try:
        found = provide("2.4.0", config, Silent())
    except NoTorch as error:
        if "UV_OFFLINE" not in str(error):
            raise
        pytest.skip("torch 2.4.0 is not in uv's cache")
    said = subprocess.run([str(found.python), "-c", "import torch; print(torch.__version__)"], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == found.torch
    assert agrees("2.4.0", found.torch)
    assert not agrees("2.4.1", found.torch)
