"""Runs a command, and ends it with all that it started when the one who asked for it is gone.

    python gate_keeper.py COMMAND...        standard input: a pipe that the asker holds open

The asker may be killed by a signal that nobody can catch; then the system closes the pipe. Processes that the command left behind are
handed to this process by the system (a "child subreaper", on Linux), so that it finds them in whatever session they are.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

GRACE = 2.0  # seconds from the interrupt to the end by force
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


def main(command: list[str]) -> int:
    """Runs the command; its exit code, 128 + number for a signal."""
    if platform.system() == "Linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGTERM):  # not SIG_IGN, which the command and all below it would inherit
        signal.signal(number, lambda *_: None)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    threading.Thread(target=_watch, args=(process.pid,), daemon=True).start()
    code = _wait(process.pid)
    end_all(process.pid)
    return code


def end_all(group: int) -> None:
    """Ends every descendant by force, and the group, until none is left."""
    while True:
        _signal_group(group, signal.SIGKILL)
        for child in descendants(os.getpid()):
            _signal(child, signal.SIGKILL)
        if not _reap():
            return
        time.sleep(0.005)


def descendants(ancestor: int) -> list[int]:
    """All processes below one, as the system lists them; none where it does not."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if fields[0] != "Z":
            parents[int(folder.name)] = int(fields[1])
    found: list[int] = []
    level = [ancestor]
    while level:
        level = [pid for pid, parent in parents.items() if parent in level]
        found += level
    return found


def _watch(group: int) -> None:
    """When the asker is gone: an interrupt, so that tests may tidy up, and the end by force."""
    while os.read(0, 1024):
        pass
    _signal_group(group, signal.SIGINT)
    deadline = time.monotonic() + GRACE
    while time.monotonic() < deadline and _signal_group(group, 0):
        time.sleep(0.02)
    while True:  # until the main thread, which reaps, ends this process
        _signal_group(group, signal.SIGKILL)
        for child in descendants(os.getpid()):
            _signal(child, signal.SIGKILL)
        time.sleep(0.01)


def _wait(pid: int) -> int:
    """Waits for one process, and buries on the way what others have left."""
    while True:
        found, status = os.wait()
        if found == pid:
            code = os.waitstatus_to_exitcode(status)
            return 128 - code if code < 0 else code


def _reap() -> bool:
    """Buries what has ended; says whether children are left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _signal_group(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
