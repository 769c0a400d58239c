"""A run that goes on from its checkpoint: G26."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.projects import project
from tests.cases.scenarios import RESUMED


@pytest.mark.case("G26")
def test_a_run_of_four_steps_is_the_same_when_it_resumes_after_two(tmp_path: Path) -> None:
    """Batches included; what a checkpoint forgets shows first where it is used.

    Without the sampler's generator the first epoch's order is replayed, without the counter of steps the learning rate starts over.
    """
    tables = {name: f'epochs\nresume_at = 2\nparameters = {{ lost = "{name}" }}' for name in ("nothing", "order", "counter")}
    answer = project(tmp_path / "project", RESUMED, 4, **tables).gate("record")
    found = [(row["scenario"], row["verdict"], row["first"] and (row["first"]["step"], row["first"]["path"])) for row in answer.rows]
    assert found == [
        ("nothing", "recorded", None),
        ("order", "nondeterministic", (3, "batch")),
        ("counter", "nondeterministic", (3, "optimizer/group0/lr")),
    ]
    assert answer.code == 4
