"""Checkpoints are written in the background: what they hold is that of the moment, and a file is there as a whole or not at all."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO
from lightning.pytorch.callbacks import GradientAccumulationScheduler, ModelCheckpoint
from torch import nn

from detector.checkpoints import MOST, Checkpoints, on_host
from detector.data import CocoData
from detector.module import Detector
from tests.detector.fits import WIDTH


@pytest.fixture
def saver() -> Iterator[Checkpoints]:
    found = Checkpoints()
    yield found
    found.teardown()


def state() -> dict[str, Any]:
    network = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    odd = {"turned": torch.arange(6.0).view(2, 3).t(), "empty": torch.empty(0, 2), "half": torch.ones((), dtype=torch.bfloat16)}
    return {"state_dict": network.state_dict(), "optimizer_states": [{"state": {0: odd}, "param_groups": [{"lr": 0.1, "params": [0]}]}]}


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other.to(one.device))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def shift(given: dict[str, Any]) -> None:
    """Changes all of a state in place, as the next step does."""
    for tensor in [*given["state_dict"].values(), *given["optimizer_states"][0]["state"][0].values()]:
        tensor += 1
    given["optimizer_states"][0]["param_groups"][0]["lr"] = 0.2


def on(device: str, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, OrderedDict):
        for key in value:
            value[key] = on(device, value[key])
        return value
    if isinstance(value, dict):
        return {key: on(device, inner) for key, inner in value.items()}
    return [on(device, inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_a_copy_is_on_the_host_and_shares_nothing(device: str) -> None:
    given = on(device, state())
    copied = on_host(given)
    assert same(given, copied)
    tensors = [*copied["state_dict"].values(), *copied["optimizer_states"][0]["state"][0].values()]
    assert {tensor.device.type for tensor in tensors} == {"cpu"}
    assert all(tensor.untyped_storage().nbytes() == tensor.nbytes for tensor in tensors)  # a file holds no more than what is asked for
    assert copied["state_dict"]._metadata == given["state_dict"]._metadata
    shift(given)
    theirs = [*given["state_dict"].values(), *given["optimizer_states"][0]["state"][0].values()]
    assert not any(same(one, other) for one, other in zip(theirs, tensors, strict=True) if one.numel())
    assert same(copied["optimizer_states"][0]["param_groups"], [{"lr": 0.1, "params": [0]}])


def test_a_file_holds_what_there_was_when_it_was_asked_for(saver: Checkpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although one that takes the place of another is written later; and what loads it waits for it."""
    given, before, path = state(), state(), tmp_path / "folder" / "one.ckpt"
    saver.save_checkpoint(state(), path)
    earlier = path.read_bytes()  # a new one is there at once
    may = hold(monkeypatch)
    before["state_dict"] = {key: value.clone() for key, value in given["state_dict"].items()}
    saver.save_checkpoint(given, path)
    shift(given)
    assert path.read_bytes() == earlier
    may.set()
    found = saver.load_checkpoint(path, weights_only=True)
    assert path.read_bytes() != earlier
    assert same(before["state_dict"], found["state_dict"])
    assert not same(given["state_dict"], found["state_dict"])
    assert found["state_dict"]._metadata[""] == {"version": 1}


