"""Bad input, one a test: the exit code of the contract, the file or option on standard error, and no traceback of ours."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from golden.lock import lock
from tests.gate.projects import Answer, Project
from tests.gate.repositories import init


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with one golden; tests take copies."""
    project = Project.new(tmp_path_factory.mktemp("recorded") / "project", toy="")
    assert project.gate("record").code == 0
    return project


@pytest.fixture
def project(recorded: Project, tmp_path: Path) -> Project:
    return recorded.copy(tmp_path / "project")


def ours(text: str) -> list[str]:
    """The lines of a traceback that lead through gate or golden."""
    return [line for line in text.splitlines() if 'File "' in line and ("/gate/" in line or "/src/golden/" in line)]


def refused(answer: Answer, code: int, reason: str, *named: str) -> None:
    """Not judged, for this reason, which standard error tells with what is at fault."""
    assert answer.code == code, answer.err
    assert answer.row["verdict"] == "not-judged"
    assert answer.row["reason"] == reason
    assert all(part in answer.err for part in (reason, *named)), answer.err
    assert ours(answer.err) == []


def scenario(tmp_path: Path, name: str) -> Answer:
    """Records a scenario that goes wrong."""
    project = Project.new(tmp_path / "project", **{name: ""})
    answer = project.gate("record", name)
    assert list((project.folder / "goldens").rglob("manifest.json")) == []
    return answer


def test_a_scenario_that_raises_shows_its_own_traceback_last(tmp_path: Path) -> None:
    answer = scenario(tmp_path, "raises")
    refused(answer, 3, "scenario-failed", "scenarios.py", "raises")
    assert answer.err.rstrip().splitlines()[-1].strip() == "LookupError: the batch is lost"


def test_a_scenario_that_records_nothing(tmp_path: Path) -> None:
    refused(scenario(tmp_path, "silent"), 3, "scenario-failed", "silent")


def test_a_scenario_with_other_phases_at_another_step(tmp_path: Path) -> None:
    refused(scenario(tmp_path, "phases"), 3, "scenario-failed", "step 2", "grads")


def test_a_scenario_with_too_few_steps(tmp_path: Path) -> None:
    refused(scenario(tmp_path, "short"), 3, "scenario-failed", "2", "3")


def test_a_scenario_that_exits(tmp_path: Path) -> None:
    refused(scenario(tmp_path, "leaves"), 3, "scenario-failed", "5")


def test_a_scenario_whose_process_is_killed(tmp_path: Path) -> None:
    refused(scenario(tmp_path, "crashes"), 3, "scenario-failed", "SIGKILL", "after step 1 of 3")


def test_a_scenario_that_does_not_exist(tmp_path: Path) -> None:
    refused(scenario(tmp_path, "absent"), 3, "scenario-failed", "absent")


def test_a_scenario_s_file_that_does_not_exist(tmp_path: Path) -> None:
    project = Project.new(tmp_path / "project", toy="")
    (project.folder / "scenarios.py").unlink()
    refused(project.gate("record"), 3, "scenario-failed", "scenarios.py")


def test_a_scenario_that_fails_at_verify_keeps_its_log_and_changes_no_golden(project: Project) -> None:
    before = project.digest()
    (project.folder / "factor.py").write_text("print('about to fail')\nraise LookupError('lost')\n")
    answer = project.gate("verify")
    refused(answer, 3, "scenario-failed", "toy.log")
    assert "about to fail" in (project.folder / answer.row["run"] / "toy.log").read_text()
    assert answer.err.rstrip().endswith("LookupError: lost")
    assert project.digest() == before


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def edited(path: Path) -> None:
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1', 1))


def newer(path: Path) -> None:
    path.write_text(path.read_text().replace('"format": 1', '"format": 99', 1))


def outside(path: Path) -> None:
    """A source that points outside, under a seal that fits."""
    from golden import canonical, manifest

    document = json.loads(path.read_text())
    del document["seal"]
    document["sources"] = {"../../etc/passwd": "0" * 64}
    unsealed = canonical.dumps(document)
    path.write_text(canonical.dumps({**document, "seal": manifest.seal(unsealed.encode())}))


def linked(path: Path) -> None:
    shutil.copy(path, path.parents[3] / "moved")
    path.unlink()
    path.symlink_to(path.parents[3] / "moved")


@pytest.mark.parametrize(
    ("file", "harm"),
    [
        ("manifest.json", Path.unlink),
        ("digests.safetensors", Path.unlink),
        ("step-0002.safetensors", Path.unlink),
        ("manifest.json", truncated),
        ("digests.safetensors", truncated),
        ("step-0002.safetensors", truncated),
        ("digests.safetensors", flipped),
        ("step-0002.safetensors", flipped),
        ("manifest.json", edited),
        ("manifest.json", newer),
        ("manifest.json", outside),
        ("step-0002.safetensors", linked),
    ],
)
def test_a_golden_that_is_not_whole(project: Project, file: str, harm: Callable[[Path], None]) -> None:
    """Missing, truncated, flipped, edited by hand, newer, leading outside: the file is named, and nothing is run."""
    harm(project.golden("toy") / file)
    refused(project.gate("verify"), 3, "corrupt-golden", file)
    assert list((project.folder / ".gate/runs").iterdir()) == []


def test_a_golden_of_another_mixed_into_it(project: Project) -> None:
    project.configure(toy="\nseed = 5")
    assert project.gate("record", "--update", "--reason", "other seed").code == 0
    other = project.golden("toy") / "digests.safetensors"
    content = other.read_bytes()
    project.configure(toy="")
    assert project.gate("record", "--update", "--reason", "first seed").code == 0
    other.write_bytes(content)
    refused(project.gate("verify"), 3, "corrupt-golden", "toy")


