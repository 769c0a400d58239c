"""Two goldens or kept runs against each other, written and damaged for real."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from safetensors.numpy import load_file, save_file

from gate import report
from gate.diff import MOST, Diff, diff
from gate.errors import UsageError
from gate.match import goldens
from gate.verdict import Reason, Verdict
from golden import digest
from golden.errors import CorruptGolden, MissingGolden
from golden.leaf import Leaf, Snapshot
from golden.store import Golden
from golden.writer import Writer

Tensors = Mapping[str, npt.NDArray[Any]]
STATE: Tensors = {"loss": np.float32(0.5).reshape(()), "model/w": np.arange(6, dtype=np.float32).reshape(2, 3), "model/b": np.ones(2)}


def golden(folder: Path, *steps: Tensors, kept: bool = True, **facts: Any) -> Path:
    writer = Writer(folder)
    for number, state in enumerate(steps or (STATE, STATE), 1):
        pairs = [(full.partition("/"), array) for full, array in state.items()]
        leaves = tuple(Leaf(phase, path, "tensor", array.dtype.name, array.shape) for (phase, _, path), array in pairs)
        data = [array.tobytes() for array in state.values()]
        writer.add(Snapshot(number, leaves, digest.of(data), data if kept else None))
    known: dict[str, Any] = {"scenario": {"name": folder.name, "run": "s.py:f", "seed": 0}, "environment": {}, "sources": {}}
    writer.finish(**{**known, "hardware": "cpu", "torch": "2.13.0", **facts})
    return folder


def moved(full: str, *place: int) -> Tensors:
    """The state with one element of one tensor a single unit in the last place further."""
    array = np.array(STATE[full])
    array[place] = np.nextafter(array[place], array.dtype.type(np.inf))
    return {**STATE, full: array}


def flip(path: Path, content: bytes) -> None:
    """Flips the lowest bit of the last four bytes of some content that stands once in a file."""
    data = path.read_bytes()
    assert data.count(content) == 1
    at = data.index(content) + len(content) - 4
    path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


def document(result: Diff) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(json.dumps(result.as_json(), allow_nan=False))
    return whole


def test_a_golden_is_identical_with_its_copy(tmp_path: Path) -> None:
    one = golden(tmp_path / "a" / "digits")
    result = diff(one, Path(shutil.copytree(one, tmp_path / "copy")))
    assert (result.verdict, result.exit_code) == (Verdict.IDENTICAL, 0)
    whole = document(result)
    assert (whole["structure"], whole["bits"], whole["first"], whole["steps"], whole["differences"]) == (0, 0, None, {}, [])
    assert report.diff_messages(result) == []


def test_a_difference_is_counted_placed_and_shown(tmp_path: Path) -> None:
    result = diff(golden(tmp_path / "a" / "digits"), golden(tmp_path / "b" / "digits", STATE, moved("model/w", 1, 2)))
    assert (result.verdict, result.exit_code) == (Verdict.DRIFT, 1)
    whole = document(result)
    first = {
        "step": 2,
        "phase": "model",
        "path": "model/w",
        "kind": "bits",
        "differing": 1,
        "elements": 6,
        "max_ulp": 1,
        "index": [1, 2],
        "expected": "0x40a00000",
        "actual": "0x40a00001",
    }
    assert whole["first"] == first
    assert whole["differences"] == [{"golden": "digits", **first}]
    assert (whole["structure"], whole["bits"]) == (0, 1)
    assert whole["steps"] == {"2": {"structure": 0, "bits": 1}}
    assert whole["phases"] == {"model": {"structure": 0, "bits": 1}}
    assert list(whole)[:5] == ["format", "verdict", "structure", "bits", "first"]


def test_structure_and_bits_are_counted_apart(tmp_path: Path) -> None:
    other = {"loss": STATE["loss"], "model/w": STATE["model/w"].astype(np.float64), "model/c": STATE["model/b"]}
    result = diff(golden(tmp_path / "a" / "digits", STATE), golden(tmp_path / "b" / "digits", other))
    whole = document(result)
    assert (whole["structure"], whole["bits"]) == (3, 0)
    assert [found["kind"] for found in whole["differences"]] == ["dtype", "unexpected", "missing"]


def test_one_float_changed_in_a_file_is_found_although_no_digest_tells(tmp_path: Path) -> None:
    one = golden(tmp_path / "a" / "digits")
    other = Path(shutil.copytree(one, tmp_path / "copy"))
    flip(other / "step-0001.safetensors", STATE["model/w"].tobytes())
    result = diff(one, other)
    assert result.exit_code == 1
    whole = document(result)
    assert (whole["bits"], whole["first"]["differing"], whole["first"]["index"]) == (1, 1, [1, 2])
    assert (whole["first"]["expected"], whole["first"]["actual"]) == ("0x40a00000", "0x40a00001")
    assert whole["damaged"] == [str(other / "step-0001.safetensors")]
    assert any("step-0001.safetensors" in line and "digests" in line for line in report.diff_messages(result))


def test_a_step_file_saved_again_by_safetensors_own_functions_is_compared(tmp_path: Path) -> None:
    """They drop the metadata: its tensors are read all the same, and one float changed on the way is the one difference."""
    one = golden(tmp_path / "a" / "digits")
    other = Path(shutil.copytree(one, tmp_path / "copy"))
    path = other / "step-0002.safetensors"
    state = load_file(path)
    save_file(state, path)
    assert diff(one, other).exit_code == 0
    with pytest.raises(CorruptGolden, match="does not hold the leaves"):
        Golden.open(other).check()
    state["model/w"][1, 2] = np.nextafter(state["model/w"][1, 2], np.float32(np.inf))
    save_file(state, path)
    whole = document(diff(one, other))
    assert (whole["bits"], whole["first"]["step"], whole["first"]["differing"], whole["first"]["index"]) == (1, 2, 1, [1, 2])
    assert whole["damaged"] == [str(path)]


def test_it_agrees_with_a_comparison_of_the_files_bytes(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    names = [f"model/{place}" for place in range(20)]
    steps = [{name: random.integers(0, 9, (3, 4), np.int32) for name in names} for _ in range(4)]
    others = [{name: array ^ (random.random((3, 4)) < 0.05) for name, array in state.items()} for state in steps]
    one, other = golden(tmp_path / "a" / "s", *steps), golden(tmp_path / "b" / "s", *others)
    wanted: dict[tuple[int, str], int] = {}
    for number in range(1, 5):
        left, right = (tensors(folder / f"step-{number:04d}.safetensors") for folder in (one, other))
        counts = {name: sum(left[name][at : at + 4] != right[name][at : at + 4] for at in range(0, 48, 4)) for name in names}
        wanted |= {(number, name): count for name, count in counts.items() if count}
    found = document(diff(one, other))["differences"]
    assert wanted
    assert {(each["step"], each["path"]): each["differing"] for each in found} == wanted


def tensors(path: Path) -> dict[str, bytes]:
    """The bytes of all tensors in a safetensors file, read by its published format alone."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    places = {name: entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"}
    return {name: data[start + first : start + end] for name, (first, end) in places.items()}


