"""Processes that execute requests, started anew: what they inherit, how they end, and what is left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from golden.errors import StoreError, UsageError
from golden.launch import Children, _report, beside, steps_done
from golden.profile import environment
from golden.settings import Report, Request
from golden.store import Golden
from tests.golden.forks import Server, fresh, request
from tests.golden.test_scenario import write

# Where a scenario of this file waits, it first writes the number of its process, and that of one that it started, into its folder.
WAITING = """
import os, subprocess, sys, time
from pathlib import Path
import golden

def waits(record):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    record(x=1)
    (record.folder / "part").write_text(f"{os.getpid()} {child.pid}")
    (record.folder / "part").rename(record.folder / "pids")
    time.sleep(600)

def leaves_one_behind(record):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (record.folder / "pids").write_text(f"{os.getpid()} {child.pid}")
    for _ in range(record.steps):
        record(x=1)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write(tmp_path_factory.mktemp("launch") / "project")
    (folder / "goldens/waiting.py").write_text(WAITING)
    return folder


def waiting(project: Path, name: str, function: str = "waits") -> Request:
    folder = project / ".gate" / name / "saved"
    folder.mkdir(parents=True)
    return replace(request(project, f"goldens/waiting.py:{function}", project / ".gate" / name / "golden"), folder=folder)


def until(there: Callable[[], bool], seconds: float = 120.0) -> None:
    """What has been killed takes a moment to be gone."""
    deadline = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def pids(wanted: Request) -> list[int]:
    assert wanted.folder is not None
    return [int(pid) for pid in (wanted.folder / "pids").read_text().split()]


def test_a_fresh_process_records_what_any_other_does(project: Path) -> None:
    """Whatever it inherits: thread counts, instruction sets, another golden and another project on PYTHONPATH; spawned workers work."""
    decoys = project.parent / "decoys"
    for name in ("golden", "core", "sibling", "scenarios"):
        (decoys / name).mkdir(parents=True)
        (decoys / name / "__init__.py").write_text("raise ImportError('a decoy')")
    hostile = {
        "PYTHONPATH": os.pathsep.join([str(decoys), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
        "OMP_NUM_THREADS": "3",
        "MKL_CBWR": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "OPENBLAS_NUM_THREADS": "2",
        "NPY_DISABLE_CPU_FEATURES": "",
        "PYTHONHASHSEED": "7",
        "PYTHONINSPECT": "1",
    }
    wanted = request(project, "goldens/scenarios.py:workers", project / ".gate/fresh", parameters={"method": "spawn"})
    ended = fresh(wanted, hostile)
    assert ended.report.status == "ok", ended.report
    assert ended.code == 0
    with Server() as server:
        other = server.run(request(project, "goldens/scenarios.py:workers", project / ".gate/forked", parameters={"method": "fork"}))
    ours, theirs = Golden.open(wanted.out), Golden.open(other.request.out)
    assert ours.roots == theirs.roots
    assert ours.manifest.sources == theirs.manifest.sources
    assert ours.manifest.environment == theirs.manifest.environment
    assert sorted(path.name for path in wanted.out.parent.glob("fresh*")) == [
        "fresh",
        "fresh.log",
        "fresh.report.json",
        "fresh.request.json",
    ]


def test_what_a_run_leaves_behind_is_ended(project: Path) -> None:
    """A process that the scenario started and forgot does not outlive the run, which is good all the same."""
    wanted = waiting(project, "behind", "leaves_one_behind")
    ended = fresh(wanted)
    assert ended.report.status == "ok"
    until(lambda: not any(map(alive, pids(wanted))), 5)


def test_an_interrupt_ends_the_whole_group(project: Path) -> None:
    """`end`, called from another thread, ends a run and what it started; the run raises, and no other can be started."""
    wanted, raised = waiting(project, "interrupted"), []
    children = Children()

    def work() -> None:
        try:
            children.run(Path(sys.executable), wanted, environment(os.environ, "portable", "cpu", 0), beside(wanted.report, ".log"))
        except KeyboardInterrupt as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert wanted.folder is not None
    until((wanted.folder / "pids").exists)
    assert steps_done(wanted) == 1
    assert all(map(alive, pids(wanted)))
    children.end()
    thread.join()
    assert raised
    until(lambda: not any(map(alive, pids(wanted))), 5)
    with pytest.raises(KeyboardInterrupt):
        children.run(Path(sys.executable), wanted, environment(os.environ, "portable", "cpu", 0), None)


PARENT = """
import os, sys
from pathlib import Path
from golden.launch import Children
from golden.profile import environment
from golden.settings import Request
with Children() as children:
    request = Request.from_json(Path(sys.argv[1]).read_text())
    children.run(Path(sys.executable), request, environment(os.environ, "portable", "cpu", 0), None)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_does_not_outlive_its_parent(project: Path, number: signal.Signals) -> None:
    """Killed, the parent takes the run's process with it; interrupted, the whole group. Nothing is left that could still write a golden."""
    wanted = waiting(project, number.name)
    (wanted.out.parent / "request").write_text(wanted.to_json())
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(wanted.out.parent / "request")], stderr=subprocess.DEVNULL)
    assert wanted.folder is not None
    until((wanted.folder / "pids").exists)
    run, child = pids(wanted)
    parent.send_signal(number)
    parent.wait()
    until(lambda: not alive(run), 5)
    if number == signal.SIGINT:
        until(lambda: not alive(child), 5)
    elif alive(child):
        os.kill(child, signal.SIGKILL)
    assert not (wanted.out / "manifest.json").exists()


