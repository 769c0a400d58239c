"""Drifts of a toy whose bits are a sum: a number in a source file, one in a file that nobody sees being read, one of the machine."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from gate.cause import Finding, Inquest, against_base, changed_sources, decide
from gate.errors import BaselineFailed, UsageError
from gate.runs import Outcome, Place, Runs
from gate.verdict import Cause, Verdict
from gate.witness import Said
from golden import digest, profile
from golden.compare import compare
from golden.environment import difference
from golden.leaf import Leaf, Snapshot
from golden.settings import Report, Request, Settings
from golden.store import Golden
from golden.writer import Writer
from tests.gate.repositories import commit, digests, init, write

LEAVES = (Leaf("loss", "", "tensor", "float32", ()), Leaf("model", "w", "tensor", "float32", (4,)))


@dataclass
class Toy:
    """A project and the machine it runs on; `run` is what runs its scenario once more.

    Attributes:
        kept: whether tensors are kept, or digests alone.
        threads: what the environment recorded says.
        machine: what the machine adds to the bits.
        noise: what the runs to come add, one after the other.
        fails, foreign: arms that raise, or whose files come from elsewhere.
        seen: the arms run, with the steps that they were to keep.
    """

    folder: Path
    kept: bool = True
    threads: int = 1
    machine: int = 0
    noise: list[int] = field(default_factory=list)
    fails: str = ""
    foreign: str = ""
    seen: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)

    @property
    def project(self) -> Path:
        return self.folder / "project"

    def record(self, to: Path, root: Path, keep: Sequence[int] = ()) -> Golden:
        """Two steps, of which the second has what moves."""
        moves = sum(int((root / name).read_text().split()[-1]) for name in ("a.py", "unseen.txt")) + self.machine
        moves += self.noise.pop(0) if self.noise else 0
        writer = Writer(to)
        for step in (1, 2):
            state = [np.float32(1.5), np.array([1, 2, 3, 4 + (moves if step == 2 else 0)], dtype=np.float32)]
            data = [array.tobytes() for array in state]
            writer.add(Snapshot(step, LEAVES, digest.of(data), data if self.kept or step in keep else None))
        sources = digests(root, "s.py", "a.py")
        writer.finish(scenario={"name": "toy"}, environment={"threads": self.threads}, sources=sources, hardware="cpu", torch="2.13.0")
        return Golden.open(to)

    def run(self, arm: str, root: Path | None, keep: Sequence[int]) -> Outcome:
        self.seen.append((arm, tuple(keep)))
        to = self.folder / "runs" / arm
        request = Request("toy", "s.py:f", 2, 0, "cpu", None, {}, "portable", self.project, root or self.project, to, to)
        if arm == self.fails:
            return Outcome(request, Report("failed", "scenario-failed", "a.py: raises ValueError"), Place(to), 3, 0.1)
        self.record(to, root or self.project, keep)
        return Outcome(request, Report("ok", foreign=("src/a.py",) if arm == self.foreign else ()), Place(to), 0, 0.1)

    def head(self) -> Golden:
        return self.record(self.folder / "runs/head", self.project)

    def finding(self, base: str | None = None) -> Finding:
        """What is found of the project and the machine as they are; there is a drift."""
        golden, head = Golden.open(self.project / "goldens/toy"), self.head()
        comparison = compare(golden, head)
        assert not comparison.identical
        expected, actual = golden.manifest.environment["threads"], head.manifest.environment["threads"]
        changes = [{"path": "threads", "expected": expected, "actual": actual}] if expected != actual else []
        return Inquest(golden, head, comparison, self.project, "s.py", changes, self.run, base).finding()


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    """A golden that was committed with its sources."""
    return recorded(Toy(tmp_path))


def recorded(toy: Toy) -> Toy:
    commit(init(toy.project), {"s.py": "x = 0\n", "a.py": "a = 1\n", "unseen.txt": "0\n"})
    toy.record(toy.project / "goldens/toy", toy.project)
    commit(toy.project, {}, "Record the golden")
    return toy


def arms(finding: Finding) -> list[tuple[str, str]]:
    return [(arm.name, arm.verdict.split(",")[0]) for arm in finding.arms]


@pytest.mark.parametrize("said", [None, *Said])
def test_the_decision(said: Said | None) -> None:
    """One of two that moved is the cause, whatever the base says; of both, or none, the base tells, as far as it can."""
    assert decide(True, False, said) is Cause.CODE
    assert decide(False, True, said) is Cause.ENVIRONMENT
    told = {None: None, Said.GOLDEN: Cause.CODE, Said.HEAD: Cause.ENVIRONMENT}.get(said, Cause.UNKNOWN)
    assert decide(True, True, said) is told
    assert decide(False, False, said) is told


def test_changed_sources_begin_with_the_scenario_s_own() -> None:
    """Changed, new and no longer read count alike; equal ones do not."""
    before = {"a.py": "1", "b.py": "2", "gone.py": "3", "z/s.py": "4"}
    now = {"a.py": "1", "b.py": "9", "new.py": "3", "z/s.py": "9"}
    assert changed_sources(before, now, "z/s.py") == ("z/s.py", "b.py", "gone.py", "new.py")
    assert changed_sources(before, before, "z/s.py") == ()


def test_a_second_run_that_differs_is_nondeterministic(toy: Toy) -> None:
    """Chance is ruled out first, whatever else moved; told is where the two runs differ, not the run and the golden."""
    write(toy.project, {"a.py": "a = 2\n"})
    toy.threads, toy.noise = 2, [0, 5]
    finding = toy.finding()
    assert (finding.verdict, finding.cause, arms(finding)) == (Verdict.NONDETERMINISTIC, None, [("again", "differs")])
    assert finding.comparison.first is not None
    assert (finding.comparison.first.expected, finding.comparison.first.actual) == ("0x40c00000", "0x41300000")  # 6 and 11


def test_a_second_run_that_fails_leaves_the_cause_unknown(toy: Toy) -> None:
    """It is neither equal nor different; what it said is told."""
    write(toy.project, {"a.py": "a = 2\n"})
    toy.fails = "again"
    finding = toy.finding()
    assert (finding.verdict, finding.cause) == (Verdict.DRIFT, Cause.UNKNOWN)
    assert finding.message == "A second run, which is to tell chance from cause, failed: a.py: raises ValueError"


def test_changed_sources_alone_are_the_cause(toy: Toy) -> None:
    """An edit that is not committed is the head's; one further run tells, and what it cost is noted."""
    write(toy.project, {"a.py": "a = 2\n"})
    begun = time.perf_counter()
    finding = toy.finding()
    assert (finding.verdict, finding.cause, finding.changed_sources) == (Verdict.DRIFT, Cause.CODE, ("a.py",))
    assert (arms(finding), finding.message) == ([("again", "identical")], None)
    assert 0 < finding.arms[0].seconds < time.perf_counter() - begun


