"""Fits that have to have the same bits: however their data is loaded, killed and resumed, flag on and off."""

from __future__ import annotations

import subprocess
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch.plugins import MixedPrecision

from detector.captured import CapturedStep
from detector.module import Detector, activity, step_activity
from golden.leaf import Snapshot
from tests.detector.fits import WIDTH, checkpoint, fit, logged, recorded
from tests.detector.folders import coco_folder
from tests.golden.states import same
from tests.musgd.standin import StandIn

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.* is deprecated:FutureWarning"),  # Lightning 2.6 under torch 2.13
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),  # Python 3.12
    pytest.mark.filterwarnings("ignore:GPU available but not used"),
    pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step"),  # torch, where a scaler skips the first step
]


def equal(one: list[Snapshot], other: list[Snapshot]) -> bool:
    """Whether two recordings have the same steps with the same leaves and bits."""
    return [each.step for each in one] == [each.step for each in other] and all(map(same, one, other))


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """So many images that a MiB does not hold them: 100 of 12 KiB."""
    return coco_folder(tmp_path_factory.mktemp("larger"), train=100, val=1)


def test_how_data_is_loaded_moves_no_bit(larger: Path) -> None:
    """Two workers or none, persistent or not, everything in memory or in a file: batch, gradients, weights, generators."""
    plain = recorded(larger, steps=6, data={"cache_limit": None}, limit_train_batches=4)
    ways: list[dict[str, Any]] = [
        {"workers": 2, "cache_limit": None},
        {"workers": 2, "persistent_workers": True, "cache_limit": 1},
        {"workers": 0, "cache_limit": 1},
    ]
    for data in ways:
        assert equal(recorded(larger, steps=6, data=data, limit_train_batches=4), plain), data
    others: list[dict[str, Any]] = [{"seed": 1}, {"augment": False}, {"batch": 3}]
    for data in others:
        assert not equal(recorded(larger, steps=6, data=data, limit_train_batches=4), plain), data


@pytest.mark.slow
def test_a_killed_fit_goes_on_as_if_it_had_not_been(folder: Path, tmp_path: Path) -> None:
    """Killed in mid-epoch, after 5 of 8 batches of the second, and resumed: weights, average, momenta, schedule, progress, curves.

    It is saved after each batch, and up to two of these checkpoints are on their way to the file when the process goes away.
    """
    small = ("--model.width", WIDTH, "--data.batch", 2, "--last.every_n_train_steps", 1, "--data.workers", 1)
    whole = fit(folder, tmp_path / "whole", *small)
    assert whole.returncode == 0, whole.stderr
    kill = '{"class_path": "tests.detector.fits.Kill", "init_args": {"step": 13}}'
    killed = fit(folder, tmp_path / "parts", *small, "--trainer.callbacks+", kill)
    assert killed.returncode == -9
    last = torch.load(checkpoint(tmp_path / "parts", "last"), map_location="cpu", weights_only=False)
    done = last["global_step"]
    assert done in (11, 12, 13)
    assert last["epoch"] == 1
    resumed = fit(folder, tmp_path / "parts", *small, "--ckpt_path", checkpoint(tmp_path / "parts", "last"))
    assert resumed.returncode == 0, resumed.stderr
    ends = [checkpoint(tmp_path / "whole", "last"), checkpoint(tmp_path / "parts", "last", version=1)]
    one, other = (torch.load(end, map_location="cpu", weights_only=False) for end in ends)
    assert other["global_step"] == 16
    for part in ("state_dict", "optimizer_states", "lr_schedulers"):
        assert alike(one[part], other[part]), part
    assert not alike(one["state_dict"], last["state_dict"])
    assert not alike(one["optimizer_states"], last["optimizer_states"])
    assert logged(tmp_path / "parts", "train/loss", version=1) == logged(tmp_path / "whole", "train/loss")[done:]
    assert logged(tmp_path / "parts", "train/loss") == logged(tmp_path / "whole", "train/loss")[:13]  # up to the last one asked for
    assert logged(tmp_path / "parts", "val/mAP", version=1) == logged(tmp_path / "whole", "val/mAP")[1:]
    other_data = fit(folder, tmp_path / "parts", *small, "--data.seed", 1, "--ckpt_path", checkpoint(tmp_path / "parts", "last"))
    assert other_data.returncode == 2
    assert "seed = 0, and here it is 1" in other_data.stderr


def alike(one: Any, other: Any) -> bool:
    """Whether two checkpoints' parts hold the same keys, types and bits."""
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and one.shape == other.shape and bool(one.numpy().tobytes() == other.numpy().tobytes())
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)


FLAGS = {"capture_updates": True, "capture_orthogonalization": True, "capture_step": True}
LINES = ("capture_orthogonalization", "capture_updates", "capture_step")


