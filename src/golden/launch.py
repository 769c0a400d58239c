"""Starts the process that executes a request, waits for it, ends what it leaves behind, and reads what it reports."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from golden.errors import ScenarioFailed, StoreError, UsageError
from golden.settings import Report, Request

MAIN = Path(__file__).resolve().parent / "__main__.py"
GRACE = 2.0  # seconds from the interrupt of a process group to its end by force
EX_IOERR = 74  # what the process exits with when it cannot write its report


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes:
        code: its exit code, negative for a signal.
        report: what it said; made up from its end where it could say nothing.
        seconds: from its start to its end.
    """

    code: int
    report: Report
    seconds: float


def beside(report: Path, suffix: str) -> Path:
    """A file that belongs to a run: next to its report, of the same name but for the suffix, ".log" for example."""
    return report.with_name(report.name.removesuffix(".json").removesuffix(".report") + suffix)


def command(python: Path, request: Path) -> list[str]:
    """The command line that executes a request: a plain script, so that no project's folder called golden goes before ours."""
    return [str(python), "-u", str(MAIN), "execute", str(request), "--parent", str(os.getpid())]


def steps_done(request: Request) -> int:
    """The last step that a run has recorded, also while it goes on; 0 before the first."""
    try:
        return int(beside(request.report, ".progress").read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return 0


class Children:
    """The processes that this one has started. Leaving the context ends those that still run; after that none can be started.

    Several threads may call `run` at a time.
    """

    def __init__(self) -> None:
        self._running: set[int] = set()
        self._lock = threading.Lock()
        self._ending = False

    def __enter__(self) -> Children:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.end()

    def run(self, python: Path, request: Request, environment: Mapping[str, str], log: Path | None) -> Ended:
        """Executes a request in a fresh process and a process group of its own, and waits until it has ended.

        Args:
            python: the interpreter.
            request: what to run; written to a file beside its report.
            environment: the process's whole environment.
            log: gets what the scenario prints, also from C; None for this process's stderr.

        Raises:
            StoreError: the request or the log cannot be written.
            UsageError: there is no such interpreter.
            KeyboardInterrupt: the user, or `end` from another thread; the process and all it started have ended.
        """
        start = time.perf_counter()
        for stale in (request.report, beside(request.report, ".progress")):
            stale.unlink(missing_ok=True)
        file = beside(request.report, ".request.json")
        try:
            file.write_text(request.to_json(), encoding="utf-8")
            output = os.dup(2) if log is None else os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666)
        except OSError as error:
            raise StoreError.of(error, file if log is None else log) from None
        try:
            process = self._start(command(python, file), environment, output)
        finally:
            os.close(output)
        try:
            process.wait()
        finally:
            code = self._bury(process)
            report = _report(request, code)
            for passing in (".progress", ".journal", ".report.part"):
                beside(request.report, passing).unlink(missing_ok=True)
        if self._ending:
            raise KeyboardInterrupt
        return Ended(code, report, time.perf_counter() - start)

    def end(self) -> None:
        """Ends every process group that still runs: interrupted first, by force after a grace."""
        with self._lock:
            self._ending = True
            groups = list(self._running)
        for group in groups:
            _signal(group, signal.SIGINT)
        try:
            _until(lambda: not self._running)
        finally:
            with self._lock:
                for group in self._running:
                    _signal(group, signal.SIGKILL)

    def _start(self, arguments: list[str], environment: Mapping[str, str], output: int) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._ending:
                raise KeyboardInterrupt
            try:
                process = subprocess.Popen(
                    arguments,
                    env={name: value for name, value in environment.items() if name != "PYTHONINSPECT"},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            except OSError as error:
                raise UsageError(f"{arguments[0]} cannot be started: {error.strerror}. Name a Python interpreter.") from None
            self._running.add(process.pid)
            return process

    def _bury(self, process: subprocess.Popen[bytes]) -> int:
        """Ends what is left of a process and its group, and returns the exit code."""
        try:
            if process.poll() is None:
                _signal(process.pid, signal.SIGINT)
                process.wait(GRACE)
            _until(lambda: not _signal(process.pid, 0))  # what tidies up after its parent, such as multiprocessing's tracker, may do so
        except subprocess.TimeoutExpired:
            pass
        finally:
            with self._lock:
                _signal(process.pid, signal.SIGKILL)
                self._running.discard(process.pid)
            code = process.wait()
        return code


def _until(done: Callable[[], bool]) -> None:
    """Waits for a condition, for the time of grace at most."""
    deadline = time.monotonic() + GRACE
    while not done() and time.monotonic() < deadline:
        time.sleep(0.01)


def _signal(group: int, number: int) -> bool:
    """Sends a signal to a process group (0: none); says whether anything is left of it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # macOS says the latter of a group that is dead but not yet buried
        return False
    return True


def _report(request: Request, code: int) -> Report:
    try:
        return Report.from_json(request.report.read_text(encoding="utf-8"))
    except (FileNotFoundError, UsageError):
        reason = StoreError.reason if code == EX_IOERR else ScenarioFailed.reason
        return Report("failed", reason, _obituary(request, code))


def _obituary(request: Request, code: int) -> str:
    """What to say of a process that reported nothing."""
    done = steps_done(request)
    when = f"after step {done} of {request.steps}" if done else "before it recorded a step"
    if code == EX_IOERR:
        return f"{request.report}: the run's report could not be written. Free disk space, or correct the permissions."
    if code >= 0:
        return (
            f"{request.run}: its process ended itself {when} with exit code {code}. A scenario has to return: remove the call that exits."
        )
    cause = "Often that is the system being out of memory." if -code == signal.SIGKILL else "The end of its log shows where."
    return f"{request.run}: its process was ended by {_name(-code)} {when}. {cause}"


def _name(number: int) -> str:
    try:
        return f"{signal.Signals(number).name} (signal {number})"
    except ValueError:
        return f"signal {number}"
