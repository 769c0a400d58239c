"""Focused checks where others went wrong: C2, C5 to C11."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gate.check.named import UnknownTest
from gate.check.result import Word
from gate.errors import BaselineFailed
from gate.verdict import Reason
from tests.gate.check.test_interrupts import TOKEN, digest, left
from tests.gate.check.toys import Toy
from tests.gate.repositories import commit, git

LIBRARY = """
LIMIT = 3


class Model:
    size = 4


def used(x):
    return helper(x)


def helper(x):
    return x


def attach(tensor):
    tensor.register_hook(hook)


def hook(gradient):
    return gradient
"""
ONE = "import lib\n\n\ndef test_one():\n    assert lib.used(1) == 1\n"
TWO = "import lib\n\n\ndef test_two():\n    assert lib.helper(2) == 2\n"
ALONE = 'import pytest\n\n\n@pytest.mark.parametrize("x", ["a [b], c", "ü"])\ndef test_alone(x):\n    assert x\n'
FILES = {"pyproject.toml": "[tool.gate]\n", "lib.py": LIBRARY, "test_one.py": ONE, "test_two.py": TWO, "test_alone.py": ALONE}
SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(299)"]
ALL = ["test_alone.py::test_alone[a [b], c]", "test_alone.py::test_alone[\\xfc]", "test_one.py::test_one", "test_two.py::test_two"]


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A project of whose tests everything is known."""
    toy = Toy.new(tmp_path_factory.mktemp("learnt") / "toy", FILES)
    assert list(toy.check(everything=True).reasons) == ALL
    return toy


@pytest.fixture
def toy(learnt: Toy, tmp_path: Path) -> Toy:
    return learnt.copy(tmp_path / "toy")


@pytest.mark.case("C2")
@pytest.mark.parametrize("change", ["new function", "new file", "all skipped"])
def test_nothing_that_ran_is_no_success(toy: Toy, change: str) -> None:
    """A function that no test runs, a file that none imports, tests that were skipped; exit 3 and the reason."""
    if change == "new function":
        toy.write({"lib.py": LIBRARY + "\n\ndef more(x):\n    return x + 1\n"})
    elif change == "new file":
        toy.write({"lonely.py": "def more(x):\n    return x + 1\n"})
    else:
        toy.write({"test_alone.py": "import pytest\n\n\ndef test_alone():\n    pytest.skip('not here')\n"})
    found = toy.check()
    assert (found.verdict, found.reason, found.exit_code) == (Word.NOT_JUDGED, Reason.NOTHING_CHECKED, 3)
    assert {"new function": "lib.py:26", "new file": "lonely.py", "all skipped": "skipped"}[change] in found.message


@pytest.mark.case("C2")
def test_a_red_test_is_never_green(toy: Toy) -> None:
    """Not by a change beside it either, as long as it is red."""
    assert toy.replace("lib.py", "    return x\n", "    return 0\n").check().having("failed") == ALL[2:]
    toy.replace("test_alone.py", "assert x", "assert str(x)")
    assert toy.check().exit_code == 1


