"""Runs rows side by side: CPU ones on several workers, CUDA ones one at a time, all of them ended at the first fault."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def cores() -> int:
    """How many CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def side_by_side(
    items: Iterable[Item], work: Callable[[Item], Answer], *, jobs: int, alone: Callable[[Item], bool], stop: Callable[[], None]
) -> list[Answer]:
    """The answers in the order of the items.

    Args:
        items: what to work on, taken as it comes: the next one may be made while those before it are worked on.
        work: called in a thread.
        jobs: how many at a time.
        alone: items that are done one at a time, beside the others.
        stop: ends what the running ones wait for; called once, when one of them raises or the user interrupts.

    Raises:
        BaseException: the first one that `work` raised, or KeyboardInterrupt; nothing runs any more when it arrives.
    """
    futures: list[Future[Answer]] = []
    with ThreadPoolExecutor(jobs) as many, ThreadPoolExecutor(1) as one:
        try:
            for item in items:
                futures.append((one if alone(item) else many).submit(work, item))
            wait(futures, return_when=FIRST_EXCEPTION)
            return [future.result() for future in _finished(futures)]
        except BaseException:
            for future in futures:
                future.cancel()
            stop()
            raise


def _finished(futures: Sequence[Future[Answer]]) -> Sequence[Future[Answer]]:
    """All of them; or, where one raised, that one."""
    return [future for future in futures if future.done() and future.exception()] or futures
