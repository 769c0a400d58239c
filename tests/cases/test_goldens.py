"""Goldens of a project under `gate`: G1, G17, G19, G20 and G29; over processes, G27."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import torch

from golden import manifest
from golden.sources import digest_text
from golden.store import Golden
from tests.cases.projects import relabelled
from tests.cases.recordings import differences
from tests.gate.projects import Answer, Project
from tests.gate.repositories import commit, init

CHANGED = "SCALE = 1.25\n"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project in a git repository with the goldens of two scenarios; tests take copies."""
    project = Project.new(init(tmp_path_factory.mktemp("recorded") / "project"), toy="", other="toy\nseed = 3")
    answer = project.gate("record")
    assert answer.code == 0, answer.err
    commit(project.folder, {}, "Record the goldens")
    return project


@pytest.fixture(scope="module")
def drifted(recorded: Project, tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Answer]:
    """The project with code that moves bits, and what verify said of it."""
    project = recorded.copy(tmp_path_factory.mktemp("drifted") / "project")
    (project.folder / "factor.py").write_text(CHANGED)
    return project, project.gate("verify", "toy")


@pytest.fixture
def project(recorded: Project, tmp_path: Path) -> Project:
    return recorded.copy(tmp_path / "project")


@pytest.mark.case("G1")
def test_a_golden_of_another_torch_is_not_used_and_the_base_tells_code_from_environment(project: Project) -> None:
    """No golden: the nearest is named, with how the environments differ. Against the base only code makes a difference."""
    here = project.golden("toy")
    installed = {"numpy": np.__version__, "torch": version("torch")}
    old = {**installed, "torch": "2.1.0", "scikit-learn": "1.5.0"}  # which the scenario may import, or not, once it runs
    relabelled(here, here.parent.with_name("torch-2.1.0") / "toy", torch="2.1.0+cu118", distributions=old)
    shutil.rmtree(here)
    row = project.gate("verify", "toy").row
    assert (row["verdict"], row["reason"], row["golden"]) == ("not-judged", "no-golden", "toy")
    assert "cpu/torch-2.1.0/toy" in row["message"]
    assert row["message"].endswith("gate record toy")
    assert row["environment_changes"] == [
        {"path": "torch", "expected": "2.1.0+cu118", "actual": torch.__version__},
        {"path": "distributions.torch", "expected": "2.1.0", "actual": installed["torch"]},
    ]
    same = project.gate("verify", "toy", "--base", "HEAD")
    assert (same.code, same.row["against"], same.row["verdict"]) == (0, "base", "identical")
    (project.folder / "factor.py").write_text(CHANGED)
    changed = project.gate("verify", "toy", "--base", "HEAD")
    assert changed.code == 1
    assert (changed.row["verdict"], changed.row["cause"], changed.row["changed_sources"]) == ("drift", "code", ["factor.py"])


@pytest.mark.case("G17")
def test_the_golden_of_other_hardware_is_never_used(drifted: tuple[Project, Answer], tmp_path: Path) -> None:
    """Though its bits are the very ones: beside a golden of this hardware the run is drift, and without one not judged."""
    source, answer = drifted
    kept = source.folder / answer.row["run"]
    project = source.copy(tmp_path / "project")
    here = project.golden("toy")
    fitting = relabelled(kept, project.folder / "goldens/l4" / here.parent.name / "toy")
    beside = project.gate("verify", "toy", "--no-cause")
    assert (beside.code, beside.row["verdict"], beside.row["hardware"]) == (1, "drift", "cpu")
    assert differences(fitting, Golden.open(project.folder / beside.row["run"])) == ()
    shutil.rmtree(here)
    alone = project.gate("verify", "toy", "--no-cause")
    assert (alone.code, alone.row["reason"], alone.row["hardware"]) == (3, "no-golden", "cpu")
    assert f"l4/{here.parent.name}/toy" in alone.row["message"]


@pytest.mark.case("G19")
def test_recording_by_name_touches_that_name_alone(project: Project) -> None:
    """One golden is updated; the other's files, whose scenario moved as well, stay as they are, and are drift."""
    other = project.golden("other")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(other.iterdir())}
    old = (project.golden("toy") / "manifest.json").read_bytes()
    (project.folder / "factor.py").write_text(CHANGED)
    updated = project.gate("record", "toy", "--update", "--reason", "The loss is scaled")
    assert updated.brief("scenario", "verdict") == [("toy", "updated")]
    assert (project.golden("toy") / "manifest.json").read_bytes() != old
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(other.iterdir())} == before
    assert sorted(path.name for path in other.parent.iterdir()) == ["other", "toy"]
    judged = project.gate("verify", "--no-cause")
    assert judged.brief("scenario", "verdict") == [("toy", "identical"), ("other", "drift")]


