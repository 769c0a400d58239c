"""Each line of `gate run` fails when a careless developer does what it is there to notice, and passes otherwise."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from gate.config import find
from gate.errors import UsageError
from gate.evidence import Finding, Reading, Snapshot, leave
from gate.evidence.status import View
from gate.landing.command import Landing, run
from gate.progress import Silent
from gate.record import record
from gate.selection import Wanted
from gate.trial import Means
from tests.gate.repositories import commit, git, init, write

CONFIG = """
[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["src"]

[tool.gate.required]
{required}
[tool.gate.trailers]
paths = ["src"]
required = ["Gate"]

[tool.gate.claims]
promise = ["src"]

[tool.gate.scenarios.toy]
run = "scenarios.py:toy"
steps = 2
"""
UPDATE = '''"""Updates."""


def step(w: float, g: float) -> float:
    """One step down; never returns what it was given. [held by tests/test_update.py::test_step]"""
    return w - 0.5 * g
'''
TEST = """from toy.update import step


def test_step():
    assert step(1.0, 1.0) == 0.5
    assert step(2.0, 4.0) == 0.0
"""
SCENARIOS = """
import torch

from toy.update import step


def toy(record):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=step(1.0, 1.0))
    for _ in range(record.steps):
        loss = model(torch.ones(1, 2)).square().mean()
        loss.backward()
        optimizer.step()
        record(loss=loss, optimizer=optimizer, model=model)
        optimizer.zero_grad()
"""
NEEDS = {"tests": 'tests = ["cpu"]\n', "goldens": 'goldens = ["cpu"]\n', "mutation": 'mutation = ["cpu"]\npaths = ["src"]\n'}
GATE = "Gate: tests/test_update.py::test_step"


@dataclass(frozen=True)
class Work:
    """A repository whose author is careless."""

    folder: Path

    def needs(self, *checks: str) -> None:
        """Writes what a merge needs."""
        write(self.folder, {"pyproject.toml": CONFIG.format(required="".join(NEEDS[check] for check in checks))})

    def needs_a_gpu(self) -> None:
        """Writes that a merge needs tests on a GPU alone, of which there is a record, so that nothing has to run here."""
        config = find(self.folder)
        finding = Finding("tests", "h200", "2.11.0+cu130", "passed", {"passed": 9, "skipped": 0})
        leave(config, Snapshot.take(config), finding, Reading(("src/toy/update.py",)))
        write(self.folder, {"pyproject.toml": CONFIG.format(required='tests = ["h200"]\n')})

    def run(self, since: str | None = None, allowed: Sequence[str] = ()) -> Landing:
        """Runs everything."""
        return run(Means(find(self.folder), None, 1, Silent()), since, tuple(allowed))

    def commit(self, message: str, **files: str) -> str:
        """Commits the work tree."""
        return commit(self.folder, {name.replace("__", "/").replace("_dot_", "."): text for name, text in files.items()}, message)


def words(found: Landing) -> dict[str, str]:
    """The verdict of each line."""
    return {line.name: line.word for line in found.lines}


def details(found: Landing, name: str) -> str:
    """What a line has to tell."""
    return "\n".join(next(line.details for line in found.lines if line.name == name))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a golden, tests, and no evidence."""
    folder = init(tmp_path_factory.mktemp("landing") / "toy")
    files = {
        "src/toy/__init__.py": '"""A toy."""\n', "src/toy/update.py": UPDATE, "tests/test_update.py": TEST, "scenarios.py": SCENARIOS,
        "README.md": "# Toy\n", ".gitignore": ".gate/\n__pycache__/\n", "pyproject.toml": CONFIG.format(required="".join(NEEDS.values())),
    }  # fmt: skip
    write(folder, files)
    assert record(Means(find(folder), None, 1, Silent()), Wanted(), None).exit_code == 0
    commit(folder, {}, f"Begin\n\n{GATE}")
    return folder


@pytest.fixture(scope="module")
def checked(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Landing]:
    """The same after a first `gate run`."""
    folder = Path(shutil.copytree(prepared, tmp_path_factory.mktemp("checked") / "toy"))
    return folder, Work(folder).run()


