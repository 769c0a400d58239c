"""What real tests, scenarios and benchmarks list, and do not open, is part of their record."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gate import config
from gate.benchmark import place, setting
from gate.benchmark.judgement import Speed
from gate.benchmark.proof import Proof, Read
from gate.benchmark.result import Result
from gate.check.judge import Asked
from gate.evidence import Snapshot, benched, commands
from gate.evidence.status import View
from gate.machine import Machine
from gate.progress import Silent
from gate.record import record
from gate.runs import Runs
from gate.selection import Wanted
from gate.trial import Means
from gate.verify import verify
from tests.gate.repositories import commit, git, init

TEST = """import multiprocessing
import os
from pathlib import Path

def read(folder):
    assert len(os.listdir(folder)) == 1
    assert open(f"{folder}/a.csv").read() == "1\\n"

def test_data(monkeypatch):
    for _ in range(2):
        with open("own.log", "a") as file:
            file.write("1\\n")
        assert "1" in open("own.log").read()
    process = multiprocessing.get_context("fork").Process(target=read, args=("forked",))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert [path.name for path in Path("data").glob("*.csv")] == ["a.csv"]
    descriptor = os.open("descriptor", os.O_RDONLY)
    assert [entry.name for entry in os.scandir(descriptor)] == ["a.csv"]
    os.close(descriptor)
    monkeypatch.chdir("current")
    assert os.listdir() == ["a.csv"]
"""
FILES = {
    "pyproject.toml": '[tool.gate.required]\ntests = ["cpu"]\n', "tests/test_data.py": TEST, "data/a.csv": "1\n", "other/a.csv": "1\n",
    "current/a.csv": "1\n", "descriptor/a.csv": "1\n", "forked/a.csv": "1\n", ".gitignore": ".gate/\n__pycache__/\n",
}  # fmt: skip


@pytest.mark.skipif(Machine.here().cuda is not None, reason="where a GPU is, tests without need of one are no evidence")
def test_a_new_file_where_tests_have_looked_stales_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them opened the files that were there; a folder that nobody listed is none of theirs."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    init(tmp_path)
    commit(tmp_path, FILES)
    for _ in range(2):  # what the test writes itself is no source, be it new or not
        assert commands.check(config.find(tmp_path), Asked(everything=True, jobs=1), Silent()).exit_code == 0
    commit(tmp_path, {"other/b.csv": "2\n", "data/README.md": "# Data\n"})
    (line,) = View.of(config.find(tmp_path)).status().lines
    assert line.state.value == "fresh"
    for folder in ("data", "current", "descriptor", "forked"):
        made = commit(tmp_path, {f"{folder}/b.csv": "2\n"}, "More data")
        (line,) = View.of(config.find(tmp_path)).status().lines
        assert (line.state.value, line.reason) == ("stale", f"{folder}/b.csv is new since {made[:7]} (More data)")
        git(tmp_path, "reset", "-q", "--hard", "HEAD~1")
    commit(tmp_path, {"forked/a.csv": "2\n"})
    (line,) = View.of(config.find(tmp_path)).status().lines
    assert line.files == ("forked/a.csv",), "what a forked process opens is read as well"


SCENARIO = """import glob
import multiprocessing
import os
from pathlib import Path
from unittest import mock

import golden
import part


def listing(record):
    with mock.patch.dict(os.environ, {"PATH": os.environ["PATH"]}, clear=True):
        process = multiprocessing.get_context("spawn").Process(target=part.look, args=("data/nobody",))
        process.start()
        process.join()
        assert process.exitcode == 0, "there is nobody who hears it, and nothing else amiss"
    try:
        os.listdir("data/absent")
    except FileNotFoundError:
        pass
    os.listdir("data/listdir")
    glob.glob("data/glob/*.csv")
    list(Path("data/iterdir").iterdir())
    descriptor = os.open("data/descriptor", os.O_RDONLY)
    list(os.scandir(descriptor))
    os.close(descriptor)
    for kind in ("fork", "spawn"):
        process = multiprocessing.get_context(kind).Process(target=part.look, args=(f"data/{kind}",))
        process.start()
        process.join()
        assert process.exitcode == 0
    os.chdir("data/current")
    os.listdir()
    for _ in range(record.steps):
        record(x=1)
