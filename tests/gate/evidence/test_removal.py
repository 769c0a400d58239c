"""A golden that is not there is missing, whoever removed it or never recorded it."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from gate.errors import ConfigurationError
from gate.evidence.judging import State
from gate.evidence.removal import removed
from tests.gate.evidence.records import CONFIG, TORCH, Toy
from tests.gate.repositories import write

GPU = CONFIG.replace('goldens = ["cpu"]', 'goldens = ["cpu", "h200"]').replace("steps = 2", 'steps = 2\ndevices = ["cpu", "cuda"]')
ANOTHER = "2.11.0"
WORD = "\n\nGolden-Change: digits, text"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with goldens of a GPU under two versions of torch."""
    toy = Toy.new(tmp_path_factory.mktemp("prepared") / "toy")
    for name in ("digits", "text"):
        folder = toy.golden(name, hardware="h200")
        shutil.copytree(folder, toy.folder / f"goldens/h200/torch-{ANOTHER}" / name)
    toy.commit("GPU", pyproject_toml=GPU)
    toy.everything()
    return toy.folder


@pytest.fixture
def toy(prepared: Path, tmp_path: Path) -> Toy:
    return Toy(Path(shutil.copytree(prepared, tmp_path / "toy")))


def remove(toy: Toy, path: str, message: str = "Tidy up") -> str:
    """Removes a folder of goldens, and commits it."""
    shutil.rmtree(toy.folder / path)
    return toy.commit(message)


def needed(toy: Toy, hardware: str = "h200") -> dict[str | None, str]:
    """The state of each version that goldens of a hardware are needed of."""
    lines = [line for line in toy.status().lines if (line.need.check, line.need.hardware) == ("goldens", hardware)]
    return {line.need.torch: line.state.value for line in lines}


def test_a_removed_golden_is_missing(toy: Toy) -> None:
    """Though its record is there still, and reads as if it were only stale."""
    assert toy.line("cpu/goldens").state is State.FRESH
    remove(toy, f"goldens/cpu/torch-{TORCH}/text")
    line = toy.line("cpu/goldens")
    assert (line.state, line.reason) == (State.MISSING, f"text: no golden. Run gate record text --torch {TORCH}")
    assert toy.status().exit_code == 3


def test_a_folder_without_a_manifest_is_no_golden(toy: Toy) -> None:
    write(toy.folder, {f"goldens/cpu/torch-{TORCH}/text/manifest.json": None})
    assert toy.line("cpu/goldens").state is State.MISSING


def test_a_scenario_that_was_never_recorded_is_missing(toy: Toy) -> None:
    """One that runs on such a device; a golden of its own or that of the scenario whose bits it has."""
    more = '\n[tool.gate.scenarios.more]\nrun = "scenarios.py:digits"\nsteps = 2\n'
    toy.commit("More", pyproject_toml=GPU + more + 'devices = ["cuda"]\n')
    assert toy.line("cpu/goldens").state is State.FRESH
    toy.commit("More", pyproject_toml=GPU + more)
    assert toy.line("cpu/goldens").reason == f"more: no golden. Run gate record more --torch {TORCH}"
    toy.commit("Same", pyproject_toml=GPU + more + 'same_as = "digits"\n')
    assert toy.line("cpu/goldens").reason == f"more: no record. Run gate verify --torch {TORCH}"
    toy.verified("more", scenario="more")
    assert toy.line("cpu/goldens").state is State.FRESH


def test_the_need_does_not_go_with_a_gpus_folder(toy: Toy) -> None:
    """Neither with one that a commit removed, nor with one that is gone from the work tree alone, nor with all of them."""
    assert set(needed(toy)) == {TORCH, ANOTHER}
    shutil.rmtree(toy.folder / f"goldens/h200/torch-{ANOTHER}")
    assert needed(toy)[ANOTHER] == "missing"
    toy.commit("Tidy up")
    assert needed(toy)[ANOTHER] == "missing"
    remove(toy, "goldens/h200")
    assert needed(toy) == {TORCH: "missing", ANOTHER: "missing"}
    toy.git("revert", "--no-edit", "HEAD", "HEAD~1")
    assert removed(toy.config) == {}


def test_a_commit_that_says_that_goldens_changed_ends_the_need(toy: Toy) -> None:
    remove(toy, f"goldens/h200/torch-{ANOTHER}", "Drop torch 2.11\n\nGolden-Change: digits, text")
    assert set(needed(toy)) == {TORCH}


@pytest.mark.parametrize(("first", "last", "needed"), [(WORD, "", True), ("", WORD, False)])
def test_the_last_removal_decides(toy: Toy, first: str, last: str, needed: bool) -> None:
    """Of a folder that was removed, recorded again, and removed again."""
    folder = toy.folder / f"goldens/h200/torch-{ANOTHER}"
    kept = shutil.copytree(folder, toy.folder.parent / "kept")
    remove(toy, f"goldens/h200/torch-{ANOTHER}", f"Drop{first}")
    shutil.copytree(kept, folder)
    toy.commit("Again")
    remove(toy, f"goldens/h200/torch-{ANOTHER}", f"Drop{last}")
    assert removed(toy.config) == ({"h200": (ANOTHER,)} if needed else {})