def test_a_golden_that_is_missing(project: Project) -> None:
    shutil.rmtree(project.golden("toy"))
    refused(project.gate("verify", "toy"), 3, "no-golden", "gate record toy")


def test_a_folder_that_cannot_be_written(project: Project) -> None:
    """A file in the place of the folder: it stops root as well, whom no permission does."""
    shutil.rmtree(project.folder / "goldens/cpu")
    (project.folder / "goldens/cpu").touch()
    refused(project.gate("record", "toy"), 3, "io", "goldens/cpu")


def test_a_folder_of_goldens_that_cannot_be_made(tmp_path: Path) -> None:
    project = Project.new(tmp_path / "project", toy="")
    (project.folder / "goldens").touch()
    answer = project.gate("record")
    assert (answer.code, answer.document["reason"]) == (3, "io")
    assert "goldens" in answer.err
    assert ours(answer.err) == []


def test_a_folder_for_runs_that_cannot_be_made(project: Project) -> None:
    shutil.rmtree(project.folder / ".gate")
    (project.folder / ".gate").touch()
    answer = project.gate("verify")
    assert (answer.code, answer.document["reason"]) == (3, "io")
    assert ".gate" in answer.err
    assert ours(answer.err) == []


def limited(project: Project, size: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs gate where no file may become larger than so many bytes: how a full disk looks from within."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return subprocess.run(
        [sys.executable, "-m", "gate", *arguments], cwd=project.folder, preexec_fn=limit, capture_output=True, text=True, timeout=120
    )


def test_a_disk_that_is_full(project: Project) -> None:
    """While a run records and while a golden is published: nothing half is left, and the old golden is whole."""
    before = project.digest()
    (project.folder / "factor.py").write_text("SCALE = 3.0\n")
    done = limited(project, 400, "record", "toy", "--update", "--reason", "Meant")
    assert done.returncode == 3, done.stderr
    assert "io" in done.stderr
    assert ours(done.stderr) == []
    assert project.digest() == before


def test_a_result_on_a_disk_that_is_full(project: Project) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gate", "verify", "--json", "/dev/full"], cwd=project.folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 3
    assert "/dev/full" in done.stderr
    assert ours(done.stderr) == []


def test_two_recordings_at_once(project: Project) -> None:
    """The second is told who holds the lock; the first is not disturbed."""
    with lock(project.folder / "goldens"):
        answer = project.gate("record")
    assert (answer.code, answer.document["reason"]) == (3, "locked")
    assert f"process {os.getpid()}" in answer.err
    assert project.gate("record").code == 0


def test_two_recordings_at_once_for_real(project: Project) -> None:
    command = [sys.executable, "-m", "gate", "record"]
    both = [subprocess.Popen(command, cwd=project.folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) for _ in range(2)]
    said = [process.communicate(timeout=120)[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 3]
    assert sum("locked" in text for text in said) == 1


def test_a_torch_that_does_not_exist(project: Project) -> None:
    """uv's reason is told; with no network, that is the reason."""
    answer = project.gate("verify", "toy", "--torch", "99.0.0", UV_OFFLINE="1", XDG_CACHE_HOME=str(project.folder.parent / "cache"))
    refused(answer, 3, "no-torch", "99.0.0")


def test_an_interpreter_of_another_torch(project: Project) -> None:
    answer = project.gate("verify", "toy", "--torch", "1.0.0", "--python", sys.executable)
    refused(answer, 3, "no-torch", "--python", "1.0.0")


def waiting(project: Project, number: signal.Signals, *arguments: str) -> tuple[subprocess.Popen[str], int]:
    """Starts a recording that would never end, sends its process a signal, and returns it with the number of its grandchild."""
    pid = project.folder / "child.pid"
    process = subprocess.Popen(
        [sys.executable, "-m", "gate", *arguments], cwd=project.folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not (pid.exists() and pid.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    grandchild = int(pid.read_text())
    assert alive(grandchild)
    process.send_signal(number)
    return process, grandchild


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and waits to be buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 20
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not alive(pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_every_process_and_leaves_nothing_half_written(tmp_path: Path, number: signal.Signals) -> None:
    project = Project.new(init(tmp_path / "project"), waits="", toy="")
    process, grandchild = waiting(project, number, "record", "waits", "--json", "out.json")
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert (out, err.splitlines()[-1]) == ("", "gate: interrupted")
    assert ours(err) == []
    assert gone(grandchild)
    assert not (project.folder / "out.json").exists()
    assert list((project.folder / ".gate/runs").iterdir()) == []
    assert list((project.folder / "goldens").iterdir()) == []
    assert project.gate("record", "toy").code == 0


def test_a_parent_that_is_killed_leaves_no_run_that_goes_on(tmp_path: Path) -> None:
    """And the next command neither trips over what is left nor takes it for a golden."""
    project = Project.new(tmp_path / "project", waits="", toy="")
    process, _ = waiting(project, signal.SIGKILL, "record", "waits")
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    runs = list((project.folder / ".gate/runs").rglob("*.request.json"))
    assert runs
    deadline = time.monotonic() + 20
    while _executing(runs[0]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _executing(runs[0])
    assert project.gate("record", "toy").code == 0
    assert sorted(path.name for path in (project.folder / "goldens").rglob("*") if path.name.startswith(".")) == []


def _executing(request: Path) -> bool:
    """Whether a process runs this request."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(request) in path.read_bytes():
                return True
        except OSError:
            continue
    return False