def test_a_changed_environment_alone_is_the_cause(toy: Toy) -> None:
    """The sources are the golden's, something of the environment is not."""
    toy.threads, toy.machine = 2, 1
    finding = toy.finding()
    assert (finding.cause, finding.changed_sources, arms(finding)) == (Cause.ENVIRONMENT, (), [("again", "identical")])


def test_of_an_edit_and_an_environment_without_effect_the_base_says_code(toy: Toy) -> None:
    """Coefficient and variable together: the commit of the golden's sources, run here, gives the golden's bits."""
    write(toy.project, {"a.py": "a = 2\n"})
    toy.threads = 2
    finding = toy.finding()
    assert (finding.verdict, finding.cause, finding.message) == (Verdict.DRIFT, Cause.CODE, None)
    assert arms(finding) == [("again", "identical"), ("base", "equals the golden")]
    assert finding.arms[1].verdict.endswith("(Record the golden)")


def test_of_an_edit_without_effect_and_an_environment_the_base_says_environment(toy: Toy) -> None:
    """The commit of the golden's sources, run here, gives the bits of this run."""
    write(toy.project, {"a.py": "a  =  1\n"})
    toy.threads, toy.machine = 2, 1
    finding = toy.finding()
    assert (finding.cause, finding.message, arms(finding)[1]) == (Cause.ENVIRONMENT, None, ("base", "equals this run"))


def test_where_both_move_bits_the_cause_is_unknown(toy: Toy) -> None:
    """The base gives a third state, which is said."""
    write(toy.project, {"a.py": "a = 2\n"})
    toy.threads, toy.machine = 2, 5
    finding = toy.finding()
    assert (finding.cause, arms(finding)[1]) == (Cause.UNKNOWN, ("base", "equals neither the golden nor this run"))
    assert "gives neither the golden's bits nor those here" in (finding.message or "")


