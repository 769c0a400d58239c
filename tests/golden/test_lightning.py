"""A fit of Lightning's Trainer, held against the same loop written by hand in plain PyTorch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from lightning.pytorch.callbacks import Callback, EMAWeightAveraging, ModelCheckpoint
from torch import Tensor, nn

from golden.errors import ScenarioFailed
from golden.leaf import Snapshot
from golden.lightning import GoldenCallback
from golden.recorder import Recorder
from tests.gate.projects import Project
from tests.golden.fits import (
    STEPS,
    Adversaries,
    Manual,
    Net,
    Variant,
    adversaries_by_hand,
    by_hand,
    loader,
    manual_by_hand,
    recorder,
    trainer,
)
from tests.golden.states import read, same

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.* is deprecated:FutureWarning"),  # Lightning 2.6 under torch 2.13
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),  # said where there are many CPUs
    pytest.mark.filterwarnings("ignore:GPU available but not used"),
]


def recorded(variant: Variant, make: Callable[[Variant], pl.LightningModule] = Net, **settings: Any) -> list[Snapshot]:
    """The steps of a fit, as the callback records them. It stands first among the callbacks."""
    record, taken = recorder(variant)
    averages: list[Callback] = [EMAWeightAveraging(decay=0.9)] if variant.ema else []
    fitted = trainer(variant, [GoldenCallback(record), *averages], **settings)
    fitted.fit(make(variant), loader(variant))
    record.finish()
    assert fitted.state.finished
    return taken


def equal(one: list[Snapshot], other: list[Snapshot]) -> bool:
    """Whether two recordings have the same steps with the same leaves and bits."""
    return [each.step for each in one] == [each.step for each in other] and all(map(same, one, other))


def differing(one: list[Snapshot], other: list[Snapshot]) -> set[str]:
    """Phases that differ at some step; the leaves have to be the same."""
    assert [each.leaves for each in one] == [each.leaves for each in other]
    return {
        leaf.phase
        for left, right in zip(one, other, strict=True)
        for leaf, is_same in zip(left.leaves, (left.digests == right.digests).all(axis=1), strict=True)
        if not is_same
    }


def phases(taken: list[Snapshot], step: int) -> list[str]:
    return list(dict.fromkeys(leaf.phase for leaf in taken[step].leaves))


VARIANTS = {
    "plain": Variant(),
    "accumulation": Variant(accumulate=2),
    "clipped by norm": Variant(clip=0.05),
    "clipped by value": Variant(clip=0.01, algorithm="value"),
    "bfloat16": Variant(precision="bf16-mixed"),
    "float16": Variant(precision="16-mixed", clip=0.05, overflows=True),
    "average": Variant(ema=True),
    "everything": Variant(accumulate=3, clip=0.05, precision="bf16-mixed", ema=True),
}


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_a_fit_has_the_digests_of_the_loop_written_by_hand(variant: Variant) -> None:
    """Every leaf of every phase: loss, logged metrics, gradients, optimizer, model, scaler, scheduler, average and generators."""
    found, expected = recorded(variant), by_hand(variant)
    assert differing(found, expected) == set()
    assert equal(found, expected)
    assert [snapshot.step for snapshot in found] == list(range(STEPS + 1))


def test_the_comparison_sees_what_differs() -> None:
    """A clipping that the other loop has not; an accumulation; a dtype."""
    assert not equal(recorded(Variant(clip=0.05)), by_hand(Variant()))
    assert not equal(recorded(Variant(accumulate=2)), by_hand(Variant()))
    assert not equal(recorded(Variant(precision="bf16-mixed")), by_hand(Variant()))


def test_gradients_are_those_after_clipping() -> None:
    """A loop that records them before clipping differs in nothing else."""
    variant = Variant(clip=0.05)
    assert differing(recorded(variant), by_hand(variant, grads_before_clipping=True)) == {"grads"}


def test_phases_stand_in_the_order_of_execution() -> None:
    taken = recorded(Variant(precision="16-mixed", ema=True))
    state = ["optimizer", "model", "scaler", "scheduler", "callbacks", "rng"]
    assert phases(taken, 0) == state
    assert phases(taken, 1) == phases(taken, STEPS) == ["loss", "metrics", "grads", *state]


def test_a_step_that_the_scaler_skips_is_a_step() -> None:
    """The weights stay, the scale is halved: at one step of this training, and not at all of them."""
    taken = recorded(Variant(precision="16-mixed", overflows=True))

    def moves(path: str) -> list[bool]:
        rows = [dict(zip([leaf.full for leaf in each.leaves], each.digests.tolist(), strict=True))[path] for each in taken]
        return [before != after for before, after in pairwise(rows)]

    weights, scales = moves("model/first.weight"), moves("scaler/scale")
    assert sorted(set(weights)) == [False, True]
    assert [scales[step] for step, weight in enumerate(weights) if not weight] == [True]


def test_several_optimizers_make_a_step_each() -> None:
    """Recorded as the step ends, when its gradients are still there, and each time with both optimizers and schedulers."""
    found = recorded(Variant(ema=True), Adversaries)
    assert equal(found, adversaries_by_hand(Variant(ema=True)))
    assert not equal(found, adversaries_by_hand(Variant(ema=True), lambda module: {}))
    assert {"optimizers/0/generator.weight/exp_avg", "optimizers/1/group0/lr", "grads/critic.weight"} <= {
        leaf.full for leaf in found[2].leaves
    }


def test_a_manual_step_that_the_scaler_skips_is_a_step() -> None:
    """It is recorded at the next thing that happens; the other steps before the scaler is updated."""
    variant = Variant(precision="16-mixed", overflows=True)
    found = recorded(variant, Manual)
    assert differing(found, manual_by_hand(variant)) == set()
    assert differing(found, recorded(replace(variant, overflows=False), Manual)) >= {"loss", "scaler", "model"}


def test_a_manual_step_that_evaluates_its_closure_several_times_is_one_step() -> None:
    """LBFGS: Lightning announces each evaluation."""

    class Evaluating(Manual):
        evaluations = 0

        def training_step(self, batch: list[Tensor], batch_idx: int) -> None:  # type: ignore[override]
            optimizer: Any = self.optimizers()

            def closure() -> Tensor:
                self.evaluations += 1
                optimizer.zero_grad()
                loss = self.loss(batch)
                self.manual_backward(loss)
                return loss

            optimizer.step(closure)

        def configure_optimizers(self) -> Any:
            return torch.optim.LBFGS(self.parameters(), lr=0.01, max_iter=3)

    record, taken = recorder(Variant())
    fitted, module = trainer(Variant(), [GoldenCallback(record)]), Evaluating(Variant())
    fitted.fit(module, loader(Variant()))
    assert (record.done, fitted.global_step, len(taken)) == (STEPS, STEPS, STEPS + 1)
    assert module.evaluations > STEPS


@pytest.mark.parametrize("make", [Net, Adversaries])
@pytest.mark.parametrize("variant", [Variant(), VARIANTS["everything"]], ids=["plain", "everything"])
def test_the_fit_has_the_same_bits_without_the_callback(make: type[pl.LightningModule], variant: Variant) -> None:
    """Parameters, optimizers, schedulers, averages, logged metrics and generators, at the end of the same number of steps."""
    if make is Adversaries:
        variant = replace(variant, accumulate=1, clip=None)

    def ended(callbacks: list[Callback], steps: int = STEPS) -> Snapshot:
        averages: list[Callback] = [EMAWeightAveraging(decay=0.9)] if variant.ema else []
        fitted, module = trainer(variant, [*callbacks, *averages], max_steps=steps), make(variant)
        fitted.fit(module, loader(variant))
        assert fitted.global_step == steps
        schedulers = [config.scheduler for config in fitted.lr_scheduler_configs]
        state = {"module": module, "optimizers": fitted.optimizers, "schedulers": schedulers}
        logged = {"callback": dict(fitted.callback_metrics), "logged": dict(fitted.logged_metrics)}
        held = [value for average in averages for value in vars(average).values() if isinstance(value, nn.Module)]
        assert len(held) == len(averages)
        return read(**state, averages=held, metrics=logged, rng=torch.get_rng_state())

    record, taken = recorder(variant)
    without = ended([])
    assert same(ended([GoldenCallback(record)]), without)
    assert not same(ended([], STEPS - 2), without)
    assert len(taken) == STEPS + 1


def test_nothing_is_left_on_optimizers() -> None:
    """Neither after a fit, nor after one that failed."""

    class Failing(Adversaries):
        def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
            raise LookupError("the batch is lost")

    for make in (Adversaries, Failing):
        record, taken = recorder(Variant())
        fitted, module = trainer(Variant(), [GoldenCallback(record)]), make(Variant())
        if make is Failing:
            with pytest.raises(LookupError):
                fitted.fit(module, loader(Variant()))
        else:
            fitted.fit(module, loader(Variant()))
        before = len(taken)
        for optimizer in fitted.optimizers:
            optimizer.step()
        assert before == len(taken) > 1


@pytest.mark.parametrize("variant", [Variant(), Variant(accumulate=2)])
def test_the_fit_stops_after_the_steps_of_the_run(variant: Variant) -> None:
    record, _ = recorder(variant, 3)
    fitted = trainer(variant, [GoldenCallback(record)], max_epochs=5)
    fitted.fit(Net(variant), loader(variant))
    assert (record.done, fitted.global_step, fitted.fit_loop.total_batch_idx + 1) == (3, 3, 3 * variant.accumulate)


def test_a_fit_that_may_not_stop_yet_goes_on_unrecorded() -> None:
    record, taken = recorder(Variant(), 3)
    fitted = trainer(Variant(), [GoldenCallback(record)], min_steps=6, max_epochs=1)
    fitted.fit(Net(Variant()), loader(Variant()))
    assert (len(taken), fitted.global_step) == (4, 16)


def test_a_fit_of_too_few_steps_fails() -> None:
    record, _ = recorder(Variant(), 3)
    trainer(Variant(), [GoldenCallback(record)], max_steps=2).fit(Net(Variant()), loader(Variant()))
    with pytest.raises(ScenarioFailed, match="recorded 2 of 3 steps"):
        record.finish()


def test_a_second_fit_goes_on_counting() -> None:
    """A scenario may fit twice: the steps are those of one run, with one start."""
    record, taken = recorder(Variant(), 3)
    module = Net(Variant())
    for steps in (1, 5):
        trainer(Variant(), [GoldenCallback(record)], max_steps=steps).fit(module, loader(Variant()))
    assert [snapshot.step for snapshot in taken] == [0, 1, 2, 3]


class Stopped(BaseException):
    """What a run raises that goes on in another process."""


class Half(Recorder):
    """Stops at the third step."""

    def __call__(self, /, **phases: Any) -> None:
        if self.done == 2:
            raise Stopped
        super().__call__(**phases)


def test_a_step_is_recorded_before_it_is_saved(tmp_path: Path) -> None:
    """So that a run stopped after its second step has no checkpoint of the third, wherever the callback stands in the list."""
    record = Half(lambda _: None, steps=STEPS, store="digest")
    saver = ModelCheckpoint(tmp_path, every_n_train_steps=1, save_top_k=-1)
    fitted = trainer(Variant(), [saver, GoldenCallback(record)], enable_checkpointing=True)
    with pytest.raises(Stopped):
        fitted.fit(Net(Variant()), loader(Variant()))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["epoch=0-step=1.ckpt", "epoch=0-step=2.ckpt"]


def test_what_cannot_be_recorded_is_said_before_the_fit() -> None:
    elsewhere = Recorder(print, steps=1, device="cuda")
    with pytest.raises(ScenarioFailed, match=r"runs on cpu, the scenario on cuda: give it accelerator=record.device.type"):
        trainer(Variant(), [GoldenCallback(elsewhere)]).fit(Net(Variant()), loader(Variant()))
    record, _ = recorder(Variant())
    several = trainer(Variant(), [], devices=2, strategy="ddp_spawn")
    with pytest.raises(ScenarioFailed, match="has 2 processes, and one can be recorded: give it devices=1"):
        GoldenCallback(record).setup(several, Net(Variant()), "fit")


def test_phases_can_be_left_out_and_added() -> None:
    """A logged time would differ from run to run."""

    class Chosen(GoldenCallback):
        def phases(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> dict[str, Any]:
            found = super().phases(trainer, pl_module)
            del found["metrics"]
            return {**found, "epoch": trainer.current_epoch}

    record, taken = recorder(Variant())
    trainer(Variant(), [Chosen(record)]).fit(Net(Variant()), loader(Variant()))
    assert phases(taken, 1) == ["loss", "grads", "optimizer", "model", "scheduler", "callbacks", "epoch", "rng"]


def test_modules_of_callbacks_are_recorded_by_class_and_attribute() -> None:
    """The module that is trained, and what is part of it, is not recorded again."""

    class Teacher(Callback):
        def __init__(self) -> None:
            self.teacher, self.student = nn.Linear(1, 1), module.first

    module = Net(Variant())
    record, taken = recorder(Variant(), 1)
    trainer(Variant(), [Teacher(), GoldenCallback(record), Teacher()]).fit(module, loader(Variant()))
    found = {leaf.full for leaf in taken[1].leaves if leaf.phase == "callbacks"}
    held = {"", "/teacher", "/teacher/weight", "/teacher/bias"}
    assert found == {"callbacks", *(f"callbacks/{name}{below}" for name in ("Teacher", "Teacher-2") for below in held)}


@pytest.mark.filterwarnings("ignore:`training_step` returned `None`:UserWarning")
def test_a_batch_without_a_loss_is_recorded_without_one() -> None:
    """Lightning steps all the same."""

    class Skipping(Net):
        def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor | None:  # type: ignore[override]
            return super().training_step(batch, batch_idx) if batch_idx != 1 else None

    taken = recorded(Variant(), Skipping)
    assert [leaf.type for snapshot in taken[1:] for leaf in snapshot.leaves if leaf.phase == "loss"] == [
        "float32", "NoneType", "float32", "float32"
    ]  # fmt: skip


OTHER_NAME = """
import sys
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, TensorDataset

