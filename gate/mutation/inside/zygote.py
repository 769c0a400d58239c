"""A process that imports what is heavy once, and forks for every mutant. Run as a plain script: nothing of gate or golden is imported here.

It reads one JSON object a line from its standard input and answers with one a line on the descriptor that it is given. When its input ends,
because the parent has ended in whatever way, it ends every process below it, removes its folder, and ends itself.
"""

# ruff: noqa: PTH112, PTH115, PTH120, PTH208

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import importlib.util
import json
import os
import select
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

_SUBREAPER, _DEATH = 36, 1  # PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG
HERE = os.path.dirname(os.path.realpath(__file__))


def preload(names: list[str]) -> dict[str, str]:
    """Imports modules; returns those that fail, with the reason, and one that starts a thread or CUDA, after which no fork is safe."""
    bad: dict[str, str] = {}
    for name in names:
        if name in sys.modules:
            continue
        if select.select([0], [], [], 0)[0]:  # the parent waits for an answer and says nothing: it has ended
            os._exit(0)
        try:
            importlib.import_module(name)
        except BaseException as error:
            bad[name] = f"{type(error).__name__}: {error}"[:200]
        if threads() > 1 or cuda_started():
            bad[name] = "thread"
            break
    gc.collect()
    gc.freeze()
    return bad


def threads() -> int:
    """The threads of this process, those that Python does not know of too."""
    try:
        return max(len(os.listdir("/proc/self/task")), threading.active_count())
    except OSError:
        return threading.active_count()


def cuda_started() -> bool:
    """Whether this process has opened a CUDA device: its forks could not use it."""
    for entry in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{entry}").startswith("/dev/nvidia"):
                return True
    return False


def descendants(of: int) -> list[int]:
    """Every process below one."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                stat = Path(f"/proc/{entry}/stat").read_text()
                children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry))
    found, ahead = [], [of]
    while ahead:
        below = children.get(ahead.pop(), [])
        found += below
        ahead += below
    return found


def end_all() -> int:
    """Ends every process below this one, those too that left their group or session; returns how many there were."""
    ended = set()
    for _ in range(200):
        below = descendants(os.getpid())
        if not below:
            break
        for pid in below:
            ended.add(pid)
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        reap()
        time.sleep(0.002)
    return len(ended)


def reap() -> None:
    """Buries what has ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def beside(name: str, file: str) -> Any:
    """A module from a file, which no name of the project can hide and which hides none of its names."""
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Zygote:
    """The loop.

    Args:
        folder: removed when the parent is gone; the tree is in it.
        replies: the descriptor that answers go to.
    """

    def __init__(self, folder: str, replies: int) -> None:
        self.folder, self.replies = folder, replies
        self.sources = beside("gate_loading", f"{HERE}/loading.py").Sources(f"{folder}/tree")
        self.inside: dict[str, Any] = {}
        self.input = b""

    def serve(self) -> None:
        """Answers until the input ends."""
        try:
            while (line := self._line()) is not None:
                if b'"quit"' in line:
                    os._exit(0)
                os.write(self.replies, json.dumps(self._answer(json.loads(line))).encode() + b"\n")
        except BrokenPipeError:
            pass
        end_all()
        shutil.rmtree(self.folder, ignore_errors=True)
        os._exit(0)

    def _line(self) -> bytes | None:
        while b"\n" not in self.input:
            chunk = os.read(0, 1 << 16)
            if not chunk:
                return None
            self.input += chunk
        line, _, self.input = self.input.partition(b"\n")
        return line

    def _answer(self, command: dict[str, Any]) -> dict[str, Any]:
        if command["do"] == "preload":
            bad = preload(command["modules"])
            return {"bad": bad, "threads": threads() + cuda_started()}
        if command["do"] == "inside":
            self.inside[command["name"]] = beside(command["name"], command["file"])
            return {"threads": threads()}
        return self._run(command)

    def _run(self, job: dict[str, Any]) -> dict[str, Any]:
        """Forks for a job, and waits for it, its time or the parent's end."""
        if threads() > 1 or cuda_started():
            return {"ended": "threads"}
        begun = time.monotonic()
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._child(job, reading, writing)
        os.close(writing)
        answer, timed_out = self._wait(reading, begun + job["seconds"])
        os.close(reading)
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        left = end_all()
        if "scratch" in job:
            self.sources.take(f"{job['scratch']}/codes")
        if timed_out:
            return {"ended": "timeout", "seconds": time.monotonic() - begun, "left": left}
        if not answer:
            code = os.waitstatus_to_exitcode(status)
            return {"ended": "died", "code": code, "seconds": time.monotonic() - begun, "left": left}
        return {"ended": "answered", "seconds": time.monotonic() - begun, "left": left, **json.loads(answer)}

    def _wait(self, reading: int, deadline: float) -> tuple[bytes, bool]:
        answer = b""
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return b"", True
            ready, _, _ = select.select([reading, 0], [], [], left)
            if 0 in ready:  # the parent says nothing while a job runs, but that this is the end; or it has ended itself
                end_all()
                if not os.read(0, 1 << 16):
                    shutil.rmtree(self.folder, ignore_errors=True)
                os._exit(0)
            if reading in ready:
                chunk = os.read(reading, 1 << 16)
                if not chunk:
                    return answer, False
                answer += chunk

    def _child(self, job: dict[str, Any], reading: int, writing: int) -> None:
        os.setpgid(0, 0)
        os.close(reading)
        os.close(self.replies)
        prctl(_DEATH, signal.SIGKILL)
        nothing = os.open(os.devnull, os.O_RDWR)
        log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600) if job.get("log") else nothing
        for stream, target in ((0, nothing), (1, log), (2, log)):
            os.dup2(target, stream)
        os.set_inheritable(writing, False)
        answer: dict[str, Any]
        try:
            answer = self.inside[job["inside"]].main(job, self.sources)
        except BaseException as error:
            import traceback

            traceback.print_exc()
            answer = {"fault": f"{type(error).__name__}: {error}"[:500]}
        sys.stdout.flush()
        sys.stderr.flush()
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(json.dumps(answer).encode())
        os._exit(0)


def prctl(option: int, value: int) -> None:
    """Linux's; elsewhere nothing happens."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def main() -> None:
    """`zygote.py FOLDER DESCRIPTOR`."""
    sys.dont_write_bytecode = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or ".") != HERE]
    prctl(_SUBREAPER, 1)
    zygote = Zygote(sys.argv[1], int(sys.argv[2]))
    zygote.sources.install()
    zygote.serve()


if __name__ == "__main__":
    main()
