"""What a machine can judge, asked for real; and how that is told."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gate import bulletin, doctor
from gate.cleaning import DAYS
from gate.diagnosis import Cache, Diagnosis, History, Profile, Project, Storage, Torch
from gate.errors import ConfigurationError
from gate.machine import Machine
from gate.prospect import Prospect
from gate.verdict import Reason
from tests.gate.repositories import git
from tests.gate.test_prospect import HERE, RUNNING, project
from tests.golden.goldens import golden

CONFIG = '[tool.gate.scenarios.digits]\nrun = "s.py:digits"\nsteps = 3\n'
GOLDEN = Prospect("digits", "cpu", "2.13.0", True, None, "", "gate verify")
MISSING = Prospect("text", "cpu", "2.13.0", False, Reason.NO_GOLDEN, "there is no golden", "gate record text")

WELL = Diagnosis(
    "3.11.7",
    Path("/venv/bin/python"),
    Machine("cpu", "cpu-amd-epyc"),
    Torch("2.13.0+cu130"),
    Profile(True, aspects={"torch-fp32": True, "libm": True}),
    Project(Path("/p"), "", (GOLDEN,), (replace(GOLDEN, torch="2.4.0", plain=False, how="gate verify --torch 2.4.0"),), 3 * 2**20),
    History(Path("/p"), shallow=False),
    Storage(2**36, Path("/c"), (Cache(Path("/c/a"), "2.4.0+cu121", "3.11.7", 2**32, needed=False),), "uv 0.9", Path("/uv"), 2**30, 2, 5),
)


def gate(folder: Path, *arguments: str) -> tuple[int, str, bool]:
    """Exit code and standard output of a command in a fresh process, and whether that loaded torch."""
    code = "import sys; from gate import cli; code = cli.main(sys.argv[1:]); sys.stderr.write(f'\\n{code} {\"torch\" in sys.modules}')"
    variables = {**os.environ, "XDG_CACHE_HOME": str(folder / ".cache"), "UV_CACHE_DIR": str(folder / ".uv")}
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=folder, env=variables, capture_output=True, text=True, timeout=300)
    ended, loaded = done.stderr.splitlines()[-1].split()
    return int(ended), done.stdout, loaded == "True"


def told(found: Diagnosis) -> str:
    return bulletin.text(found, io.StringIO())


def test_a_machine_that_judges_everything(tmp_path: Path) -> None:
    """Exit code 0, every known answer right, the golden named; gate's own process loads no torch, and the project is as it was."""
    project(tmp_path, f"cpu/torch-{HERE}/digits", "l4/torch-2.9.1+cu129/digits")
    (tmp_path / "pyproject.toml").write_text(CONFIG)
    git(tmp_path, "init", "-q")
    code, out, loaded = gate(tmp_path, "doctor", "--json", "-")
    found = json.loads(out)
    assert (code, loaded) == (0, False)
    assert (found["verdict"], found["reason"], found["message"]) == ("ready", None, "gate verify judges 1 golden here")
    assert found["hardware"]["portable"] == "cpu"
    assert found["torch"]["version"] == RUNNING
    assert found["profile"]["honoured"] is True
    assert len(found["profile"]["aspects"]) >= 6
    assert all(found["profile"]["aspects"].values())
    assert [(row["scenario"], row["torch"], row["plain"]) for row in found["judged"]] == [("digits", HERE, True)]
    assert [row["how"] for row in found["rest"]] == ["on such a machine: gate verify --goldens goldens/l4"]
    assert found["git"] == {"top": str(tmp_path), "shallow": False, "uncommitted": True, "message": None}
    assert found["disk"]["free"] > 0
    assert found["disk"]["environments"] == []
    assert not (tmp_path / ".gate").exists()


def test_a_folder_without_a_project(tmp_path: Path) -> None:
    """Exit code 3 with what to do; the machine is told all the same."""
    code, out, _ = gate(tmp_path, "doctor")
    assert code == 3
    assert "not judged (nothing-checked): No pyproject.toml with a table [tool.gate]" in out
    assert "gate init" in out
    assert "honoured: 8 of 8 known answers are right here" in out
    assert "is in no git repository" in out