@pytest.mark.parametrize(("moved", "cause"), [("unseen.txt", Cause.CODE), ("machine", Cause.ENVIRONMENT)])
def test_where_nothing_recorded_moved_the_base_tells(toy: Toy, moved: str, cause: Cause) -> None:
    """A file that no hook saw is in the base as it was, what the machine does is not; which of them is said."""
    if moved == "machine":
        toy.machine = 1
    else:
        write(toy.project, {moved: "7\n"})
    finding = toy.finding()
    assert (finding.cause, finding.changed_sources) == (cause, ())
    assert ("read unseen" if cause is Cause.CODE else "of this machine") in (finding.message or "")


def test_a_base_that_took_files_from_elsewhere_is_void(toy: Toy) -> None:
    """Its bits prove nothing, although they are the golden's; the files are named."""
    write(toy.project, {"a.py": "a = 2\n"})
    toy.threads, toy.foreign = 2, "base"
    finding = toy.finding()
    assert finding.cause is Cause.UNKNOWN
    assert finding.message == (
        "Sources and environment both differ from the golden's, and the base is void: src/a.py came from elsewhere than the base"
    )
    assert finding.arms[1].verdict.endswith("(Record the golden): src/a.py came from elsewhere than the base")


def test_a_base_that_fails_leaves_the_cause_unknown(toy: Toy) -> None:
    """What its scenario said is told."""
    write(toy.project, {"a.py": "a = 2\n"})
    toy.threads, toy.fails = 2, "base"
    finding = toy.finding()
    assert finding.cause is Cause.UNKNOWN
    assert "the base is failed: a.py: raises ValueError" in (finding.message or "")


@pytest.mark.parametrize("state", ["no git", "no such commit"])
def test_a_base_that_is_not_to_be_had_leaves_the_cause_unknown(toy: Toy, state: str) -> None:
    """Why it is not is told, and no further run is made."""
    if state == "no git":
        shutil.rmtree(toy.project / ".git")
    else:
        write(toy.project, {"a.py": "a = 3\n"})
        shutil.rmtree(toy.project / "goldens/toy")
        toy.record(toy.project / "goldens/toy", toy.project)
    write(toy.project, {"a.py": "a = 2\n"})
    toy.threads = 2
    finding = toy.finding()
    assert (finding.cause, [name for name, _ in toy.seen]) == (Cause.UNKNOWN, ["again"])
    assert {"no git": "is in no git repository", "no such commit": "others: a.py"}[state] in (finding.message or "")
    assert finding.arms[1].verdict.startswith("not to be had: ")


def test_the_base_brings_a_digest_golden_its_census(tmp_path: Path) -> None:
    """Both arms keep the step of the first difference, so that its elements can be counted; no other step is kept."""
    toy = recorded(Toy(tmp_path, kept=False))
    write(toy.project, {"a.py": "a = 2\n"})
    toy.threads = 2
    first = toy.finding().comparison.first
    assert toy.seen == [("again", (2,)), ("base", (2,))]
    assert first is not None
    assert (first.step, first.path, first.differing, first.elements, first.index) == (2, "model/w", 1, 4, (3,))
    assert (first.expected, first.actual) == ("0x40a00000", "0x40c00000")  # 5 and 6


def test_without_a_base_the_census_of_a_digest_golden_is_not_known(tmp_path: Path) -> None:
    """Where the cause is plain no further run is made for the census, and nothing is kept."""
    toy = recorded(Toy(tmp_path, kept=False))
    write(toy.project, {"a.py": "a = 2\n"})
    finding = toy.finding()
    assert (finding.cause, toy.seen) == (Cause.CODE, [("again", ())])
    assert finding.comparison.first is not None
    assert finding.comparison.first.differing is None


def test_a_named_base_brings_the_census_where_the_cause_is_plain(tmp_path: Path) -> None:
    """The user who names it wants it run; a golden with tensors needs it not."""
    toy = recorded(Toy(tmp_path / "digest", kept=False))
    write(toy.project, {"a.py": "a = 2\n"})
    finding = toy.finding("HEAD")
    assert (finding.cause, toy.seen) == (Cause.CODE, [("again", (2,)), ("base", (2,))])
    assert finding.comparison.first is not None
    assert finding.comparison.first.differing == 1
    full = recorded(Toy(tmp_path / "full"))
    write(full.project, {"a.py": "a = 2\n"})
    assert (full.finding("HEAD").cause, full.seen) == (Cause.CODE, [("again", ())])


def test_a_named_base_is_taken_as_it_is(toy: Toy) -> None:
    """Its sources need not be the golden's; a name that git does not know is a mistake of usage."""
    commit(toy.project, {"a.py": "a = 2\n"})
    write(toy.project, {"a.py": "a = 3\n"})
    toy.threads = 2
    assert arms(toy.finding("HEAD"))[1] == ("base", "equals neither the golden nor this run")
    for name in ("head", "again", "base"):
        shutil.rmtree(toy.folder / "runs" / name)
    assert arms(toy.finding("HEAD~1"))[1] == ("base", "equals the golden")
    for name in ("head", "again", "base"):
        shutil.rmtree(toy.folder / "runs" / name)
    with pytest.raises(UsageError, match="--base nope"):
        toy.finding("nope")


