"""Whose lines run, by coverage, and what a test reads and starts besides.

It imports nothing of gate, which may not be installed here, and no torch.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import coverage

CONTEXT = "GATE_CHECK_CONTEXT"
START = "COVERAGE_PROCESS_START"
# threading.py: every process runs its shutdown, so that one that ran nothing of the project is heard of, too.
_SETTINGS = """[run]
core = ctrace
branch = False
parallel = True
data_file = {folder}/cov
include =
    {root}/*
    */threading.py
omit =
    {root}/.gate/*
    {plugin}/*
    */site-packages/*
concurrency =
    multiprocessing
    thread
sigterm = True
patch =
    _exit
    execv
    fork
context = ${{GATE_CHECK_CONTEXT-}}
disable_warnings = {quiet}
"""


_NOTHING: dict[str, Any] = {"started": 0, "lost": 0}
_QUIET = (
    "no-data-collected,module-not-imported,module-not-measured,module-not-python,already-imported,include-ignored,couldnt-parse,"
    "no-ctracer,no-sysmon,trace-changed,dynamic-conflict"
)


def context_of(key: str) -> str:
    """The name of a context: ids may hold characters to which coverage's settings and contexts give a meaning."""
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()[:20]


class Watch:
    """Which test runs, and what it does besides running lines."""

    def __init__(self, root: str, folder: Path, worker: str) -> None:
        self.root, self.folder, self.worker = root + os.sep, folder, worker
        self.key: str | None = None
        self._seen: dict[str, dict[str, Any]] = {}
        self._noted: set[tuple[str, str]] = set()
        self._written: set[str | None] = set()
        self._pid = os.getpid()
        settings = folder / f"coverage-{worker}.ini"
        settings.write_text(_SETTINGS.format(root=root, folder=folder, plugin=Path(__file__).parent, quiet=_QUIET), encoding="utf-8")
        os.environ.pop(CONTEXT, None)
        os.environ["COVERAGE_CORE"] = "ctrace"  # contexts get lost on the core that Python 3.14 has by default
        self.coverage = coverage.Coverage(config_file=str(settings))
        self.coverage.start()
        os.environ[START] = str(settings)
        os.register_at_fork(after_in_child=self._forked)
        sys.addaudithook(self._hear)

    def enter(self, key: str | None) -> str | None:
        """From now on lines are those of a test, of a fixture, or of nobody; returns whose they were."""
        before, self.key = self.key, key
        os.environ[CONTEXT] = "" if key is None else context_of(key)
        self.coverage.switch_context(os.environ[CONTEXT])
        return before

    def write(self, key: str) -> None:
        """Writes down what was seen of a test or a fixture."""
        facts = self._seen.pop(key, dict(_NOTHING, reads={}))
        line = {"key": key, "context": context_of(key), "worker": self.worker, **facts, "reads": list(facts["reads"])}
        with (self.folder / f"seen-{self.worker}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def save(self) -> None:
        """Ends measuring and saves it."""
        self.coverage.stop()
        self.coverage.save()
        (self.folder / f"saved-{self.worker}").write_text(str(os.getpid()), encoding="ascii")

    def _forked(self) -> None:
        """In a forked child coverage has begun anew, without the context."""
        current = coverage.Coverage.current()
        if self.key is not None and current is not None:
            current.switch_context(context_of(self.key))

    def _facts(self) -> dict[str, Any] | None:
        if self.key is None or os.getpid() != self._pid:
            return None
        return self._seen.setdefault(self.key, dict(_NOTHING, reads={}))

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.key is None:
            return
        if event == "open":
            if arguments[2] & (os.O_WRONLY | os.O_TRUNC):
                self._written.add(self._relative(arguments[0]))
            else:
                self._read(arguments[0])
        elif event in ("os.listdir", "os.scandir"):
            self._read(_folder(arguments[0]), "/")
        elif event == "subprocess.Popen":
            self._started(arguments[0], arguments[3])
        elif event == "os.fork":
            facts = self._facts()
            if facts is not None:
                facts["started"] += 1

    def _relative(self, path: object) -> str | None:
        """A path below the project's folder, "" for that itself; None for others."""
        if not isinstance(path, (str, bytes, os.PathLike)):
            return None
        try:
            name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100  (called for every file that is opened)
        except (OSError, ValueError):  # the current folder is gone; the call itself will say so
            return None
        return name[len(self.root) :] if name.startswith(self.root) or name + os.sep == self.root else None

    def _read(self, path: object, mark: str = "") -> None:
        """What tests have written themselves is none of their sources; what they read before that is."""
        name = self._relative(path)
        if name is None or (not mark and name in self._written):
            return
        if sys._getframe(2).f_code.co_filename.startswith("<frozen importlib"):  # an import, which coverage sees
            return
        facts = self._facts()
        if facts is not None:
            facts["reads"][name + mark] = None
        elif self.key is not None:
            self._note(self.key, name + mark)

    def _note(self, key: str, path: str) -> None:
        """Writes down what a forked child has read, each path once: nobody knows how it will end."""
        if (key, path) in self._noted:
            return
        self._noted.add((key, path))
        line = {"key": key, "context": context_of(key), "worker": self.worker, **_NOTHING, "reads": [path]}
        file = os.open(
            self.folder / f"seen-{self.worker}-{os.getpid()}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666
        )
        try:
            os.write(file, f"{json.dumps(line)}\n".encode())
        finally:
            os.close(file)

    def _started(self, executable: object, variables: Any) -> None:
        facts = self._facts()
        if facts is None or not isinstance(executable, (str, bytes, os.PathLike)) or not _is_python(os.fsdecode(executable)):
            return
        if variables is not None and START not in variables and os.fsencode(START) not in variables:
            facts["lost"] += 1
        else:
            facts["started"] += 1


def _folder(given: object) -> object:
    """What is listed, as a path: the current folder where nothing is given, of a descriptor what it is open on."""
    if not isinstance(given, int):
        return "." if given is None else given
    try:
        return os.readlink(f"/proc/self/fd/{given}")  # noqa: PTH115
    except OSError:  # the call itself will say so
        return None


def _is_python(executable: str) -> bool:
    """Whether a program is Python, or a script of Python's."""
    if "python" in os.path.basename(executable):  # noqa: PTH119
        return True
    try:
        with open(executable, "rb") as file:  # noqa: PTH123
            line = file.read(200).split(b"\n")[0]
    except (OSError, ValueError):
        return False
    return line.startswith(b"#!") and b"python" in line
