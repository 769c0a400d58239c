"""Times stand for one state of the sources: what changed meanwhile has none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gate import config
from gate.benchmark import command, place, setting
from gate.benchmark.journal import Journal
from gate.benchmark.judgement import Speed
from gate.benchmark.proof import Read, Refused
from gate.benchmark.result import Result
from gate.benchmark.schedule import Slot
from gate.progress import Silent
from gate.trial import Means
from golden.sources import digest_text

CONFIG = (
    '[tool.gate.scenarios.plain]\nrun = "a.py:a"\nsteps = 2\n[tool.gate.bench.b]\nscenarios = ["plain", "plain"]\npairs = 8\nwarmup = 1\n'
)
UNKNOWN = dict.fromkeys(("allocated", "reserved", "taken", "resident", "replay", "device"))


def timed(folder: Path, source: bytes) -> Result:
    """The end of a benchmark whose runs have all been timed, on a source that held `source` when they were."""
    (folder / "pyproject.toml").write_text(CONFIG)
    (folder / "a.py").write_bytes(b"x = 1\n")
    means = Means(config.find(folder), None, None, Silent())
    bench = setting.find(means.config, "b")
    where, journal = place.choose(means, bench, None), Journal.of(folder, "b")
    read = Read({"a.py": digest_text(source)}, bench.resolved(), {"torch": "2.13.0"})
    journal.begin(read, where.bound())
    step = {"plain": 2.0, "plain (2)": 1.0}
    lines = [
        json.dumps({**UNKNOWN, "label": Slot(number, arm).label, "wall": [9.0, step[arm.name]], "host": [9.0, 1.0], "whole": 10.0})
        for number in range(bench.pairs)
        for arm in bench.arms
    ]
    (journal.folder / "time.turns").write_text("\n".join(lines) + "\n")
    assert journal.resume(folder, bench.resolved(), where.bound())[0] == (read if source == b"x = 1\n" else None)
    return command._timed(means, bench, where, journal, read, strict=False)


def test_a_source_that_changed_while_runs_were_timed_is_named_and_nothing_is_concluded(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"a\.py changed while the runs were timed") as raised:
        timed(tmp_path, b"x = 0\n")
    assert raised.value.refusal.verdict is Speed.NOT_JUDGED
    assert list((tmp_path / ".gate/bench/b").iterdir()) == []


def test_the_same_runs_on_sources_that_stayed_give_a_result_that_is_kept(tmp_path: Path) -> None:
    found = timed(tmp_path, b"x = 1\n")
    assert (found.verdict, found.bits_equal, found.arms[1].ratio) == (Speed.FASTER, True, 0.5)
    assert json.loads((tmp_path / ".gate/bench/b/result.json").read_text()) == found.as_json()
    assert found.read is not None
    assert found.as_json()["read"] == found.read.as_json()
