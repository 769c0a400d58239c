"""What a fit's start and its surroundings take: no parser, import or object that it has no use for."""

from __future__ import annotations

import gc
import itertools
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
from lightning.fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.plugins.environments.mpi import MPIEnvironment
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment

from detector import training
from detector.training import frozen, run
from tests.detector.fits import WIDTH, command

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning reads its command line by ways that jsonargparse means to end


class Watch(pl.Callback):
    """Notes what there is while the training runs."""

    def __init__(self) -> None:
        self.frozen = 0
        self.environment: ClusterEnvironment | None = None

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.frozen, self.environment = gc.get_freeze_count(), trainer._accelerator_connector.cluster_environment


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch) -> None:
    """There was no fit in this process."""
    monkeypatch.setattr(training, "_FITS", itertools.count())


def fitted(folder: Path, out: Path, *callbacks: pl.Callback, **options: Any) -> Watch:
    """A fit of two steps in this process."""
    watch = Watch()
    trainer = {
        "accelerator": "cpu",
        "max_steps": 2,
        "limit_val_batches": 0,
        "enable_progress_bar": "false",
        "default_root_dir": out,
        **options,
    }
    given = {"data.root": folder, "data.size": 64, "model.width": WIDTH, **{f"trainer.{key}": value for key, value in trainer.items()}}
    run(["fit", *(f"--{key}={value}" for key, value in given.items())], [watch, *callbacks])
    return watch


def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who is asked from now on whether he has started this process."""
    found: list[str] = []
    for kind in (MPIEnvironment, SLURMEnvironment):

        def detect(name: str = kind.__name__) -> bool:
            found.append(name)
            return False

        monkeypatch.setattr(kind, "detect", staticmethod(detect))
    return found


def test_one_device_asks_mpi_for_no_ranks(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the number is left open Lightning looks by itself. Whoever else may have started the fit is asked by either."""
    found = asked(monkeypatch)
    assert isinstance(fitted(folder, tmp_path / "one", devices=1).environment, LightningEnvironment)
    assert set(found) == {"SLURMEnvironment"}
    found.clear()
    fitted(folder, tmp_path / "open", devices="auto")
    assert set(found) == {"SLURMEnvironment", "MPIEnvironment"}


def test_a_fit_of_slurms_knows_it(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was started by `srun`, and is told to stop by a signal."""
    for name, value in {"SLURM_NTASKS": "1", "SLURM_JOB_NAME": "fit", "SLURM_JOB_ID": "1", "SLURM_LOCALID": "0"}.items():
        monkeypatch.setenv(name, value)
    assert isinstance(fitted(folder, tmp_path, devices=1).environment, SLURMEnvironment)


def test_what_was_there_before_the_first_fit_is_no_garbage_to_look_for(folder: Path, tmp_path: Path, first: None) -> None:
    """While it runs. What it leaves behind is looked for in the next one."""
    assert gc.get_freeze_count() == 0
    assert fitted(folder, tmp_path / "first", devices=1).frozen > 10_000
    assert gc.get_freeze_count() == 0
    assert fitted(folder, tmp_path / "second", devices=1).frozen == 0


def test_an_error_ends_it_too(first: None) -> None:
    with pytest.raises(KeyError) as caught, frozen():
        raise KeyError(gc.get_freeze_count())
    assert caught.value.args[0] > 10_000
    assert gc.get_freeze_count() == 0


def test_what_somebody_else_has_frozen_stays_so(first: None) -> None:
    gc.freeze()
    try:
        with frozen():
            pass
        assert gc.get_freeze_count() > 10_000
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("strategy", ["auto", "lightning.pytorch.strategies.DDPStrategy"])
def test_a_strategy_brings_its_own_surroundings(strategy: str, folder: Path, tmp_path: Path) -> None:
    """Lightning refuses two of them."""
    own = {} if strategy == "auto" else {"strategy.cluster_environment": "lightning.fabric.plugins.environments.LightningEnvironment"}
    watch = fitted(folder, tmp_path, devices=1, strategy=strategy, **own)
    assert isinstance(watch.environment, LightningEnvironment)


def test_only_what_there_is_something_for_is_a_command() -> None:
    """Lightning has `test` and `predict` as well; the detector has no test, and its own `predict`."""
    done = command("test")
    assert done.returncode == 2
    assert "fit,validate" in done.stderr.replace(" ", "")
    assert command("fit", "--help").returncode == 0