def test_no_more_than_two_are_on_their_way_and_the_end_waits_for_all(
    saver: Checkpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [tmp_path / f"{number}.ckpt" for number in range(MOST + 1)]
    for place in places:
        saver.save_checkpoint(state(), place)
    earlier = [place.read_bytes() for place in places]
    may = hold(monkeypatch)
    for place in places[:MOST]:
        saver.save_checkpoint(state(), place)
    third = threading.Thread(target=saver.save_checkpoint, args=(state(), places[-1]))
    third.start()
    third.join(0.3)
    assert third.is_alive()
    assert [place.read_bytes() for place in places] == earlier
    may.set()
    third.join(30)
    saver.teardown()
    assert all(place.read_bytes() != before for place, before in zip(places, earlier, strict=True))
    saver.save_checkpoint(state(), tmp_path / "again.ckpt")  # another fit of the same Trainer
    saver.remove_checkpoint(tmp_path / "again.ckpt")
    assert not (tmp_path / "again.ckpt").exists()


def test_what_cannot_be_written_is_an_error_of_the_next_or_of_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("good.ckpt", "bad.ckpt"):
        Checkpoints().save_checkpoint(state(), tmp_path / name)
    fill(monkeypatch)
    for ends in (True, False):
        saver = Checkpoints()
        saver.save_checkpoint(state(), tmp_path / "good.ckpt")
        saver.save_checkpoint(state(), tmp_path / "bad.ckpt")
        with pytest.raises(OSError, match="no space"):
            saver.teardown() if ends else save(saver, tmp_path / "good.ckpt", MOST)
        saver.teardown()  # said once
        assert same(torch.load(tmp_path / "good.ckpt", weights_only=True)["optimizer_states"], state()["optimizer_states"])


def test_a_fit_that_fails_is_not_hidden_by_a_checkpoint_that_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saver = Checkpoints()
    saver.save_checkpoint(state(), tmp_path / "bad.ckpt")
    fill(monkeypatch)
    saver.save_checkpoint(state(), tmp_path / "bad.ckpt")
    with pytest.warns(UserWarning, match="a checkpoint could not be written: no space"):
        interrupted(saver)


def interrupted(saver: Checkpoints) -> None:
    """As Lightning ends a fit that has raised."""
    try:
        raise ValueError
    except ValueError:
        saver.teardown()


@pytest.mark.filterwarnings("ignore")  # Lightning's, of what a fit so small leaves out
def test_lightning_finds_each_file_that_it_asked_for(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is counted up, and a link to it, while the writer is slow: of three checkpoints three are there."""
    write = TorchCheckpointIO.save_checkpoint

    def slow(self: TorchCheckpointIO, *arguments: Any) -> None:
        time.sleep(0.3)
        write(self, *arguments)

    monkeypatch.setattr(TorchCheckpointIO, "save_checkpoint", slow)
    keeper = ModelCheckpoint(tmp_path, filename="x", monitor="train/loss", save_top_k=-1, every_n_train_steps=1, save_last="link")
    quiet: dict[str, Any] = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    source = CocoData(str(folder), size=64, batch=2)
    trainer = pl.Trainer(
        accelerator="cpu", devices=1, max_steps=3, limit_val_batches=0, callbacks=[keeper], plugins=[Checkpoints()], **quiet
    )
    trainer.fit(Detector(source.names, size=64, width=WIDTH), source)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["last.ckpt", "x-v1.ckpt", "x-v2.ckpt", "x.ckpt"]
    assert torch.load(tmp_path / "last.ckpt", weights_only=False)["global_step"] == 3


class Seeds:
    """In place of recorded steps: keeps what a batch's gradient is to begin with, and does nothing."""

    def __init__(self) -> None:
        self.seed, self.seen = 1.0, list[float]()

    def __call__(self, *batch: torch.Tensor) -> None:
        self.seen.append(self.seed)

    def release(self) -> None:
        self.recordings = self.replays = self.fallbacks = 0


class Begins(pl.Callback):
    def __init__(self) -> None:
        self.seeds = Seeds()

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        pl_module.captured = self.seeds  # type: ignore[assignment]


@pytest.mark.filterwarnings("ignore")
def test_a_recorded_batch_is_part_of_a_step_as_the_trainer_has_it(folder: Path) -> None:
    """How many batches a step sums up may change from epoch to epoch."""
    begins, scheduler = Begins(), GradientAccumulationScheduler({0: 1, 1: 4})
    quiet: dict[str, Any] = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    source = CocoData(str(folder), size=64, batch=4)
    trainer = pl.Trainer(accelerator="cpu", devices=1, max_epochs=2, limit_val_batches=0, callbacks=[begins, scheduler], **quiet)
    trainer.fit(Detector(source.names, size=64, width=WIDTH), source)
    assert begins.seeds.seen == [1.0] * 4 + [0.25] * 4


def save(saver: Checkpoints, path: Path, times: int) -> None:
    for _ in range(times):
        saver.save_checkpoint(state(), path)


def fill(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk takes no bad.ckpt."""
    write = TorchCheckpointIO.save_checkpoint

    def full(self: TorchCheckpointIO, checkpoint: dict[str, Any], path: Path, storage_options: Any = None) -> None:
        if path.name == "bad.ckpt":
            raise OSError("no space")
        write(self, checkpoint, path, storage_options)

    monkeypatch.setattr(TorchCheckpointIO, "save_checkpoint", full)


def hold(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """No file is written before the event is set."""
    may, write = threading.Event(), TorchCheckpointIO.save_checkpoint

    def late(self: TorchCheckpointIO, *arguments: Any) -> None:
        assert may.wait(30)
        write(self, *arguments)

    monkeypatch.setattr(TorchCheckpointIO, "save_checkpoint", late)
    return may


class Asks(pl.Callback):
    """Keeps what a callback is told of each batch."""

    def __init__(self) -> None:
        self.told: list[dict[str, float]] = []
        self.shown: list[set[str]] = []

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.told.append({key: float(value) for key, value in trainer.callback_metrics.items()} | {"outputs": float(outputs["loss"])})
        self.shown.append(set(trainer.progress_bar_metrics))


@pytest.mark.filterwarnings("ignore")  # Lightning's, of what a fit so small leaves out
@pytest.mark.parametrize("bar", [True, False])
def test_callbacks_and_the_progress_bar_are_told_of_each_batch(folder: Path, bar: bool) -> None:
    asks = Asks()
    quiet: dict[str, Any] = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": bar, "enable_model_summary": False}
    source = CocoData(str(folder), size=64, batch=2)
    trainer = pl.Trainer(accelerator="cpu", devices=1, max_steps=3, limit_val_batches=0, callbacks=[asks], **quiet)
    trainer.fit(Detector(source.names, size=64, width=WIDTH), source)
    assert [set(told) for told in asks.told] == [{"train/loss", "train/classes", "train/boxes", "train/lr", "outputs"}] * 3
    assert all(told["train/loss"] == told["outputs"] for told in asks.told)
    assert len({told["train/loss"] for told in asks.told}) == len({told["train/lr"] for told in asks.told}) == 3
    assert asks.shown == [{"train/loss"} if bar else set()] * 3
