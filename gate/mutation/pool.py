"""Slots side by side: each has a thread that takes the next piece of work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from gate.mutation.copies import Copy
from gate.mutation.slot import Slot

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Pool:
    """The slots of one command.

    Args:
        slots: at least one.
    """

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.slots = tuple(slots)

    def map(self, work: Callable[[Slot, Item], Answer], items: Sequence[Item]) -> list[Answer]:
        """The answers in the order of the items.

        Raises:
            BaseException: the first that any piece of work raised, or KeyboardInterrupt; nothing runs any more then.
        """
        free: SimpleQueue[Slot] = SimpleQueue()
        for slot in self.slots:
            free.put(slot)

        def one(item: Item) -> Answer:
            slot = free.get()
            try:
                return work(slot, item)
            finally:
                free.put(slot)

        with ThreadPoolExecutor(len(self.slots)) as threads:
            futures = [threads.submit(one, item) for item in items]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
                return [future.result() for future in [f for f in futures if f.done() and f.exception()] or futures]
            except BaseException:
                for future in futures:
                    future.cancel()
                self.close()
                raise

    def each(self, work: Callable[[Slot], None]) -> None:
        """Does something in every slot, side by side."""
        with ThreadPoolExecutor(len(self.slots)) as threads:
            try:
                list(threads.map(work, self.slots))
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Ends every process of every slot."""
        for slot in self.slots:
            slot.close()


@contextmanager
def opened(
    project: Path, names: Sequence[str], scratch: Path, jobs: int, roots: Sequence[str], device: str, modules: Sequence[str]
) -> Iterator[Pool]:
    """Slots with a copy of the project each; all their processes have ended afterwards."""
    slots = [
        Slot(project, Copy.make(project, list(names), _made(scratch / f"slot-{number}")), roots, device, modules) for number in range(jobs)
    ]
    pool = Pool(slots)
    try:
        yield pool
    finally:
        pool.close()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
