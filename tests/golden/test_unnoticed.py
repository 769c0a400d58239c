"""What planted faults (gate mutate) showed that no test looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from golden.compare import Kind, compare, compare_files
from golden.errors import Refused, ScenarioFailed
from golden.plan import Plan
from golden.state import DEEPEST
from tests.golden.goldens import write
from tests.golden.states import leaves, read


def chain(depth: int) -> nn.Module:
    """Modules one inside the other, `depth` of them."""
    module: nn.Module = nn.Identity()
    for _ in range(depth - 1):
        module = nn.Sequential(module)
    return module


def test_a_value_that_differs_is_named_by_step_phase_and_texts(tmp_path: Path) -> None:
    """Also where its texts are not looked up, because others come first."""
    one = write(tmp_path / "one", [{"loss": "1", "count": "5"}, {"loss": "1", "count": "5"}])
    other = write(tmp_path / "other", [{"loss": "1", "count": "5"}, {"loss": "2", "count": "6"}])
    first, second = compare(one, other, limit=1).differences
    assert (first.step, first.phase, first.path, first.kind, first.expected, first.actual) == (2, "loss", "loss", Kind.VALUE, "1", "2")
    assert (second.step, second.phase, second.path, second.kind, second.expected, second.actual) == (
        *(2, "count", "count", Kind.VALUE),
        *(None, None),
    )


def test_files_that_are_whole_are_compared_by_what_they_hold(tmp_path: Path) -> None:
    """Of two goldens with nothing damaged, every difference is there that the digests show."""
    array = np.arange(6, dtype=np.float32)
    one = write(tmp_path / "one", [{"model/a": array, "model/b": array}])
    other = write(tmp_path / "other", [{"model/a": array, "model/b": array + 1}])
    found, damaged = compare_files(one, other)
    assert ([difference.path for difference in found.differences], damaged) == (["model/b"], ())
    assert compare_files(one, one)[0].identical


def test_what_stands_at_two_places_holds_itself_at_none() -> None:
    """A container, and a Module, twice side by side."""
    shared = [1.0, torch.ones(2)]
    assert "state/b/1" in leaves(state={"a": shared, "b": shared})
    layer = nn.Linear(1, 1)
    twice = nn.ModuleDict({"a": layer, "b": layer})
    assert {"model/a.weight", "model/b.weight"} <= set(leaves(model=twice))


def test_a_module_that_holds_itself_is_refused_by_its_path() -> None:
    outer, inner = nn.Module(), nn.Module()
    outer.add_module("inner", inner)
    inner.add_module("again", inner)
    with pytest.raises(Refused, match=r"model/inner\.again.*holds itself"):
        read(model=outer)


def test_modules_lie_inside_each_other_as_deep_as_is_said() -> None:
    read(model=chain(DEEPEST))
    with pytest.raises(Refused, match=str(DEEPEST)):
        read(model=chain(DEEPEST + 1))


class Fragile(nn.Module):
    """Saves something by a way of its own, as long as it is whole."""

    whole = True

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if not self.whole:
            raise LookupError("lost")
        destination[f"{prefix}more"] = torch.ones(1)


def test_a_module_that_cannot_save_itself_is_named_by_its_path() -> None:
    fragile = Fragile()
    model = nn.ModuleDict({"part": fragile})
    plan = Plan()
    assert "model/part.more" in leaves(plan, model=model)
    fragile.whole = False
    with pytest.raises(ScenarioFailed, match=r"model/part: .*lost"):
        read(plan, model=model)
