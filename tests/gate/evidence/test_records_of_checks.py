"""What each check found becomes a record that says as much as was checked, and no more."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gate.benchmark.judgement import Speed
from gate.benchmark.proof import Read
from gate.benchmark.result import Result as Benchmark
from gate.check.harvest import Outcome
from gate.check.result import Checked, Word
from gate.check.since import Since
from gate.evidence import Snapshot, benched, checked, mutated
from gate.mutation.mutant import Judgement, Mutant, Status
from gate.mutation.result import Result as Mutation
from gate.mutation.result import Witnesses
from gate.verdict import Reason
from tests.gate.evidence.records import CONFIG, TORCH, Toy
from tests.gate.repositories import write

CUDA = """
import pytest

pytestmark = [pytest.mark.slow]


@pytest.mark.cuda
def test_a():
    pass


@pytest.mark.cuda
class TestB:
    def test_c(self):
        pass


class TestD:
    @pytest.mark.cuda
    @pytest.mark.parametrize("n", [1])
    def test_e(self, n):
        pass

    def test_f(self):
        pass


def test_g():
    pass
"""


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return Toy.new(tmp_path / "toy")


def records(toy: Toy) -> list[dict[str, Any]]:
    folder = toy.folder / ".gate/evidence"
    return [json.loads(path.read_text()) for path in sorted(folder.iterdir())] if folder.is_dir() else []


def only(toy: Toy) -> dict[str, Any]:
    (found,) = records(toy)
    predicate: dict[str, Any] = found["predicate"]
    return predicate


def test_tests_that_need_the_gpu_are_told_by_their_marker() -> None:
    """Of a function, a class, or the whole file; a file that does not parse has none."""
    assert list(checked.marked(CUDA)) == ["test_a", "TestB::test_c", "TestD::test_e"]
    assert next(iter(checked.marked(CUDA.replace("mark.slow", "mark.cuda")))) == "*"
    assert list(checked.marked("def (:")) == []


CHECKED = Checked(
    Word.PASSED, outcomes={"tests/test_replay.py::test_it": Outcome("passed")}, total=1, torch=TORCH, hardware="cpu",
    subjects={"src/replay.py": "", "tests/test_replay.py": "", "pyproject.toml": ""},
)  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "since"),
    [({}, False), ({"total": 2}, True), ({"total": None, "outcomes": {}, "verdict": Word.NOTHING}, True)],
    ids=["all of them", "one of two", "nothing to check"],
)
def test_tests_of_a_change_are_of_that_change_alone(toy: Toy, facts: dict[str, Any], since: bool) -> None:
    """Unless all of them ran in the end."""
    head = toy.git("rev-parse", "HEAD")
    found = replace(CHECKED, base=Since(head, "x"), **facts)
    assert checked.put_on_record(toy.config, Snapshot.take(toy.config), found) is found
    assert only(toy)["since"] == (head if since else None)


def test_tests_that_were_not_judged_leave_nothing(toy: Toy) -> None:
    checked.put_on_record(toy.config, Snapshot.take(toy.config), replace(CHECKED, verdict=Word.NOT_JUDGED))
    assert records(toy) == []


@pytest.mark.parametrize(("verdict", "becomes"), [(Word.PASSED, Word.NOT_JUDGED), (Word.FAILED, Word.FAILED)])
def test_tests_of_sources_that_moved_are_not_judged_unless_one_failed(toy: Toy, verdict: Word, becomes: Word) -> None:
    before = Snapshot.take(toy.config)
    write(toy.folder, {"src/replay.py": "x = 1\n"})
    found = checked.put_on_record(toy.config, before, replace(CHECKED, verdict=verdict))
    assert (found.verdict, found.reason) == (becomes, Reason.STALE_EVIDENCE if becomes is Word.NOT_JUDGED else None)
    assert records(toy) == []


def mutants(*statuses: Status, **facts: Any) -> Mutation:
    mutant = Mutant("src/update.py", 2, 2, "sign", "    return w - 1", "    return w + 1", (2, 2), "update")
    killed = {"killed_by": ("tests", "goldens"), "reason": "AssertionError: x: y", "tests": ("tests/test_replay.py::test_it[a]",)}
    judged = tuple(Judgement(mutant, status, **(killed if status is Status.KILLED else {})) for status in statuses)  # type: ignore[arg-type]
    files = {"src/update.py": "", "tests/test_replay.py": "", "pyproject.toml": ""}
    return Mutation(
        judged, Witnesses(1, 1, scenarios=("digits",), named=("tests/test_replay.py::test_it[b]",)), files, TORCH, "3.11", "cpu", **facts
    )


@pytest.mark.parametrize(
    ("found", "whole", "tests", "result"),
    [
        (mutants(Status.KILLED, Status.KILLED), True, (), "passed"),
        (mutants(Status.KILLED, Status.SURVIVED), True, (), "failed"),
        (mutants(Status.KILLED, sampled=9), True, (), "inconclusive"),
        (mutants(Status.KILLED), False, (), "inconclusive"),
        (mutants(Status.KILLED), True, ("tests/test_replay.py",), "passed"),
        (mutants(Status.KILLED, Status.SURVIVED), True, ("tests/test_replay.py",), "inconclusive"),
    ],
    ids=["killed", "survived", "a sample", "some operators", "killed by some tests", "survived some tests"],
)
def test_a_record_of_mutants_says_what_was_planted(toy: Toy, found: Mutation, whole: bool, tests: tuple[str, ...], result: str) -> None:
    """And who noticed which function's; a sample leaves the rest unknown, and what some tests have not noticed others may."""
    mutated.put_on_record(toy.config, Snapshot.take(toy.config), found, ("src/",), None, whole=whole, tests=tests)
    predicate = only(toy)
    assert (predicate["result"], predicate["counts"]) == (result, found.counts)
    killed, asked = {"src/update.py::update": ["tests/test_replay.py::test_it[a]"]}, ["tests/test_replay.py::test_it[b]"]
    assert predicate["details"] == {"killed": killed, "paths": ["src"], "asked": asked, "tests": list(tests)}


