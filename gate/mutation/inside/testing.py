"""Runs tests in a fork of the zygote: those that are wanted, in the order given, with or without coverage.

Nothing of gate or golden is imported here: both may be what is mutated.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_TEST = "GATE_MUTATE_TEST"
_MEASURE = """[run]
core = ctrace
parallel = true
data_file = {scratch}/sub.coverage
source = {tree}
context = ${{{test}-}}
concurrency = multiprocessing, thread
sigterm = true
patch = _exit, execv, fork
"""
_AUTOLOAD = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
# Plugins that a project may name options of in its addopts, and what keeps each from doing anything here.
_QUIET = {"xdist": ("-n", "0"), "pytest_cov": ("--no-cov",), "hypothesispytest": ("--hypothesis-seed=0",)}
_PLUGINS: dict[str, Any] = {}


def prepare() -> None:
    """Imports pytest and its plugins, once, in the zygote: looking for them takes longer than most tests."""
    entry_points = importlib.import_module("importlib.metadata").entry_points
    importlib.import_module("pytest")
    for entry in entry_points(group="pytest11"):
        with contextlib.suppress(Exception):
            _PLUGINS[entry.name] = entry.load()


prepare()


class Plugin:
    """What gate asks pytest.

    Args:
        wanted: ids in the order in which they shall run; empty for all.
        coverage: measures, where it is asked for.
    """

    def __init__(self, wanted: list[str], coverage: Any = None) -> None:
        self.wanted = {test: place for place, test in enumerate(wanted)}
        self.coverage = coverage
        self.passed: list[str] = []
        self.skipped: list[str] = []
        self.expected: dict[str, list[str]] = {"xfailed": [], "xpassed": []}
        self.failed: list[dict[str, str]] = []
        self.broken: list[str] = []
        self.seconds: dict[str, float] = {}
        self.collected: list[str] = []

    def pytest_addoption(self, parser: Any, pluginmanager: Any) -> None:
        """Adds what was imported beforehand, by the names that `-p` calls it."""
        for name, plugin in _PLUGINS.items():
            if not pluginmanager.is_blocked(name) and not pluginmanager.is_registered(plugin):
                pluginmanager.register(plugin, name)

    def pytest_configure(self, config: Any) -> None:
        """Lets processes that tests start find plugins as usual."""
        os.environ.pop(_AUTOLOAD, None)

    def pytest_collectreport(self, report: Any) -> None:
        """Notes what cannot be collected."""
        if report.failed:
            self.broken.append(f"{report.nodeid}: {_last(report.longrepr)}")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Takes the tests that are wanted, in their order."""
        if self.wanted:
            chosen = [item for item in items if item.nodeid in self.wanted]
            items[:] = sorted(chosen, key=lambda item: self.wanted[item.nodeid])
        self.collected = [item.nodeid for item in items]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Tells coverage, here and in processes, whose lines follow."""
        os.environ[_TEST] = nodeid
        if self.coverage is not None:
            self.coverage.switch_context(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Ends that."""
        if self.coverage is not None:
            self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Notes how a test went."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.append({"test": report.nodeid, "when": report.when, "why": _last(report.longrepr)})
        elif hasattr(report, "wasxfail"):  # whatever a fault does to it, it does not fail
            self.expected["xfailed" if report.skipped else "xpassed"].append(report.nodeid)
        elif report.when == "call" and report.passed:
            self.passed.append(report.nodeid)
        elif report.skipped:
            self.skipped.append(report.nodeid)


def _last(text: Any) -> str:
    lines = [line for line in str(text).splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("E ")]
    return (errors or lines or [""])[0].removeprefix("E").strip()[:200]


def main(job: dict[str, Any], sources: Any) -> dict[str, Any]:
    """Runs a job.

    Args:
        job: "tree", "roots", "scratch", "files", "tests", "first", "coverage", "learn", "mutated".
        sources: the zygote's.
    """
    _enter(job)
    sources.rewriting()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    measured = _coverage(job)
    plugin = Plugin(job["tests"], measured)
    os.environ[_AUTOLOAD] = "1"
    begun = time.monotonic()
    arguments = ["-q", "--tb=line", "--no-header", "--color=no", *job["options"], f"--basetemp={job['scratch']}/pytest"]
    arguments += ["-o", f"cache_dir={job['scratch']}/cache-{os.getpid()}"]  # of nobody else, so that it is empty
    arguments += [word for name, words in _QUIET.items() if name in _PLUGINS for word in words]
    if job["first"]:
        arguments.append("-x")
    random.seed(0)
    code = int(importlib.import_module("pytest").main([*arguments, *job["files"]], plugins=[plugin]))
    answer: dict[str, Any] = {
        "code": code,
        "passed": plugin.passed,
        "skipped": plugin.skipped,
        **plugin.expected,
        "failed": plugin.failed,
        "broken": plugin.broken or ([_complaint(job["log"], code)] if code in (3, 4) else []),
        "collected": plugin.collected,
        "loaded": sources.loaded.get(job["mutated"] or "", ""),
        "failed_imports": sources.failed,
        "spent": time.monotonic() - begun,
    }
    if job["learn"]:
        answer |= {"durations": plugin.seconds, "modules": _modules(job)}
    if measured is not None:
        answer["map"] = _map(job, measured)
    sources.keep(f"{job['scratch']}/codes", job["mutated"])
    return answer


