"""Checkpoints are written in the background: what they hold is that of the moment, and a file is there as a whole or not at all."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO
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
    assert not same(given, copied)
    assert same(copied["optimizer_states"][0]["param_groups"], [{"lr": 0.1, "params": [0]}])


def test_a_file_holds_what_there_was_when_it_was_asked_for(saver: Checkpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although it is written later; and what loads it waits for it."""
    may = hold(monkeypatch)
    given, before = state(), state()
    before["state_dict"] = {key: value.clone() for key, value in given["state_dict"].items()}
    saver.save_checkpoint(given, tmp_path / "folder" / "one.ckpt")
    shift(given)
    assert not (tmp_path / "folder" / "one.ckpt").exists()
    may.set()
    found = saver.load_checkpoint(tmp_path / "folder" / "one.ckpt", weights_only=True)
    assert same(before["state_dict"], found["state_dict"])
    assert not same(given["state_dict"], found["state_dict"])
    assert found["state_dict"]._metadata[""] == {"version": 1}


def test_no_more_than_two_are_on_their_way_and_the_end_waits_for_all(
    saver: Checkpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may = hold(monkeypatch)
    for number in range(MOST):
        saver.save_checkpoint(state(), tmp_path / f"{number}.ckpt")
    third = threading.Thread(target=saver.save_checkpoint, args=(state(), tmp_path / "third.ckpt"))
    third.start()
    third.join(0.3)
    assert third.is_alive()
    assert not list(tmp_path.iterdir())
    may.set()
    third.join(30)
    saver.teardown()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.ckpt", "1.ckpt", "third.ckpt"]
    saver.save_checkpoint(state(), tmp_path / "again.ckpt")  # another fit of the same Trainer
    saver.remove_checkpoint(tmp_path / "again.ckpt")
    assert not (tmp_path / "again.ckpt").exists()


def test_what_cannot_be_written_is_an_error_of_the_next_or_of_the_end(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    for ends in (True, False):
        saver = Checkpoints()
        saver.save_checkpoint(state(), tmp_path / "good.ckpt")
        saver.save_checkpoint(state(), tmp_path / "file" / "bad.ckpt")
        with pytest.raises(OSError, match="file"):
            saver.teardown() if ends else save(saver, tmp_path / "good.ckpt", MOST)
        saver.teardown()  # said once
        assert same(torch.load(tmp_path / "good.ckpt", weights_only=True)["optimizer_states"], state()["optimizer_states"])


def save(saver: Checkpoints, path: Path, times: int) -> None:
    for _ in range(times):
        saver.save_checkpoint(state(), path)


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