@pytest.mark.parametrize("kept", [(False, False), (True, False), (False, True)])
def test_without_files_on_both_sides_digests_decide(tmp_path: Path, kept: tuple[bool, bool]) -> None:
    one = golden(tmp_path / "a" / "digits", kept=kept[0])
    other = golden(tmp_path / "b" / "digits", STATE, moved("model/w", 0, 1), kept=kept[1])
    whole = document(diff(one, other))
    assert (whole["verdict"], whole["bits"], whole["first"]["path"]) == ("drift", 1, "model/w")
    assert (whole["first"]["differing"], whole["first"]["expected"], whole["first"]["actual"]) == (None, None, None)
    assert document(diff(one, golden(tmp_path / "c" / "digits", kept=kept[1])))["verdict"] == "identical"


def test_environment_sources_and_settings_that_differ_are_told(tmp_path: Path) -> None:
    sources = ("a.py", "s.py", "z.py")
    one = golden(tmp_path / "a" / "digits", environment={"threads": 1}, sources=dict.fromkeys(sources, "0" * 64))
    facts: dict[str, Any] = {
        "environment": {"threads": 2},
        "sources": {"s.py": "1" * 64, "a.py": "1" * 64, "z.py": "0" * 64, "new.py": "1" * 64},
        "scenario": {"name": "digits", "run": "s.py:f", "seed": 1},
    }
    whole = document(diff(one, golden(tmp_path / "b" / "digits", **facts)))
    assert whole["verdict"] == "identical"
    assert whole["environment_changes"] == [{"path": "threads", "expected": 1, "actual": 2}]
    assert whole["changed_sources"] == ["s.py", "a.py", "new.py"]
    assert whole["settings_changes"] == [{"path": "seed", "expected": 0, "actual": 1}]


