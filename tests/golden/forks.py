"""A process that has imported torch under the portable profile, and forks for each request: importing it anew would cost seconds each time.

What it executes is golden's own entry, `golden.scenario.execute`; what it leaves out, the start of a fresh interpreter, is tested by a
few runs of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from golden.launch import MAIN, Children, Ended, beside
from golden.profile import environment
from golden.settings import Report, Request

SERVER = """
import os, sys
sys.path.pop(0)
sys.modules["__main__"].__file__ = sys.argv[1]  # what multiprocessing starts its processes from
import torch._inductor.config  # what torch itself brings in when algorithms are to be deterministic
import golden.observed, golden.environment, golden.distributions, golden.seeding
for line in sys.stdin:
    file, log = line.rstrip("\\n").split("\\t")
    child = os.fork()
    if child == 0:
        os.setsid()
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        os.dup2(output, 1), os.dup2(output, 2), os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        from pathlib import Path
        from golden.scenario import execute
        code = execute(Path(file))
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code)  # taking a fork of torch down costs seconds
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@dataclass(frozen=True)
class Done:
    """A run that has ended: its exit code, its report (None where it wrote none), and what it printed."""

    request: Request
    code: int
    report: Report | None
    log: str

    @property
    def failure(self) -> Report:
        assert self.report is not None, self.log
        assert self.report.status == "failed", self.report
        return self.report

    @property
    def manifest(self) -> dict[str, Any]:
        assert self.report is not None, self.log
        assert self.report.status == "ok", (self.report, self.log)
        manifest: dict[str, Any] = json.loads((self.request.out / "manifest.json").read_text())
        return manifest


class Server:
    """Executes requests one after the other; a context manager."""

    def __enter__(self) -> Server:
        variables = environment(os.environ, "portable", "cpu", 0)
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(MAIN)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables
        )
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate()

    def run(self, request: Request) -> Done:
        file, log = beside(request.report, ".request.json"), beside(request.report, ".log")
        file.write_text(request.to_json())
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{file}\t{log}\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        report = Report.from_json(request.report.read_text()) if request.report.exists() else None
        return Done(request, code, report, log.read_text(errors="replace"))


def request(project: Path, run: str, out: Path, steps: int = 3, **others: Any) -> Request:
    """A plain CPU request of two tiny steps' worth; `out` is made, the report lies beside it."""
    out.mkdir(parents=True)
    plain = Request(
        name=out.name,
        run=run,
        steps=steps,
        seed=0,
        device="cpu",
        store="digest",
        parameters={},
        profile="portable",
        project=project,
        root=project,
        out=out,
        report=out.with_name(f"{out.name}.report.json"),
    )
    return replace(plain, **others)


def fresh(request: Request, inherited: dict[str, str] | None = None, log: Path | None = None) -> Ended:
    """Executes a request as gate does: in a process started anew."""
    variables = environment({**os.environ, **(inherited or {})}, request.profile, request.device, request.seed)
    with Children() as children:
        return children.run(Path(sys.executable), request, variables, log or beside(request.report, ".log"))