def test_what_cannot_be_started_is_told(project: Path, tmp_path: Path) -> None:
    """No such interpreter, and a folder for the log that does not exist, each named."""
    wanted = request(project, "goldens/scenarios.py:good", tmp_path / "out")
    with Children() as children:
        with pytest.raises(UsageError, match="/no/python cannot be started: No such file"):
            children.run(Path("/no/python"), wanted, {}, None)
        with pytest.raises(StoreError, match=r"absent/log"):
            children.run(Path(sys.executable), wanted, {}, tmp_path / "absent" / "log")


def test_an_interpreter_without_torch_is_told(project: Path, tmp_path: Path) -> None:
    """What is missing is named, with what to install."""
    wanted = request(project, "goldens/scenarios.py:good", tmp_path / "out")
    with Children() as children:
        ended = children.run(Path(sys.base_prefix) / "bin/python3", wanted, environment({}, "portable", "cpu", 0), tmp_path / "log")
    if ended.report.status == "ok":
        pytest.skip("this system's Python holds torch")
    assert ended.report.reason == "no-torch"
    assert "Install torch, numpy, safetensors and xxhash there" in ended.report.message
    assert ended.code == 3


def test_a_device_that_is_not_here_is_told(project: Path) -> None:
    """A request for CUDA where there is none is no failure of the scenario's."""
    import torch

    if torch.cuda.is_available():
        pytest.skip("a CUDA device is here")
    ended = fresh(request(project, "goldens/scenarios.py:good", project / ".gate/cuda", device="cuda"))
    assert ended.code == 3
    assert ended.report.reason == "no-accelerator"
    assert ended.report.torch == torch.__version__
    assert "finds no CUDA device here" in ended.report.message


@pytest.mark.parametrize(
    ("code", "reason", "said"),
    [
        (0, "scenario-failed", "ended itself before it recorded a step with exit code 0"),
        (74, "io", "the run's report could not be written"),
        (-6, "scenario-failed", "ended by SIGABRT (signal 6)"),
        (-250, "scenario-failed", "ended by signal 250"),
    ],
)
def test_a_missing_report_is_made_of_the_end(tmp_path: Path, code: int, reason: str, said: str) -> None:
    """Whatever the process ended by has words; a report that is no report counts as none."""
    wanted = request(tmp_path, "a.py:f", tmp_path / "out")
    wanted.report.write_text("{")
    report = _report(wanted, code)
    assert report.reason == reason
    assert said in report.message


def test_a_report_that_is_there_counts(tmp_path: Path) -> None:
    """A process that crashed once its report was written has run well."""
    wanted = request(tmp_path, "a.py:f", tmp_path / "out")
    wanted.report.write_text(Report("ok").to_json())
    assert _report(wanted, -11) == Report("ok")


def test_steps_are_counted_while_a_run_goes_on(tmp_path: Path) -> None:
    """Before the first there is nothing to read, and a half-written number is none."""
    wanted = request(tmp_path, "a.py:f", tmp_path / "out")
    assert steps_done(wanted) == 0
    beside(wanted.report, ".progress").write_text("")
    assert steps_done(wanted) == 0
    beside(wanted.report, ".progress").write_text("12                  ")
    assert steps_done(wanted) == 12


def test_files_of_a_run_lie_side_by_side() -> None:
    """A scenario's name may hold dots."""
    assert beside(Path("a/b.c.report.json"), ".log") == Path("a/b.c.log")
