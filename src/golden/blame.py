"""What is shown of an error that a scenario raised: its own traceback, without our frames and those of the import system."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from traceback import FrameSummary, StackSummary, TracebackException

from golden.errors import GoldenError
from golden.tree import PACKAGE

_OURS = f"{PACKAGE}/"
_FIRST = (_OURS, importlib.__file__)  # what comes before the scenario's first frame
_IMPORTS = "<frozen importlib."


def own_traceback(error: BaseException) -> str:
    """The traceback as Python prints it, from the scenario's first frame on; its last line is the exception.

    An error of golden's own family ends where the scenario called golden. Any other keeps the frames that follow, ours too: they say
    where golden itself is at fault.
    """
    told = TracebackException.from_exception(error)
    for part, raised in _chain(told, error):
        part.stack = StackSummary.from_list(_trimmed(part.stack, isinstance(raised, GoldenError)))
    return "".join(told.format())


def has_frames(error: BaseException) -> bool:
    """Whether the error passed through code other than ours and the import system's."""
    return bool(_trimmed(TracebackException.from_exception(error).stack, ends_in_ours=True))


def ends_in_golden(error: BaseException) -> bool:
    """Whether it was raised by a line of golden's, below one of the scenario's that called it."""
    frames = _trimmed(TracebackException.from_exception(error).stack, ends_in_ours=False)
    return bool(frames) and frames[-1].filename.startswith(_OURS)


def _chain(told: TracebackException | None, raised: BaseException | None) -> Iterator[tuple[TracebackException, BaseException | None]]:
    """The error, what caused it, and what was handled when it was raised."""
    if told is not None and raised is not None:
        yield told, raised
        yield from _chain(told.__cause__, raised.__cause__)
        yield from _chain(told.__context__, raised.__context__)


def _trimmed(frames: list[FrameSummary], ends_in_ours: bool) -> list[FrameSummary]:
    kept = [frame for frame in frames if not frame.filename.startswith(_IMPORTS)]
    while kept and kept[0].filename.startswith(_FIRST):
        del kept[0]
    while ends_in_ours and kept and kept[-1].filename.startswith(_OURS):
        del kept[-1]
    return kept
