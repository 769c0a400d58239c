"""A line that tests run in processes which they fork alone is known to be run by them, so that they are asked about its faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gate.mutation.tiny import Tiny

HEAD = """
import concurrent.futures, multiprocessing, os
from shop import Basket, forgotten

fork = multiprocessing.get_context("fork")


def put(pipe):
    pipe.send(forgotten(1))


def twice():
    child = os.fork()
    if not child:
        os._exit(forgotten(1))
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def test_total():
    assert Basket().total() == 6


def test_worker():
"""
WAYS = {
    "executor": "with concurrent.futures.ProcessPoolExecutor(1, mp_context=fork) as p:\n assert p.submit(forgotten, 1).result() == {}",
    "process": "here, there = fork.Pipe()\na = fork.Process(target=put, args=(there,))\na.start()\na.join()\nassert here.recv() == {}",
    "bare": "child = os.fork()\nif not child:\n os._exit(forgotten(1))\nassert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == {}",
    "nested": "one = fork.Process(target=twice)\none.start()\none.join()\nassert one.exitcode == {}",
}


@pytest.mark.parametrize("way", WAYS)
def test_what_runs_in_forked_processes_alone_is_asked_about(tmp_path: Path, way: str) -> None:
    """A test that looks at the result kills the fault; one that does not is asked, and lets it survive."""
    body = "".join(f"    {line}\n" for line in WAYS[way].replace("{}", "2").splitlines())
    found = Tiny.new(tmp_path / "project", tests=HEAD + body).mutate("--jobs", "1", "--operator", "arithmetic")
    assert found.statuses(after="return a - 1") == ["killed"]
    body = "".join(f"    {line}\n" for line in WAYS[way].replace("== {}", "is not None").splitlines())
    idle = Tiny.new(tmp_path / "idle", tests=HEAD + body).mutate("--jobs", "1", "--operator", "arithmetic")
    (mutant,) = [one for one in idle.document["mutants"] if one["after"].strip() == "return a - 1"]
    assert (mutant["status"], "runs this line" in str(mutant)) == ("survived", False)
