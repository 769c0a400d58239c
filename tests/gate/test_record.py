"""Record, end to end: only what two fresh processes agree on becomes a golden, and none is replaced without a reason."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from golden.store import Golden
from tests.gate.projects import Project
from tests.gate.repositories import init


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with the goldens of two scenarios, its tree dirty (nothing is committed); tests take copies."""
    project = Project.new(init(tmp_path_factory.mktemp("recorded") / "project"), toy="", other="toy\nseed = 3")
    answer = project.gate("record")
    assert answer.code == 0, answer.err
    assert answer.brief("scenario", "verdict") == [("toy", "recorded"), ("other", "recorded")]
    return project


@pytest.fixture
def project(recorded: Project, tmp_path: Path) -> Project:
    return recorded.copy(tmp_path / "project")


def moved(project: Project) -> None:
    (project.folder / "factor.py").write_text("SCALE = 1.5\n")


def manifest(project: Project, name: str = "toy") -> dict[str, object]:
    found: dict[str, object] = json.loads((project.golden(name) / "manifest.json").read_text())
    return found


def test_recording_an_equal_golden_writes_nothing_but_clears_what_a_killed_recording_left(project: Project) -> None:
    """And says so where the goldens have grown beyond what a repository carries."""
    left = project.folder / "goldens/.aside-999999999-ab12"
    with (project.folder / "goldens/large.bin").open("wb") as file:
        file.truncate(17 * 2**20)
    before, times = project.digest(), {path: path.stat().st_mtime_ns for path in (project.folder / "goldens/cpu").rglob("*")}
    shutil.copytree(project.golden("toy"), left / "new")
    answer = project.gate("record")
    assert answer.code == 0
    assert answer.brief("verdict", "message") == [("identical", "unchanged: nothing was written")] * 2
    assert project.digest() == before
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert "17.1 MiB, more than the 16 MiB" in answer.err


def test_a_golden_that_differs_is_kept_unless_a_reason_is_given(project: Project) -> None:
    """Refused with the first difference; then replaced, with the reason and the old roots in the manifest; only what is named."""
    other, old = (project.golden("other") / "manifest.json").read_bytes(), manifest(project)
    moved(project)
    before = project.digest()
    refused = project.gate("record", "toy")
    assert (refused.code, refused.row["verdict"], refused.row["first"]["phase"]) == (1, "drift", "loss")
    assert (refused.row["cause"], refused.row["changed_sources"]) == ("code", ["factor.py"])
    assert "--update --reason" in refused.out
    assert project.digest() == before
    updated = project.gate("record", "toy", "--update", "--reason", "The loss is scaled")
    assert (updated.code, updated.row["verdict"]) == (0, "updated")
    reason = manifest(project)["reason"]
    assert isinstance(reason, dict)
    assert reason["text"] == "The loss is scaled"
    steps = old["steps"]
    assert isinstance(steps, list)
    assert set(reason["replaces"].values()) == {root for step in steps for root in step["roots"]}
    assert (project.golden("other") / "manifest.json").read_bytes() == other
    assert project.gate("verify", "toy").row["verdict"] == "identical"


def test_other_settings_with_the_same_bits_need_no_reason(project: Project) -> None:
    """Parameters that nothing reads: no bit has moved, and verify would not judge the golden as it is."""
    project.configure(toy="\nparameters = { unread = 1 }", other="toy\nseed = 3")
    assert project.gate("verify", "toy").row["reason"] == "settings"
    answer = project.gate("record", "toy")
    assert (answer.code, answer.row["verdict"]) == (0, "updated")
    assert manifest(project)["reason"] is None
    assert project.gate("verify", "toy").row["verdict"] == "identical"


def test_what_two_runs_disagree_on_is_not_published(tmp_path: Path) -> None:
    project = Project.new(tmp_path / "project", random="")
    (project.folder / "noise.txt").write_text("1\n")
    answer = project.gate("record")
    assert (answer.code, answer.row["verdict"], answer.row["first"]["phase"]) == (4, "nondeterministic", "loss")
    assert list((project.folder / "goldens").rglob("manifest.json")) == []
    one, other = answer.row["message"].partition("gate diff ")[2].split()
    assert project.gate("diff", one, other).document["first"] == answer.row["first"]


def test_a_kept_run_is_adopted_when_it_is_whole_and_of_the_same_settings(project: Project) -> None:
    """From the folder of the run or of the golden, under the same rules as a recording."""
    moved(project)
    kept = project.gate("verify", "toy", "--no-cause").row["run"]
    run = "/".join(kept.split("/")[:3])
    assert project.gate("record", "--from", run).row["verdict"] == "drift"
    adopted = project.gate("record", "--from", kept, "--update", "--reason", "Meant")
    assert (adopted.code, adopted.row["verdict"], adopted.row["hardware"]) == (0, "updated", "cpu")
    assert project.gate("verify", "toy").row["verdict"] == "identical"
    again = project.gate("record", "toy", "--from", run)
    assert (again.code, again.row["verdict"]) == (0, "identical")


def test_a_kept_run_that_is_damaged_or_of_other_settings_is_not_adopted(project: Project) -> None:
    moved(project)
    kept = project.gate("verify", "toy", "--no-cause").row["run"]
    assert project.gate("record", "other", "--from", kept).code == 2
    before = project.digest()
    step = project.folder / kept / "step-0002.safetensors"
    content = bytearray(step.read_bytes())
    content[-1] ^= 1
    step.write_bytes(content)
    damaged = project.gate("record", "--from", kept, "--update", "--reason", "Meant")
    assert (damaged.code, damaged.row["reason"]) == (3, "corrupt-golden")
    assert "step-0002" in damaged.err
    project.configure(toy="\nseed = 9")
    other = project.gate("record", "--from", kept, "--update", "--reason", "Meant")
    assert (other.code, other.row["reason"]) == (3, "settings")
    assert project.digest() == before


def test_a_corrupt_golden_is_replaced_only_with_a_reason(project: Project) -> None:
    (project.golden("toy") / "manifest.json").write_text("{}")
    refused = project.gate("record", "toy")
    assert (refused.code, refused.row["reason"]) == (3, "corrupt-golden")
    updated = project.gate("record", "toy", "--update", "--reason", "It was damaged")
    assert (updated.code, updated.row["verdict"]) == (0, "updated")
    Golden.open(project.golden("toy")).check()


def test_a_scenario_without_a_golden_of_its_own_cannot_be_recorded(project: Project) -> None:
    project.configure(toy="", twin='toy\nsame_as = "toy"')
    answer = project.gate("record", "twin")
    assert answer.code == 2
    assert "Record toy instead" in answer.err


def test_resuming_must_give_the_same_bits_to_be_recorded(tmp_path: Path) -> None:
    project = Project.new(tmp_path / "project", toy="\nresume_at = 2\nparameters = { forgets = true }")
    answer = project.gate("record")
    assert (answer.code, answer.row["verdict"], answer.row["first"]["step"]) == (4, "nondeterministic", 3)
    assert "after step 2" in answer.row["message"]
