"""The process that forks: what it imports beforehand, what it leaves out, and that nothing of it stays."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gate.errors import BaselineFailed
from gate.mutation.copies import Copy, scratch
from gate.mutation.worker import Worker
from tests.gate.mutation.tiny import left

TESTS = """
import os, sys


def test_modules():
    assert "quiet" in sys.modules
    assert "loud" not in sys.modules


def test_never_ends():
    while True:
        pass


def test_ends_itself():
    os._exit(7)
"""


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    project, modules = tmp_path / "project", tmp_path / "modules"
    for folder in (project, modules, tmp_path / "slot"):
        folder.mkdir()
    (project / "test_it.py").write_text(TESTS)
    (modules / "quiet.py").write_text("")
    (modules / "loud.py").write_text("import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n")
    Copy.make(project, ["test_it.py"], tmp_path / "slot")
    worker = Worker(tmp_path / "slot", {**os.environ, "PYTHONPATH": str(modules)}, "testing", ["quiet"])
    yield worker
    worker.close()


def job(worker: Worker, test: str) -> dict[str, Any]:
    folder = worker.folder
    return {
        "tree": f"{folder}/tree",
        "project": "/nowhere",
        "roots": ["."],
        "scratch": f"{folder}/scratch",
        "files": ["test_it.py"],
        "tests": [f"test_it.py::{test}"],
        "first": True,
        "coverage": False,
        "learn": False,
        "mutated": "",
        "options": [],
    }


def test_a_module_that_starts_a_thread_is_left_to_the_forks(worker: Worker) -> None:
    worker.preload(["quiet", "loud"])
    answer = worker.ask(job(worker, "test_modules"), 60)
    assert (answer["code"], answer["passed"]) == (0, ["test_it.py::test_modules"])
    assert worker.left_out == {"loud"}


def test_how_a_fork_ended_is_told_apart(worker: Worker) -> None:
    assert worker.ask(job(worker, "test_never_ends"), 1.0)["ended"] == "timeout"
    died = worker.ask(job(worker, "test_ends_itself"), 60)
    assert (died["ended"], died["code"]) == ("died", 7)
    assert worker.ask(job(worker, "test_modules"), 60)["ended"] == "answered"


def test_a_worker_that_was_killed_is_no_verdict(worker: Worker) -> None:
    worker.ask(job(worker, "test_modules"), 60)
    assert worker._process is not None
    os.kill(worker._process.pid, signal.SIGKILL)
    with pytest.raises(BaselineFailed, match="has ended"):
        worker.ask(job(worker, "test_modules"), 60)


def test_a_closed_worker_leaves_no_process_and_takes_no_work(worker: Worker) -> None:
    worker.ask(job(worker, "test_modules"), 60)
    assert left(str(worker.folder))
    worker.close()
    assert left(str(worker.folder)) == []
    with pytest.raises(KeyboardInterrupt):
        worker.ask(job(worker, "test_modules"), 60)


def test_a_copy_is_made_what_it_was(tmp_path: Path) -> None:
    (tmp_path / "project/inner").mkdir(parents=True)
    for name in ("a.py", "inner/b.txt", "c.py"):
        (tmp_path / "project" / name).write_text(name)
    copy = Copy.make(tmp_path / "project", ["a.py", "inner/b.txt", "c.py"], tmp_path / "copy")
    time.sleep(0.01)
    copy.write("a.py", "a.py!")
    (copy.tree / "inner/b.txt").unlink()
    (copy.tree / "inner/new.txt").write_text("new")
    (copy.scratch / "more").mkdir()
    copy.restore()
    found = {path.relative_to(copy.tree).as_posix(): path.read_text() for path in copy.tree.rglob("*") if path.is_file()}
    assert found == {name: name for name in ("a.py", "inner/b.txt", "c.py")}
    assert list(copy.scratch.iterdir()) == []


def test_folders_of_killed_commands_are_removed_and_those_in_use_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    old = tmp_path / "gate-mutate-old"
    old.mkdir()
    (old / "lock").touch()
    with scratch() as used:
        assert not old.exists()
        with scratch():
            assert used.exists()
    assert list(tmp_path.iterdir()) == []
