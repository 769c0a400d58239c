"""A golden whose bits changed says why, and a commit owns up to it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gate.amended import Amended, Amendment, amended
from gate.errors import BaselineFailed
from golden.manifest import Reason
from tests.gate.evidence.records import Toy

OWNED = "Move bits\n\nGolden-Change: digits"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two goldens, one of them with a reason already."""
    toy = Toy.new(tmp_path_factory.mktemp("amended") / "toy")
    toy.golden("text", reason=Reason("Nesterov by default", {}))
    toy.commit("Reason")
    return toy.folder


@pytest.fixture
def toy(prepared: Path, tmp_path: Path) -> Toy:
    return Toy(Path(shutil.copytree(prepared, tmp_path / "toy")))


def look(toy: Toy, since: str) -> Amended:
    return amended(toy.config, toy.git("rev-parse", since))


def only(toy: Toy, since: str = "HEAD~1") -> Amendment:
    found = look(toy, since)
    (change,) = found.changes
    assert found.exit_code == bool(change.faults)
    return change


def test_nothing_is_listed_where_no_bit_moved(toy: Toy) -> None:
    """Not even a golden whose settings or reason were written anew; both were compared."""
    toy.golden("digits", reason=Reason("Only said", {}))
    toy.commit("Say")
    found = look(toy, "HEAD~1")
    assert (found.compared, found.changes, found.exit_code) == (2, (), 0)


def test_a_change_with_a_reason_and_an_owner_is_listed_with_its_census(toy: Toy) -> None:
    toy.golden("digits", seed=5, reason=Reason("Smaller steps", {}))
    toy.commit(OWNED)
    change = only(toy)
    assert (change.golden, change.scenario, change.reason, change.faults) == ("cpu/torch-2.13.0/digits", "digits", "Smaller steps", ())
    assert change.commits == (toy.git("rev-parse", "HEAD"),)
    text = "\n".join(change.lines())
    assert "step 1, phase loss, loss: bits" in text
    assert "1 of 1 element differs, by" in text
    assert change.as_json()["first"]["step"] == 1


def test_a_change_without_a_reason_fails(toy: Toy) -> None:
    """Removed and recorded anew, which no reason is asked for."""
    toy.golden("digits", seed=5)
    toy.commit(OWNED)
    (fault,) = only(toy).faults
    assert fault.startswith("a reason: gate record --update")


def test_a_reason_of_an_earlier_change_is_none(toy: Toy) -> None:
    toy.golden("text", seed=5, reason=Reason("Nesterov by default", {"1/loss": "0" * 32}))
    toy.commit(OWNED.replace("digits", "text"))
    assert only(toy).faults == ("a new reason: it has that of an earlier change",)


@pytest.mark.parametrize("message", ["Move bits", "Move bits\n\nGolden-Change: text", "Move bits\n\nGolden-Change: digits\n\nAnd more."])
def test_a_change_that_no_commit_owns_fails(toy: Toy, message: str) -> None:
    """Without the trailer, with that of another scenario, and where git does not see it."""
    toy.golden("digits", seed=5, reason=Reason("Smaller steps", {}))
    toy.commit(message)
    since = toy.git("rev-parse", "HEAD~1")
    assert only(toy).faults == (f"a commit since {since[:10]} with the trailer Golden-Change: digits",)


def test_a_change_that_is_not_committed_fails(toy: Toy) -> None:
    toy.golden("digits", seed=5, reason=Reason("Smaller steps", {}))
    assert len(only(toy, "HEAD").faults) == 1


def test_a_golden_that_is_gone_needs_an_owner(toy: Toy) -> None:
    shutil.rmtree(toy.folder / "goldens/cpu/torch-2.13.0/digits")
    toy.commit("Tidy up")
    assert only(toy).faults[0].endswith("Golden-Change: digits")
    toy.commit(OWNED)
    assert only(toy, "HEAD~2").faults == ()


def test_a_golden_that_cannot_be_read_fails(toy: Toy) -> None:
    toy.commit(OWNED, goldens__cpu__torch__digits_txt="")
    path = toy.folder / "goldens/cpu/torch-2.13.0/digits/manifest.json"
    path.write_text(path.read_text().replace('"2.13.0"', '"2.13.1"'))
    (fault,) = only(toy, "HEAD~1").faults
    assert "cannot be read" in fault


def rerooted(toy: Toy, before: str = "goldens", after: str = "gold2") -> None:
    """Names another folder for the goldens."""
    file = toy.folder / "pyproject.toml"
    text = file.read_text()
    line = f'goldens = "{before}"\n'
    file.write_text(
        text.replace(line, f'goldens = "{after}"\n')
        if line in text
        else text.replace("[tool.gate]\n", f'[tool.gate]\ngoldens = "{after}"\n')
    )


