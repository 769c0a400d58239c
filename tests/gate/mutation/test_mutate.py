"""`gate mutate` from end to end, on a small project: verdicts, the unmutated tree first, what is kept, what is left behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.gate.mutation.tiny import SHOP, TESTS, Answer, Tiny, left

STATUSES = ("killed", "survived", "timeout", "crashed", "pardoned")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    return Tiny.new(tmp_path_factory.mktemp("tiny") / "project")


@pytest.fixture(scope="module")
def answer(tiny: Tiny) -> Answer:
    return tiny.mutate("--jobs", "1", "--timeout", "3")


def test_what_tests_notice_is_killed_and_what_they_do_not_survives(answer: Answer) -> None:
    assert answer.statuses(after="return sum(self.prices) / RATE") == ["killed"]
    assert answer.statuses(operator="comparison-edge", after="return len(self.prices) > self.limit") == ["killed"]
    assert answer.statuses(after="return a - 1") == ["survived"]
    assert answer.code == 1
    assert answer.document["verdict"] == "survived"
    assert "survived" in answer.out.splitlines()[-1]


@pytest.mark.case("C1")
def test_decorated_functions_and_import_time_code_get_their_mutants(answer: Answer) -> None:
    """A decorated method, a class body, a default and a module's constant."""
    for after in ("return None", "limit = 4", "def __init__(self, prices=(2, 2)):", "RATE = 3"):
        assert "killed" in answer.statuses(after=after), after


@pytest.mark.case("C3")
def test_four_counts_add_up_to_the_total(answer: Answer) -> None:
    """A loop without end is a time-out, and no kill."""
    counts = answer.document["counts"]
    assert Counter(m["status"] for m in answer.document["mutants"]) == {s: counts[s] for s in STATUSES if counts[s]}
    assert sum(counts[status] for status in STATUSES) == counts["total"] == len(answer.document["mutants"])
    assert answer.statuses(after="done -= 1") == ["timeout"]
    assert all((m["status"] == "killed") == bool(m["killed_by"]) for m in answer.document["mutants"])


@pytest.mark.case("C3")
def test_an_import_that_raises_is_a_crash(tmp_path: Path) -> None:
    shop = "TABLE = {1: 2}\nFIRST = TABLE[1]\n\n\ndef first():\n    return FIRST\n"
    tests = "def test_first():\n    import shop\n    assert shop.first() == 2\n"
    found = Tiny.new(tmp_path / "project", shop, tests).mutate("--jobs", "1")
    assert found.statuses(after="FIRST = TABLE[2]") == ["crashed"]
    assert found.statuses(after="TABLE = {1: 3}") == ["killed"]


def test_the_report_says_that_tests_are_the_only_witness(answer: Answer) -> None:
    assert "the tests are the only witness" in answer.out
    assert answer.document["witnesses"]["goldens"]["scenarios"] == []


def test_a_second_run_gives_the_same_and_asks_nobody(tiny: Tiny, answer: Answer) -> None:
    begun = time.monotonic()
    again = tiny.mutate("--jobs", "1", "--timeout", "3")
    assert again.document == answer.document
    assert "new" not in again.out.splitlines()[-1]
    assert time.monotonic() - begun < 60


def test_a_changed_test_is_asked_again(tiny: Tiny, answer: Answer, tmp_path: Path) -> None:
    """What no test ran is judged anew once one does; verdicts of an unchanged test that killed stand."""
    copy = Tiny.new(tmp_path / "project", tests=TESTS)
    before = copy.mutate("--jobs", "1", "--operator", "arithmetic")
    (copy.folder / "tests/test_more.py").write_text("from shop import forgotten\n\n\ndef test_it():\n    assert forgotten(1) == 2\n")
    after = copy.mutate("--jobs", "1", "--operator", "arithmetic")
    assert before.statuses(after="return a - 1") == ["survived"]
    assert after.statuses(after="return a - 1") == ["killed"]
    assert "(1 new" in after.out.splitlines()[-1]


@pytest.mark.case("C2")
@pytest.mark.parametrize(
    ("tests", "reason"),
    [
        (TESTS + "\n\ndef test_red():\n    assert count(1) == 2\n", "baseline-failed"),
        ("import shop\n\n\ndef test_all():\n    try:\n        shop.count(2)\n    except Exception:\n        pass\n", "baseline-failed"),
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
    subprocess.run(
        ["python3", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "src", "tests"], cwd=tiny.folder, check=True
    )
    assert list(tiny.folder.glob("src/__pycache__/*.pyc"))
    found = tiny.mutate("--jobs", "1", "--operator", "comparison-edge", "--operator", "truth", "--operator", "augmented")
    assert found.statuses(operator="comparison-edge", after="return len(self.prices) > self.limit") == ["killed"]


def test_only_changed_lines_are_mutated_since_a_revision(tmp_path: Path) -> None:
    tiny = Tiny.new(tmp_path / "project")
    assert tiny.mutate("--since", "HEAD").document["reason"] == "nothing-checked"
    (tiny.folder / "src/shop.py").write_text(SHOP.replace("len(self.prices) >= self.limit", "not len(self.prices) < self.limit"))
    found = tiny.mutate("--since", "HEAD", "--jobs", "1")
    assert {m["line"] for m in found.document["mutants"]} == {SHOP[: SHOP.index("len(self.prices) >=")].count("\n") + 1}
    lost = tiny.mutate("--since", "no-such-revision")
    assert (lost.code, lost.document["reason"]) == (3, "baseline-failed")


def test_a_sample_is_said_to_be_one(tiny: Tiny, answer: Answer) -> None:
    found = tiny.mutate("--jobs", "1", "--timeout", "3", "--limit", "4", "--seed", "7")
    assert found.document["sample"] == {"of": answer.document["counts"]["total"], "seed": 7}
    assert "A SAMPLE of 4" in found.out


def test_pardons_need_a_reason_and_a_use(tmp_path: Path) -> None:
    line = "    return a + 1"
    pardoned = Tiny.new(tmp_path / "good", SHOP.replace(line, f"    # gate: equivalent nobody calls it\n{line}"))
    found = pardoned.mutate("--jobs", "1", "--timeout", "3")
    mine = [m for m in found.document["mutants"] if m["before"] == line]
    assert {(m["status"], m["reason"]) for m in mine} == {("pardoned", "nobody calls it")}
    useless = f"{line}\n\n\n# gate: equivalent nothing is here\n"
    for text, told in ((f"{line}  # gate: equivalent", "needs its reason"), (useless, "no mutant is on line")):
        wrong = Tiny.new(tmp_path / told.replace(" ", "-"), SHOP.replace(line, text)).mutate()
        assert wrong.code == 2
        assert told in wrong.document["error"]


def test_a_pardon_of_what_is_noticed_is_an_error(tmp_path: Path) -> None:
    """It would hide the day on which a test is lost."""
    line = "        return len(self.prices) >= self.limit"
    shop = SHOP.replace(line, f"{line}  # gate: equivalent nobody looks")
    noticed = Tiny.new(tmp_path / "project", shop).mutate("--jobs", "1", "--timeout", "3")
    assert noticed.code == 2
    assert "every mutant of line" in noticed.document["error"]


SLEEPER = """
import subprocess, sys


def test_leaves_a_grandchild_behind():
    sleep = "[sys.executable, '-c', 'import time; time.sleep(600)', sys.argv[1]]"
    code = "import subprocess, sys; subprocess.Popen(" + sleep + ", start_new_session=True)"
    subprocess.run([sys.executable, "-c", code, {marker!r}], check=True)
"""


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
