"""Comparisons of recordings that were really written and read back."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from golden import digest
from golden.compare import Comparison, Difference, Kind, compare, compare_files
from golden.errors import CorruptGolden
from golden.leaf import Leaf, Snapshot
from golden.store import Golden
from golden.writer import Writer

Entry: TypeAlias = tuple[Leaf, bytes]
ONES = np.ones((2, 3), np.float32)


def tensor(full: str, array: npt.NDArray[Any], dtype: str | None = None, **facts: Any) -> Entry:
    phase, _, path = full.partition("/")
    return Leaf(phase, path, "tensor", dtype or array.dtype.name, array.shape, **facts), array.tobytes()


def scalar(full: str, kind: str, text: str) -> Entry:
    phase, _, path = full.partition("/")
    return Leaf(phase, path, "scalar", kind), text.encode()


def container(full: str, kind: str) -> Entry:
    phase, _, path = full.partition("/")
    return Leaf(phase, path, "container", kind), b""


def golden(folder: Path, *steps: Sequence[Entry], kept: Sequence[int] | bool = True, begin: int = 1) -> Golden:
    writer = Writer(folder)
    for number, entries in enumerate(steps, begin):
        data = [content for _, content in entries]
        keep = kept if isinstance(kept, bool) else number in kept
        writer.add(Snapshot(number, tuple(leaf for leaf, _ in entries), digest.of(data), data if keep else None))
    writer.finish(scenario={"name": "some"}, environment={}, sources={}, hardware="cpu", torch="2.13.0")
    return Golden.open(folder)


def compared(tmp_path: Path, expected: Sequence[Entry], actual: Sequence[Entry]) -> Comparison:
    return compare(golden(tmp_path / "expected", expected), golden(tmp_path / "actual", actual))


def only(comparison: Comparison) -> Difference:
    assert len(comparison.differences) == 1, comparison.differences
    return comparison.differences[0]


def test_equal_recordings_have_no_difference(tmp_path: Path) -> None:
    state = [tensor("model/w", ONES), scalar("model/n", "int", "3"), container("extra", "dict")]
    found = compared(tmp_path, state, state)
    assert (found.identical, found.first, found.structure, found.bits) == (True, None, 0, 0)


def test_one_changed_element_is_told_with_all_its_figures(tmp_path: Path) -> None:
    moved = ONES.copy()
    moved[1, 2] = np.nextafter(np.float32(1), np.float32(2))
    found = compared(tmp_path, [tensor("model/w", ONES)], [tensor("model/w", moved)])
    assert found.first == Difference(1, "model", "model/w", Kind.BITS, 1, 6, 1, (1, 2), "0x3f800000", "0x3f800001", dtype="float32")
    assert (found.identical, found.structure, found.bits) == (False, 0, 1)
    assert found.first.as_json() == {
        "step": 1,
        "phase": "model",
        "path": "model/w",
        "kind": "bits",
        "differing": 1,
        "elements": 6,
        "max_ulp": 1,
        "index": [1, 2],
        "expected": "0x3f800000",
        "actual": "0x3f800001",
    }


@pytest.mark.parametrize(
    ("expected", "actual", "kind", "texts"),
    [
        (tensor("m/w", ONES), tensor("m/w", ONES.astype(np.float64)), "dtype", ("float32", "float64")),
        (tensor("m/w", np.ones((0, 3))), tensor("m/w", np.ones((0, 4))), "shape", ("[0, 3]", "[0, 4]")),
        (tensor("m/w", ONES), tensor("m/w", ONES, strides=(1, 2)), "layout", ("strides [3, 1]", "strides [1, 2]")),
        (tensor("m/w", ONES), tensor("m/w", ONES, shares="m/v"), "sharing", ("nothing", "m/v")),
        (tensor("m/w", ONES), tensor("m/w", ONES, "numpy:float32"), "type", ("float32[2, 3]", "numpy:float32[2, 3]")),
        (tensor("m/w", np.float32(3).reshape(())), scalar("m/w", "float", "0x1.8p+1 (3.0)"), "type", ("float32[]", "float")),
        (scalar("m/w", "int", "3"), scalar("m/w", "float", "0x1.8p+1 (3.0)"), "type", ("int", "float")),
        (scalar("m/w", "int", "1"), scalar("m/w", "bool", "True"), "type", ("int", "bool")),
        (container("m/w", "tuple"), container("m/w", "list"), "type", ("tuple", "list")),
        (scalar("m/w", "int", "3"), scalar("m/w", "int", "4"), "value", ("3", "4")),
        (scalar("m/w", "float", "0x0.0p+0 (0.0)"), scalar("m/w", "float", "-0x0.0p+0 (-0.0)"), "value", None),
        (container("m/w", "Odd"), scalar("m/w", "Odd", "1"), "type", None),
    ],
)
def test_each_way_of_being_built_otherwise_has_its_kind(
    tmp_path: Path, expected: Entry, actual: Entry, kind: str, texts: tuple[str, str] | None
) -> None:
    difference = only(compared(tmp_path, [expected], [actual]))
    assert difference.kind == kind
    assert (difference.differing, difference.elements, difference.max_ulp, difference.index) == (None, None, None, None)
    assert texts in (None, (difference.expected, difference.actual))
    assert difference.expected != difference.actual


def test_of_several_differences_of_structure_the_weightiest_is_told(tmp_path: Path) -> None:
    other = tensor("m/w", np.ones((3, 2), np.float64), strides=(1, 3), shares="m/v")
    assert only(compared(tmp_path, [tensor("m/w", ONES)], [other])).kind is Kind.DTYPE


def test_bits_are_compared_beneath_another_layout(tmp_path: Path) -> None:
    moved = ONES.copy()
    moved[0, 1] = 2
    found = compared(tmp_path, [tensor("m/w", ONES)], [tensor("m/w", moved, strides=(1, 2))])
    assert [difference.kind for difference in found.differences] == [Kind.LAYOUT, Kind.BITS]
    assert (found.structure, found.bits, found.differences[1].index) == (1, 1, (0, 1))


@pytest.mark.case("G21")
def test_what_is_missing_or_unexpected_is_listed_and_the_rest_compared(tmp_path: Path) -> None:
    a, b, c, d = (tensor(f"m/{name}", ONES) for name in "abcd")
    moved = tensor("m/d", ONES * 2)
    found = compared(tmp_path, [a, b, d], [a, c, moved])
    kinds = [(difference.path, difference.kind.value, difference.expected, difference.actual) for difference in found.differences]
    assert kinds == [
        ("m/c", "unexpected", None, "float32[2, 3]"),
        ("m/b", "missing", "float32[2, 3]", None),
        ("m/d", "bits", "0x3f800000", "0x40000000"),
    ]
    assert (found.structure, found.bits) == (2, 1)
    assert d != moved


def test_first_is_the_earliest_executed_and_not_the_first_by_name(tmp_path: Path) -> None:
    before = [tensor("z/w", ONES), tensor("a/w", ONES)]
    after = [tensor("a/w", ONES * 3), tensor("z/w", ONES * 3)]
    found = compared(tmp_path, before, after)
    assert [difference.phase for difference in found.differences] == ["z", "a"]


def test_the_order_in_which_a_state_is_filled_is_no_difference(tmp_path: Path) -> None:
    a, b = tensor("m/a", ONES), tensor("m/b", ONES * 2)
    assert compared(tmp_path, [a, b], [b, a]).identical


def test_an_unexpected_phase_stands_where_it_was_executed(tmp_path: Path) -> None:
    expected = [tensor("loss", ONES), tensor("model/a", ONES), tensor("model/b", ONES)]
    actual = [tensor("loss", ONES), tensor("grads/a", ONES), tensor("model/a", ONES * 2)]
    found = compared(tmp_path, expected, actual)
    assert [difference.path for difference in found.differences] == ["grads/a", "model/a", "model/b"]


def test_steps_that_one_side_lacks_are_missing_or_unexpected_leaf_by_leaf(tmp_path: Path) -> None:
    state = [tensor("m/a", ONES), tensor("m/b", ONES)]
    long, short = golden(tmp_path / "long", state, state, state), golden(tmp_path / "short", state, state)
    assert [(d.step, d.path, d.kind) for d in compare(long, short).differences] == [(3, "m/a", Kind.MISSING), (3, "m/b", Kind.MISSING)]
    assert {d.kind for d in compare(short, long).differences} == {Kind.UNEXPECTED}


def test_differences_come_step_by_step_also_where_the_layout_changes(tmp_path: Path) -> None:
    start, later = [tensor("m/a", ONES)], [tensor("loss", ONES), tensor("m/a", ONES)]
    moved = [tensor("loss", ONES * 2), tensor("m/a", ONES)]
    expected = golden(tmp_path / "e", start, later, later, begin=0)
    actual = golden(tmp_path / "a", start, later, moved, begin=0)
    assert [(d.step, d.path) for d in compare(expected, actual).differences] == [(2, "loss")]


@pytest.mark.parametrize("sides", ["neither", "expected", "actual"])
def test_without_the_bytes_of_both_sides_a_difference_of_digests_has_no_figures(tmp_path: Path, sides: str) -> None:
    one = golden(tmp_path / "e", [tensor("m/a", ONES), scalar("m/n", "int", "1")], kept=sides == "expected")
    other = golden(tmp_path / "a", [tensor("m/a", ONES * 2), scalar("m/n", "int", "2")], kept=sides == "actual")
    bits, value = compare(one, other).differences
    assert bits == Difference(1, "m", "m/a", Kind.BITS, dtype="float32")
    assert (value.kind, value.expected, value.actual) == (
        Kind.VALUE,
        "1" if sides == "expected" else None,
        "2" if sides == "actual" else None,
    )


def test_a_further_recording_supplies_the_bytes_of_a_digest_golden(tmp_path: Path) -> None:
    one, other = [tensor("m/a", ONES), scalar("m/n", "int", "1")], [tensor("m/a", ONES * 2), scalar("m/n", "int", "2")]
    expected, actual = golden(tmp_path / "e", one, kept=False), golden(tmp_path / "a", other, kept=False)
    base, again = golden(tmp_path / "base", one), golden(tmp_path / "again", other)
    bits, value = compare(expected, actual, tensors=[base, again]).differences
    assert (bits.differing, bits.index, bits.expected, bits.actual) == (6, (0, 0), "0x3f800000", "0x40000000")
    assert (value.expected, value.actual) == ("1", "2")


def test_a_further_recording_with_other_bits_supplies_nothing(tmp_path: Path) -> None:
    expected = golden(tmp_path / "e", [tensor("m/a", ONES)], kept=False)
    actual = golden(tmp_path / "a", [tensor("m/a", ONES * 2)])
    wrong = golden(tmp_path / "base", [tensor("m/a", ONES * 3)])
    elsewhere = golden(tmp_path / "other", [tensor("m/b", ONES)], begin=1)
    assert compare(expected, actual, tensors=[wrong, elsewhere]).first == Difference(1, "m", "m/a", Kind.BITS, dtype="float32")


def test_a_limit_spares_the_census_of_later_differences(tmp_path: Path) -> None:
    one, other = [tensor("m/a", ONES), tensor("m/b", ONES)], [tensor("m/a", ONES * 2), tensor("m/b", ONES * 2)]
    found = compare(golden(tmp_path / "e", one), golden(tmp_path / "a", other), limit=1)
    assert [difference.differing for difference in found.differences] == [6, None]
    assert found.bits == 2


def test_twenty_thousand_leaves_laid_out_otherwise_take_a_second_and_not_minutes(tmp_path: Path) -> None:
    leaves = tuple(Leaf("m", f"w{place}", "tensor", "float32", (1,)) for place in range(20_000))
    data = [np.float32(place).tobytes() for place in range(20_000)]
    entries = list(zip(leaves, data, strict=True))
    extra = [*entries, tensor("m/zz", ONES)]
    expected, actual = golden(tmp_path / "e", entries, kept=False), golden(tmp_path / "a", extra[1:], kept=False)
    begun = time.process_time()
    found = compare(expected, actual)
    assert time.process_time() - begun < 5
    assert [difference.path for difference in found.differences] == ["m/w0", "m/zz"]


def flip(path: Path, content: bytes) -> None:
    """Flips the last bit of some bytes in a file."""
    data = path.read_bytes()
    assert data.count(content) == 1
    path.write_bytes(data.replace(content, content[:-4] + bytes([content[-4] ^ 1]) + content[-3:]))


def test_what_a_step_file_holds_is_compared_although_it_does_not_have_its_digests(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3) + 1
    state = [tensor("m/a", values), tensor("m/b", ONES)]
    expected, actual = golden(tmp_path / "e", state, state), golden(tmp_path / "a", state, state)
    flip(actual.file(2), values.tobytes())
    found, damaged = compare_files(Golden.open(expected.folder), Golden.open(actual.folder))
    difference = only(found)
    assert (difference.step, difference.path, difference.differing, difference.index) == (2, "m/a", 1, (1, 2))
    assert (difference.expected, difference.actual) == ("0x40c00000", "0x40c00001")
    assert damaged == (actual.file(2),)
    assert compare(Golden.open(expected.folder), Golden.open(actual.folder)).identical, "by digests nothing has changed"


def test_a_damaged_scalar_is_told_by_its_texts(tmp_path: Path) -> None:
    expected = golden(tmp_path / "e", [scalar("m/n", "str", '"some text"'), tensor("m/a", ONES)])
    actual = golden(tmp_path / "a", [scalar("m/n", "str", '"some text"'), tensor("m/a", ONES)])
    path = actual.file(1)
    path.write_bytes(path.read_bytes().replace(b"some text", b"some next"))
    found, damaged = compare_files(Golden.open(expected.folder), Golden.open(actual.folder))
    assert (only(found).kind, only(found).expected, only(found).actual) == (Kind.VALUE, '"some text"', '"some next"')
    assert damaged == (path,)


def test_equal_files_are_neither_different_nor_damaged(tmp_path: Path) -> None:
    state = [tensor("m/a", ONES), scalar("m/n", "int", "3")]
    found, damaged = compare_files(golden(tmp_path / "e", state, state), golden(tmp_path / "a", state, state, kept=[2]))
    assert (found.identical, damaged) == (True, ())


def test_two_files_damaged_alike_do_not_differ_and_are_both_named(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32)
    goldens = [golden(tmp_path / name, [tensor("m/a", values)]) for name in "ab"]
    for each in goldens:
        flip(each.file(1), values.tobytes())
    found, damaged = compare_files(Golden.open(goldens[0].folder), Golden.open(goldens[1].folder))
    assert (found.identical, damaged) == (True, tuple(each.file(1) for each in goldens))


def test_a_truncated_step_file_cannot_be_compared(tmp_path: Path) -> None:
    expected, actual = golden(tmp_path / "e", [tensor("m/a", ONES)]), golden(tmp_path / "a", [tensor("m/a", ONES)])
    path = actual.file(1)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptGolden, match=r"step-0001\.safetensors"):
        compare_files(Golden.open(expected.folder), Golden.open(actual.folder))


def test_a_difference_found_by_digests_is_the_one_found_by_bytes(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    arrays = [random.integers(0, 3, (4, 2), np.int32) for _ in range(60)]
    expected = golden(tmp_path / "e", [tensor(f"m/{place}", array) for place, array in enumerate(arrays[:30])])
    actual = golden(tmp_path / "a", [tensor(f"m/{place}", array) for place, array in enumerate([*arrays[:10], *arrays[40:]])])
    wanted = {f"m/{place}" for place in range(10, 30) if arrays[place].tobytes() != arrays[place + 30].tobytes()}
    found = compare(expected, actual)
    assert wanted
    assert {difference.path for difference in found.differences} == wanted
    for difference in found.differences:
        place = int(difference.path.removeprefix("m/"))
        assert difference.differing == int((arrays[place] != arrays[place + 30]).sum())


def test_comparing_loads_no_torch() -> None:
    code = "import sys, golden.compare, golden.census; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
