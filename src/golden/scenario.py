"""Executes a request in this process: loads the scenario as the project has it, lets it record, and reports how that went."""

from __future__ import annotations

import faulthandler
import importlib
import os
import platform
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from golden.blame import ends_in_golden, has_frames, own_traceback
from golden.errors import GoldenError, ScenarioFailed, StoreError
from golden.keys import nearest
from golden.launch import EX_IOERR, beside
from golden.process import Process
from golden.profile import variables
from golden.settings import Report, Request

if TYPE_CHECKING:
    from golden.observed import Observed
    from golden.recorder import Recorder
    from golden.writer import Writer

FAILED, INTERRUPTED, FAULT = 3, 130, 70


class NoTorch(GoldenError):  # noqa: N818
    """This interpreter does not hold what golden needs."""

    reason: ClassVar[str] = "no-torch"


class NoAccelerator(GoldenError):  # noqa: N818
    """The device asked for is not here."""

    reason: ClassVar[str] = "no-accelerator"


def execute(file: Path) -> int:
    """Executes the request in a file and writes its report; the golden is in its folder if that says "ok", else the folder is gone.

    Returns:
        The exit code: 0, 3 (the report says why), 70 (golden itself is at fault), 74 (the report could not be written), 130 (interrupted).
    """
    request = Request.from_json(file.read_text(encoding="utf-8"))
    faulthandler.enable()  # a crash in C leaves the scenario's line in the log
    code, report = _outcome(_execution(Process.of(request, file)))
    if code:
        shutil.rmtree(request.out, ignore_errors=True)
    try:
        _write(request.report, report)
    except OSError as error:
        sys.stderr.write(f"{request.report}: {error.strerror}\n")
        return EX_IOERR
    return code


class Execution:
    """The execution of a request.

    Attributes:
        report: what is known so far.
        theirs: whether the scenario's code is at work, and not ours alone.
    """

    def __init__(self, process: Process) -> None:
        self.process, self.request = process, process.request
        self.report = Report("failed", python=platform.python_version())
        self.theirs = False
        self._seconds: dict[str, float] = {}

    def run(self) -> None:
        """Runs the scenario and writes its golden; the report says "ok" then.

        Raises:
            GoldenError: why there is no golden.
            BaseException: what the scenario raised.
        """
        self._check_profile()
        with self._timed("torch"):
            self._import_torch()
        from golden.distributions import baseline

        request, before, watcher = self.request, baseline(), self.process.watcher()
        os.chdir(request.root)
        with ExitStack() as stack:
            folder = request.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="golden-", ignore_cleanup_errors=True)))
            writer, record = self._recorder(folder)
            watcher.install()
            self.process.finder().install()
            try:
                with self._scenario():
                    record.reach("start")
                    with self._timed("import"):
                        function = load(self.process)
                    record.reach("import")
                    with self._timed("steps"):
                        self._call(function, record)
                record.finish()
            finally:
                self.report = replace(self.report, foreign=watcher.foreign(), flags=tuple(record.changes), replay=record.replay)
        if edited := watcher.edited():
            raise ScenarioFailed(
                f"{', '.join(edited)} changed while the scenario ran, and no state of the project gave its bits: run again"
            )
        with self._timed("golden"):
            self._finish(writer, record, before, watcher.sources())
        self.report = replace(self.report, status="ok", seconds=self._seconds)

    def _check_profile(self) -> None:
        request = self.request
        for name, value in variables(request.profile, request.device, request.seed).items():
            assert os.environ.get(name) == value, f"{name} is {os.environ.get(name)!r} and has to be {value!r} before the process starts"

    def _import_torch(self) -> None:
        """Imports what the recorder needs, before the project can be in its way, and prepares torch."""
        try:
            import torch

            import golden.observed
            import golden.writer  # noqa: F401
        except Exception as error:
            traceback.print_exc()
            told = f"{sys.executable} does not hold what golden needs: {type(error).__name__}: {error}"
            raise NoTorch(f"{told}. Install torch, numpy, safetensors and xxhash there.") from None
        from golden.seeding import prepare

        self.report = replace(self.report, torch=str(torch.__version__))
        if self.request.device == "cuda" and not torch.cuda.is_available():
            raise NoAccelerator(f"torch {torch.__version__} of {sys.executable} finds no CUDA device here.")
        prepare(self.request.seed, self.request.profile, self.request.fill)

    def _recorder(self, folder: Path) -> tuple[Writer, Observed]:
        from golden.observed import Observed
        from golden.writer import Writer

        writer = Writer(self.request.out)
        return writer, Observed(writer.add, self.request, folder, beside(self.request.report, ".progress"))

    def _call(self, function: Callable[[Any], object], record: Recorder) -> None:
        from golden.observed import HalfDone

        try:
            function(record)
        except HalfDone:
            if self.request.folder is not None and not any(self.request.folder.iterdir()):
                raise ScenarioFailed(
                    f"the scenario saved nothing in record.folder by the end of step {record.done}, where it is to be continued: "
                    f"save its checkpoint there after each record()"
                ) from None
        except SystemExit as leaving:
            if leaving.code not in (None, 0):
                raise

    def _finish(self, writer: Writer, record: Observed, before: frozenset[str], sources: dict[str, str]) -> None:
        from golden.environment import collect

        request = self.request
        environment = collect(request.device, request.profile, before, request.project)
        version = self.report.torch if request.device == "cuda" else self.report.torch.partition("+")[0]
        hardware = str(environment["hardware"])
        scenario = request.resolved(record.store or "digest")
        writer.finish(scenario=scenario, environment=environment, sources=sources, hardware=hardware, torch=version)
        self.report = replace(self.report, hardware=hardware)

    @contextmanager
    def _scenario(self) -> Iterator[None]:
        """Around the scenario's code. A process that it forks, and lets come out of it, ends here: what follows is not the fork's."""
        process, self.theirs = os.getpid(), True
        sys.argv = [str(self.request.file)]
        try:
            yield
        finally:
            if os.getpid() != process:
                failed = sys.exc_info()[0] is not None
                if failed:
                    traceback.print_exc()
                os._exit(failed)
        self.theirs = False

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._seconds[part] = round(time.perf_counter() - start, 3)


