"""Tests that are expected to fail are counted as pytest counts them: they are not among what passed, and show nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gate import config
from gate.check import junit, wording
from gate.check.judge import Asked
from gate.check.result import Checked, Word
from gate.evidence import commands
from gate.progress import Silent
from gate.verdict import Reason
from tests.gate.mutation.tiny import Tiny
from tests.gate.repositories import commit, init, write

LIBRARY = "def half(x):\n    return x / 2\n\n\ndef double(x):\n    return 2 * x\n"
PASSES = "import lib\n\n\ndef test_passes():\n    assert lib.half(4) == 2\n"
EXPECTED = '''
import unittest

import lib
import pytest


@pytest.mark.xfail(strict=True)
def test_strict():
    assert lib.double(2) == 0


@pytest.mark.parametrize("x", [1, pytest.param(2, marks=pytest.mark.xfail(reason="two"))])
def test_parameters(x):
    assert x == 1


@pytest.mark.xfail(run=False)
def test_not_run():
    raise SystemExit


def test_called():
    pytest.xfail("not yet")


@pytest.fixture
def wrong():
    raise ValueError


@pytest.mark.xfail
def test_set_up(wrong):
    pass


@pytest.mark.xfail(strict=False)
def test_surprise():
    assert lib.double(2) == 4


class TestOld(unittest.TestCase):
    @unittest.expectedFailure
    def test_old(self):
        assert lib.double(2) == 0


def test_skipped():
    pytest.skip("not here")
'''  # fmt: skip
ONLY = {"lib.py": LIBRARY, "pyproject.toml": "[tool.gate]\n", "test_expected.py": EXPECTED.replace("[1, ", "[")}


def project(folder: Path, files: dict[str, str]) -> Path:
    init(folder)
    commit(folder, {**files, ".gitignore": ".gate/\n"})
    return folder


def check(folder: Path, *, everything: bool = True) -> Checked:
    return commands.check(config.find(folder), Asked(everything=everything, since=None if everything else "HEAD", jobs=1), Silent())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project(tmp_path_factory.mktemp("expected") / "toy", {**ONLY, "test_expected.py": EXPECTED, "test_lib.py": PASSES})


def test_what_is_expected_to_fail_is_counted_as_pytest_counts_it(folder: Path) -> None:
    """By a mark, of one parameter, by a call, where it does not run at all, in a fixture and by unittest."""
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=folder, capture_output=True, text=True)
    told = {name: int(count) for count, name in re.findall(r"(\d+) (passed|failed|skipped|xfailed|xpassed)", done.stdout)}
    assert told == {"passed": 2, "skipped": 1, "xfailed": 6, "xpassed": 1}
    found = check(folder)
    assert (found.verdict, found.exit_code) == (Word.PASSED, 0)
    assert found.counts == {"failed": 0, **told}
    document = found.as_json()
    assert document["passed"] == ["test_expected.py::test_parameters[1]", "test_lib.py::test_passes"]
    assert document["xpassed"] == ["test_expected.py::test_surprise"]
    assert [len(document[name]) for name in ("xfailed", "skipped", "failed")] == [6, 1, 0]
    assert "passed: 2 tests passed, 1 skipped, 6 xfailed, 1 xpassed and shown nothing" in wording.text(found)
    assert re.search(r"passed +failed +skipped +xfailed +xpassed", wording.text(found))
    assert 'failures="0" errors="0" skipped="7"' in junit.text(found)


def test_its_record_has_it_neither_among_what_passed_nor_among_what_was_skipped(folder: Path) -> None:
    check(folder)
    (path,) = (folder / ".gate/evidence").glob("*tests*")
    predicate = json.loads(path.read_text())["predicate"]
    assert predicate["counts"] == {"passed": 2, "failed": 0, "skipped": 1, "xfailed": 6, "xpassed": 1}
    assert predicate["details"]["passed"] == {"test_expected.py": ["test_parameters[1]"], "test_lib.py": ["test_passes"]}
    assert list(predicate["details"]["skipped"]) == ["test_expected.py::test_skipped"]


def test_where_nothing_else_ran_nothing_was_checked(tmp_path: Path) -> None:
    """One that passes makes the difference."""
    folder = project(tmp_path / "toy", ONLY)
    found = check(folder)
    assert (found.verdict, found.reason, found.exit_code) == (Word.NOT_JUDGED, Reason.NOTHING_CHECKED, 3)
    assert "of 8 tests none passed, 1 skipped, 6 xfailed, 1 xpassed, which shows nothing" in found.message
    write(folder, {"test_lib.py": PASSES})
    assert check(folder).exit_code == 0


def test_a_change_that_they_alone_run_is_not_tested(folder: Path) -> None:
    """`half` has a test that passes, `double` none but those that are expected to fail."""
    check(folder)
    write(folder, {"lib.py": LIBRARY.replace("2 * x", "x * 2").replace("x / 2", "x * 0.5")})
    found = check(folder, everything=False)
    assert (found.verdict, found.untested) == (Word.PASSED, ("lib.py:6 (double)",))
    write(folder, {"lib.py": LIBRARY.replace("2 * x", "x * 2")})
    found = check(folder, everything=False)
    assert (found.verdict, found.reason) == (Word.NOT_JUDGED, Reason.NOTHING_CHECKED)
    write(folder, {"lib.py": LIBRARY})


def test_one_that_passes_against_its_strict_mark_fails(folder: Path, tmp_path: Path) -> None:
    found = check(project(tmp_path / "toy", {**ONLY, "lib.py": LIBRARY.replace("2 * x", "0")}))
    assert (found.verdict, found.having("failed")[0]) == (Word.FAILED, "test_expected.py::test_strict")


def test_mutants_are_not_shown_to_them(tmp_path: Path) -> None:
    """What passes kills the mutants of `half`; those of `double` survive, since nobody is asked who could notice them."""
    expected = EXPECTED.replace("import lib", "import shop as lib") + PASSES.replace("import lib", "import shop as lib")
    answer = Tiny.new(tmp_path / "tiny", LIBRARY, expected).mutate()
    assert answer.code == 1
    assert answer.document["witnesses"]["tests"] == {
        "asked": 2, "files": 1, "skipped": 1, "xfailed": 6, "xpassed": 1, "unstable": []
    }  # fmt: skip
    assert "tests asked: 2 of 1 files (1 skipped, 6 xfailed, 1 xpassed)" in answer.out
    assert set(answer.statuses(before="return x / 2")) == {"killed"}
    assert set(answer.statuses(before="return 2 * x")) == {"survived"}
