"""Verify, end to end: real trainings in real processes, held against goldens that were really recorded."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from golden.hardware import cpu_slug
from tests.gate.projects import Project
from tests.gate.repositories import commit, git, init

# What a report's row has, in order; a reader may rely on it.
KEYS = [
    "scenario",
    "golden",
    "hardware",
    "torch",
    "against",
    "verdict",
    "cause",
    "reason",
    "steps",
    "environment_changes",
    "changed_sources",
    "first",
]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project in a git repository with the goldens of two scenarios; tests take copies."""
    folder = tmp_path_factory.mktemp("recorded") / "project"
    init(folder)
    project = Project.new(folder, toy="", random="", twin='toy\nsame_as = "toy"')
    assert project.gate("record").code == 0
    commit(folder, {}, "Record the goldens")
    return project


@pytest.fixture
def project(recorded: Project, tmp_path: Path) -> Project:
    return recorded.copy(tmp_path / "größe and space")


def torch_version(project: Project) -> str:
    return project.golden("toy").parent.name.removeprefix("torch-")


def test_every_bit_as_recorded_is_identical(project: Project) -> None:
    """Three rows side by side, the third held against the golden of another; nothing is kept, and nothing changes."""
    before = project.digest()
    answer = project.gate("verify")
    assert answer.code == 0, answer.err
    assert answer.brief("scenario", "golden", "verdict") == [
        ("toy", "toy", "identical"), ("random", "random", "identical"), ("twin", "toy", "identical")
    ]  # fmt: skip
    row = answer.rows[0]
    assert list(row)[: len(KEYS)] == KEYS
    assert (row["hardware"], row["torch"], row["against"], row["steps"]) == ("cpu", torch_version(project), "golden", 3)
    assert (row["cause"], row["reason"], row["first"], row["run"], row["message"]) == (None, None, None, None, None)
    assert (row["environment_changes"], row["changed_sources"], row["arms"]) == ([], [], [])
    assert row["seconds"] > 0
    assert answer.document["verdict"] == "identical"
    assert project.digest() == before
    assert git(project.folder, "status", "--porcelain") == ""
    assert list((project.folder / ".gate/runs").iterdir()) == []


def test_the_portable_profile_takes_nothing_of_its_surroundings(project: Project, tmp_path: Path) -> None:
    """Threads, seeds of hashes, another home and another folder change nothing; nor does how the scenario is stored by now."""
    project.configure(toy='\nstore = "digest"')
    variables = {
        "OMP_NUM_THREADS": "2",
        "PYTHONHASHSEED": "7",
        "HOME": str(tmp_path),
        "MKL_NUM_THREADS": "2",
        "ATEN_CPU_CAPABILITY": "avx2",
    }
    answer = project.gate("verify", "toy", **variables)
    assert (answer.code, answer.row["verdict"], answer.row["environment_changes"]) == (0, "identical", [])


def test_changed_code_is_drift_whose_cause_is_code(project: Project) -> None:
    """All facts at once: the source that changed, the first difference with its census, the kept run that diff opens."""
    (project.folder / "factor.py").write_text("SCALE = 1.25\n")
    before = project.digest()
    answer = project.gate("verify", "toy")
    assert answer.code == 1, answer.err
    row = answer.row
    assert (row["verdict"], row["cause"], row["changed_sources"], row["environment_changes"]) == ("drift", "code", ["factor.py"], [])
    assert (row["first"]["step"], row["first"]["phase"], row["first"]["kind"]) == (1, "loss", "bits")
    assert None not in row["first"].values()
    assert [(arm["name"], arm["verdict"]) for arm in row["arms"]] == [("again", "identical")]
    assert row["honoured"] is not None
    facts = " ".join(answer.out.splitlines()[:20])
    assert all(part in facts for part in ("drift", "code", "factor.py", "step 1", "loss", row["first"]["expected"], row["first"]["actual"]))
    assert project.digest() == before
    assert git(project.folder, "status", "--porcelain") == "M factor.py"
    kept = project.gate("diff", str(project.golden("toy")), row["run"])
    assert kept.code == 1
    assert kept.document["first"] == row["first"]


