"""Faults planted in copies, and what comes of them: C1 to C6."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.gate.mutation.tiny import TESTS, Answer, Tiny, left

STATUSES = ("killed", "survived", "timeout", "crashed", "pardoned")
LOOP = """
def count(n):
    done = 0
    while done < n:
        done += 1
    return done
"""
COUNTED = """
from shop import count


def test_count():
    assert count(3) == 3
"""
SLEEPER = """
import subprocess, sys


def test_leaves_a_grandchild_behind():
    sleep = "[sys.executable, '-c', 'import time; time.sleep(600)', sys.argv[1]]"
    code = "import subprocess, sys; subprocess.Popen(" + sleep + ", start_new_session=True)"
    subprocess.run([sys.executable, "-c", code, {marker!r}], check=True)
"""


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    return Tiny.new(tmp_path_factory.mktemp("mutation") / "project").mutate("--jobs", "1")


@pytest.mark.case("C1")
def test_decorated_functions_and_import_time_code_get_their_mutants(answer: Answer) -> None:
    """A decorated method, a class body, a default and a module's constant."""
    for after in ("return None", "limit = 4", "def __init__(self, prices=(2, 2)):", "RATE = 3"):
        assert "killed" in answer.statuses(after=after), after


@pytest.mark.case("C3")
def test_a_loop_without_end_is_a_time_out_and_the_counts_add_up(answer: Answer, tmp_path: Path) -> None:
    looping = Tiny.new(tmp_path / "project", LOOP, COUNTED).mutate("--jobs", "1", "--timeout", "1", "--operator", "augmented")
    assert looping.statuses(after="done -= 1") == ["timeout"]
    assert (looping.code, looping.document["verdict"]) == (3, "not-judged"), "a time-out alone is no success"
    for document in (answer.document, looping.document):
        counts = document["counts"]
        assert Counter(m["status"] for m in document["mutants"]) == {s: counts[s] for s in STATUSES if counts[s]}
        assert sum(counts[status] for status in STATUSES) == counts["total"] == len(document["mutants"])
        assert all((m["status"] == "killed") == bool(m["killed_by"]) for m in document["mutants"])


@pytest.mark.case("C3")
def test_an_import_that_raises_is_a_crash(tmp_path: Path) -> None:
    shop = "TABLE = {1: 2}\nFIRST = TABLE[1]\n\n\ndef first():\n    return FIRST\n"
    tests = "def test_first():\n    import shop\n    assert shop.first() == 2\n"
    found = Tiny.new(tmp_path / "project", shop, tests).mutate("--jobs", "1")
    assert found.statuses(after="FIRST = TABLE[2]") == ["crashed"]
    assert found.statuses(after="TABLE = {1: 3}") == ["killed"]


@pytest.mark.case("C2")
@pytest.mark.parametrize(
    ("tests", "reason"),
    [
        (TESTS + "\n\ndef test_red():\n    assert Basket((1,)).total() == 3\n", "baseline-failed"),
        ("import shop\n\n\ndef test_all():\n    try:\n        shop.forgotten(2)\n    except Exception:\n        pass\n", "baseline-failed"),
        ("def test_nothing():\n    pass\n", "nothing-checked"),
        ("import shop\nimport missing_module\n", "baseline-failed"),
    ],
    ids=["red", "blind", "unrelated", "not collected"],
)
def test_a_baseline_that_is_red_blind_or_idle_is_no_success(tmp_path: Path, tests: str, reason: str) -> None:
    found = Tiny.new(tmp_path / "project", tests=tests).mutate("--jobs", "1")
    assert (found.code, found.document["reason"]) == (3, reason)
    assert reason in found.err


@pytest.mark.case("C6")
def test_stale_bytecode_does_not_hide_a_mutant(tmp_path: Path) -> None:
    """A cache of the unmutated code with the mutant's size and time, where every import would take it."""
    tiny = Tiny.new(tmp_path / "project")
    compiling = ["python3", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "src", "tests"]
    beside = {key: value for key, value in os.environ.items() if key not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")}
    subprocess.run(compiling, cwd=tiny.folder, check=True, env=beside)
    assert list(tiny.folder.glob("src/__pycache__/*.pyc"))
    found = tiny.mutate("--jobs", "1", "--operator", "comparison-edge")
    assert found.statuses(operator="comparison-edge", after="return len(self.prices) > self.limit") == ["killed"]


@pytest.mark.case("C5")
def test_grandchildren_are_ended_with_each_run(tmp_path: Path) -> None:
    marker = f"left-{os.getpid()}-{random.random()}"
    tests = TESTS + SLEEPER.format(marker=marker)
    found = Tiny.new(tmp_path / "project", tests=tests).mutate("--jobs", "1", "--operator", "comparison-edge")
    assert found.document["counts"]["killed"] >= 1
    assert left(marker) == []


@pytest.mark.case("C4")
@pytest.mark.case("C5")
@pytest.mark.slow
def test_ended_at_any_moment_it_leaves_the_tree_and_no_process(tmp_path: Path) -> None:
    """Killed and interrupted at 20 moments, with a grandchild that sleeps; the next run is right."""
    marker = f"left-{os.getpid()}-{random.random()}"
    tiny = Tiny.new(tmp_path / "project", tests=TESTS + SLEEPER.format(marker=marker))
    before = tiny.digest()
    whole = tiny.mutate("--jobs", "2", "--operator", "arithmetic")
    begun = time.monotonic()
    assert tiny.mutate("--jobs", "2", "--operator", "arithmetic", "--fresh").document == whole.document
    length = time.monotonic() - begun
    environment = {**os.environ, "TMPDIR": str(tiny.scratch())}
    for number in range(20):
        process = subprocess.Popen(
            tiny.command("--jobs", "2", "--operator", "arithmetic", "--fresh"),
            cwd=tiny.folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        time.sleep(length * (number + 0.5) / 20)
        process.send_signal((signal.SIGKILL, signal.SIGINT)[number % 2])
        process.wait()
        deadline = time.monotonic() + 15
        while (left(marker) or left(str(tiny.scratch()))) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert left(marker) == left(str(tiny.scratch())) == [], number
        assert tiny.digest() == before, number
    assert tiny.mutate("--jobs", "2", "--operator", "arithmetic").document == whole.document
    assert list(tiny.scratch().glob("gate-mutate-*")) == []