@pytest.fixture
def work(checked: tuple[Path, Landing], tmp_path: Path) -> Work:
    return Work(Path(shutil.copytree(checked[0], tmp_path / "toy")))


def test_a_tree_that_is_right_passes_and_is_not_checked_twice(checked: tuple[Path, Landing], work: Work) -> None:
    """The second time fresh records stand for the work."""
    first = checked[1]
    assert words(first) == {
        "check": "passed", "mutate": "killed", "verify": "identical", "status": "fresh", "golden changes": "left out", "claims": "passed",
        "trailers": "passed",
    }, first.text()  # fmt: skip
    assert (first.exit_code, first.verdict) == (0, "passed")
    second = work.run()
    assert words(second) == {**words(first), "check": "fresh", "mutate": "fresh", "verify": "fresh"}
    assert second.exit_code == 0


def test_check_fails_where_a_test_does(work: Work) -> None:
    work.needs("tests")
    work.commit("Expect more", tests__test_update_dot_py=TEST.replace("0.5", "0.75"))
    found = work.run()
    assert (words(found)["check"], words(found)["status"], found.exit_code) == ("failed", "not-judged", 1)
    assert "tests/test_update.py::test_step" in details(found, "check")
    assert "it failed: 1 failed" in details(found, "status")


def test_mutate_fails_where_a_test_notices_nothing(work: Work) -> None:
    work.needs("mutation")
    weak = "from toy.update import step\n\n\ndef test_step():\n    step(1.0, 1.0)\n"
    scene = SCENARIOS.replace("lr=step(1.0, 1.0)", "lr=0.5 + 0 * int(step(1.0, 1.0))")
    work.commit("Simplify", tests__test_update_dot_py=weak, scenarios_dot_py=scene)
    found = work.run()
    assert (words(found)["mutate"], found.exit_code) == ("survived", 1)
    assert "src/toy/update.py:6" in details(found, "mutate")


def test_verify_fails_where_bits_move(work: Work) -> None:
    work.needs("goldens")
    work.commit("Tune", scenarios_dot_py=SCENARIOS.replace("lr=step(1.0, 1.0)", "lr=step(1.0, 1.1)"))
    found = work.run()
    assert (words(found)["verify"], found.exit_code) == ("drift", 1)
    assert "scenarios.py" in details(found, "verify")


def test_status_fails_where_a_gpu_has_not_seen_the_sources(work: Work) -> None:
    """And goes on, loudly, where that is allowed."""
    work.needs_a_gpu()
    assert work.run().exit_code == 0
    moved = work.commit(f"Comment\n\n{GATE}", src__toy__update_dot_py=f"# A step.\n{UPDATE}")
    found = work.run()
    assert (words(found)["status"], found.exit_code) == ("not-judged", 3)
    assert f"tests h200: stale: src/toy/update.py has other content since {moved[:7]} (Comment)" in details(found, "status")
    allowed = work.run(allowed=["h200"])
    assert (words(allowed)["status"], allowed.exit_code) == ("allowed", 0)
    assert allowed.warnings()[0].startswith("ALLOWED by --allow-stale: tests h200: stale (ALLOWED): src/toy/update.py")
    assert "1 ALLOWED to be otherwise" in allowed.text()
    with pytest.raises(UsageError, match="nothing is required of it, did you mean 'h200'"):
        work.run(allowed=["h20"])


def test_golden_changes_fail_where_nobody_owns_up(work: Work) -> None:
    """A golden was updated with its reason, and no commit says that it was meant."""
    work.needs_a_gpu()
    base = git(work.folder, "rev-parse", "HEAD")
    write(work.folder, {"scenarios.py": SCENARIOS.replace("lr=step(1.0, 1.0)", "lr=step(1.0, 1.5)")})
    assert record(Means(find(work.folder), None, 1, Silent()), Wanted(), "Smaller steps").exit_code == 0
    work.commit("Tune")
    found = work.run(since=base)
    assert (words(found)["golden changes"], found.exit_code) == ("drift", 1)
    assert "optimizer/group0/lr: value" in details(found, "golden changes")
    assert "Golden-Change: toy" in details(found, "golden changes")
    work.commit("Own up\n\nGolden-Change: toy")
    assert work.run(since=base).exit_code == 0


