"""The operators: each does what its examples say, and nothing else is said of it."""

from __future__ import annotations

import libcst as cst
import pytest

from gate.errors import UsageError
from gate.mutation.catalogue import OPERATORS, as_json, chosen
from gate.mutation.operator import Found, Operator, Site
from gate.mutation.plant import plant

# What issue 6 names, by the operators that plant it.
NAMED = {
    "zero_grad dropped": "zero-grad-dropped", "zero_grad doubled": "zero-grad-doubled", "coupled for decoupled": "decay-coupled",
    "sign of decay": "decay-sign", "place of decay": "decay-place", "momentum and its complement": "momentum-complement",
    "Nesterov dropped": "nesterov-dropped", "coefficient": "coefficient-nudged", "eps moved": "epsilon-moved",
    "transposition": "transpose-dropped", "axis": "scale-axes-swapped", "in-place": "in-place", "clone": "clone-dropped",
    "detach": "detach-dropped", "gradient copy": "gradient-copy-dropped", "failure path": "restore-dropped",
    "warm-up": "warm-up-restore-dropped", "reload": "recording-kept", "frozen": "coefficient-frozen", "foreach": "foreach-reordered",
    "dtype": "dtype-changed", "schedule": "schedule-off-by-one", "scheduler": "scheduler-first", "clip": "clip-after-step",
    "EMA": "average-before-step", "seed": "seed-dropped",
}  # fmt: skip


def wrong(operator: Operator) -> list[str]:
    """The examples that an operator does not keep."""
    missed = []
    for before, after in operator.examples:
        made = [mutant.apply(f"{before}\n").rstrip("\n") for mutant in plant("example.py", f"{before}\n", [operator])]
        if after.rstrip("\n") not in made:
            missed.append(f"{operator.name}: {before!r} gives {made}")
    return missed


def test_every_operator_does_what_its_examples_say() -> None:
    assert all(operator.examples for operator in OPERATORS)
    assert [text for operator in OPERATORS for text in wrong(operator)] == []


def test_an_example_that_is_not_kept_is_found() -> None:
    def nothing(node: cst.CSTNode, site: Site) -> Found:
        yield from ()

    assert wrong(Operator("idle", "general", "does nothing", nothing, (("a + b", "a - b"),)))


def test_everything_that_is_asked_for_has_its_operator() -> None:
    known = {operator.name: operator for operator in OPERATORS}
    assert len(known) == len(OPERATORS)
    assert {text: name for text, name in NAMED.items() if name not in known or known[name].general} == {}


def test_the_list_tells_field_and_general_apart() -> None:
    listed = as_json(OPERATORS)
    kinds = [row["kind"] for row in listed["operators"]]
    assert kinds.count("field") == listed["field"] >= 22
    assert kinds.count("general") == listed["general"] > 0
    assert all(row["before"] != row["after"] for row in listed["operators"])


def test_an_unknown_operator_is_an_error_that_names_the_nearest() -> None:
    assert [operator.name for operator in chosen(("arithmetic",))] == ["arithmetic"]
    with pytest.raises(UsageError, match="clone-dropped"):
        chosen(("clone-droped",))
