"""A golden whose bits changed says why, and a commit owns up to it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gate.amended import Amended, Amendment, amended
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
