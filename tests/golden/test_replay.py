"""What a run's optimizers say of their replay is summed up, and nobody has to say anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from golden.replay import counts


@dataclass(frozen=True)
class Entry:
    recordings: Any = 1
    replays: Any = 10
    fallbacks: Any = 0


class Optimizer:
    def __init__(self, *entries: Entry) -> None:
        self.entries = entries

    def replay_status(self) -> tuple[Entry, ...]:
        return self.entries


TWO = Optimizer(Entry(), Entry(2, 20, 3))
SUMS = {"recordings": 3, "replays": 30, "fallbacks": 3}
PLAIN = torch.optim.SGD([torch.nn.Parameter(torch.zeros(2))], lr=0.1)


@pytest.mark.parametrize(
    ("phases", "found"),
    [
        ({"optimizer": TWO}, SUMS),
        ({"optimizer": TWO, "again": TWO}, SUMS),
        ({"optimizers": [TWO, PLAIN]}, SUMS),
        ({"parts": {"optimizers": (TWO,)}}, SUMS),
        ({"a": TWO, "b": Optimizer(Entry())}, {"recordings": 4, "replays": 40, "fallbacks": 3}),
        ({"optimizer": Optimizer()}, {"recordings": 0, "replays": 0, "fallbacks": 0}),
        ({"optimizer": PLAIN}, None),
        ({"optimizer": Optimizer, "name": "replay_status", "loss": torch.zeros(2)}, None),
        ({"optimizer": Optimizer(Entry(replays="many"))}, None),
        ({}, None),
    ],
)
def test_the_sums_are_of_all_that_can_say_it_and_each_counts_once(phases: Mapping[str, Any], found: Mapping[str, int] | None) -> None:
    assert counts(phases) == found


def test_what_is_no_phase_counts_where_it_is_named() -> None:
    assert counts({"optimizer": PLAIN}, [TWO]) == SUMS
    assert counts({"optimizer": TWO}, [TWO]) == SUMS
    assert counts({"optimizer": PLAIN}, [PLAIN]) is None
