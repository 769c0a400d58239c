"""Where runs leave what they make, and what is kept of it."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from gate.runs import KEPT, Outcome, Place, Runs, halves, prune
from golden.errors import StoreError
from golden.profile import environment
from golden.settings import Report, Request, Settings

SCENARIOS = """
import os, sys, time

def good(record):
    print("said")
    for _ in range(record.steps):
        record(x=record.first)

def bad(record):
    os.write(1, b"colours: \\x1b[31mred\\x1b[0m\\n\\xff\\n" + b"line\\n" * 30)
    raise ValueError("no")

def waits(record):
    record(x=1)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "project"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / "scenarios.py").write_text(SCENARIOS)
    subprocess.run(["git", "-C", str(folder), "add", "."], check=True)
    subprocess.run(["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"], check=True)
    return folder


def request(project: Path, function: str, place: Place) -> Request:
    settings = Settings(function, f"scenarios.py:{function}", steps=2)
    return Request.of(settings, device="cpu", profile="portable", project=project, out=place.golden, report=place.report)


VARIABLES = environment(os.environ, "portable", "cpu", 0)
PYTHON = Path(sys.executable)


@pytest.fixture(scope="module")
def ran(project: Path) -> tuple[Runs, dict[str, Outcome], dict[str, Path]]:
    """A command that ran a good scenario twice and a bad one, kept one of each, and ended."""
    with Runs(project) as runs:
        places = {
            "good": runs.place("cpu", "2.13.0+cpu", "good"),
            "again": runs.place("cpu", "2.13.0+cpu", "good", "again"),
            "bad": runs.place("cpu", "2.13.0+cpu", "bad"),
        }
        outcomes = {key: runs.run(PYTHON, request(project, place.golden.name, place), VARIABLES) for key, place in places.items()}
        assert outcomes["again"].open().steps == (1, 2)
        kept = {key: runs.keep(outcomes[key]) for key in ("good", "bad")}
    return runs, outcomes, kept


def test_a_kept_run_is_a_golden_with_its_log(ran: tuple[Runs, dict[str, Outcome], dict[str, Path]], project: Path) -> None:
    """It lies below .gate/runs/ID as goldens lie below their root, with log, report and request beside it."""
    runs, outcomes, kept = ran
    assert re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{4}", runs.folder.name)
    assert kept["good"] == project / ".gate" / "runs" / runs.folder.name / "cpu" / "torch-2.13.0" / "good"
    assert outcomes["good"].ok
    assert outcomes["good"].open().steps == (1, 2)
    names = sorted(path.name for path in kept["good"].parent.iterdir())
    assert names == sorted(["good", *(f"{name}{end}" for name in ("good", "bad") for end in (".log", ".report.json", ".request.json"))])
    assert outcomes["good"].tail() == "said"
    assert outcomes["good"].seconds > 0


def test_what_nobody_keeps_is_removed(ran: tuple[Runs, dict[str, Outcome], dict[str, Path]], project: Path) -> None:
    """The other arm's files and folders are gone, and version control has nothing to say."""
    runs, outcomes, _ = ran
    assert not outcomes["again"].place.golden.exists()
    assert not (runs.folder / "arms").exists()
    assert not subprocess.run(["git", "-C", str(project), "status", "--porcelain"], check=True, capture_output=True).stdout


def test_a_failed_run_has_a_tail_and_no_golden(ran: tuple[Runs, dict[str, Outcome], dict[str, Path]]) -> None:
    """The last lines of its log, without what would steer a terminal."""
    bad = ran[1]["bad"]
    assert not bad.ok
    assert bad.report.reason == "scenario-failed"
    assert not bad.place.golden.exists()
    assert bad.tail(2) == "line\nline"
    assert bad.tail(100).splitlines()[:2] == ["colours: [31mred[0m", "\ufffd"]
    assert Outcome(bad.request, bad.report, Place(Path("absent/x")), 0, 0.0).tail() == ""


def test_a_request_can_be_executed_again(ran: tuple[Runs, dict[str, Outcome], dict[str, Path]]) -> None:
    """What was asked for stands in a file, as golden reads it."""
    good = ran[1]["good"]
    file = good.place.golden.with_name("good.request.json")
    assert Request.from_json(file.read_text()) == good.request
    assert Report.from_json(good.place.report.read_text()) == good.report


def test_an_end_from_another_thread_leaves_nothing(project: Path) -> None:
    """A run that is ended raises in its own thread, none can be started after it, and nothing of it is left."""
    raised: list[BaseException] = []
    with Runs(project) as runs:
        place = runs.place("cpu", "2.13.0", "waits")

        def work() -> None:
            try:
                runs.run(PYTHON, request(project, "waits", place), VARIABLES)
            except KeyboardInterrupt as error:
                raised.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        while not place.golden.with_name("waits.progress").exists():
            thread.join(0.05)
            assert thread.is_alive()
        runs.end()
        thread.join()
        with pytest.raises(KeyboardInterrupt):
            runs.run(PYTHON, request(project, "good", runs.place("cpu", "2.13.0", "good")), VARIABLES)
    assert raised
    assert not runs.folder.exists()


def test_runs_of_two_commands_do_not_meet(project: Path) -> None:
    """Each has a folder of its own, also within one second."""
    with Runs(project) as one, Runs(project) as other:
        assert one.folder != other.folder
        assert one.folder.is_dir()
    assert not one.folder.exists()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """A file in the place of .gate is named."""
    (tmp_path / ".gate").write_text("")
    with pytest.raises(StoreError, match=r"\.gate"), Runs(tmp_path):
        pass


def test_a_place_is_used_once(project: Path) -> None:
    """A second run into one folder is refused before it starts."""
    with Runs(project) as runs:
        place = runs.place("cpu", "2.13.0", "good")
        place.golden.mkdir(parents=True)
        with pytest.raises(StoreError, match="good"):
            runs.run(PYTHON, request(project, "good", place), VARIABLES)


def test_the_newest_runs_are_kept(tmp_path: Path) -> None:
    """Older ones go, but for one that is in use; what has another name is nobody's to remove."""
    names = [f"20260101T0000{number:02d}Z-{number:04x}" for number in range(KEPT + 3)]
    for name in names:
        (tmp_path / name / "cpu").mkdir(parents=True)
    (tmp_path / "notes").mkdir()
    (tmp_path / "19990101T000000Z-0000").symlink_to(tmp_path / "notes")
    used = os.open(tmp_path / names[1], os.O_RDONLY)
    fcntl.flock(used, fcntl.LOCK_EX)
    prune(tmp_path)
    os.close(used)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([names[1], *names[3:], "notes", "19990101T000000Z-0000"])
    prune(tmp_path)
    assert not (tmp_path / names[1]).exists()


def test_pruning_waits_for_no_folder(tmp_path: Path) -> None:
    """A project that never ran has nothing to prune."""
    prune(tmp_path / "absent")
    assert not (tmp_path / "absent").exists()


def test_the_halves_share_a_folder(tmp_path: Path) -> None:
    """The first goes to resume_at, the second on from there; both are the request otherwise."""
    first, second = Place(tmp_path / "a" / "x"), Place(tmp_path / "b" / "x")
    whole = replace(request(tmp_path, "good", Place(tmp_path / "x")), steps=5, resume_at=2)
    before, after = halves(whole, first, second)
    assert (before.first, before.end, before.out, before.report) == (1, 2, first.golden, first.report)
    assert (after.first, after.end, after.out, after.report) == (3, 5, second.golden, second.report)
    assert before.folder == after.folder == second.saved
    assert replace(after, out=whole.out, report=whole.report, folder=None, first=1) == whole