from golden.lightning import GoldenCallback
from golden.recorder import Recorder

assert "lightning" not in sys.modules


class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(3, 2)

    def training_step(self, batch, index):
        return self.net(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


record = Recorder(lambda snapshot: print("step", snapshot.step), steps=2)
settings = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
callback = GoldenCallback(record)
assert isinstance(callback, pl.Callback)
trainer = pl.Trainer(accelerator="cpu", devices=1, max_epochs=-1, callbacks=[callback], **settings)
trainer.fit(Module(), DataLoader(TensorDataset(torch.ones(16, 3)), batch_size=4))
record.finish()
"""


@pytest.mark.slow
def test_lightning_may_go_by_its_other_name() -> None:
    """A project that imports pytorch_lightning never loads the other package."""
    done = subprocess.run([sys.executable, "-c", OTHER_NAME], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("step")] == ["step 0", "step 1", "step 2"]


SCENARIO = """
import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, TensorDataset

from golden.lightning import GoldenCallback
from lightning.pytorch.callbacks import EMAWeightAveraging


class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Dropout(0.2), torch.nn.Linear(6, 2))

    def training_step(self, batch, index):
        loss = self.net(batch[0]).square().mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.01)


def fit(record):
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    chosen = {"accelerator": record.device.type, "devices": 1, "max_epochs": -1, "accumulate_grad_batches": 2}
    callbacks = [GoldenCallback(record), EMAWeightAveraging(decay=0.9)]
    trainer = pl.Trainer(callbacks=callbacks, gradient_clip_val=0.1, **chosen, **quiet)
    trainer.fit(Module(), DataLoader(TensorDataset(torch.randn(64, 6)), batch_size=4, shuffle=True))