def test_clean_is_a_command_by_itself(tmp_path: Path) -> None:
    """It asks no torch; its options alone are a usage error."""
    (tmp_path / "pyproject.toml").write_text(CONFIG)
    old = tmp_path / ".gate/runs/20250101T000000Z-0001"
    golden(old / "cpu/torch-2.13.0/digits")
    assert gate(tmp_path, "doctor", "--dry-run")[0] == 2
    code, out, _ = gate(tmp_path, "doctor", "--clean", "--dry-run", "--json", "-")
    assert (code, json.loads(out)["removed"][0]["path"]) == (0, str(old))
    assert old.is_dir()
    assert gate(tmp_path, "doctor", "--clean")[0] == 0
    assert not old.exists()


def test_nothing_is_cleaned_by_a_configuration_that_is_wrong(tmp_path: Path) -> None:
    """What its goldens need is not known; without any configuration there is no project to clean."""
    assert doctor.sweep(tmp_path, dry=True, days=DAYS).notes
    (tmp_path / "pyproject.toml").write_text("[tool.gate]\ngolden = 1\n")
    with pytest.raises(ConfigurationError, match="golden"):
        doctor.sweep(tmp_path, dry=True, days=None)


def test_what_git_knows(tmp_path: Path) -> None:
    """No repository, goldens that are not committed, committed ones, and a shallow clone of them."""
    here = project(tmp_path / "p", f"cpu/torch-{HERE}/digits")
    assert "in no git repository" in doctor.history(here.root, here).why
    git(here.root, "init", "-q")
    assert doctor.history(here.root, here) == History(here.root, shallow=False, loose=True)
    for _ in range(2):
        git(here.root, "add", "-A")
        git(here.root, "commit", "-q", "--allow-empty", "-m", "a")
    assert doctor.history(here.root, here) == History(here.root, shallow=False)
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{here.root}", "shallow")
    clone = project(tmp_path / "shallow")
    assert doctor.history(clone.root, clone) == History(clone.root, shallow=True)


def test_the_reason_is_the_first_thing_that_hinders() -> None:
    """No torch, no project, a golden that cannot be judged, none at all, a machine with bits of its own; and none where all is well."""
    ill = {
        "no-torch": replace(WELL, torch=Torch("", "no torch here")),
        "nothing-checked": replace(WELL, project=Project(None, "no project")),
        "no-golden": replace(WELL, project=replace(WELL.project, judged=(GOLDEN, MISSING, MISSING))),
        "environment": replace(WELL, profile=Profile(False, aspects={"torch-fp32": True, "libm": False})),
    }
    assert {reason: found.reason for reason, found in ill.items()} == {reason: reason for reason in ill}
    assert {found.exit_code for found in ill.values()} == {3}
    assert ill["no-golden"].message == ("text on cpu: there is no golden. Run: gate record text. 1 other cannot be judged either.")
    assert "(libm)" in ill["environment"].message
    assert replace(WELL, project=replace(WELL.project, judged=())).reason == "no-golden"
    assert (WELL.reason, WELL.exit_code, WELL.as_json()["verdict"]) == (None, 0, "ready")
    unknown = replace(WELL, profile=Profile(None, "no answers are known for Darwin on arm64"))
    assert unknown.reason is None
    assert "not known: no answers are known for Darwin" in told(unknown)


def test_the_text_says_what_is_judged_and_how_to_get_the_rest() -> None:
    lines = told(WELL).splitlines()
    assert "  cpu, torch 2.13.0  digits" in lines
    assert "  cpu, torch 2.4.0  digits: gate verify --torch 2.4.0" in lines
    assert any("torch 2.4.0+cu121, Python 3.11.7, 4.0 GiB: no golden here needs it (gate doctor --clean)" in line for line in lines)
    assert any(line.startswith("  profile") and "honoured: 2 of 2 known answers" in line for line in lines)
    assert lines[-1] == "ready: gate verify judges 1 golden here"


def test_the_text_says_what_is_wrong() -> None:
    """A broken aspect, a shallow clone, loose goldens, no uv, little space, a CUDA device that torch cannot use."""
    found = replace(
        WELL,
        machine=Machine("cpu", "cpu-amd-epyc", "l4"),
        profile=Profile(False, aspects={"torch-fp32": True, "libm": False}),
        history=History(Path("/p"), shallow=True, loose=True),
        storage=replace(WELL.storage, uv=None, free=2**30),
    )
    text = told(found)
    for part in ("NOT honoured: 1 of 2 known answers are right here; wrong: libm", "git fetch --unshallow", "goldens are not committed",
                 "uv  ", "not found", "1.0 GiB free, less than", "l4 (CUDA)", "torch 2.13.0+cu130 cannot use the CUDA device"):  # fmt: skip
        assert part in text
        assert part == "uv  " or part not in told(WELL)
