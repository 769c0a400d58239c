"""A zygote as its parent sees it: commands go in, answers come out, and nothing of it is left when it is closed."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gate.errors import BaselineFailed

_HERE = Path(__file__).resolve().parent / "inside"
_SLACK = 60.0


class Worker:
    """One process that forks for each job. Start it in the main thread; one thread at a time may ask it.

    Args:
        folder: of its copy.
        environment: the process's whole environment.
        inside: what it runs: "testing" or "scenes".
        modules: what it imports beforehand.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], inside: str, modules: Sequence[str]) -> None:
        self.folder, self.environment, self.inside = folder, dict(environment), inside
        self.left_out: set[str] = set()
        self.modules = list(modules)
        self._process: subprocess.Popen[bytes] | None = None
        self._replies = -1
        self._buffer = b""
        self._closed = False

    def ask(self, job: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Runs a job in a fork.

        Raises:
            KeyboardInterrupt: the worker was closed meanwhile.
            BaselineFailed: the process does not work.
        """
        self._start()
        return self._say({"do": "run", "inside": f"gate_{self.inside}", "seconds": seconds, **job}, seconds + _SLACK)

    def preload(self, modules: Sequence[str]) -> None:
        """Has it import more; what starts a thread there is left to the forks."""
        known = set(self.modules)
        self.modules += [name for name in modules if name not in known and name not in self.left_out]
        if self._process is not None and len(self.modules) > len(known):
            self._load(self.modules[len(known) :])

    def close(self) -> None:
        """Ends it and all below it; a thread that waits for an answer gets KeyboardInterrupt."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.write(b'{"do": "quit"}\n')
            process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if not self._closed:  # else another thread may still read there
            os.close(self._replies)
        self._buffer = b""

    def _start(self) -> None:
        if self._process is not None:
            return
        if self._closed:
            raise KeyboardInterrupt
        reading, writing = os.pipe()
        command = [sys.executable, str(_HERE / "zygote.py"), str(self.folder), str(writing)]
        log = os.open(self.folder / f"{self.inside}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._process = subprocess.Popen(
            command, env=self.environment, stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=(writing,), start_new_session=True
        )
        os.close(writing)
        os.close(log)
        self._replies = reading
        self._load(self.modules)
        self._say({"do": "inside", "name": f"gate_{self.inside}", "file": str(_HERE / f"{self.inside}.py")}, _SLACK)

    def _load(self, modules: Sequence[str]) -> None:
        answer = self._say({"do": "preload", "modules": list(modules)}, 300)
        if answer["threads"] > 1:  # it cannot fork any more: another one goes without what started a thread or CUDA
            self.left_out |= {name for name, why in answer["bad"].items() if why == "thread"}
            self.modules = [name for name in self.modules if name not in self.left_out]
            self._end()
            self._start()

    def _say(self, command: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        process = self._process
        if process is None or process.stdin is None:
            raise KeyboardInterrupt
        try:
            process.stdin.write(json.dumps(command).encode() + b"\n")
            process.stdin.flush()
            line = self._line(time.monotonic() + seconds)
        except (OSError, ValueError):
            line = b""
        if self._closed:
            raise KeyboardInterrupt
        if not line:
            raise BaselineFailed(f"The process that forks for mutants has ended:\n{self._told()}")
        answer: dict[str, Any] = json.loads(line)
        if answer.get("ended") == "threads":
            raise BaselineFailed("The process that forks for mutants has started a thread or CUDA, so that its forks could hang.")
        return answer

    def _line(self, deadline: float) -> bytes:
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._replies], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(self._replies, 1 << 20) if ready else b""
            if not chunk:
                return b""
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _told(self) -> str:
        lines = (self.folder / f"{self.inside}.log").read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-8:])