def test_without_cause_no_further_run_is_made(project: Project) -> None:
    (project.folder / "factor.py").write_text("SCALE = 1.25\n")
    answer = project.gate("verify", "toy", "--no-cause", "--bisect")
    assert (answer.code, answer.row["cause"], answer.row["arms"]) == (1, None, [])
    assert answer.row["changed_sources"] == ["factor.py"]


def test_two_runs_that_differ_are_nondeterministic(project: Project) -> None:
    """Whatever moved: chance comes before cause. Bisect skips it."""
    (project.folder / "noise.txt").write_text("1\n")
    answer = project.gate("verify", "random", "--bisect")
    assert (answer.code, answer.row["verdict"], answer.row["cause"]) == (125, "nondeterministic", None)
    assert [(arm["name"], arm["verdict"]) for arm in answer.row["arms"]] == [("again", "differs")]
    assert answer.row["first"]["phase"] == "loss"


def test_a_missing_golden_names_the_nearest_and_the_command_that_records_it(project: Project) -> None:
    """The golden of another torch is never used; what the environments differ in leads the report."""
    version = torch_version(project)
    here, there = project.folder / "goldens/cpu" / f"torch-{version}", project.folder / "goldens/cpu/torch-2.1.0"
    here.rename(there)
    answer = project.gate("verify", "toy")
    assert answer.code == 3
    row = answer.row
    assert (row["verdict"], row["reason"], row["torch"]) == ("not-judged", "no-golden", version)
    assert "cpu/torch-2.1.0/toy" in row["message"]
    assert "gate record toy" in row["message"]
    assert row["message"].splitlines()[0] in answer.err


def test_a_golden_that_was_copied_to_other_hardware_is_corrupt(project: Project) -> None:
    """A golden of the portable profile does not become one of this very CPU by its folder's name."""
    native = cpu_slug("native")
    shutil.copytree(project.folder / "goldens/cpu", project.folder / "goldens" / native)
    answer = project.gate("verify", "toy", "--profile", "native")
    assert (answer.code, answer.row["reason"], answer.row["hardware"]) == (3, "corrupt-golden", native)
    assert native in answer.err


@pytest.mark.parametrize(("more", "named"), [("seed = 4", "seed 0, now 4"), ("parameters = { a = 1 }", "parameters {}, now {'a': 1}")])
def test_a_golden_of_other_settings_is_not_judged(project: Project, more: str, named: str) -> None:
    project.configure(toy=f"\n{more}")
    answer = project.gate("verify", "toy")
    assert (answer.code, answer.row["reason"]) == (3, "settings")
    assert named in answer.row["message"]


def test_a_golden_of_other_steps_is_not_judged(project: Project) -> None:
    project.configure(5, toy="")
    assert project.gate("verify", "toy").row["reason"] == "settings"


def test_another_machine_s_goldens_are_left_out_in_one_line(project: Project) -> None:
    """No row, no effect on the exit code; named, they are a row and exit 3."""
    shutil.copytree(project.folder / "goldens/cpu", project.folder / "goldens/l4")
    shutil.rmtree(project.golden("random"))
    project.configure(toy="")
    plain = project.gate("verify")
    assert plain.code == 0
    assert {row["hardware"] for row in plain.rows} == {"cpu"}
    assert [line for line in plain.err.splitlines() if "left out" in line] == ["left out: l4 (not this machine's)"]
    named = project.gate("verify", "--goldens", "goldens/l4")
    assert named.code == 3
    assert {(row["reason"], row["hardware"]) for row in named.rows} == {("no-accelerator", "l4")}
    assert "gate verify --goldens goldens/l4" in named.err


