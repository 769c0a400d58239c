"""Rows side by side: order kept, CUDA rows one at a time, and nothing left running after a fault."""

from __future__ import annotations

import threading
import time

import pytest

from gate.workers import cores, side_by_side


def never(item: object) -> bool:
    return False


def test_answers_come_in_the_order_of_the_items() -> None:
    def work(item: float) -> float:
        time.sleep(item)
        return item

    items = [0.2, 0.0, 0.1]
    assert side_by_side(items, work, jobs=3, alone=never, stop=lambda: None) == items


def test_no_more_run_at_a_time_than_there_are_jobs_and_those_alone_go_one_by_one() -> None:
    running: dict[str, int] = {"many": 0, "one": 0}
    most = dict(running)
    lock = threading.Lock()

    def work(item: tuple[str, int]) -> None:
        with lock:
            running[item[0]] += 1
            most[item[0]] = max(most[item[0]], running[item[0]])
        time.sleep(0.05)
        with lock:
            running[item[0]] -= 1

    items = [("many", n) for n in range(6)] + [("one", n) for n in range(3)]
    side_by_side(items, work, jobs=2, alone=lambda item: item[0] == "one", stop=lambda: None)
    assert most == {"many": 2, "one": 1}


def test_a_fault_stops_the_running_drops_the_waiting_and_is_raised() -> None:
    released = threading.Event()
    begun: list[int] = []

    def work(item: int) -> None:
        begun.append(item)
        if item == 0:
            raise LookupError("broken")
        released.wait(30)

    with pytest.raises(LookupError, match="broken"):
        side_by_side(range(10), work, jobs=2, alone=never, stop=released.set)
    assert released.is_set()
    assert len(begun) <= 4


def test_no_item_gives_no_answer() -> None:
    assert side_by_side([], len, jobs=1, alone=never, stop=lambda: None) == []


def test_there_is_a_core() -> None:
    assert cores() >= 1
