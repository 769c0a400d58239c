"""The cases can fail: with a comparison that sees nothing, nearly all of them do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cases.conftest import BLIND

HERE = Path(__file__).parent
CASES = [f"G{number}" for number in range(1, 30)]
OTHERS = [f"C{number}" for number in range(1, 21)]  # of checks, mutants and evidence, which have failures of their own to show
THEIRS = ("test_bench.py", "test_check.py", "test_evidence.py", "test_mutation.py")
SIGHTLESS = {"G15", "G16", "G22"}  # of the environment alone: no two recordings are compared
LEAST = 20


def collected(*arguments: str, **variables: str) -> tuple[str, str]:
    """What pytest says and complains of over the cases, in a process of its own."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", str(HERE), "-m", "case", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=HERE.parent.parent, env={**inherited, **variables}, capture_output=True, text=True)
    return done.stdout, done.stderr


def ids(lines: list[str]) -> set[str]:
    """The cases that lines of test ids name."""
    return {found[1] for line in lines if (found := re.search(r"\[([GC]\d+)(?:-|\])", line))}


def outcomes(report: Path) -> dict[str, set[str]]:
    """By case how its tests came out: "passed", "failure", "error", "skipped"."""
    found: dict[str, set[str]] = {}
    for test in ElementTree.parse(report).iter("testcase"):
        (case,) = ids([test.attrib["name"]])
        found.setdefault(case, set()).add(next((child.tag for child in test if child.tag not in ("properties", "system-out")), "passed"))
    return found


def test_every_case_is_collected_by_its_id() -> None:
    """And by its mark alone: a test without one is none of them."""
    listed, errors = collected("--collect-only")
    lines = [line for line in listed.splitlines() if "::" in line]
    assert ids(lines) == {*CASES, *OTHERS}, errors
    assert [line for line in lines if not ids([line])] == []
    assert not any("test_sabotage" in line for line in lines)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_cases_fail_once_the_comparison_sees_nothing(tmp_path: Path) -> None:
    """At least twenty by id, here every one that compares two recordings; what breaks the set-up of a test does not count."""
    report = tmp_path / "report.xml"
    others = [f"--ignore={HERE / name}" for name in THEIRS]
    told, errors = collected(f"--junitxml={report}", "--tb=no", *others, **{BLIND: "1"})
    found = outcomes(report)
    failed = {case for case, tests in found.items() if "failure" in tests}
    assert found.keys() == set(CASES), errors
    assert len(failed) >= LEAST, told
    assert set(CASES) - failed <= SIGHTLESS | {case for case, tests in found.items() if tests == {"skipped"}}, told
    assert "error" not in set().union(*found.values()), told
