"""A phase's digest moves with what a comparison sees in it, and with nothing of another phase."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from golden.leaf import Snapshot
from golden.phases import digests
from golden.recorder import Recorder
from golden.settings import Turn
from golden.stopwatch import Stopwatch


def taken(**phases: Any) -> dict[str, str]:
    found: list[Snapshot] = []
    record = Recorder(found.append, steps=1)
    record(**phases)
    return digests(found[0])


def test_bits_shapes_and_types_move_a_phase_alone() -> None:
    """-0.0 for 0.0, another shape of the same bytes, another dtype of the same bytes."""
    usual = taken(model={"w": torch.zeros(4)}, loss=1.0)
    assert usual == taken(model={"w": torch.zeros(4)}, loss=1.0)
    for other in (-torch.zeros(4), torch.zeros(2, 2), torch.zeros(4, dtype=torch.int32)):
        moved = taken(model={"w": other}, loss=1.0)
        assert {phase for phase in usual if usual[phase] != moved[phase]} == {"model"}


def test_a_timed_run_hands_back_what_a_recording_has_only_where_asked(tmp_path: Path) -> None:
    """The same digests as of a recorded step, the generators' among them."""
    turn = Turn("a", "a.py:a", 1, 0, {})
    without, watch = Stopwatch(turn, "cpu", tmp_path), Stopwatch(replace(turn, digests=True), "cpu", tmp_path)
    state = {"model": {"w": torch.ones(3)}}
    without(**state)
    watch(**state)
    assert without.figures("a")["digests"] is None
    assert watch.figures("a")["digests"] == taken(**state)
    assert watch.figures("a")["whole"] < 1e3 * 60