@pytest.mark.parametrize(
    "variant",
    [{}, {"accumulate_grad_batches": 2}, {"precision": "bf16-mixed"}, {"scaler": True}],
    ids=["plain", "accumulated", "bf16", "fp16"],
)
def test_the_flags_move_no_bit(variant: dict[str, Any], folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """On and off, with the line that says why they are not active here; the scaler's first scale is too large, and steps are skipped."""
    fits = []
    for module in ({}, FLAGS):
        options = dict(variant)
        if options.pop("scaler", False):
            options["plugins"] = [MixedPrecision("16-mixed", "cpu", torch.amp.GradScaler("cpu", init_scale=2.0**40))]
        caplog.clear()
        with caplog.at_level("INFO"):
            fits.append(recorded(folder, steps=8, module=module, **options))
        said = "not active (no CUDA device)" if module else "off"
        assert [message for message in caplog.messages if message.startswith("capture_")] == [f"{flag}: {said}" for flag in LINES]
    assert equal(*fits)
    assert not equal(fits[0], recorded(folder, steps=8, module={"lr": 0.05}, **variant_of(variant)))


def test_on_cuda_the_line_says_what_the_flag_is_active_beside() -> None:
    """Alone, with a scaler, with accumulation, on ranks, and with all of them."""
    assert activity("cuda") == "active"
    assert activity("cpu", scaled=True, accumulated=2, ranks=2) == "not active (no CUDA device)"
    assert activity("cuda", scaled=True).startswith("active (the GradScaler unscales before it")
    assert activity("cuda", accumulated=4) == "active (a step every 4 batches)"
    assert activity("cuda", ranks=2) == "active (each of 2 ranks replays its own, on gradients already averaged)"
    assert activity("cuda", True, 2, 2).count(";") == 2


def test_on_cuda_the_line_says_what_keeps_a_step_from_being_recorded() -> None:
    """A scaler, ranks; accumulation does not."""
    assert step_activity("cuda") == "active"
    assert step_activity("cpu") == "not active (no CUDA device)"
    assert step_activity("cuda", scaled=True) == "not active (a GradScaler scales each loss anew)"
    assert step_activity("cuda", accumulated=4) == "active (a recorded batch is one of 4 of a step)"
    assert step_activity("cuda", ranks=2) == "not active (ranks exchange gradients)"


@pytest.mark.parametrize("variant", [{}, {"accumulate_grad_batches": 2}, {"precision": "bf16-mixed"}], ids=["plain", "accumulated", "bf16"])
def test_recorded_steps_move_no_bit(
    variant: dict[str, Any], folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a stand-in that runs again what was recorded: all but the first batch are replayed, and the module says so when it has ended."""
    ended: list[list[tuple[int, int, int]]] = []
    counts = attrgetter("recordings", "replays", "fallbacks")
    monkeypatch.setattr(Detector, "on_fit_end", lambda module: ended.append([counts(step) for step in module.replay_status()]))
    eager = recorded(folder, steps=8, **variant)
    device = StandIn()
    monkeypatch.setattr("detector.module.CapturedStep", partial(CapturedStep, opens=lambda _: device))
    monkeypatch.setattr(Detector, "_possible", lambda self: True)
    with caplog.at_level("INFO"):
        replayed = recorded(folder, steps=8, module={"capture_step": True, "on_fallback": "raise"}, **variant)
    assert "forward, loss and backward: 1 recorded, 15 replayed, 0 fell back" in caplog.messages
    assert ended == [[], [(1, 15, 0)]]
    assert device.seen["launch"] == 15
    assert not device.graphs
    assert equal(eager, replayed)
    assert not equal(eager, recorded(folder, steps=8, module={"capture_step": True, "on_fallback": "raise", "lr": 0.05}, **variant))


def variant_of(variant: dict[str, Any]) -> dict[str, Any]:
    """The variant without what a Trainer does not know."""
    return {key: value for key, value in variant.items() if key != "scaler"}


@pytest.mark.slow
def test_two_ranks_train_one_model(folder: Path, tmp_path: Path) -> None:
    """Over gloo, flag on and off: the same bits; nothing is said twice."""
    ends, runs = [], []
    for name, extra in (("off", ()), ("on", ("--model.capture_updates", "true"))):
        ranks = ("--trainer.devices", 2, "--trainer.strategy", "ddp", "--model.width", WIDTH, "--trainer.max_epochs", 1)
        done = fit(folder, tmp_path / name, *ranks, *extra)
        assert done.returncode == 0, done.stderr
        runs.append(done)
        ends.append(torch.load(checkpoint(tmp_path / name, "last"), map_location="cpu", weights_only=False))
    assert said(runs[1], "capture_updates") == ["capture_updates: not active (no CUDA device)"]
    assert said(runs[0], "capture_updates") == ["capture_updates: off"]
    assert ends[0]["global_step"] == 2
    for part in ("state_dict", "optimizer_states"):
        assert alike(ends[0][part], ends[1][part])
    ends[1]["optimizer_states"][0]["state"][0]["momentum_buffer"].view(-1).view(torch.int32)[0] ^= 1
    assert not alike(ends[0]["optimizer_states"], ends[1]["optimizer_states"])


def said(done: subprocess.CompletedProcess[str], flag: str) -> list[str]:
    """The lines of a flag."""
    return [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(f"{flag}:")]
