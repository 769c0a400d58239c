"""`gate mutate` from end to end, on a small project: verdicts, the unmutated tree first, what is kept, what is left behind."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gate.errors import UsageError
from gate.machine import Machine
from gate.mutation import pardons
from gate.mutation.mutant import Judgement, Mutant, Status
from tests.gate.mutation.tiny import SHOP, TESTS, Answer, Tiny


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    return Tiny.new(tmp_path_factory.mktemp("tiny") / "project")


@pytest.fixture(scope="module")
def answer(tiny: Tiny) -> Answer:
    return tiny.mutate("--jobs", "1")


def test_what_tests_notice_is_killed_and_what_they_do_not_survives(answer: Answer) -> None:
    assert answer.statuses(after="return sum(self.prices) / RATE") == ["killed"]
    assert answer.statuses(operator="comparison-edge", after="return len(self.prices) > self.limit") == ["killed"]
    assert answer.statuses(after="return a - 1") == ["survived"]
    assert answer.code == 1
    assert answer.document["verdict"] == "survived"
    assert "survived" in answer.out.splitlines()[-1]


def test_the_report_says_that_tests_are_the_only_witness(answer: Answer) -> None:
    assert "the tests are the only witness" in answer.out
    assert answer.document["witnesses"]["goldens"]["scenarios"] == []


def test_a_second_run_gives_the_same_and_asks_nobody(tiny: Tiny, answer: Answer) -> None:
    begun = time.monotonic()
    again = tiny.mutate("--jobs", "1")
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


def test_only_changed_lines_are_mutated_since_a_revision(tmp_path: Path) -> None:
    tiny = Tiny.new(tmp_path / "project")
    assert tiny.mutate("--since", "HEAD").document["reason"] == "nothing-checked"
    (tiny.folder / "src/shop.py").write_text(SHOP.replace("len(self.prices) >= self.limit", "not len(self.prices) < self.limit"))
    found = tiny.mutate("--since", "HEAD", "--jobs", "1")
    assert {m["line"] for m in found.document["mutants"]} == {SHOP[: SHOP.index("len(self.prices) >=")].count("\n") + 1}
    lost = tiny.mutate("--since", "no-such-revision")
    assert (lost.code, lost.document["reason"]) == (3, "baseline-failed")


def test_a_sample_is_said_to_be_one(tiny: Tiny, answer: Answer) -> None:
    found = tiny.mutate("--jobs", "1", "--limit", "4", "--seed", "7")
    assert found.document["sample"] == {"of": answer.document["counts"]["total"], "seed": 7}
    assert "A SAMPLE of 4" in found.out


def test_pardons_need_a_reason_and_a_use(tmp_path: Path) -> None:
    line = "    return a + 1"
    pardoned = Tiny.new(tmp_path / "good", SHOP.replace(line, f"    # gate: equivalent nobody calls it\n{line}"))
    found = pardoned.mutate("--jobs", "1")
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
    noticed = Tiny.new(tmp_path / "project", shop).mutate("--jobs", "1")
    assert noticed.code == 2
    assert "every mutant of line" in noticed.document["error"]


@pytest.mark.parametrize(
    ("statuses", "useless"),
    [("killed killed", 2), ("crashed killed", 1), ("timeout pardoned", 0)],
)
def test_every_useless_pardon_is_told_and_what_crashed_needs_its_own(statuses: str, useless: int) -> None:
    """What reads where no memory is of its own may survive on another day."""
    source = "a = 1  # gate: equivalent one\nb = 2  # gate: equivalent two\n"
    mutants = [Mutant("a.py", line, line, "number", "", "", (line, line)) for line in (1, 2)]
    judged = [Judgement(mutant, Status(word)) for mutant, word in zip(mutants, statuses.split(), strict=True)]
    told = ""
    try:
        pardons.check_needed(judged, pardons.read("a.py", source))
    except UsageError as error:
        told = str(error)
    assert told.count("of no use") == useless


def test_what_cannot_be_mutated_here_is_told_before_anything_runs(tiny: Tiny) -> None:
    for arguments, told in (
        (("/etc/hostname",), "outside"),
        (("tests/nothing.py",), "no Python file"),
        (("--operator", "arithmetics"), "arithmetic"),
    ):
        wrong = tiny.mutate(*arguments)
        assert wrong.code == 2
        assert told in wrong.document["error"]


def test_a_device_that_is_not_here_is_no_success(tiny: Tiny) -> None:
    if Machine.here().cuda is not None:
        pytest.skip("a CUDA device is here")
    found = tiny.mutate("--device", "cuda")
    assert (found.code, found.document["reason"]) == (3, "no-accelerator")


def test_a_folder_without_a_project_is_told_to_be_none(tmp_path: Path) -> None:
    place = tmp_path / "empty"
    place.mkdir()
    found = Tiny(place).mutate()
    assert found.code == 2
    assert f"no project in {place}" in found.err
    (place / "shop.py").write_text("RATE = 1 + 1\n")
    assert Tiny(place).mutate().document["reason"] == "nothing-checked"


def test_a_child_process_that_keeps_bytecode_never_runs_the_unmutated_lines(tmp_path: Path) -> None:
    """Python takes a file of the same length, written in the same second, for the one that it has compiled."""
    tests = """
import os
import pathlib
import subprocess
import sys


def test_total():
    lines = "from shop import one; assert one(3) == 4"
    known = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")}
    path = str(pathlib.Path(__file__).parents[1] / "src")
    subprocess.run([sys.executable, "-c", lines], check=True, env={**known, "PYTHONPATH": path})
"""
    tiny = Tiny.new(tmp_path / "p", shop="def one(a):\n    return a + 1\n", tests=f"def _named():\n    import shop\n{tests}")
    done = tiny.mutate("src", "--jobs", "1")
    assert done.code == 0, done.out
    assert done.document["counts"]["killed"] == done.document["counts"]["total"] >= 2
