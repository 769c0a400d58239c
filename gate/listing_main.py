"""Starts golden as its own script does, and notes meanwhile which folders the run lists: `python listing_main.py execute REQUEST.json`.

golden knows what a run opens; a folder that is listed and of which nothing is opened decides its bits as well. Run by multiprocessing in a
process that a scenario spawns, it does the same there. It imports nothing of gate, which that interpreter may not hold.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

VARIABLE = "GATE_LISTING"  # golden's script and the file of the notes, a line each: the folder's path as JSON
_EVENTS = ("os.listdir", "os.scandir")  # glob, os.walk and pathlib end in these
# The import system, which golden's sources tell of, and what tells of packages, whose versions count.
_OTHERS = ("<frozen importlib", os.path.join("importlib", "metadata"), "importlib_metadata")  # noqa: PTH118


class Listing:
    """An audit hook that notes each folder once, in this process and in those that it forks.

    Args:
        notes: the file.
    """

    def __init__(self, notes: str) -> None:
        self._notes = notes
        self._known: set[str] = set()

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Notes what is listed, before it is."""
        if event not in _EVENTS or any(other in sys._getframe(1).f_code.co_filename for other in _OTHERS):
            return
        folder = _folder(arguments[0])
        if folder is None or folder in self._known:
            return
        self._known.add(folder)
        if not os.path.isdir(folder):  # the call itself will say so  # noqa: PTH112
            return
        file = os.open(self._notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            os.write(file, f"{json.dumps(folder)}\n".encode())
        finally:
            os.close(file)


def _folder(given: object) -> str | None:
    """The absolute path of what is listed: the current folder where nothing is given; None for what the call itself will refuse."""
    try:
        if isinstance(given, int):
            return os.readlink(f"/proc/self/fd/{given}")  # noqa: PTH115
        return os.path.abspath(os.fsdecode("." if given is None else given))  # type: ignore[arg-type]  # noqa: PTH100
    except (OSError, TypeError, ValueError):
        return None


def _golden(here: str) -> str:
    """golden's own script: golden stands beside gate, or in src beside it."""
    above = os.path.dirname(here)  # noqa: PTH120
    places = [os.path.join(above, *inner, "golden", "__main__.py") for inner in ((), ("src",))]  # noqa: PTH118
    return next(place for place in places if os.path.isfile(place))  # noqa: PTH113


def _start() -> None:
    """Takes this file's folder off the import path, begins to hear, and goes on as golden's script under this process's own name."""
    here = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != here]
    told = os.environ.get(VARIABLE)
    if told is None:  # a scenario has cleared the environment of a process that it spawns: nothing is heard there
        script = _golden(here)
    else:
        script, notes = json.loads(told)
        sys.addaudithook(Listing(notes).hear)
    with open(script, "rb") as file:  # noqa: PTH123
        code = compile(file.read(), script, "exec")
    exec(code, {"__name__": __name__, "__file__": script, "__package__": None})  # noqa: S102


if __name__ in ("__main__", "__mp_main__"):
    _start()
