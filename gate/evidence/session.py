"""A plugin of pytest that leaves a record of a whole session: `python -m pytest -p gate.evidence.session`.

Nothing is measured, so that the session takes what it takes. Everything that the tests import by their syntax counts as read, and every
file of data in a folder; that is more than `gate check` finds by looking on, and makes the record stale a little more often than need be.

Part of the tests (a file named, -k, -m, --lf, -x that ended it) is no session of all of them, and leaves none. On a machine with a GPU
`-m cuda` is whole: what is required of that hardware are the tests that need it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from gate import encoding, interpreter
from gate.check import harvest
from gate.check.harvest import Outcome
from gate.check.reach import Reach
from gate.check.result import Checked, Word
from gate.config import find
from gate.errors import GoldenError
from gate.evidence import checked
from gate.evidence.present import Present
from gate.evidence.snapshot import Snapshot
from gate.machine import Machine

NAME = "gate-evidence"
_PARTS = ("keyword", "markexpr", "lf", "failedfirst", "newfirst", "stepwise", "deselect", "ignore", "ignore_glob", "collectonly")
_ENDED = (0, 1)  # all passed, or some failed; anything else was no session


def pytest_configure(config: Any) -> None:
    """Begins, where this is no worker of another session. Raises GoldenError where the project is not configured."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Session(Path(config.rootpath), _part(config, bool(Machine.here().cuda))), NAME)


class Session:
    """Hears how tests end.

    Args:
        root: the project's folder.
        part: why this is no session of all tests; "" where it is.
    """

    def __init__(self, root: Path, part: str) -> None:
        self._config, self._part = find(root), part
        self._before = Snapshot.take(self._config)
        self._reports: dict[str, list[Any]] = {}
        self._told = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Takes note of one part of one test."""
        self._reports.setdefault(report.nodeid, []).append(report)

    def pytest_collectreport(self, report: Any) -> None:
        """Takes note of a file that cannot be collected."""
        if report.failed:
            self._reports.setdefault(report.nodeid, []).append(report)

    def pytest_sessionfinish(self, session: Any, exitstatus: int) -> None:
        """Leaves the record."""
        cut_off = int(exitstatus) not in _ENDED or session.shouldfail or session.shouldstop
        if self._part or cut_off or not self._reports:
            self._told = f"no evidence: {self._part or 'the session was cut off, or ran no test'}"
            return
        try:
            found = checked.put_on_record(self._config, self._before, self._checked())
            self._told = (
                "evidence was left in .gate/evidence" if found.reason is None else f"no evidence: {found.reason.value}: {found.message}"
            )
        except GoldenError as error:
            self._told = f"no evidence: {error.reason}: {error}"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Says what became of it."""
        terminalreporter.write_line(f"gate: {self._told}")

    def _checked(self) -> Checked:
        outcomes = {key: _outcome(reports) for key, reports in self._reports.items()}
        verdict = Word.FAILED if any(outcome.status == "failed" for outcome in outcomes.values()) else Word.PASSED
        machine = Machine.here()
        subjects = dict.fromkeys(read(Present(self._config), {key.partition("::")[0] for key in outcomes}), "")
        hardware = machine.cuda or machine.portable
        return Checked(
            verdict, outcomes=outcomes, total=len(outcomes), torch=interpreter.running().torch, hardware=hardware, subjects=subjects
        )


def read(present: Present, tests: Iterable[str]) -> set[str]:
    """What test files may read: the sources that they import, and what those do, whole packages; and all data in folders without a dot."""
    python = [path for path in present.files if path.endswith(".py")]
    reach = Reach({path: _tree(present.config.root / path) for path in python})
    sources = {path for test in tests for path in reach.of(test)}
    packages = tuple({f"{package}/" for path in sources if (package := _package(path, set(python)))})
    sources |= {path for path in python if path.startswith(packages)}  # a file may be run by a path that no syntax shows
    others = (PurePosixPath(path) for path in present.files if not path.endswith(".py"))
    return sources | {path.as_posix() for path in others if len(path.parts) > 1 and not any(part.startswith(".") for part in path.parts)}


def _package(path: str, files: set[str]) -> str | None:
    """The outermost package that a file lies in."""
    inside = [folder.as_posix() for folder in PurePosixPath(path).parents if (folder / "__init__.py").as_posix() in files]
    return inside[-1] if inside else None


def _tree(path: Path) -> ast.Module | None:
    try:
        return encoding.tree(path.read_bytes())
    except OSError:
        return None


def _part(config: Any, on_gpu: bool) -> str:
    """Why a session is not one of all tests, or of all that need the GPU where one is."""
    named = [option for option in _PARTS if getattr(config.option, option, None)]
    if named == ["markexpr"] and on_gpu and config.option.markexpr.strip() == "cuda":
        named = []
    if named:
        return f"--{named[0].replace('_', '-')} takes part of the tests"
    return "" if config.args_source is not type(config.args_source).ARGS else "tests were named"


def _outcome(reports: list[Any]) -> Outcome:
    return harvest.outcome([
        {
            "outcome": report.outcome, "when": report.when, "seconds": report.duration,
            "text": _why(report.longrepr)[:2000], "expected": getattr(report, "wasxfail", None),
        }
        for report in reports
    ])  # fmt: skip


def _why(told: Any) -> str:
    """Of (file, line, "Skipped: why") the last."""
    return str(told[2] if isinstance(told, tuple) and len(told) == 3 else told)