def test_against_a_base_where_there_is_no_golden(project: Project) -> None:
    """In this environment: identical, then drift by an edit; the golden is named by nobody."""
    shutil.rmtree(project.folder / "goldens")
    same = project.gate("verify", "toy", "--base", "HEAD")
    assert same.code == 0, same.err
    assert (same.row["against"], same.row["golden"], same.row["verdict"]) == ("base", None, "identical")
    (project.folder / "factor.py").write_text("SCALE = 2.0\n")
    drift = project.gate("verify", "toy", "--base", "HEAD")
    assert drift.code == 1
    assert (drift.row["against"], drift.row["cause"], drift.row["changed_sources"]) == ("base", "code", ["factor.py"])
    assert drift.row["first"]["step"] == 1
    assert not (project.folder / "goldens").exists()


def test_a_base_that_does_not_exist_is_an_error_of_usage(project: Project) -> None:
    shutil.rmtree(project.folder / "goldens")
    answer = project.gate("verify", "toy", "--base", "no-such-branch")
    assert answer.code == 2
    assert "no-such-branch" in answer.document["error"]


def test_code_and_environment_together_are_told_apart_by_the_base(project: Project) -> None:
    """Recorded natively, then a variable and an edit at once: the base's run gives the golden's bits, so it was the code."""
    assert project.gate("record", "toy", "--profile", "native").code == 0
    commit(project.folder, {}, "Record natively")
    (project.folder / "factor.py").write_text("SCALE = 2.0\n")
    answer = project.gate("verify", "toy", "--profile", "native", OMP_SCHEDULE="static")
    row = answer.row
    assert (row["verdict"], row["cause"], row["changed_sources"]) == ("drift", "code", ["factor.py"])
    assert [change["path"] for change in row["environment_changes"]] == ["variables.OMP_SCHEDULE"]
    assert [arm["name"] for arm in row["arms"]] == ["again", "base"]
    assert row["hardware"].startswith("cpu-")
    assert row["honoured"] is None


def test_a_scenario_that_resumes_has_the_same_bits(tmp_path: Path) -> None:
    """And one whose checkpoint is not restored whole does not: the phase that forgot is named."""
    project = Project.new(tmp_path / "project", toy="\nresume_at = 2")
    assert project.gate("record").code == 0
    assert project.gate("verify").row["verdict"] == "identical"
    text = (project.folder / "scenarios.py").read_text()
    (project.folder / "scenarios.py").write_text(text.replace('if "forgets" not in record.parameters:', "if False:"))
    answer = project.gate("verify")
    assert answer.code == 1
    assert (answer.row["verdict"], answer.row["cause"], answer.row["first"]["step"]) == ("drift", "code", 3)
    assert answer.row["first"]["phase"] == "optimizer"
    assert "after step 2" in answer.row["message"]
    assert (project.folder / answer.row["run"]).is_dir()


def test_an_interpreter_that_has_the_torch_can_be_named(project: Project) -> None:
    """By its path; under another version it is refused, as is one without torch."""
    version = torch_version(project)
    assert project.gate("verify", "toy", "--python", sys.executable, "--torch", version).row["verdict"] == "identical"
    answer = project.gate("verify", "toy", "--python", sys.executable, "--torch", "1.0.0")
    assert (answer.code, answer.row["reason"]) == (3, "no-torch")


def test_goldens_may_lie_elsewhere_and_the_project_above(project: Project, tmp_path: Path) -> None:
    """From a subfolder, with the goldens' root or one hardware folder, named from there or from the project."""
    below = project.folder / "a/b"
    below.mkdir(parents=True)
    shutil.copytree(project.folder / "goldens", tmp_path / "elsewhere")
    for named in (str(tmp_path / "elsewhere"), "../../goldens/cpu", "goldens/cpu"):
        answer = Project(below).gate("verify", "toy", "--goldens", named, "--jobs", "1")
        assert (answer.code, answer.row["verdict"]) == (0, "identical")
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["cpu"]