def load(process: Process) -> Callable[[Any], object]:
    """The scenario's function, out of its file.

    Raises:
        ScenarioFailed: there is no such file, or no such function in it.
    """
    file, name = process.request.file, process.request.function
    if not file.is_file():
        raise ScenarioFailed(f"there is no file {file}. Correct the scenario's run.")
    module = importlib.import_module(process.module)
    function = getattr(module, name, None)
    if not callable(function):
        known = [key for key, value in vars(module).items() if callable(value) and getattr(value, "__module__", "") == module.__name__]
        raise ScenarioFailed(f"there is no function {name!r} in {file}, {nearest(name, known)}")
    found: Callable[[Any], object] = function
    return found


def _execution(process: Process) -> Execution:
    if not process.request.turns:
        return Execution(process)
    from golden.timing import Timing  # which is an Execution

    return Timing(process)


def _outcome(execution: Execution) -> tuple[int, Report]:
    """Runs it, and turns whatever comes of that into an exit code and a report."""

    def failed(reason: str, message: str, told: str | None) -> Report:
        return replace(execution.report, status="failed", reason=reason, message=message, traceback=told)

    try:
        execution.run()
    except GoldenError as error:
        told = own_traceback(error) if execution.theirs and has_frames(error) else None
        run = execution.request.run
        return FAILED, failed(error.reason, f"{run}: {error}" if isinstance(error, ScenarioFailed) else str(error), told)
    except BaseException as error:
        ours = not execution.theirs or ends_in_golden(error)
        if ours and isinstance(error, OSError):
            return FAILED, failed(StoreError.reason, str(StoreError.of(error, execution.request.report)), None)
        if ours and isinstance(error, Exception) and not isinstance(error, MemoryError):
            return FAULT, failed("fault", f"golden itself failed: {type(error).__name__}: {error}", traceback.format_exc())
        code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else FAILED
        return code, failed(ScenarioFailed.reason, f"{execution.request.run} {_told(error)}", own_traceback(error))
    return 0, execution.report


def _told(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"ended by sys.exit({error.code!r}): a scenario has to return"
    if isinstance(error, KeyboardInterrupt):
        return "was interrupted"
    text = str(error).partition("\n")[0]
    return f"raised {type(error).__name__}{': ' if text else ''}{text}"


def _write(file: Path, report: Report) -> None:
    """In one rename, so that a report is whole or not there."""
    part = beside(file, ".report.part")
    part.write_text(report.to_json(), encoding="utf-8")
    part.replace(file)
