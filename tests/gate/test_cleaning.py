"""What takes space for nothing is removed, and nothing else."""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from pathlib import Path

import pytest

from gate import interpreter
from gate.cleaning import Swept, clean
from gate.config import Config
from gate.environments import MARKER, Environment, cached, make
from gate.progress import Silent
from gate.requirements import Recorded
from golden.aside import aside
from golden.lock import lock
from golden.settings import Settings
from tests.gate.wheels import registry
from tests.golden.goldens import golden


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A project with one scenario and one golden."""
    root = tmp_path / "project"
    golden(root / "goldens/cpu/torch-90.0.0/digits", torch="90.0.0", environment={"distributions": {"numpy": "2.0.0", "torch": "90.0.0"}})
    return Config(root, root / "goldens", scenarios={"digits": Settings("digits", "s.py:digits"), "new": Settings("new", "s.py:new")})


@pytest.fixture
def home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for environments; uv sees small wheels alone."""
    for name in [name for name in os.environ if name.startswith("UV_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(registry(tmp_path_factory.mktemp("wheels"))))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    folder = tmp_path / "environments"
    folder.mkdir()
    return folder


def run(config: Config, days: float, mark: str) -> Path:
    """A kept run of some days ago."""
    began = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() - days * 86400))
    folder = config.root / ".gate/runs" / f"{began}-{mark}"
    golden(folder / "cpu/torch-2.13.0/digits")
    return folder


def found(swept: Swept) -> list[tuple[str, Path]]:
    return [(item.kind, item.path) for item in swept.removed]


def made(home: Path, config: Config, torch: str, **pins: str) -> Environment:
    """An environment as `verify --torch` has it made for a golden of the project."""
    return make(home, interpreter.recipe(torch, config, Silent(), (), Recorded(pins)), Silent())


def test_there_is_nothing_to_remove_from_a_clean_project(config: Config, home: Path) -> None:
    assert clean(config, home, dry=False).text() == "nothing to remove\n"
    assert clean(Config(config.root / "absent", config.root / "absent/goldens"), None, dry=False).removed == ()


def test_what_a_killed_record_left_goes_and_what_one_works_in_stays(config: Config) -> None:
    """Told apart by the lock that the system takes from the dead; goldens stay as they are."""
    left = config.goldens / ".aside-1-0a"
    golden(left / "new")
    with aside(config.goldens) as live:
        swept = clean(config, None, dry=False)
        assert live.is_dir()
    assert found(swept) == [("record", left)]
    assert swept.removed[0].size > 1000
    assert sorted(path.name for path in config.goldens.iterdir()) == ["cpu"]


def test_while_another_records_its_folder_stays_as_it_is(config: Config) -> None:
    """The lock's holder is named; the rest is removed all the same."""
    left, old = config.goldens / ".aside-1-0a", run(config, 9, "0001")
    left.mkdir()
    with lock(config.goldens):
        swept = clean(config, None, dry=False)
    assert left.is_dir()
    assert found(swept) == [("run", old)]
    assert [(path, f"process {os.getpid()}" in why) for path, why in swept.kept] == [(left, True)]
    assert f"kept {left}: " in swept.text()


