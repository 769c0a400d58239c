"""Timed runs: clocks and nothing else, one after the other in one process, every one from the same start."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from golden.errors import ScenarioFailed
from golden.launch import Children, Ended, beside
from golden.profile import environment
from golden.settings import Report, Request, Settings, Turn
from golden.stopwatch import Stopwatch
from golden.timing import _tidy

FIRST = """
import time
import torch

SEEN = []

class Opaque:
    '''What no recording takes, and no clock looks at.'''
    __slots__ = ()

def steps(record):
    assert not torch.utils.deterministic.fill_uninitialized_memory
    assert torch.are_deterministic_algorithms_enabled()
    SEEN.append(torch.rand(1).item())
    assert len(set(SEEN)) == 1, "a later run begins elsewhere"
    record.start(model=Opaque())
    for _ in range(record.steps):
        time.sleep(0.03)
        record.mark()
        time.sleep(record.parameters.get("seconds", 0.005))
        record(loss=Opaque())

def leaves_threads(record):
    torch.set_num_threads(1 if torch.get_num_threads() > 1 else 2)
    for _ in range(record.steps):
        record(loss=1)

def short(record):
    record(loss=1)
"""
SECOND = """
import first

def other(record):
    assert first.SEEN, "the first file is imported once"
    for _ in range(record.steps):
        record(loss=1)
"""


def timed(folder: Path, *turns: Turn) -> tuple[Ended, list[dict[str, Any]]]:
    """Times the turns in one process."""
    (folder / "first.py").write_text(FIRST)
    (folder / "second.py").write_text(SECOND)
    out = folder / "out"
    out.mkdir()
    plain = Settings(turns[0].label, turns[0].run, steps=turns[0].steps)
    request = Request.of(plain, device="cpu", profile="native", project=folder, out=out, report=folder / "time.report.json")
    with Children() as children:
        variables = environment(os.environ, "native", "cpu", 0)
        ended = children.run(Path(sys.executable), replace(request, turns=turns, fill=False), variables, folder / "time.log")
    lines = beside(request.report, ".turns")
    return ended, [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []


def turn(run: str, steps: int = 3, **parameters: Any) -> Turn:
    return Turn(run.rpartition(":")[2], run, steps, 0, parameters)


def test_a_process_times_several_runs_of_several_files(tmp_path: Path) -> None:
    """Each from the same seed; what comes before mark() counts for no step; what no recording takes is not looked at."""
    ended, figures = timed(tmp_path, turn("first.py:steps"), turn("first.py:steps", seconds=0.02), turn("second.py:other", 2))
    assert (ended.report.status, ended.report.message) == ("ok", "")
    assert ended.report.hardware.startswith("cpu-")
    assert [found["label"] for found in figures] == ["steps", "steps", "other"]
    quick, slow, other = figures
    assert [len(found["wall"]) for found in figures] == [len(found["host"]) for found in figures] == [3, 3, 2]
    assert all(value >= 5 for value in quick["wall"])
    assert min(quick["wall"]) < 20  # of the 35 that a step takes with what comes before its mark
    assert all(value >= 20 for value in slow["wall"])
    assert quick["whole"] >= 3 * 35
    assert min(other["wall"]) < 5
    assert [other[key] for key in ("device", "allocated", "reserved", "taken", "replay")] == [None] * 5
    assert other["resident"] > 1 << 20
    assert list((tmp_path / "out").iterdir()) == []


def test_a_recording_refuses_what_the_clock_did_not_look_at(tmp_path: Path) -> None:
    """The same scenario as above without turns: the negative control."""
    (tmp_path / "first.py").write_text(FIRST)
    out = tmp_path / "out"
    out.mkdir()
    settings = Settings("steps", "first.py:steps", steps=3)
    request = Request.of(settings, device="cpu", profile="native", project=tmp_path, out=out, report=tmp_path / "time.report.json")
    with Children() as children:
        variables = environment(os.environ, "native", "cpu", 0)
        ended = children.run(Path(sys.executable), replace(request, fill=False), variables, tmp_path / "time.log")
    assert ended.report.reason == "scenario-failed"
    assert "Opaque" in ended.report.message


@pytest.mark.parametrize(
    ("turns", "told", "done"),
    [
        ((turn("first.py:steps", 1), turn("first.py:short", 2)), "first.py:short: the scenario recorded 1 of 2 steps", 1),
        ((turn("first.py:leaves_threads"), turn("first.py:short", 1)), 'set process = "each"', 0),
    ],
)
def test_a_run_that_goes_wrong_is_named_and_what_was_timed_before_stays(
    turns: tuple[Turn, ...], told: str, done: int, tmp_path: Path
) -> None:
    ended, figures = timed(tmp_path, *turns)
    assert (ended.report.status, ended.report.reason) == ("failed", "scenario-failed")
    assert len(figures) == done
    assert told in ended.report.message


def test_a_run_of_its_own_process_may_leave_switches_as_it_likes(tmp_path: Path) -> None:
    ended, figures = timed(tmp_path, turn("first.py:leaves_threads"))
    assert (ended.report.status, len(figures)) == ("ok", 1)


def test_a_step_too_many_is_refused(tmp_path: Path) -> None:
    watch = Stopwatch(Turn("a", "a.py:a", 1, 0, {}), "cpu", tmp_path)
    watch(loss=1)
    with pytest.raises(ScenarioFailed, match="step 2"):
        watch(loss=1)


@pytest.mark.cuda
def test_on_cuda_a_step_ends_when_the_device_is_idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall covers what the host has long left behind; the profiler and the allocator say how much work and memory it was."""
    import torch

    _tidy("cuda")
    free = chain([1000], repeat(400))  # the device's own answer has in it what other processes took and gave back meanwhile
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (next(free), 2000))
    watch = Stopwatch(replace(turn("a.py:a", 8), profiled=True), "cuda", tmp_path)
    matrix = torch.rand(4096, 4096, device="cuda")
    for _ in range(8):
        watch.mark()
        for _ in range(20):
            matrix @ matrix
        watch(x=matrix)
    figures = watch.figures("a")
    assert all(host < wall for host, wall in zip(watch.host[1:3], watch.wall[1:3], strict=True))
    assert 0 < figures["device"] <= max(watch.wall[3:])
    assert figures["allocated"] >= 4096 * 4096 * 4
    assert figures["reserved"] >= figures["allocated"]
    assert figures["taken"] == 600


def test_turns_survive_the_request_s_file(tmp_path: Path) -> None:
    settings = Settings("steps", "first.py:steps")
    request = Request.of(settings, device="cpu", profile="native", project=tmp_path, out=tmp_path, report=tmp_path / "a.report.json")
    several = replace(request, turns=(turn("first.py:steps", seconds=0.5), replace(turn("a.py:b"), profiled=True)), fill=False)
    assert Request.from_json(several.to_json()) == several != request
    assert Report.from_json(Report("ok", replay={"replays": 1}).to_json()).replay == {"replays": 1}
