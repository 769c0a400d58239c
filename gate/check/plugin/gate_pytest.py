"""What runs beside the tests: selects them by id, has coverage note which of them ran which lines, and writes down how each ended.

It imports nothing of gate, which may not be installed here, and no torch. Everything goes into one folder:

    items-WORKER.json     ids with their files and the fixtures of wider scope that they use
    seen-WORKER.jsonl     a line for each test or fixture: what it read, which processes it started; seen-WORKER-PID.jsonl of a forked child
    outcomes.jsonl        a line for each report
    cov.*                 coverage's data, of this process and of those that tests start; a context for each test
    saved-WORKER          the worker got as far as saving its own
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gate.check.plugin.gate_watch import Watch
else:  # it stands beside this file, which is no part of a package where it runs
    Watch = importlib.import_module("gate_watch").Watch

REQUEST = "GATE_CHECK_REQUEST"
LONGEST = 100_000  # characters of one failure's text


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
