"""Every case has its id in the ids of its tests; one variable blinds the comparison, in this process and in those it starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cases.blind.sitecustomize import blind

BLIND = "GOLDEN_CASES_BLIND"

if os.environ.get(BLIND):
    blind()
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent / "blind"), os.environ.get("PYTHONPATH")]))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    ids = [mark.args[0] for mark in metafunc.definition.iter_markers("case")]
    if ids:
        metafunc.parametrize("case_id", ids, ids=ids, indirect=True)


@pytest.fixture(autouse=True)
def case_id(request: pytest.FixtureRequest) -> str | None:
    """The case that a test shows the right value of; None for one that shows something about the cases."""
    found: str | None = getattr(request, "param", None)
    return found