def test_goldens_that_were_recorded_anew_in_another_folder_have_changed(toy: Toy) -> None:
    """The configuration of the revision says where they were; one that was taken along as it is has not changed."""
    toy.golden("digits", seed=5)
    (toy.folder / "goldens").rename(toy.folder / "gold2")
    rerooted(toy)
    toy.commit("Move")
    found = look(toy, "HEAD~1")
    assert (found.compared, found.exit_code) == (2, 1)
    (change,) = found.changes
    assert (change.golden, len(change.faults)) == ("cpu/torch-2.13.0/digits", 2)
    text = "\n".join(found.lines())
    assert "the goldens were in goldens/ at" in text
    assert "and are in gold2/ now" in text
    assert "goldens/ is gone; at " in text
    assert found.as_json()["root"] == {"before": "goldens", "after": "gold2", "gone": True}


def test_another_folder_with_the_same_goldens_is_told_and_is_no_fault(toy: Toy) -> None:
    rerooted(toy, after="deep/gold")
    shutil.copytree(toy.folder / "goldens", toy.folder / "deep/gold")
    toy.commit("Copy")
    found = look(toy, "HEAD~1")
    assert (found.compared, found.changes, found.gone) == (2, (), False)
    assert len(list(found.lines())) == 1


def test_a_folder_that_was_named_at_the_revision_is_looked_into(toy: Toy) -> None:
    """And back again: what is usual now was not then. The change is owned up to as any other."""
    (toy.folder / "goldens").rename(toy.folder / "gold2")
    rerooted(toy)
    toy.commit("Move")
    (toy.folder / "gold2").rename(toy.folder / "goldens")
    rerooted(toy, "gold2", "goldens")
    toy.golden("digits", seed=5, reason=Reason("Smaller steps", {}))
    toy.commit("Move back")
    assert len(only(toy).faults) == 1
    toy.commit(OWNED)
    assert only(toy, "HEAD~2").faults == ()


def test_a_folder_that_is_gone_is_named_with_each_golden(toy: Toy) -> None:
    shutil.rmtree(toy.folder / "goldens")
    toy.commit("Tidy up")
    found = look(toy, "HEAD~1")
    assert ([change.scenario for change in found.changes], found.exit_code) == (["digits", "text"], 1)
    assert next(iter(found.lines())).startswith("goldens/ is gone; at ")


def test_a_new_name_for_a_folder_that_nobody_recorded_into_removes_every_golden(toy: Toy) -> None:
    rerooted(toy)
    toy.commit("Forget")
    assert len(look(toy, "HEAD~1").changes) == 2


def test_a_folder_behind_a_link_at_the_revision_is_found(toy: Toy) -> None:
    (toy.folder / "store").mkdir()
    (toy.folder / "goldens").rename(toy.folder / "store/real")
    (toy.folder / "goldens").symlink_to("store/real")
    toy.commit("Link")
    (toy.folder / "goldens").unlink()
    (toy.folder / "store/real").rename(toy.folder / "goldens")
    toy.golden("digits", seed=5)
    toy.commit("No link")
    assert look(toy, "HEAD~1").compared == 2
    assert only(toy).scenario == "digits"


def test_before_the_project_used_gate_the_folder_is_that_of_now(toy: Toy) -> None:
    """Without a table, and without the file; a file that cannot be read says nothing, so nothing is judged."""
    text = (toy.folder / "pyproject.toml").read_text()
    for former in (None, "", "[tool.ruff]\n"):
        toy.commit("Before", pyproject_toml=former)
        toy.commit("After", pyproject_toml=text)
        assert look(toy, "HEAD~1").compared == 2
    for broken in ("[tool.gate", "[tool.gate]\ngoldens = 3\n", '[tool.gate]\ngoldens = "../x"\n'):
        toy.commit("Broken", pyproject_toml=broken)
        toy.commit("Mended", pyproject_toml=text)
        with pytest.raises(BaselineFailed, match="Name another commit"):
            look(toy, "HEAD~1")


def test_a_merge_may_own_up(toy: Toy) -> None:
    toy.git("checkout", "-q", "-b", "side")
    toy.golden("digits", seed=5, reason=Reason("Smaller steps", {}))
    toy.commit("Move bits")
    toy.git("checkout", "-q", "main")
    toy.commit("Meanwhile", README_md="# A\n")
    toy.git("merge", "-q", "--no-ff", "-m", OWNED, "side")
    assert only(toy).faults == ()


def test_a_shallow_clone_that_lacks_commits_between_judges_nothing(toy: Toy, tmp_path: Path) -> None:
    """One of them may own up to the change."""
    toy.golden("digits", seed=5, reason=Reason("Smaller steps", {}))
    toy.commit(OWNED)
    toy.commit("More", README_md="# A\n")
    base = toy.git("rev-parse", "HEAD~2")
    toy.git("clone", "-q", "--depth", "1", toy.folder.as_uri(), str(tmp_path / "clone"))
    clone = Toy(tmp_path / "clone")
    clone.git("fetch", "-q", "--depth", "1", "origin", base)
    with pytest.raises(BaselineFailed, match="git fetch --unshallow"):
        amended(clone.config, base)
    clone.git("fetch", "-q", "--unshallow")
    assert len(amended(clone.config, base).changes) == 1