"""


@pytest.mark.slow
def test_a_scenario_of_a_project_is_recorded_and_verified(tmp_path: Path) -> None:
    """By the gate itself; another clipping is drift that shows in the gradients first, the loss being the same."""
    project = Project(tmp_path / "project")
    project.folder.mkdir()
    (project.folder / "scenarios.py").write_text(SCENARIO)
    project.configure(fit="")
    answer = project.gate("record")
    assert answer.code == 0, answer.out + answer.err
    assert project.gate("verify").row["verdict"] == "identical"
    (project.folder / "scenarios.py").write_text(SCENARIO.replace("gradient_clip_val=0.1", "gradient_clip_val=0.2"))
    row = project.gate("verify", "--no-cause").row
    assert (row["verdict"], row["first"]["step"], row["first"]["phase"]) == ("drift", 1, "grads")


ON_CUDA = [Variant(precision="16-mixed", clip=0.05, overflows=True), Variant(precision="bf16-mixed", accumulate=2)]


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("variant", ON_CUDA, ids=["float16", "bfloat16"])
def test_mixed_precision_on_cuda_has_the_digests_of_the_loop_written_by_hand(variant: Variant) -> None:
    """With its scaler as Lightning makes it, with a step that is skipped, with the average."""
    on_cuda = replace(variant, device="cuda", ema=True)
    found = recorded(on_cuda)
    assert equal(found, by_hand(on_cuda))
    assert not equal(found, by_hand(replace(on_cuda, overflows=not variant.overflows)))