def test_folders_are_compared_golden_by_golden_of_the_same_place(tmp_path: Path) -> None:
    for root, state in (("a", STATE), ("b", moved("loss"))):
        golden(tmp_path / root / "cpu" / "torch-2.13.0" / "digits", state)
        golden(tmp_path / root / "cpu" / "torch-2.13.0" / "text", STATE)
    golden(tmp_path / "a" / "cpu" / "torch-2.13.0" / "alone")
    result = diff(tmp_path / "a", tmp_path / "b")
    whole = document(result)
    assert [(each["golden"], each["verdict"]) for each in whole["results"]] == [("digits", "drift"), ("text", "identical")]
    assert (whole["verdict"], whole["bits"], whole["unmatched"]) == ("drift", 1, [str(tmp_path / "a/cpu/torch-2.13.0/alone")])
    assert any("alone" in line for line in report.diff_messages(result))


def test_a_golden_finds_its_run_among_kept_ones(tmp_path: Path) -> None:
    kept = tmp_path / ".gate" / "runs" / "1"
    golden(kept / "cpu" / "torch-2.13.0" / "digits", moved("loss"), torch="2.13.0")
    golden(kept / "cpu" / "torch-2.9.1" / "digits", STATE, torch="2.9.1")
    golden(kept / "cpu" / "torch-2.9.1" / "text", STATE, torch="2.9.1")
    digits = golden(tmp_path / "goldens" / "digits", STATE, torch="2.13.0")
    text = golden(tmp_path / "goldens" / "text", moved("loss"), torch="2.4.0")
    assert [pair.actual for pair in diff(digits, kept).pairs] == [str(kept / "cpu/torch-2.13.0/digits")]
    assert [pair.actual for pair in diff(text, kept).pairs] == [str(kept / "cpu/torch-2.9.1/text")]
    assert diff(digits, kept).exit_code == 1


def test_a_name_that_stands_for_several_goldens_stands_for_none(tmp_path: Path) -> None:
    one = golden(tmp_path / "a" / "digits", torch="2.4.0")
    for version in ("2.9.1", "2.13.0"):
        golden(tmp_path / "b" / version / "digits", torch=version)
    with pytest.raises(MissingGolden, match="nothing to compare: digits on the one side"):
        diff(one, tmp_path / "b")


def test_two_goldens_of_other_names_are_compared_when_both_are_named(tmp_path: Path) -> None:
    assert diff(golden(tmp_path / "a" / "eager"), golden(tmp_path / "b" / "replay")).verdict is Verdict.IDENTICAL


def test_a_golden_that_cannot_be_read_leaves_the_others_to_be_compared(tmp_path: Path) -> None:
    for root, state in (("a", STATE), ("b", moved("loss"))):
        golden(tmp_path / root / "digits", state)
        golden(tmp_path / root / "text")
    (tmp_path / "b" / "text" / "step-0002.safetensors").unlink()
    result = diff(tmp_path / "a", tmp_path / "b")
    assert [(pair.name, pair.verdict, pair.reason) for pair in result.pairs] == [
        ("digits", Verdict.DRIFT, None),
        ("text", Verdict.NOT_JUDGED, Reason.CORRUPT_GOLDEN),
    ]
    assert result.exit_code == 1
    assert any("step-0002.safetensors" in line for line in report.diff_messages(result))


@pytest.mark.parametrize("name", ["manifest.json", "digests.safetensors", "step-0001.safetensors"])
def test_a_truncated_file_is_named_and_nothing_is_judged(tmp_path: Path, name: str) -> None:
    one, other = golden(tmp_path / "a" / "digits"), golden(tmp_path / "b" / "digits")
    path = other / name
    path.write_bytes(path.read_bytes()[:-8])
    result = diff(one, other)
    assert (result.exit_code, result.pairs[0].reason) == (3, Reason.CORRUPT_GOLDEN)
    assert any(name in line for line in report.diff_messages(result))


def test_a_manifest_that_is_gone_is_a_corrupt_golden_and_not_an_empty_folder(tmp_path: Path) -> None:
    one, other = golden(tmp_path / "a" / "digits"), golden(tmp_path / "b" / "digits")
    (other / "manifest.json").unlink()
    assert diff(one, other).pairs[0].reason is Reason.CORRUPT_GOLDEN
    with pytest.raises(CorruptGolden, match=r"manifest\.json"):
        diff(one.parent, other)


def test_a_path_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        diff(golden(tmp_path / "a" / "digits"), tmp_path / "nowhere")


def test_a_folder_without_goldens_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingGolden, match="empty"):
        diff(golden(tmp_path / "a" / "digits"), tmp_path / "empty")


