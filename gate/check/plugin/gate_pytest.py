"""What runs beside the tests: selects them by id, has coverage note which of them ran which lines, and writes down how each ended.

It imports nothing of gate, which may not be installed here, and no torch. Everything goes into one folder:

    items-WORKER.json     ids with their files and the fixtures of wider scope that they use
    seen-WORKER.jsonl     a line for each test or fixture: what it read, which processes it started
    outcomes.jsonl        a line for each report
    cov.*                 coverage's data, of this process and of those that tests start; a context for each test
    saved-WORKER          the worker got as far as saving its own
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import coverage
import pytest

CONTEXT = "GATE_CHECK_CONTEXT"
REQUEST = "GATE_CHECK_REQUEST"
START = "COVERAGE_PROCESS_START"
LONGEST = 100_000  # characters of one failure's text
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
            if not arguments[2] & (os.O_WRONLY | os.O_TRUNC):
                self._read(arguments[0])
        elif event in ("os.listdir", "os.scandir"):
            self._read(_folder(arguments[0]), "/")
        elif event == "subprocess.Popen":
            self._started(arguments[0], arguments[3])
        elif event == "os.fork":
            facts = self._facts()
            if facts is not None:
                facts["started"] += 1

    def _read(self, path: object, mark: str = "") -> None:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        try:
            name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100  (called for every file that is opened)
        except (OSError, ValueError):  # the current folder is gone; the call itself will say so
            return
        if not name.startswith(self.root) and name + os.sep != self.root:
            return
        if sys._getframe(2).f_code.co_filename.startswith("<frozen importlib"):  # an import, which coverage sees
            return
        facts = self._facts()
        if facts is not None:
            facts["reads"][name[len(self.root) :] + mark] = None

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


class Plugin:
    """Hooks of every process; the controller alone writes outcomes, and those that run tests measure."""

    def __init__(self, request: dict[str, Any], watch: Watch | None, worker: str) -> None:
        self.folder, self.root = Path(request["folder"]), Path(request["root"])
        self.worker, self.watch = worker, watch
        ids = request["ids"]
        self.ids = None if ids is None else frozenset(json.loads(Path(ids).read_text(encoding="utf-8")))
        self.files = None if request["files"] is None else frozenset(request["files"])

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Passes over files that hold nothing selected."""
        if self.files is None or collection_path.suffix != ".py" or collection_path.is_dir():
            return None
        return True if self._relative(collection_path) not in self.files and collection_path.name != "__init__.py" else None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keeps what is selected, by id."""
        if self.ids is not None:
            rest = [item for item in items if item.nodeid not in self.ids]
            items[:] = [item for item in items if item.nodeid in self.ids]
            config.hook.pytest_deselected(items=rest)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Writes down what was collected: all of it, or what is selected."""
        found = [[item.nodeid, self._relative(item.path), _wide_fixtures(item)] for item in session.items]
        (self.folder / f"items-{self.worker}.json").write_text(json.dumps(found), encoding="utf-8")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """A context for each test, set-up and tear-down included."""
        if self.watch is None:
            return (yield)
        self.watch.enter(item.nodeid)
        frames = _compiled()
        try:
            return (yield)
        finally:
            self.watch.enter(None)
            self.watch.write(item.nodeid)
            if _compiled() != frames:
                self.watch.write(f"compiled:{item.nodeid}")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        """A fixture that several tests share is set up in the first of them, and is run for all."""
        if self.watch is None or fixturedef.scope == "function":
            return (yield)
        key = _fixture_key(fixturedef)
        before = self.watch.enter(key)
        try:
            return (yield)
        finally:
            self.watch.enter(before)
            self.watch.write(key)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """How a phase of a test ended, told to the controller."""
        expected = getattr(report, "wasxfail", None)
        text = "" if report.passed else _text(report)
        self._outcome(report.nodeid, report.when or "", report.outcome, report.duration, text, expected)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """What could not be collected, or was skipped whole."""
        if not report.passed:
            self._outcome(report.nodeid, "collect", report.outcome, 0.0, _text(report), None)

    def pytest_unconfigure(self) -> None:
        """Saves the measurement."""
        if self.watch is not None:
            self.watch.save()

    def _outcome(self, key: str, when: str, outcome: str, seconds: float, text: str, expected: str | None) -> None:
        if os.environ.get("PYTEST_XDIST_WORKER"):
            return
        line = {"id": key, "when": when, "outcome": outcome, "seconds": seconds, "text": text, "expected": expected}
        with (self.folder / "outcomes.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _relative(self, path: Path) -> str:
        try:
            return path.resolve().relative_to(self.root).as_posix()
        except ValueError:
            return path.as_posix()


def _text(report: Any) -> str:
    if report.skipped and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    text = str(report.longreprtext)
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]}\n[{len(text) - LONGEST} characters left out]\n{text[-LONGEST // 2 :]}"
    return text


def _fixture_key(fixturedef: pytest.FixtureDef[Any]) -> str:
    return f"fixture:{fixturedef.baseid}:{fixturedef.argname}"


def _wide_fixtures(item: pytest.Item) -> list[str]:
    """Fixtures of wider scope than one test that a test uses, as far as its arguments and marks tell."""
    information = getattr(item, "_fixtureinfo", None)
    definitions = information.name2fixturedefs.values() if information is not None else ()
    return sorted({_fixture_key(definition) for several in definitions for definition in several if definition.scope != "function"})


def _compiled() -> int:
    """How many frames torch has compiled so far; their lines are then run where coverage does not see them."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    counters = getattr(dynamo, "counters", None)
    return sum(counters["frames"].values()) if counters else 0


def _begin() -> Plugin | None:
    """Measures from the first moment, before any conftest is loaded; a controller of workers runs no test and measures nothing."""
    file = os.environ.get(REQUEST)
    if not file:
        return None
    request = json.loads(Path(file).read_text(encoding="utf-8"))
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    measures = request["mode"] == "measure" and (worker != "main" or not request["jobs"])
    return Plugin(request, Watch(request["root"], Path(request["folder"]), worker) if measures else None, worker)


_PLUGIN = _begin()


def pytest_configure(config: pytest.Config) -> None:
    """Registers the hooks, once."""
    if _PLUGIN is not None:
        config.pluginmanager.register(_PLUGIN, "gate-check")
