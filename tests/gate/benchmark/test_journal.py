"""What was timed so far: bound to sources, settings and machine, and nothing of a round that was not finished."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gate.benchmark.clock import Clock
from gate.benchmark.journal import Journal, changed
from gate.benchmark.place import Place
from gate.benchmark.proof import Read
from gate.benchmark.schedule import PROFILED, Slot, order, pair_order, slots
from gate.benchmark.setting import Arm, Bench
from gate.interpreter import running
from gate.progress import Silent
from golden.settings import Settings
from golden.sources import digest_text

BOUND = {"node": "here", "cores": 2, "python": ["/usr/bin/python", "3.11"]}
SETTINGS: Mapping[str, Any] = {"pairs": 10}
BENCH = Bench("b", tuple(Arm(name, Settings(name, f"a.py:{name}")) for name in "abc"), pairs=4)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    (tmp_path / "a.py").write_text("x = 1\n")
    found = Journal.of(tmp_path, "speed")
    found.begin(Read({"a.py": digest_text(b"x = 1\n")}, SETTINGS, {"torch": "2.13.0"}), BOUND)
    write(found, "0 a", "0 b", "0 c", "1 c")
    return found


def write(journal: Journal, *labels: str) -> None:
    lines = [json.dumps({"label": label, "wall": [1.0]}) + "\n" for label in labels]
    (journal.folder / "time.turns").write_text("".join(lines) + '{"label": "1 b", "wa')


def clock(journal: Journal, tmp_path: Path, device: str = "cpu") -> Clock:
    return Clock(BENCH, Place(tmp_path, device, "cpu-x", running()), journal, Silent())


def test_what_is_bound_to_the_same_goes_on(journal: Journal, tmp_path: Path) -> None:
    read, why = journal.resume(tmp_path, SETTINGS, BOUND)
    assert (read, why) == (Read({"a.py": digest_text(b"x = 1\n")}, SETTINGS, {"torch": "2.13.0"}), "")
    assert list(journal.figures()) == ["0 a", "0 b", "0 c", "1 c"]  # the line that a kill has cut is none


@pytest.mark.parametrize(
    ("source", "settings", "bound", "told"),
    [
        ("x = 2\n", SETTINGS, BOUND, "a.py changed since 4 runs were timed"),
        (None, SETTINGS, BOUND, "a.py changed"),
        ("x = 1\n", {"pairs": 12}, BOUND, "its settings changed"),
        ("x = 1\n", SETTINGS, {**BOUND, "node": "there"}, "the machine or its software changed"),
        ("x = 2\n", {}, {}, "a.py, its settings, the machine or its software changed"),
    ],
)
def test_what_is_bound_to_something_else_starts_anew_and_says_why(
    source: str | None, settings: dict[str, Any], bound: dict[str, Any], told: str, journal: Journal, tmp_path: Path
) -> None:
    if source is None:
        (tmp_path / "a.py").unlink()
    else:
        (tmp_path / "a.py").write_text(source)
    read, why = journal.resume(tmp_path, settings, bound)
    assert read is None
    assert told in why


def test_without_a_state_or_with_one_that_is_none_there_is_nothing_to_go_on_with(journal: Journal, tmp_path: Path) -> None:
    for text in ("", "[]", '{"format": 99, "read": {}, "machine": {}}', '{"format": 1}'):
        (journal.folder / "state.json").write_text(text)
        assert journal.resume(tmp_path, SETTINGS, BOUND) == (None, "")


def test_a_result_takes_the_place_of_what_it_came_of(journal: Journal) -> None:
    journal.finish({"verdict": "faster"})
    assert [path.name for path in journal.folder.iterdir()] == ["result.json"]
    assert journal.figures() == {}


def test_line_ends_are_no_change_of_a_source(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x = 1\r\n")
    assert changed(tmp_path, {"a.py": digest_text(b"x = 1\n")}) == []
    assert changed(tmp_path, {"a.py": digest_text(b"x = 2\n")}) == ["a.py"]


def test_every_other_round_runs_backwards() -> None:
    assert ["".join(arm.name for arm in order(BENCH, number)) for number in range(4)] == ["abc", "cba", "abc", "cba"]
    assert [pair_order(number) for number in range(4)] == ["AB", "BA", "AB", "BA"]


@pytest.mark.parametrize(
    ("process", "device", "done", "labels"),
    [
        ("each", "cpu", (), ["0 a", "0 b", "0 c", "1 c", "1 b", "1 a"]),
        ("one", "cpu", (), ["warm-up a", "warm-up b", "warm-up c", "0 a", "0 b", "0 c", "1 c", "1 b", "1 a"]),
        ("each", "cpu", ("0 a", "0 b", "0 c", "1 c"), ["1 c", "1 b", "1 a"]),
        ("each", "cuda", ("0 a", "0 b", "0 c", "1 a", "1 b", "1 c", "device b"), ["device a", "device c"]),
        ("one", "cuda", tuple(f"{part} {arm}" for part in (0, 1, PROFILED) for arm in "abc"), []),
        ("one", "cpu", tuple(f"{part} {arm}" for part in (0, 1) for arm in "abc"), []),
    ],
)
def test_what_is_missing_is_run_round_by_round(process: str, device: str, done: tuple[str, ...], labels: list[str]) -> None:
    bench = Bench("b", BENCH.arms, pairs=2, process=process)
    found = list(slots(bench, done, device))
    assert [slot.label for slot in found] == labels
    assert all(slot.turn.profiled == slot.label.startswith(PROFILED) for slot in found)


def test_a_round_that_was_not_finished_does_not_count(journal: Journal, tmp_path: Path) -> None:
    """Its runs are dropped: those of a pair belong beside each other in time."""
    assert clock(journal, tmp_path).rounds() == [0]
    journal.keep({"0 a", "0 b", "0 c"})
    assert list(journal.figures()) == ["0 a", "0 b", "0 c"]
    assert Slot(1, BENCH.arms[2]).label not in journal.figures()