def test_what_a_killed_run_left_behind_is_no_golden(tmp_path: Path) -> None:
    golden(tmp_path / "root" / "cpu" / "torch-1" / "digits")
    golden(tmp_path / "root" / ".aside-1-x" / "digits")
    assert list(goldens(tmp_path / "root")) == ["cpu/torch-1/digits"]
    assert list(goldens(tmp_path / "root" / "cpu" / "torch-1" / "digits" / "manifest.json")) == [""]


def test_a_long_list_is_cut_and_says_by_how_much(tmp_path: Path) -> None:
    many = {f"model/{place}": np.zeros(1, np.int8) for place in range(MOST + 5)}
    others = {name: array + np.int8(1) for name, array in many.items()}
    whole = document(diff(golden(tmp_path / "a" / "s", many), golden(tmp_path / "b" / "s", others)))
    assert (whole["bits"], len(whole["differences"]), whole["differences_left_out"]) == (MOST + 5, MOST, 5)


def shown(result: Diff, monkeypatch: pytest.MonkeyPatch, width: int = 200) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    return report.diff_text(result, io.StringIO())


def test_the_text_shows_facts_tables_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = golden(tmp_path / "a" / "digits", environment={"threads": 1})
    other = golden(tmp_path / "b" / "digits", moved("loss"), moved("model/w", 0, 1), environment={"threads": 2})
    lines = shown(diff(one, other), monkeypatch).splitlines()
    assert lines[0] == f"digits: {one} against {other}: drift"
    flat = " ".join(" ".join(lines).split())
    for fact in (
        "environment threads: 1 -> 2",
        "sources the same",
        "0 of structure, 2 of bits, in 2 steps from 1 to 2: loss, model",
        "first step 1, phase loss, loss: bits 1 of 1 element differs, by 1 ULP at most; the first at []",
        "expected 0x3f000000 (0.5) actual 0x3f000001 (0.50000006)",
        "step loss model 1 1 2 1",
        "2 model/w bits 1/6 1 [0, 1] 0x3f800000 0x3f800001",
    ):
        assert fact in flat, fact
    assert lines[-1] == "drift: 0 of structure, 2 of bits. Next: gate verify, which finds the cause"


def test_the_text_of_several_goldens_has_one_line_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for root, state in (("a", STATE), ("b", moved("loss"))):
        golden(tmp_path / root / "digits", state)
        golden(tmp_path / root / "text")
    lines = shown(diff(tmp_path / "a", tmp_path / "b"), monkeypatch).splitlines()
    assert " ".join(lines[-4].split()) == "digits drift 0 of structure, 1 of bits, in step 1: loss"
    assert lines[-3].split() == ["text", "identical", "none"]
    assert lines[-1].startswith("drift: 0 of structure, 1 of bits of 2 pairs.")


@pytest.mark.parametrize("width", [20, 40, 71, 72, 110])
def test_the_text_is_never_wider_than_the_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    result = diff(golden(tmp_path / "a" / "digits"), golden(tmp_path / "b" / "digits", STATE, moved("model/w", 0, 0)))
    text = shown(result, monkeypatch, width)
    assert "drift" in text
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("width", [72, 90, 110, 130])
def test_a_path_can_be_told_in_every_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    long = {"optimizer/weight": np.zeros((9, 9, 9)), "optimizer/lr": np.float64(0.1).reshape(())}
    other = {"optimizer/weight": np.ones((9, 9, 9)), "optimizer/lr": np.float64(0.2).reshape(())}
    result = diff(golden(tmp_path / "a" / "digits", long), golden(tmp_path / "b" / "digits", other))
    rows = [line.split() for line in shown(result, monkeypatch, width).splitlines() if line.startswith("1  ")][-2:]
    assert [row[1][:12] for row in rows] == ["optimizer/we", "optimizer/lr"]
    assert (rows[1][3], rows[1][5]) == ("1/1", "[]")


def test_the_last_line_of_each_verdict_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = golden(tmp_path / "a" / "digits"), golden(tmp_path / "b" / "digits")
    assert shown(diff(one, other), monkeypatch).splitlines()[-1] == "identical: not a bit differs. Next: nothing to do"
    flip(other / "step-0001.safetensors", STATE["model/w"].tobytes())
    assert "get the files named on standard error back" in shown(diff(one, other), monkeypatch).splitlines()[-1]
    (other / "step-0001.safetensors").unlink()
    assert shown(diff(one, other), monkeypatch).splitlines()[-1].startswith("not-judged: 1 cannot be read.")


def test_comparing_loads_no_torch() -> None:
    code = "import sys, gate.diff; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