def test_a_change_passes_beside_a_figure_that_it_leaves_alone(work: Work) -> None:
    """The tests and lines that it touches are evidence enough; a figure that it writes needs evidence of all tests."""
    page = "# Toy\n\n<!-- gate: cpu/tests.passed -->2<!-- /gate --> tests.\n"
    work.needs("tests", "mutation")
    base = work.commit("Count", README_dot_md=page, tests__test_more_dot_py="def test_more():\n    assert True\n")
    assert work.run().exit_code == 0
    work.commit(f"Change\n\n{GATE}", src__toy__update_dot_py=UPDATE.replace("return w - 0.5 * g", "return w - g / 2"))
    found = work.run(since=base)
    assert details(found, "claims").startswith("README.md:3: inconclusive: cpu/tests.passed cannot be told")
    assert (words(found)["mutate"], words(found)["claims"], found.exit_code) == ("killed", "passed", 0)
    work.commit("Count", README_dot_md=page.replace("2<", "3<"))
    found = work.run(since=base)
    assert details(found, "claims").endswith("there is no fresh evidence of tests on cpu. Run gate check --all")
    assert (words(found)["claims"], found.exit_code) == ("not-judged", 3)


def test_claims_fail_where_a_count_was_typed(work: Work) -> None:
    work.commit("Boast", README_dot_md="# Toy\n\n<!-- gate: cpu/tests.passed -->12<!-- /gate --> tests pass, of 14 tests.\n")
    found = work.run()
    assert (words(found)["claims"], found.exit_code) == ("claim", 1)
    assert details(found, "claims").startswith("README.md:3: claim: cpu/tests.passed is 1 in the evidence, and 12 here")
    assert 'README.md:3: warning: "14 tests" looks like a count' in details(found, "claims")


def test_trailers_fail_where_a_commit_says_nothing(work: Work) -> None:
    work.needs_a_gpu()
    work.commit("Quick fix", src__toy__more_dot_py='"""More."""\n')
    found = work.run()
    assert (words(found)["trailers"], found.exit_code) == ("trailer", 1)
    assert "(Quick fix): trailer: has no trailer Gate:" in details(found, "trailers")


def test_a_change_is_judged_by_what_it_touches(work: Work) -> None:
    """The tests and mutants of its lines are evidence enough of what follows a checked revision; a document needs neither."""
    work.needs("tests", "mutation")
    base = work.commit("Need less")
    work.commit("Explain", README_dot_md="# Toy\n\nA toy.\n")
    assert words(work.run(since=base))["check"] == "fresh"
    work.commit(f"Comment\n\n{GATE}", src__toy__update_dot_py=UPDATE.replace("    return", "    # down\n    return"))
    found = work.run(since=base)
    assert (words(found)["mutate"], words(found)["status"], found.exit_code) == ("nothing to check", "fresh", 0), found.text()
    whole = {line.need.check: line.state.value for line in View.of(find(work.folder)).status().lines}
    assert whole == {"tests": "fresh", "mutation": "stale"}, "all tests ran, and no mutant of the whole tree"


def test_an_error_is_a_line_and_the_others_are_still_judged(work: Work) -> None:
    write(
        work.folder, {"pyproject.toml": CONFIG.format(required="".join(NEEDS.values())).replace('promise = ["src"]', 'promises = ["src"]')}
    )
    found = work.run()
    assert (words(found)["claims"], words(found)["trailers"], found.exit_code) == ("usage", "passed", 2)


@pytest.mark.parametrize("since", ["", "HEAD..HEAD"])
def test_a_revision_that_is_none_is_a_mistake_and_not_left_out(work: Work, since: str) -> None:
    with pytest.raises(UsageError, match=f"--since '{since}' is no commit"):
        work.run(since=since)