def test_old_runs_go_and_young_ones_stay(config: Config) -> None:
    """By the time in their names, a week unless told otherwise; one that somebody works in, and what is no run, stay."""
    old, used, young = run(config, 8, "0001"), run(config, 9, "0002"), run(config, 6, "0003")
    (config.root / ".gate/runs/notes").mkdir()
    descriptor = os.open(used, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    swept = clean(config, None, dry=False)
    os.close(descriptor)
    assert found(swept) == [("run", old)]
    assert [path for path, _ in swept.kept] == [used]
    assert found(clean(config, None, dry=False, days=6.5)) == [("run", used)]
    assert found(clean(config, None, dry=False, days=0)) == [("run", young)]
    assert [path.name for path in (config.root / ".gate/runs").iterdir()] == ["notes"]


def test_an_environment_that_no_golden_needs_goes(config: Config, home: Path) -> None:
    """Needed is one of the golden's torch, in the versions that the golden names; not one of another torch, or of other versions."""
    serving = made(home, config, "90.0.0", numpy="2.0.0")
    needless = [made(home, config, "90.0.0", numpy="2.1.0"), made(home, config, "91.0.0", numpy="2.0.0")]
    swept = clean(config, home, dry=False)
    assert sorted(found(swept)) == sorted(("environment", each.folder) for each in needless)
    assert cached(home) == [serving]
    assert all(item.size > item.shared > 0 for item in swept.removed)
    assert swept.freed == sum(item.size - item.shared for item in swept.removed)
    assert "more are in uv's cache too: uv cache prune" in swept.text()


def test_an_environment_in_which_something_runs_stays(config: Config, home: Path) -> None:
    """Its process is named; once that has ended, the environment goes."""
    needless = made(home, config, "91.0.0")
    program = [str(needless.interpreter), "-c", "print('started', flush=True); input()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"  # Popen may return before the kernel shows the new command line
        swept = clean(config, home, dry=False)
        assert swept.kept == ((needless.folder, f"process {process.pid} runs its Python"),)
        assert swept.removed == ()
        process.communicate(b"\n")
    assert found(clean(config, home, dry=False)) == [("environment", needless.folder)]


def test_environments_that_are_not_whole_go(config: Config, home: Path) -> None:
    """Half made ones, unless their lock is held, half removed ones, and those whose Python is gone; one of a newer gate stays."""
    building, busy, removed, dead, newer = (home / name for name in (".building-a-1", ".building-b-2", "c", "d", "e"))
    for folder in (building, busy, removed, dead / "bin", newer / "bin"):
        folder.mkdir(parents=True)
    (dead / "bin/python").symlink_to("/nowhere/python")
    for folder in (dead, newer):
        (folder / MARKER).write_text('{"format": 99}')
    (newer / "bin/python").write_text("")
    with (home / ".b.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        swept = clean(config, home, dry=False)
    assert found(swept) == [("installation", building), ("installation", removed), ("installation", dead)]
    assert [path for path, _ in swept.kept] == [busy]
    assert busy.is_dir()
    assert newer.is_dir()


def test_a_dry_run_says_the_same_and_removes_nothing(config: Config, home: Path) -> None:
    old, needless = run(config, 8, "0001"), made(home, config, "91.0.0")
    dry = clean(config, home, dry=True)
    assert old.is_dir()
    assert needless.interpreter.exists()
    wet = clean(config, home, dry=False)
    assert (dry.removed, dry.kept) == (wet.removed, wet.kept)
    assert not old.exists()
    assert dry.text().startswith(f"would remove {old}: a run of 8 days ago, ")
    assert wet.text().startswith(f"removed {old}: ")
    document = wet.as_json()
    assert [(each["kind"], each["path"]) for each in document["removed"]] == [("run", str(old)), ("environment", str(needless.folder))]
    assert document["freed"] == sum(each["freed"] for each in document["removed"]) > 0


def test_without_a_project_only_installations_are_looked_at(config: Config, home: Path) -> None:
    """Which environments are needed is not known then."""
    whole = made(home, config, "91.0.0")
    (home / ".building-a-1").mkdir()
    swept = clean(None, home, dry=False)
    assert found(swept) == [("installation", home / ".building-a-1")]
    assert cached(home) == [whole]
    assert "no project here" in swept.text()


@pytest.mark.parametrize("name", ["check", "mutation", "bench"])
def test_findings_that_nobody_asked_for_in_days_go_and_younger_ones_stay(config: Config, name: str) -> None:
    folder = config.root / ".gate" / name
    old, young = folder / "verdicts/old.json", folder / "verdicts/young.json"
    for path, age in ((old, 9), (young, 3)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
        os.utime(path, (time.time() - age * 86400,) * 2)
    assert found(clean(config, None, dry=True)) == [("findings", folder)]
    assert old.exists()
    swept = clean(config, None, dry=False)
    assert (found(swept), swept.freed) == ([("findings", folder)], 2)
    assert (old.exists(), young.exists()) == (False, True)
    assert found(clean(config, None, dry=False)) == []