"""
LISTED = ("listdir", "glob", "iterdir", "descriptor", "fork", "spawn", "current")
LISTING = {
    "pyproject.toml": (
        '[tool.gate.required]\ngoldens = ["cpu"]\nbench = ["HERE"]\n[tool.gate.scenarios.a]\nrun = "scenario.py:listing"\nsteps = 4\n'
        'watch = ["./watched/deep/../", "one.bin"]\n'
        '[tool.gate.bench.b]\nscenarios = ["a", "a"]\n'
    ).replace("HERE", Machine.here().native),
    "scenario.py": SCENARIO, "part.py": "import os\n\n\ndef look(folder):\n    os.listdir(folder)\n",
    ".gitignore": ".gate/\n__pycache__/\n", "data/other/a.csv": "1\n", "data/nobody/a.csv": "1\n",
    "watched/deep/a.bin": "1\n", "one.bin": "1\n",
    **{f"data/{name}/a.csv": "1\n" for name in LISTED},
}  # fmt: skip


@pytest.fixture(scope="module")
def listing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose golden was verified, and whose benchmark was proven."""
    folder = init(tmp_path_factory.mktemp("listing"))
    commit(folder, LISTING)
    means = Means(config.find(folder), None, 1, Silent())
    assert record(means, Wanted(device="cpu"), None).exit_code == 0
    commit(folder, {}, "Record")
    assert verify(means, Wanted(device="cpu")).exit_code == 0
    before, bench = Snapshot.take(means.config), setting.find(means.config, "b")
    where = place.choose(means, bench, "cpu")
    with Runs(folder) as runs:
        read = Proof(bench, where, runs, Silent()).read()
    again = Read(**read.as_json())
    benched.put_on_record(means.config, before, Result("b", where.hardware, where.torch, Speed.NO_DIFFERENCE, True, read=again))
    return folder


def states(folder: Path) -> dict[str, str | None]:
    """Why each check is stale; of a fresh one nothing."""
    lines = View.of(config.find(folder)).status().lines
    assert {line.need.check for line in lines} == {"goldens", "bench"}
    assert all(line.state.value == ("stale" if line.reason else "fresh") for line in lines)
    return {line.need.check: line.reason for line in lines if line.reason}


@pytest.mark.parametrize("name", LISTED)
def test_what_comes_to_or_goes_from_a_folder_that_a_scenario_listed_stales_it(listing: Path, name: str) -> None:
    """Whatever its suffix, and whichever process listed it; when it is undone, all is fresh again."""
    assert states(listing) == {}
    for file, content, told in (("b.txt", "2\n", "is new"), ("a.csv", None, "is gone")):
        made = commit(listing, {f"data/{name}/{file}": content}, "Change")
        reason = f"data/{name}/{file} {told} since {made[:7]} (Change)"
        assert states(listing) == {"goldens": reason, "bench": reason}
        git(listing, "reset", "-q", "--hard", "HEAD~1")


@pytest.mark.parametrize("file", ["data/other/b.csv", "data/b.csv", "more.csv", "part/b.csv", "data/absent/b.csv"])
def test_a_folder_that_nobody_listed_stales_nothing(listing: Path, file: str) -> None:
    """What imports and metadata of packages list is nobody's, either; and nothing is left of the notes."""
    commit(listing, {file: "2\n"})
    assert states(listing) == {}
    assert not list((listing / ".gate").rglob("*.listed"))
    git(listing, "reset", "-q", "--hard", "HEAD~1")


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("watched/deep/b.txt", "2\n", "is new"),
        ("watched/deep/a.bin", None, "is gone"),
        ("watched/deep/a.bin", "2\n", "has other content"),
        ("one.bin", "2\n", "has other content"),
    ],
)
def test_what_a_scenario_watches_is_read(listing: Path, file: str, content: str | None, told: str) -> None:
    """A library may open it without Python."""
    made = commit(listing, {file: content}, "Change")
    assert states(listing) == {"goldens": f"{file} {told} since {made[:7]} (Change)"}
    git(listing, "reset", "-q", "--hard", "HEAD~1")


SAVING = """import os

import torch

def saving(record):
    os.makedirs("runs", exist_ok=True)
    for step in range(record.steps):
        torch.save({"step": step}, f"runs/{os.getpid()}-{step}.pt")
        record(x=len(os.listdir("runs")) > 0)
"""


def test_what_a_scenario_writes_into_a_folder_that_it_lists_does_not_keep_it_from_being_judged(tmp_path: Path) -> None:
    """It is told that git should ignore it: what other runs leave there is new."""
    table = '[tool.gate.required]\ngoldens = ["cpu"]\n[tool.gate.scenarios.a]\nrun = "scenario.py:saving"\nsteps = 2\n'
    commit(init(tmp_path), {"pyproject.toml": table, "scenario.py": SAVING, ".gitignore": ".gate/\n__pycache__/\n"})
    means = Means(config.find(tmp_path), None, 1, Silent())
    assert record(means, Wanted(device="cpu"), None).exit_code == 0
    shutil.rmtree(tmp_path / "runs")
    commit(tmp_path, {}, "Record")
    assert verify(means, Wanted(device="cpu")).exit_code == 0
    status = View.of(means.config).status()
    (note,) = status.notes
    assert (status.exit_code, note.endswith("let git ignore what it writes")) == (0, True)
    (tmp_path / "runs/other.pt").touch()
    (line,) = View.of(means.config).status().lines
    assert (line.state.value, line.files) == ("stale", ("runs/other.pt",))
    commit(tmp_path, {".gitignore": ".gate/\n__pycache__/\nruns/\n"})
    assert verify(means, Wanted(device="cpu")).exit_code == 0
    status = View.of(means.config).status()
    assert (status.exit_code, status.notes) == (0, ())