def test_a_run_is_held_against_the_base_where_there_is_no_golden(toy: Toy) -> None:
    """Equal without an edit, and one run tells; with one that moves bits it is the code, once a second run has ruled chance out."""
    same = against_base(toy.project, "s.py", toy.head(), toy.run, "HEAD")
    assert (same.verdict, same.cause, arms(same)) == (Verdict.IDENTICAL, None, [("base", "equals this run")])
    assert same.comparison.identical
    shutil.rmtree(toy.folder / "runs")
    write(toy.project, {"a.py": "a = 2\n"})
    drift = against_base(toy.project, "s.py", toy.head(), toy.run, "HEAD")
    assert (drift.verdict, drift.cause, drift.changed_sources) == (Verdict.DRIFT, Cause.CODE, ("a.py",))
    assert arms(drift) == [("base", "differs from this run"), ("again", "identical")]
    assert drift.comparison.first is not None
    assert (drift.comparison.first.expected, drift.comparison.first.actual) == ("0x40a00000", "0x40c00000")


def test_chance_is_ruled_out_against_the_base_as_well(toy: Toy) -> None:
    """A run that differs from the base and from itself is nondeterministic."""
    toy.noise = [0, 3, 5]
    finding = against_base(toy.project, "s.py", toy.head(), toy.run, "HEAD")
    assert (finding.verdict, finding.cause) == (Verdict.NONDETERMINISTIC, None)
    assert arms(finding) == [("base", "differs from this run"), ("again", "differs")]


@pytest.mark.parametrize(("how", "told"), [("fails", "raises ValueError"), ("foreign", "came from elsewhere")])
def test_a_base_that_gives_nothing_to_compare_with(toy: Toy, how: str, told: str) -> None:
    """Then nothing was judged, which is an error with its reason."""
    setattr(toy, how, "base")
    with pytest.raises(BaselineFailed, match=rf"The base HEAD is .*{told}"):
        against_base(toy.project, "s.py", toy.head(), toy.run, "HEAD")
    with pytest.raises(UsageError, match="--base nope"):
        against_base(toy.project, "s.py", toy.record(toy.folder / "runs/other", toy.project), toy.run, "nope")


@pytest.mark.slow
def test_coefficient_and_variable_together_are_told_apart_by_real_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real training in real processes: one thread more and another coefficient; the committed coefficient, run here, gives the golden."""
    project = init(tmp_path / "pröject x")
    commit(project, {"s.py": TRAINING, "src/coefficient.py": "A = 1.5\n"})
    settings = Settings("toy", "s.py:toy", steps=2)

    with Runs(project) as runs:

        def run(arm: str, root: Path | None, keep: Sequence[int]) -> Outcome:
            place = runs.place("cpu", "2", "toy", arm)
            plain = Request.of(settings, device="cpu", profile="native", project=project, out=place.golden, report=place.report, root=root)
            environment = profile.environment(os.environ, "native", "cpu", 0)
            return runs.run(Path(sys.executable), replace(plain, root=root or project, keep=tuple(keep)), environment)

        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        golden = run("golden", None, ()).open()
        shutil.copytree(golden.folder, project / "goldens/toy")
        golden = Golden.open(project / "goldens/toy")
        commit(project, {".gitignore": ".gate\n"}, "Record the golden")
        write(project, {"src/coefficient.py": "A = 2.5\n"})
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
        head = run("head", None, ()).open()
        changes = difference(golden.manifest.environment, head.manifest.environment)
        finding = Inquest(golden, head, compare(golden, head), project, "s.py", changes, run).finding()
    assert "variables.OMP_NUM_THREADS" in [change["path"] for change in changes]
    assert finding.changed_sources == ("src/coefficient.py",)
    assert (finding.verdict, finding.cause) == (Verdict.DRIFT, Cause.CODE)
    assert arms(finding) == [("again", "identical"), ("base", "equals the golden")]


TRAINING = """
import torch
from coefficient import A


def toy(record):
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(record.steps):
        loss = (model(torch.ones(1, 3)) * A).square().sum()
        loss.backward()
        optimizer.step()
        record(loss=loss, model=model)
        optimizer.zero_grad()
"""