def test_no_mutant_that_was_judged_is_no_record(toy: Toy) -> None:
    mutated.put_on_record(toy.config, Snapshot.take(toy.config), mutants(Status.CRASHED), (), None, whole=True)
    assert records(toy) == []


@pytest.mark.parametrize(
    ("recorded", "wanted", "state"),
    [((), "", "fresh"), ((), 'paths = ["src"]', "fresh"), (("src",), 'paths = ["src/update.py"]', "fresh"), (("src",), "", "missing"),
     (("src/update.py",), 'paths = ["src"]', "missing"), (("src",), 'paths = ["src", "lib"]', "missing"),
     (("src",), 'paths = ["./src"]', "fresh"), (("src",), 'paths = ["src/./update.py"]', "fresh"),
     (("src",), 'paths = ["src/", "lib/.."]', "missing"),
     (("src",), 'paths = ["lib/../src/"]', "fresh"), (("src",), 'paths = ["linked"]', "fresh"), (("src",), 'paths = ["."]', "missing"),
     ((".",), 'paths = ["."]', "fresh"), ((".",), 'paths = ["./lib"]', "fresh"), ((), 'paths = ["."]', "fresh")],
)  # fmt: skip
def test_mutants_of_some_paths_are_evidence_of_those_alone(toy: Toy, recorded: tuple[str, ...], wanted: str, state: str) -> None:
    write(toy.folder, {"pyproject.toml": CONFIG.replace('mutation = ["cpu"]', f'mutation = ["cpu"]\n{wanted}'), "lib/more.py": ""})
    (toy.folder / "linked").symlink_to("src")
    mutated.put_on_record(toy.config, Snapshot.take(toy.config), mutants(Status.KILLED), recorded, None, whole=True)
    assert toy.line("cpu/mutation").state.value == state


def test_each_hardware_may_have_paths_of_its_own(toy: Toy) -> None:
    """What runs on a GPU alone is mutated there, and the rest where it is cheap; neither stands for the other."""
    config = CONFIG.replace('mutation = ["cpu"]', 'mutation = ["cpu", "h200"]\npaths = { cpu = ["src"], h200 = ["src/update.py"] }')
    write(toy.folder, {"pyproject.toml": config})
    for hardware, paths in (("cpu", ("src/update.py",)), ("h200", ("src/update.py",))):
        found = replace(mutants(Status.KILLED), hardware=hardware)
        mutated.put_on_record(toy.config, Snapshot.take(toy.config), found, paths, None, whole=True)
    assert [toy.line(f"{hardware}/mutation").state.value for hardware in ("cpu", "h200")] == ["missing", "fresh"]
    assert "gate mutate src" in str(toy.line("cpu/mutation").reason)
    write(toy.folder, {"src/update.py": "def update(w):\n    return w - 3\n"})
    assert toy.line("h200/mutation").state.value == "stale"


@pytest.mark.parametrize(
    ("verdict", "state"),
    [(Speed.FASTER, "fresh"), (Speed.NO_DIFFERENCE, "fresh"), (Speed.SLOWER, "inconclusive"), (Speed.INCONCLUSIVE, "inconclusive"),
     (Speed.NOT_JUDGED, "missing")],
)  # fmt: skip
def test_a_benchmark_is_evidence_of_itself(toy: Toy, verdict: Speed, state: str) -> None:
    """Fresh until its sources or its own table change."""
    bench = '\n[tool.gate.bench.speed]\nscenarios = ["digits", "text"]\n'
    config = CONFIG.replace('mutation = ["cpu"]', 'bench = ["h200"]') + bench
    write(toy.folder, {"pyproject.toml": config})
    result = Benchmark(
        "speed", "h200", TORCH, verdict, True, read=Read({"src/update.py": ""}, {}, {"distributions": {"torch": TORCH}, "threads": 1})
    )
    benched.put_on_record(toy.config, Snapshot.take(toy.config), result)
    assert toy.line("h200/bench").state.value == state
    if state == "fresh":
        write(toy.folder, {"pyproject.toml": f"{config}pairs = 20\n"})
        assert toy.line("h200/bench").reason == "[tool.gate.bench.speed] in pyproject.toml has other content in no commit"