def values(folder: Path, step: int, full: str) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    """Bits of a float32 tensor, int32 [elements]."""
    content = Golden.open(folder).bytes(step, full)
    assert content is not None
    return content.view(np.int32).reshape(-1)


@pytest.mark.case("G20")
def test_what_failed_is_kept_and_counted(drifted: tuple[Project, Answer]) -> None:
    """The produced side is there to be looked at; count, index, both values and distance are those that its files hold."""
    project, answer = drifted
    row = answer.row
    assert (row["verdict"], row["cause"]) == ("drift", "code")
    assert None not in row["first"].values()
    produced = project.folder / row["run"]
    diff = project.gate("diff", str(project.golden("toy")), row["run"])
    assert (diff.code, diff.document["first"]) == (1, row["first"])
    (found,) = [each for each in diff.document["differences"] if (each["step"], each["path"]) == (2, "model/weight")]
    one, other = (values(folder, 2, "model/weight") for folder in (project.golden("toy"), produced))
    wrong = np.flatnonzero(one != other)
    place = np.unravel_index(wrong[0], (2, 3))
    same_sign = wrong[(one[wrong] < 0) == (other[wrong] < 0)]
    assert (found["kind"], found["differing"], found["elements"]) == ("bits", len(wrong), 6)
    assert found["index"] == [int(index) for index in place]
    assert (int(found["expected"], 16), int(found["actual"], 16)) == tuple(int(side.view(np.uint32)[wrong[0]]) for side in (one, other))
    assert found["max_ulp"] >= np.abs(one[same_sign].astype(np.int64) - other[same_sign]).max()
    log = produced.with_name("toy.log")
    assert log.read_text() == "hello from the scenario\n"


@pytest.mark.case("G29")
def test_line_ends_are_not_content(project: Project) -> None:
    """A checkout with CR LF has the same sources; beside it a real change is the only one that is named."""
    for name in ("scenarios.py", "factor.py", "noise.txt"):
        path = project.folder / name
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    sources = manifest.read(project.golden("toy")).sources
    assert sources.keys() == {"factor.py", "scenarios.py"}
    for name, recorded in sources.items():
        content = (project.folder / name).read_bytes()
        assert b"\r\n" in content
        assert digest_text(content) == recorded != digest_text(content + b"\r\n")
    same = project.gate("verify", "toy")
    assert (same.row["verdict"], same.row["changed_sources"]) == ("identical", [])
    (project.folder / "factor.py").write_bytes(CHANGED.replace("\n", "\r\n").encode())
    changed = project.gate("verify", "toy")
    assert (changed.row["verdict"], changed.row["cause"], changed.row["changed_sources"]) == ("drift", "code", ["factor.py"])


TEN = """
import sys
from pathlib import Path
import torch
from golden.recorder import gradients
from tests.cases.recordings import record

names = {"ab", "cd", "ef", "gh", "ij", "kl"}
print(*names)

def train(recorder):
    model = torch.nn.ModuleDict({name: torch.nn.Linear(2, 2) for name in sorted(names)})
    optimizer = torch.optim.AdamW(model.parameters(), lr=float(sys.argv[2]))
    for _ in range(recorder.steps):
        loss = sum(layer(torch.randn(3, 2)).square().mean() for layer in model.values())
        loss.backward()
        optimizer.step()
        recorder(loss=loss, names=names, grads=gradients(model), optimizer=optimizer, model=model)

record(Path(sys.argv[1]), train, steps=2)
"""


def ten(folder: Path, seed: int, rate: float = 0.1) -> tuple[str, dict[str, bytes]]:
    """The order that a set has in a process of its own, and every file that it recorded."""
    command = [sys.executable, "-c", TEN, str(folder), str(rate)]
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout, {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.case("G27")
def test_ten_processes_record_the_same_manifest_and_digests(tmp_path: Path) -> None:
    """Down to the bytes of every file, though their sets have other orders; an eleventh that trains otherwise is drift."""
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(ten, [tmp_path / str(seed) for seed in range(10)], range(10)))
    assert len({order for order, _ in done}) > 1, "the processes must differ in something"
    first = done[0][1]
    assert list(first) == ["digests.safetensors", "manifest.json", "step-0001.safetensors", "step-0002.safetensors"]
    for _, files in done[1:]:
        assert [name for name in first if files[name] != first[name]] == []
    golden = Golden.open(tmp_path / "0")
    assert differences(golden, Golden.open(tmp_path / "9")) == ()
    _, other = ten(tmp_path / "other", 0, rate=0.2)
    assert [name for name in first if other[name] != first[name]] == list(first)
    assert differences(golden, Golden.open(tmp_path / "other"))[0].path == "optimizer/group0/lr"
