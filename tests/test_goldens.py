"""What this project's own goldens hold: every phase, a training that trains, all supported versions, few bytes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gate import config
from golden.store import Golden

ROOT = Path(__file__).parent.parent
GOLDENS = ROOT / "goldens"
CONFIG = config.find(ROOT)
MIB = 1 << 20
ON_CPUS = sorted(name for name, settings in CONFIG.scenarios.items() if settings.same_as is None and "cpu" in settings.devices)

FIT = {"batch", "loss", "grads", "optimizer", "model", "ema", "scheduler", "rng"}
PHASES = {
    "digits": FIT,
    "digits-adamw": FIT,
    "digits-resume": FIT,
    "text": {"batch", "loss", "norm", "grads", "optimizer", "model", "rng"},
    "detector": FIT | {"metrics"},
    "detector-resume": FIT | {"metrics"},
}
FULL = ("digits",)
FOLDERS = sorted(path.parent for path in GOLDENS.glob("*/torch-*/*/manifest.json"))


def identify(folder: Path) -> str:
    return folder.relative_to(GOLDENS).as_posix()


@pytest.mark.parametrize("version", CONFIG.torch)
@pytest.mark.parametrize("name", ON_CPUS)
def test_every_scenario_has_a_cpu_golden_under_every_supported_torch(name: str, version: str) -> None:
    """A golden of each scenario that runs on CPUs, recorded under the version that its folder names."""
    golden = Golden.open(GOLDENS / "cpu" / f"torch-{version}" / name)
    environment = golden.manifest.environment
    assert str(environment["torch"]).split("+")[0] == version
    assert golden.manifest.scenario["name"] == name


@pytest.mark.parametrize("folder", FOLDERS, ids=identify)
def test_a_golden_is_whole_and_has_its_phases(folder: Path) -> None:
    """Every byte has its digest, and each step that the scenario has holds every phase of its training."""
    golden = Golden.open(folder)
    golden.check()
    steps = [step for step in golden.steps if step]
    assert steps == list(range(1, CONFIG.scenarios[folder.name].steps + 1))
    assert all(set(golden.phases(step)) == PHASES[folder.name] for step in steps)
    assert all(golden.kept(step) == (golden.manifest.scenario["store"] == "full") for step in steps)
    assert folder.name not in FULL or all(map(golden.kept, steps))


@pytest.mark.parametrize("folder", FOLDERS, ids=identify)
def test_each_weight_with_a_gradient_moves(folder: Path) -> None:
    """A weight whose bits are the same after the first step and the last would hold no optimizer to anything.

    At 64 pixels no box is so large that the detector's coarsest levels answer for it: five tensors there have a gradient of zeros.
    """
    golden = Golden.open(folder)
    steps = [step for step in golden.steps if step]
    paths = [leaf.path for leaf in golden.leaves(1) if leaf.phase == "grads" and leaf.kind == "tensor"]
    assert len(paths) > 5
    still = [path for path in paths if golden.digest(1, f"model/{path}") == golden.digest(steps[-1], f"model/{path}")]
    coarse = ("heads.1.distances.", "heads.2.distances.") if folder.name.startswith("detector") and folder.parts[-3] == "cpu" else ()
    assert not [path for path in still if not path.startswith(coarse)]
    assert len(still) <= 5


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder.name in FULL], ids=identify)
def test_the_loss_falls(folder: Path) -> None:
    """The last recorded loss is below the first."""
    golden = Golden.open(folder)
    first, last = (loss(golden, step) for step in (1, 12))
    assert last < first


def loss(golden: Golden, step: int) -> float:
    """The recorded loss, float32."""
    content = golden.bytes(step, "loss")
    assert content is not None
    return float(content.view(np.float32)[0])


def test_goldens_stay_small() -> None:
    """At most 16 MiB in all, so that a clone stays cheap."""
    size = sum(path.stat().st_size for path in GOLDENS.rglob("*") if path.is_file())
    assert FOLDERS
    assert 0 < size <= 16 * MIB


def test_the_data_is_what_the_manifests_name() -> None:
    """The digits are 1797 rows of 64 pixels and a label, and the manifest of a golden vouches for the file's very content."""
    rows = np.loadtxt(GOLDENS / "data" / "digits.csv.gz", delimiter=",")
    assert rows.shape == (1797, 65)
    assert set(rows[:, 64]) == set(range(10))
    manifest = json.loads((GOLDENS / "cpu" / f"torch-{CONFIG.torch[0]}" / "digits" / "manifest.json").read_text(encoding="utf-8"))
    assert "goldens/data/digits.csv.gz" in manifest["sources"]


@pytest.mark.parametrize(("name", "asked"), [("digits", "digits-replay"), ("text", "text-replay"), ("detector", "detector-updates")])
def test_a_replayed_training_is_the_eager_one_with_replay_asked_for(name: str, asked: str) -> None:
    """The very function of the eager scenario, held to its golden on CUDA alone, and nothing falls back unseen."""
    eager, replayed = CONFIG.scenarios[name], CONFIG.scenarios[asked]
    assert (replayed.run, replayed.same_as, replayed.devices) == (eager.run, name, ("cuda",))
    assert dict(replayed.parameters) == {"capture_updates": True, "on_fallback": "raise"}
    assert not eager.parameters
