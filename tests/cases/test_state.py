"""What a state may be: G10, G21 and G23."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from golden.recorder import Recorder
from tests.cases.recordings import differences, only, record, state

STEP = "optimizer/weight/step"
STEPS: dict[str, Any] = {"int": 1, "float": 1.0, "float32": torch.tensor(1.0), "bfloat16": torch.tensor(1.0, dtype=torch.bfloat16)}


def adam(step: Any) -> dict[str, Any]:
    """A model and its Adam after one step, whose counter is this."""
    torch.manual_seed(0)
    model = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert optimizer.state[model.weight]["step"] == 1
    optimizer.state[model.weight]["step"] = step
    return {"optimizer": optimizer, "model": model}


@pytest.mark.case("G10")
def test_the_ways_to_count_steps_are_told_apart(tmp_path: Path) -> None:
    """An int, a float, a float tensor and a bfloat16 tensor of one: each is itself, and every pair has a verdict of its own."""
    assert all(step == 1 for step in STEPS.values())
    golden = {name: state(tmp_path / name, **adam(step)) for name, step in STEPS.items()}
    told = set()
    for name, one in golden.items():
        assert differences(one, state(tmp_path / f"{name} again", **adam(STEPS[name]))) == ()
        for other in golden.keys() - {name}:
            found = only(one, golden[other])
            assert found.path == STEP
            told.add((found.kind.value, found.expected, found.actual))
    assert told >= {
        ("type", "float32[]", "int"), ("dtype", "float32", "bfloat16"), ("type", "int", "bfloat16[]"), ("type", "int", "float")
    }  # fmt: skip
    assert len(told) == 12


@pytest.mark.case("G10")
def test_a_counter_that_is_ahead_is_a_value_or_bits(tmp_path: Path) -> None:
    kinds = {"int": "value", "float": "value", "float32": "bits", "bfloat16": "bits"}
    for name, step in STEPS.items():
        found = only(state(tmp_path / name, **adam(step)), state(tmp_path / f"{name} ahead", **adam(step + 1)))
        assert (found.path, found.kind.value) == (STEP, kinds[name])


@pytest.mark.case("G21")
def test_where_structure_differs_the_rest_is_compared_all_the_same(tmp_path: Path) -> None:
    """Missing and unexpected leaves and phases are listed in the golden's order, and every other leaf is held against its own."""

    def values(change: float = 0.0) -> torch.Tensor:
        return torch.arange(3.0) + change

    recorded = {"a": values(), "gone": values(), "b": values(), "c": {}}
    golden = state(tmp_path / "golden", loss=1.0, model=recorded, scheduler=3, ema=values())
    other = {"a": values(), "b": values(1), "new": values().int(), "c": []}
    found = differences(golden, state(tmp_path / "other", loss=1.0, model=other, ema=values(-1), scaler=2.0))
    assert [(each.kind.value, each.path, each.expected, each.actual) for each in found if each.kind.value != "bits"] == [
        ("missing", "model/gone", "float32[3]", None),
        ("unexpected", "model/new", None, "int32[3]"),
        ("type", "model/c", "dict", "list"),
        ("missing", "scheduler", "int", None),
        ("unexpected", "scaler", None, "float"),
    ]
    assert [(each.path, each.differing) for each in found if each.kind.value == "bits"] == [("model/b", 3), ("ema", 3)]
    assert differences(golden, state(tmp_path / "again", loss=1.0, model=recorded, scheduler=3, ema=values())) == ()


def average(record: Recorder, use_buffers: bool) -> None:
    """Trains with an average of the model: of its parameters, and of its buffers or not."""
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    half = get_ema_multi_avg_fn(0.5)  # type: ignore[no-untyped-call]
    ema = AveragedModel(model, multi_avg_fn=half, use_buffers=use_buffers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(record.steps):
        loss = model(torch.randn(5, 3)).square().mean()
        loss.backward()
        optimizer.step()
        if use_buffers:
            ema.update_parameters(model)
        else:  # as it would be with buffers, were it not for them: stale from the start on
            stale = [buffer.clone() for buffer in ema.module.buffers()]
            ema.use_buffers = True
            ema.update_parameters(model)
            for buffer, old in zip(ema.module.buffers(), stale, strict=True):
                buffer.copy_(old)
        record(loss=loss, model=model, ema=ema)
        optimizer.zero_grad()


@pytest.mark.case("G23")
def test_an_average_of_a_model_with_buffers_is_recorded_whole(tmp_path: Path) -> None:
    """Parameters, buffers and its own counter; buffers that are left stale are drift, and nothing else is."""
    golden = record(tmp_path / "golden", lambda recorder: average(recorder, True), steps=3)
    buffers = ["ema/module.1.running_mean", "ema/module.1.running_var", "ema/module.1.num_batches_tracked"]
    paths = {leaf.full for leaf in golden.leaves(3) if leaf.phase == "ema"}
    assert paths >= {"ema/n_averaged", "ema/module.0.weight", "ema/module.2.bias", *buffers}
    assert len(paths) == 1 + 1 + len(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).state_dict())
    assert differences(golden, record(tmp_path / "again", lambda recorder: average(recorder, True), steps=3)) == ()
    stale = record(tmp_path / "stale", lambda recorder: average(recorder, False), steps=3)
    found = differences(golden, stale)
    assert {each.path for each in found} == set(buffers)
    assert {each.kind.value for each in found} == {"bits"}
    assert found[0].step == 1