@pytest.mark.case("C5")
def test_orphaned_grandchildren_are_ended(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    """One in a session of its own, whose parent is gone, once the tests are over."""
    token = f"c5-{toy.folder.parent.name}"
    monkeypatch.setenv(TOKEN, token)
    begin = f"import subprocess; subprocess.Popen({SLEEP!r}, start_new_session=True)"
    begins = f"import subprocess, sys\n\n\ndef test_new():\n    subprocess.run([sys.executable, '-S', '-c', {begin!r}], check=True)\n"
    subprocess.run([sys.executable, "-S", "-c", begin], check=True)
    (ours,) = [int(line.split()[0]) for line in left(token) if "sleep(299)" in line]  # the negative control: such a one lives on
    os.kill(ours, signal.SIGKILL)
    assert toy.write({"test_new.py": begins}).check().verdict is Word.PASSED
    assert not [line for line in left(token) if "sleep(299)" in line]


@pytest.mark.case("C6")
def test_stale_bytecode_is_not_run(toy: Toy) -> None:
    """An edit of equal length in the same second; nothing is written into the work tree either."""
    variables = {key: value for key, value in os.environ.items() if key not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")}
    run = [sys.executable, "-c", "import lib; print(lib.helper(5))"]
    subprocess.run(run, cwd=toy.folder, check=True, env=variables, capture_output=True)
    stamp = (toy.folder / "lib.py").stat()
    toy.replace("lib.py", "    return x\n", "    return 0\n")
    os.utime(toy.folder / "lib.py", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    stale = subprocess.run(run, cwd=toy.folder, check=True, env=variables, capture_output=True, text=True)
    assert stale.stdout == "5\n"  # the negative control
    before = digest(toy.folder)
    assert toy.check().having("failed") == ALL[2:]
    assert digest(toy.folder) == before


@pytest.mark.case("C7")
def test_a_helper_is_credited_to_both_tests(toy: Toy) -> None:
    """To the one that calls it and to the one that calls what calls it; the caller to one of them."""
    assert list(toy.replace("lib.py", "    return x\n", "    return +x\n").check().reasons) == ALL[2:]
    commit(toy.folder, {})
    assert list(toy.replace("lib.py", "return helper(x)", "return +helper(x)").check().reasons) == ALL[2:3]


@pytest.mark.case("C7")
def test_contexts_are_measured_by_the_core_that_has_them(toy: Toy) -> None:
    """Told by coverage itself, in the process of the test."""
    core = "import coverage\n\n\ndef test_core():\n    assert 'CTracer' in str(dict(coverage.Coverage.current().sys_info())['core'])\n"
    assert toy.write({"test_core.py": core}).check().verdict is Word.PASSED


@pytest.mark.case("C8")
def test_a_backward_hook_takes_more_tests_and_says_why(toy: Toy) -> None:
    """All that import its file, though none is seen to run it."""
    found = toy.replace("lib.py", "    return gradient\n", "    return 2 * gradient\n").check()
    assert list(found.reasons) == ALL[2:]
    assert "(hook) is a hook, which autograd may call from threads" in found.fallback[0]


@pytest.mark.case("C9")
def test_a_changed_constant_and_a_class_default_select_the_importing_tests(toy: Toy) -> None:
    """The tests of a file that does not import it are left out."""
    assert list(toy.replace("lib.py", "LIMIT = 3", "LIMIT = 4").check().reasons) == ALL[2:]
    commit(toy.folder, {})
    assert list(toy.replace("lib.py", "size = 4", "size = 5").check().reasons) == ALL[2:]


@pytest.mark.case("C10")
@pytest.mark.parametrize("since", ["HEAD~1", None])
def test_a_shallow_clone_does_not_say_that_nothing_changed(toy: Toy, tmp_path: Path, since: str | None) -> None:
    """Neither for a named base that it lacks nor without a name; a whole clone says it (the negative control)."""
    commit(toy.folder, {"lib.py": LIBRARY.replace("3", "4")})
    git(tmp_path, "clone", "-q", "--depth", "1", toy.folder.as_uri(), "shallow")
    with pytest.raises(BaselineFailed, match="shallow"):
        Toy(tmp_path / "shallow").check(since)
    git(tmp_path, "clone", "-q", toy.folder.as_uri(), "whole")
    assert Toy(tmp_path / "whole").check("HEAD").verdict is Word.NOTHING


@pytest.mark.case("C11")
def test_a_trailer_that_names_a_deleted_test_is_an_error_that_names_it(toy: Toy) -> None:
    commit(toy.folder, {}, "change\n\nGate: test_one.py::test_deleted")
    with pytest.raises(UnknownTest, match=r"test_one\.py::test_deleted") as caught:
        toy.check("HEAD~1")
    assert git(toy.folder, "rev-parse", "--short", "HEAD") in str(caught.value)


@pytest.mark.case("C11")
def test_ids_with_spaces_brackets_and_letters_are_passed_as_they_are(toy: Toy) -> None:
    commit(toy.folder, {}, "change\n\nGate: test_alone.py::test_alone[a [b], c]")
    found = toy.check("HEAD~1")
    assert found.having("passed") == ALL[:1]
    commit(toy.folder, {}, "change\n\nGate: test_alone.py::test_alone[ü], test_two.py")
    assert toy.check("HEAD~1").having("passed") == [ALL[1], ALL[3]]
