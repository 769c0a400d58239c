from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gate import environments
from gate.environments import MARKER, Recipe, cached, find, make, remove, size
from gate.errors import NoTorch
from gate.progress import Silent
from gate.requirements import OURS
from tests.gate.wheels import Heard, registry, see_only, wheel


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return registry(tmp_path_factory.mktemp("wheels"))


@pytest.fixture
def home(tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for environments; uv sees the small wheels alone."""
    see_only(wheels, tmp_path / "uv", monkeypatch)
    folder = tmp_path / "cache ü/gate/environments"
    folder.mkdir(parents=True)
    return folder


def recipe(torch: str = "90.0.0", *requirements: str, **pins: str) -> Recipe:
    python = ".".join(map(str, sys.version_info[:3]))
    return Recipe(torch, Path(sys.executable), python, tuple(sorted({*OURS, *requirements})), pins)


def test_an_environment_holds_what_its_recipe_says(home: Path) -> None:
    """torch of the version asked for, what golden needs in the pinned versions, the requirements; measured by importing it there."""
    made = make(home, recipe("90.0.0", "extra", numpy="2.0.0", absent="1.0"), Silent())
    assert made.torch == "90.0.0"
    assert dict(made.distributions) == {"torch": "90.0.0", "numpy": "2.0.0", "safetensors": "1.0.0", "xxhash": "4.0.0", "extra": "1.0"}
    code = "import torch, numpy, extra; print(torch.__version__, numpy.__version__)"
    said = subprocess.run([str(made.interpreter), "-c", code], check=True, capture_output=True, text=True).stdout
    assert said == "90.0.0 2.0.0\n"
    assert sorted(path.name for path in home.iterdir()) == sorted([made.folder.name, f".{made.folder.name}.lock"])


def test_a_public_version_means_any_build(home: Path) -> None:
    """91.0.0 is served by 91.0.0+cpu, and the full version is what counts from then on."""
    assert make(home, recipe("91.0.0"), Silent()).torch == "91.0.0+cpu"
    assert find(home, recipe("91.0.0+cpu")) is not None
    assert find(home, recipe("91.0.0+cu129")) is None


def test_two_versions_live_side_by_side(home: Path) -> None:
    """Each version has its folder, and is found by it."""
    first, second = make(home, recipe("90.0.0"), Silent()), make(home, recipe("91.0.0"), Silent())
    assert [environment.torch for environment in cached(home)] == ["90.0.0", "91.0.0+cpu"]
    assert (find(home, recipe("90.0.0")), find(home, recipe("91.0.0"))) == (first, second)


def test_an_environment_made_once_serves_again(home: Path) -> None:
    """The second time nothing is installed; other pins that it happens to fulfil are served too, those that it does not are not."""
    made = make(home, recipe(), Silent())
    shutil.rmtree(os.environ["UV_CACHE_DIR"])
    os.environ["UV_FIND_LINKS"] = "/nowhere"
    assert make(home, recipe(), Silent()) == made
    assert find(home, recipe("90.0.0", numpy="2.1.0")) == made
    assert find(home, recipe("90.0.0", numpy="2.0.0")) is None
    assert find(home, recipe("90.0.0", "extra")) is None
    assert find(home, replace(recipe(), python="3.1.4")) is None
    assert find(home, replace(recipe(), backend="cu129")) is None


def test_pins_hold_for_what_comes_indirectly(home: Path) -> None:
    """A pin does not add a distribution, and one that cannot be met with the requirements is told."""
    assert "indirect" not in make(home, recipe("90.0.0", indirect="1.0"), Silent()).distributions
    assert make(home, recipe("90.0.0", "indirect"), Silent()).distributions["numpy"] == "2.0.0"
    with pytest.raises(NoTorch, match=r"indirect.*numpy"):
        make(home, recipe("90.0.0", "indirect", numpy="2.1.0"), Silent())


WRONG = {
    "no such version": ("99.0.0", (), ["torch 99.0.0 cannot be had for Python 3.", "no version of torch==99.0.0", "Name a version that"]),
    "not for this Python": ("92.0.0", (), ["no wheels with a matching Python", "cp38", "--python PATH"]),
    "no such requirement": ("90.0.0", ("nonesuch",), ["nonesuch was not found", "UV_OFFLINE is set"]),
    "not importable": ("93.0.0", (), ["installed but cannot be imported", "libodd.so"]),
    "another than it says": ("94.0.0", (), ["calls itself 94.0.1"]),
    "no requirement at all": ("90.0.0", ("a b c",), ["a b c"]),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_had_is_told_in_a_few_lines(home: Path, case: str) -> None:
    """uv's own reason without its progress, what to do, and nothing left behind."""
    version, requirements, told = WRONG[case]
    with pytest.raises(NoTorch) as error:
        make(home, recipe(version, *requirements), Silent())
    for part in told:
        assert part in str(error.value)
    assert len(str(error.value).splitlines()) <= 8
    assert "Using Python" not in str(error.value)
    assert error.value.reason == "no-torch"
    assert cached(home) == []
    assert [path for path in home.iterdir() if not path.name.endswith(".lock")] == []


def test_no_network_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry that does not answer is named as such, with the ways around it."""
    monkeypatch.delenv("UV_OFFLINE")
    monkeypatch.delenv("UV_FIND_LINKS")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(NoTorch, match=r"(?s)127\.0\.0\.1:9.*Check the network, name a folder of wheels by UV_FIND_LINKS"):
        make(home, recipe("90.0.0"), Silent())


def test_no_space_is_told(home: Path, tmp_path: Path) -> None:
    """A full disk is named as such; here a file system of a few kilobytes."""
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(small)], capture_output=True).returncode != 0:
        pytest.skip("takes the right to mount")
    try:
        with pytest.raises(NoTorch, match=r"(?is)no space left.*free"):
            make(small, recipe(), Silent())
        assert cached(small) == []
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_project_around_the_cache_adds_nothing(home: Path) -> None:
    """CI systems keep caches within the project, whose constraints are for its own environment alone."""
    (home / "pyproject.toml").write_text('[project]\nname = "p"\nversion = "0"\n[tool.uv]\nconstraint-dependencies = ["numpy<2.1"]\n')
    assert make(home, recipe(), Silent()).distributions["numpy"] == "2.1.0"


def test_variables_for_other_environments_do_not_count(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An active virtual environment, a constraint file and a PYTHONPATH change nothing."""
    (tmp_path / "constraints.txt").write_text("numpy<2.1\n")
    wheel(tmp_path / "path", "torch", "1.0")
    monkeypatch.setenv("UV_CONSTRAINT", str(tmp_path / "constraints.txt"))
    monkeypatch.setenv("UV_PYTHON", "3.99")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "nowhere"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path/torch-1.0-py3-none-any.whl"))
    made = make(home, recipe(), Silent())
    assert (made.torch, made.distributions["numpy"]) == ("90.0.0", "2.1.0")


def test_two_at_once_install_once(home: Path) -> None:
    """Threads and processes that want the same environment wait for the one that installs it."""
    made = []
    threads = [threading.Thread(target=lambda: made.append(make(home, recipe(), Silent()))) for _ in range(2)]
    code = (
        "import sys; from pathlib import Path; from gate.environments import *; from gate.progress import Silent;"
        f"make(Path({str(home)!r}), Recipe(*{(r := recipe()).torch, str(r.base), r.python, r.requirements!r}), Silent())"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert process.wait() == 0
    assert made[0] == made[1]
    assert cached(home) == made[:1]


def test_a_killed_installation_leaves_nothing_that_looks_whole(home: Path) -> None:
    """SIGKILL in the middle: nothing is found, the next one clears up and succeeds."""
    code = (
        "import os, signal; from pathlib import Path; from gate import environments; from gate.environments import *;"
        "from gate.progress import Silent;"
        "environments._measure = lambda *_: os.kill(os.getpid(), signal.SIGKILL);"
        f"make(Path({str(home)!r}), Recipe(*{(r := recipe()).torch, str(r.base), r.python, r.requirements!r}), Silent())"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    assert [path for path in home.iterdir() if path.name.startswith(".building-")]
    assert cached(home) == []
    made = make(home, recipe(), Silent())
    assert cached(home) == [made]
    assert not [path for path in home.iterdir() if path.name.startswith(".building-")]


def test_an_interrupt_clears_up(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while torch is imported for the first time: nothing stays."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(environments, "_measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make(home, recipe(), Silent())
    assert [path for path in home.iterdir() if not path.name.endswith(".lock")] == []


@pytest.mark.parametrize("damage", ["marker gone", "marker cut", "marker of another format", "interpreter gone"])
def test_a_damaged_environment_is_made_anew(home: Path, damage: str) -> None:
    """What is not whole is neither found nor listed, and is replaced."""
    made = make(home, recipe(), Silent())
    marker = made.folder / MARKER
    if damage == "marker gone":
        marker.unlink()
    elif damage == "marker cut":
        marker.write_text(marker.read_text()[:50])
    elif damage == "marker of another format":
        marker.write_text(json.dumps({**json.loads(marker.read_text()), "format": 99}))
    else:
        made.interpreter.unlink()
        made.interpreter.symlink_to("/nowhere/python")
    assert cached(home) == []
    assert find(home, recipe()) is None
    assert make(home, recipe(), Silent()) == made


def test_environments_are_listed_measured_and_removed(home: Path) -> None:
    """Their size, the part that uv's cache does not share, and their end."""
    made = make(home, recipe(), Silent())
    whole, own = size(made)
    assert whole == sum(path.lstat().st_size for path in made.folder.rglob("*") if path.is_symlink() or not path.is_dir())
    assert 0 < own < whole
    remove(made)
    assert cached(home) == []
    assert not made.folder.exists()


def test_use_is_noted(home: Path) -> None:
    """The marker's time says when an environment was used last."""
    made = make(home, recipe(), Silent())
    os.utime(made.folder / MARKER, (1, 1))
    find(home, recipe())
    assert (made.folder / MARKER).stat().st_mtime > time.time() - 100


def test_where_environments_are_kept(tmp_path: Path) -> None:
    """XDG_CACHE_HOME when absolute, else the home folder's cache."""
    heard = Heard()
    assert environments.home({"XDG_CACHE_HOME": str(tmp_path / "x"), "HOME": str(tmp_path)}, heard.say) == tmp_path / "x/gate/environments"
    assert environments.home({"XDG_CACHE_HOME": "relative", "HOME": str(tmp_path)}, heard.say) == tmp_path / ".cache/gate/environments"
    assert heard.lines == []


def test_no_home_that_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The temporary folder serves, which is said; one that somebody else made there does not."""
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    heard = Heard()
    folder = environments.home({"HOME": str(tmp_path / "file")}, heard.say)
    assert folder == tmp_path / f"tmp/gate-{os.getuid()}/environments"
    assert str(folder) in heard.lines[0]
    assert folder.parent.stat().st_mode & 0o777 == 0o700
    shutil.rmtree(folder.parent)
    folder.parent.symlink_to(tmp_path)
    with pytest.raises(NoTorch, match="belongs to another user"):
        environments.home({"HOME": str(tmp_path / "file")}, heard.say)


def test_without_a_home_uv_keeps_its_cache_beside(tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no cache folder can be written, uv's own cannot either: it goes to the same place, and the installation succeeds."""
    for name in ("XDG_CACHE_HOME", *(name for name in os.environ if name.startswith("UV_"))):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(wheels))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = environments.home(os.environ, lambda line: None)
    assert make(folder, recipe(), Silent()).torch == "90.0.0"
    assert (folder.parent / "uv").is_dir()