def _complaint(log: str, code: int) -> str:
    """What pytest itself says where it ends before, or without, having run tests: by 4 of how it is used, by 3 of a fault within."""
    sys.stderr.flush()
    sys.stdout.flush()
    lines = Path(log).read_text(encoding="utf-8", errors="replace").splitlines()
    told = [line.rpartition(" error: ")[2].removeprefix("ERROR: ") for line in lines if " error: " in line or line.startswith("ERROR: ")]
    faults = [line.removeprefix("INTERNALERROR> ") for line in lines if line.startswith("INTERNALERROR> ")]
    return f"pytest ended with {code}" + "".join(f": {line.strip()[:200]}" for line in (told[-1:] or faults[-1:]))


def _enter(job: dict[str, Any]) -> None:
    """Makes the copy the place where everything of the project comes from, here and in processes that are started."""
    tree, project = job["tree"], job["project"]
    os.chdir(tree)
    roots = [tree if root == "." else f"{tree}/{root}" for root in job["roots"]]
    rest = [entry for entry in sys.path if entry not in roots and not _within(entry, project) and entry != ""]
    sys.path[:] = [*roots, *rest]
    sys.path_importer_cache.clear()
    before = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and not _within(p, project)]
    os.environ["PYTHONPATH"] = os.pathsep.join([*roots, *before])
    os.environ["TMPDIR"] = job["scratch"]
    os.environ["PWD"] = tree
    tempfile.tempdir = None


def _within(entry: str, project: str) -> bool:
    """Whether a path entry leads into the project itself, and not to installed packages below it."""
    real = os.path.realpath(entry)
    return (real == project or real.startswith(project + os.sep)) and "site-packages" not in real and "lib/python" not in real


def _modules(job: dict[str, Any]) -> list[str]:
    """The modules that are not the project's, in the order in which their import began."""
    kept = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        spec = getattr(module, "__spec__", None)
        if spec is None or getattr(spec, "name", None) != name or name.startswith(("gate_inside", "__")):
            continue
        if file is None or (not _within(file, job["project"]) and not file.startswith(job["tree"] + os.sep)):
            kept.append(name)
    return kept


def _coverage(job: dict[str, Any]) -> Any:
    """Coverage with a context for each test, here and in the processes that tests start; None where it is not asked for."""
    if not job["coverage"]:
        return None
    rc = Path(job["scratch"], "coveragerc")
    rc.write_text(_MEASURE.format(scratch=job["scratch"], tree=job["tree"], test=_TEST), encoding="utf-8")
    os.environ.pop(_TEST, None)
    os.environ["COVERAGE_CORE"] = "ctrace"
    coverage = importlib.import_module("coverage").Coverage(config_file=str(rc), messages=False)
    coverage.start()
    os.environ["COVERAGE_PROCESS_START"] = str(rc)
    coverage.switch_context("")
    os.register_at_fork(after_in_child=_forked)
    return coverage


def _forked() -> None:
    """In a child that a test forks coverage has begun anew, without the context."""
    current = importlib.import_module("coverage").Coverage.current()
    if current is not None and _TEST in os.environ:
        current.switch_context(os.environ[_TEST])


def _whose(context: str) -> str:
    """The test of a context; a process that one forks which a test has forked is given it twice."""
    half = context[: len(context) // 2]
    return half if half and context == f"{half}|{half}" else context


def _map(job: dict[str, Any], measured: Any) -> dict[str, Any]:
    """Which test ran which lines of which file: {"tests": [ids], "files": {file: {line: [places in tests]}}}; place -1 is the import."""
    measured.stop()
    os.environ.pop("COVERAGE_PROCESS_START", None)
    tree = job["tree"] + os.sep
    tests: dict[str, int] = {"": -1}
    files: dict[str, dict[str, list[int]]] = {}
    kinds = importlib.import_module("coverage")
    inner = []
    for path in sorted(Path(job["scratch"]).glob("sub.coverage*")):
        data = kinds.CoverageData(basename=str(path))
        with contextlib.suppress(Exception):
            data.read()
            inner.append(data)
    for data in [measured.get_data(), *inner]:
        for file in data.measured_files():
            if not file.startswith(tree):
                continue
            lines = files.setdefault(file.removeprefix(tree), {})
            for line, contexts in data.contexts_by_lineno(file).items():
                there = lines.setdefault(str(line), [])
                for context in contexts:
                    place = tests.setdefault(_whose(context), len(tests) - 1)
                    if place not in there:
                        there.append(place)
    json.dumps(files)
    return {"tests": [test for test in tests if test], "files": files}
