"""What a scenario is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import golden
from golden.errors import Refused, ScenarioFailed
from golden.leaf import Snapshot
from golden.recorder import FULL, Recorder
from golden.store import Golden
from golden.writer import Writer


def recorder(steps: int = 3, **settings: Any) -> tuple[Recorder, list[Snapshot]]:
    taken: list[Snapshot] = []
    return Recorder(taken.append, steps=steps, **settings), taken


def kept(taken: list[Snapshot]) -> list[int]:
    return [snapshot.step for snapshot in taken if snapshot.data is not None]


def test_steps_count_from_one_and_the_start_is_step_zero() -> None:
    record, taken = recorder(2)
    record.start(model=nn.Linear(1, 1))
    record(loss=torch.tensor(1.0))
    record(loss=torch.tensor(2.0))
    record.finish()
    assert [snapshot.step for snapshot in taken] == [0, 1, 2]
    assert [leaf.phase for leaf in taken[0].leaves][:3] == ["model", "model", "model"]


def test_generators_are_the_last_phase_of_every_step() -> None:
    record, taken = recorder(1)
    record.start(a=1)
    record(z=1, a=2)
    assert [list(dict.fromkeys(leaf.phase for leaf in snapshot.leaves)) for snapshot in taken] == [["a", "rng"], ["z", "a", "rng"]]


def test_settings_are_given_to_the_scenario_and_cannot_be_changed() -> None:
    record, _ = recorder(5, seed=7, device="cpu", parameters={"width": 3}, first=3, folder=Path("here"))
    assert (record.steps, record.seed, record.device, record.first, record.folder) == (5, 7, torch.device("cpu"), 3, Path("here"))
    assert record.parameters["width"] == 3
    with pytest.raises(TypeError):
        record.parameters["width"] = 4  # type: ignore[index]


@pytest.mark.parametrize("settings", [{"store": "all"}, {"steps": 0}, {"steps": 3, "first": 4}, {"steps": 3, "first": 0}])
def test_settings_that_make_no_sense_are_the_callers_mistake(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"got|is 'full'"):
        Recorder(print, **{"steps": 3, **settings})


def test_a_process_that_resumes_goes_on_with_the_next_step_and_records_no_start() -> None:
    record, taken = recorder(4, first=3)
    record.start(a=1)
    record(a=2)
    record(a=3)
    record.finish()
    assert [snapshot.step for snapshot in taken] == [3, 4]


def test_a_step_too_many_fails() -> None:
    record, _ = recorder(1)
    record(a=1)
    with pytest.raises(ScenarioFailed, match=r"called for step 2, and the run has 1: loop over range\(record.steps\)"):
        record(a=1)


def test_other_phases_at_another_step_fail_and_are_named() -> None:
    record, _ = recorder(3)
    record(loss=1.0, model=2)
    with pytest.raises(ScenarioFailed, match="step 2 has other phases than step 1: loss missing and ema, los unexpected"):
        record(model=1, ema=1, los=1)
    with pytest.raises(ScenarioFailed, match="step 2 has other phases than step 1: the order is model, loss instead of loss, model"):
        record(model=1, loss=1)


@pytest.mark.parametrize("name", ["rng", "__metadata__", "a/b", "a b", ""])
def test_phases_with_a_name_that_cannot_be_theirs_fail(name: str) -> None:
    record, _ = recorder()
    with pytest.raises(ScenarioFailed, match="has a phase named"):
        record(**{name: 1})
    with pytest.raises(ScenarioFailed, match="has a phase named"):
        record.start(**{name: 1})


def test_a_phase_may_be_called_self() -> None:
    record, taken = recorder(1)
    record(self=1, phases=2)
    assert [leaf.full for leaf in taken[0].leaves][:2] == ["self", "phases"]


def test_recording_nothing_fails() -> None:
    record, _ = recorder()
    with pytest.raises(ScenarioFailed, match="step 1 records nothing"):
        record()
    with pytest.raises(ScenarioFailed, match=r"record.start\(\) records nothing"):
        record.start()
    with pytest.raises(ScenarioFailed, match="recorded no step"):
        record.finish()


def test_too_few_steps_fail() -> None:
    record, _ = recorder(3)
    record(a=1)
    with pytest.raises(ScenarioFailed, match="recorded 1 of 3 steps"):
        record.finish()


def test_a_start_after_a_step_or_twice_fails() -> None:
    record, _ = recorder()
    record.start(a=1)
    with pytest.raises(ScenarioFailed, match="call it once"):
        record.start(a=1)
    other, _ = recorder()
    other(a=1)
    with pytest.raises(ScenarioFailed, match="before the first step"):
        other.start(a=1)


def test_a_refused_value_is_named_with_its_path() -> None:
    record, _ = recorder()
    with pytest.raises(Refused, match=r"^model/weight: a tensor on the meta device"):
        record(model=nn.Linear(1, 1, device="meta"))


def test_non_finite_values_are_recorded() -> None:
    record, taken = recorder(1)
    record(loss=torch.tensor([float("nan"), float("inf")]), scalar=float("nan"))
    assert len(taken) == 1


SMALL, LARGE = torch.zeros(1000), torch.zeros(FULL)


@pytest.mark.parametrize(
    ("settings", "start", "step", "expected", "decided"),
    [
        ({}, SMALL, SMALL, [0, 1, 2], "full"),
        ({}, SMALL, LARGE, [], "digest"),
        ({}, LARGE, LARGE, [], "digest"),
        ({}, LARGE, SMALL, [], "digest"),
        ({"store": "full"}, LARGE, LARGE, [0, 1, 2], "full"),
        ({"store": "digest"}, SMALL, SMALL, [], "digest"),
        ({"store": "digest", "keep": [2]}, SMALL, SMALL, [2], "digest"),
        ({"keep": [0, 1]}, LARGE, LARGE, [0, 1], "digest"),
        ({"keep": [0]}, SMALL, LARGE, [0], "digest"),
    ],
)
def test_bytes_are_kept_up_to_64_kib_a_step_or_as_told(
    settings: dict[str, Any], start: Any, step: Any, expected: list[int], decided: str
) -> None:
    record, taken = recorder(2, **settings)
    record.start(a=start)
    record(a=step)
    record(a=step)
    record.finish()
    assert [snapshot.step for snapshot in taken] == [0, 1, 2]
    assert kept(taken) == expected
    assert record.store == decided


def test_the_start_that_waits_is_a_copy() -> None:
    record, taken = recorder(1)
    weight = torch.zeros(4)
    record.start(a=weight)
    assert taken == []
    weight.fill_(7)
    record(a=weight)
    assert taken[0].data is not None
    assert bytes(taken[0].data[0]) == np.zeros(4, np.float32).tobytes()


def test_a_recording_is_a_golden(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters())
    writer = Writer(tmp_path / "golden")
    record = Recorder(writer.add, steps=2)
    record.start(model=model, optimizer=optimizer)
    for _ in range(2):
        loss = model(torch.ones(1, 2)).sum()
        loss.backward()
        optimizer.step()
        record(loss=loss, grads=golden.gradients(model), optimizer=optimizer, model=model)
        optimizer.zero_grad()
    record.finish()
    writer.finish(scenario={"name": "s"}, environment={}, sources={}, hardware="cpu", torch="2.13.0")
    found = Golden.open(tmp_path / "golden")
    found.check()
    assert [leaf.line() for leaf in found.leaves(2)][:4] == [": float32[]", ": dict", "weight: float32[1,2]", "bias: float32[1]"]
    content = found.bytes(2, "model/weight")
    assert content is not None
    assert content.tobytes() == model.weight.detach().numpy().tobytes()
    assert found.text(2, "optimizer/group0/lr") == "0x1.0624dd2f1a9fcp-10 (0.001)"