@pytest.mark.parametrize(("word", "needed"), [(WORD, False), ("", True)])
def test_a_merge_says_what_its_branch_said(toy: Toy, word: str, needed: bool) -> None:
    main = toy.git("branch", "--show-current")
    toy.git("switch", "-qc", "work")
    remove(toy, f"goldens/h200/torch-{ANOTHER}", f"Drop{word}")
    toy.git("switch", "-q", main)
    toy.commit("Meanwhile", other_py="x = 1\n")
    toy.git("merge", "-q", "--no-ff", "-m", "Merge work", "work")
    assert removed(toy.config) == ({"h200": (ANOTHER,)} if needed else {})


def test_a_merge_that_removes_them_itself_is_looked_at(toy: Toy) -> None:
    main = toy.git("branch", "--show-current")
    toy.git("switch", "-qc", "work")
    toy.commit("More", more_py="x = 1\n")
    toy.git("switch", "-q", main)
    toy.commit("Meanwhile", other_py="x = 1\n")
    toy.git("merge", "-q", "--no-ff", "--no-commit", "work")
    remove(toy, f"goldens/h200/torch-{ANOTHER}", "Merge work")
    assert removed(toy.config) == {"h200": (ANOTHER,)}


def test_without_a_table_the_hardware_is_remembered_as_well(toy: Toy) -> None:
    head, _, tail = GPU.partition("[tool.gate.required]")
    toy.commit("No table", pyproject_toml=head + tail[tail.index("[tool") :])
    remove(toy, "goldens/h200")
    assert needed(toy) == {TORCH: "missing", ANOTHER: "missing"}


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('mutation = ["cpu"]\npaths = ["toyy"]', "paths names 'toyy', where the project has no Python file"),
        ('mutation = ["cpu"]\npaths = { cpu = ["README.md"] }', "paths.cpu names 'README.md'"),
        ('mutation = ["cpu"]\npaths = ["goldens"]', "paths names 'goldens'"),
        ('mutation = ["cpu"]\npaths = [".."]', "paths names '..'"),
        ('mutation = ["cpu"]\npaths = ["src/../../toy/../elsewhere/a.py"]', "paths names 'src/../../toy/../elsewhere/a.py'"),
        ('mutation = ["cpu"]\npaths = ["/"]', "paths names '/'"),
        ('tests = ["cpu"]\nkeep = ["nonsense"]', "keep names 'nonsense', of which nothing is required"),
        ('tests = ["cpu"]\nkeep = ["test"]', "did you mean 'tests'?"),
        ('tests = ["cpu"]\nkeep = ["mutation"]', "keep names 'mutation', of which nothing is required"),
        ('goldens = ["cpu"]\nkeep = ["cpu/torch-9.9.9"]', "keep names 'cpu/torch-9.9.9'"),
        ('goldens = ["cpu"]\nkeep = ["h200/torch-2.13.0"]', "keep names 'h200/torch-2.13.0'"),
    ],
)
def test_what_names_nothing_is_told(toy: Toy, table: str, told: str) -> None:
    head, _, tail = CONFIG.partition("[tool.gate.required]")
    write(toy.folder, {"pyproject.toml": f"{head}[tool.gate.required]\n{table}\n{tail[tail.index('[tool') :]}"})
    with pytest.raises(ConfigurationError) as caught:
        toy.status()
    assert told in str(caught.value)


def test_what_names_something_is_taken(toy: Toy) -> None:
    names = '"tests", "cpu", "h200", "cpu/torch-2.13.0", "h200/torch-2.11.0"'
    table = CONFIG.replace('mutation = ["cpu"]', f'mutation = ["cpu"]\npaths = ["src/", "scenarios.py"]\nkeep = [{names}]')
    write(toy.folder, {"pyproject.toml": table})
    assert toy.line("cpu/goldens").state is State.FRESH


def test_what_is_no_plain_file_is_no_record_and_keeps_nobody_waiting(toy: Toy) -> None:
    """A pipe would wait for its writer; a folder, a link and one that leads nowhere count as none. New records are written beside them."""
    folder = toy.folder / ".gate/evidence"
    (known,) = folder.glob("mutation-*")
    odd = [folder / f"mutation-cpu-torch-{TORCH}-{name * 16}.json" for name in "0123"]
    os.mkfifo(odd[0])
    odd[1].mkdir()
    odd[2].symlink_to(known)
    odd[3].symlink_to("nowhere")
    begun = time.monotonic()
    toy.mutation()
    notes = toy.status().notes
    assert time.monotonic() - begun < 30
    assert sum("no plain file" in note for note in notes) == 4
    assert toy.line("cpu/mutation").state is State.FRESH
    assert all(os.path.lexists(path) for path in odd)
