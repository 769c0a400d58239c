"""Lightning's command line, set up for the detector: what a fit logs, saves and draws."""

from __future__ import annotations

import gc
import itertools
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

from lightning.fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.plugins.environments.lsf import LSFEnvironment
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from lightning.pytorch.plugins.io import CheckpointIO

from detector.checkpoints import Checkpoints
from detector.coco import DataError
from detector.data import CocoData
from detector.lines import Lines
from detector.module import Detector
from detector.plots import Curves

DEFAULTS = {
    "default_root_dir": "runs",
    "max_epochs": 10,
    "gradient_clip_val": 10.0,
    "log_every_n_steps": 1,
    "use_distributed_sampler": False,  # the data set shares its images out itself
    "num_sanity_val_steps": 0,
}


_FITS = itertools.count()  # of this process
SERVED = (TorchElasticEnvironment, SLURMEnvironment, LSFEnvironment)  # who may have started a fit of one device, and wants to be known


class Command(LightningCLI):
    """Links what the module must know of the data, and adds checkpoints, logs and curves."""

    @staticmethod
    def subcommands() -> dict[str, set[str]]:
        """Those that there is something for; a parser of each is made at every start."""
        several = LightningCLI.subcommands()
        return {name: several[name] for name in ("fit", "validate")}

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """The best checkpoint by mAP, and the last one."""
        parser.link_arguments("data.size", "model.size")
        parser.link_arguments("data.names", "model.names", apply_on="instantiate")
        parser.add_lightning_class_args(ModelCheckpoint, "best")
        parser.add_lightning_class_args(ModelCheckpoint, "last")
        best = {"best.filename": "best", "best.monitor": "val/mAP", "best.mode": "max"}
        parser.set_defaults({**best, "last.filename": "last", "best.enable_version_counter": False, "last.enable_version_counter": False})

    def parse_arguments(self, parser: LightningArgumentParser, args: Any) -> None:
        """Keeps what was asked for in so many words. Raises DataError where the checkpoint is not there, or no whole one."""
        super().parse_arguments(parser, args)
        chosen = self.config["subcommand"]
        self._asked = parser.parse_args(args, defaults=False)[chosen].get("model")
        path = self.config[chosen].get("ckpt_path")
        if path in (None, "best", "last", "hpc") or "://" in path or is_zipfile(path):
            return
        raise DataError(f"--ckpt_path {path}: {'is no checkpoint, or not all of one' if Path(path).exists() else 'there is no such file'}")

    def before_instantiate_classes(self) -> None:
        """Lightning has put the checkpoint's options in the place of all others, those asked for too."""
        if self._asked:
            self.config = self.parser.parse_object({self.config["subcommand"]: {"model": self._asked}}, self.config)

    def instantiate_trainer(self, **options: Any) -> Trainer:
        """The Trainer, with a CSV and a TensorBoard log where none is asked for, and checkpoints that are written in the background."""
        config = self._get(self.config_init, "trainer")
        given = config.get("plugins") or []
        plugins = given if isinstance(given, list) else [given]
        if not any(isinstance(plugin, CheckpointIO) for plugin in plugins):
            plugins = [*plugins, Checkpoints()]
        alone = str(config["devices"]) == "1" and config["num_nodes"] == 1 and config["strategy"] == "auto"
        if alone and not any(isinstance(plugin, ClusterEnvironment) for plugin in plugins) and not any(one.detect() for one in SERVED):
            plugins = [*plugins, LightningEnvironment()]  # else Lightning imports and starts MPI, where it is installed, to ask for ranks
        options["plugins"] = plugins
        if config.get("logger") in (None, True):
            table = CSVLogger(config["default_root_dir"], "detector")
            board = TensorBoardLogger(config["default_root_dir"], "detector", version=table.version)
            options["logger"] = [table, board]
        return super().instantiate_trainer(**options)


def run(arguments: list[str], callbacks: Sequence[Callback] = ()) -> Command:
    """Parses and runs a subcommand: fit, validate.

    Args:
        arguments: of the command line.
        callbacks: further ones.

    Raises:
        DataError: what is wrong with the data, or with an option.
    """
    try:
        with frozen():
            return Command(
                Detector,
                CocoData,
                args=None if arguments == sys.argv[1:] else arguments,  # it warns of what it is given twice
                seed_everything_default=0,
                trainer_defaults={**DEFAULTS, "callbacks": [Lines(), Curves(), *callbacks]},
                save_config_kwargs={"overwrite": True},
            )
    except MisconfigurationException as error:
        raise DataError(str(error)) from error


@contextmanager
def frozen() -> Iterator[None]:
    """Leaves what is there already out of garbage collection: hundreds of thousands of objects of imported modules, each time.

    In the first fit of a process alone: what that one leaves behind, on a GPU with all its memory, has to go while the next one runs.
    """
    if next(_FITS) or gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
