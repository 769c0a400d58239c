"""The manifest: round trips, and everything that is no manifest."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import canonical, digest, manifest
from golden.errors import CorruptGolden
from golden.leaf import Leaf
from golden.manifest import Layout, Manifest, Reason, Step

ROOT = "0123456789abcdef" * 2
EXAMPLE = Manifest(
    layouts=(
        Layout("loss", (Leaf("loss", "", "tensor", "float32", ()),)),
        Layout("model", (Leaf("model", "w", "tensor", "float32", (3, 2)), Leaf("model", "n", "scalar", "int"))),
        Layout("model", (Leaf("model", "w", "tensor", "float32", (3, 2)),)),
    ),
    steps=(Step(0, (0,), (ROOT,), False), Step(1, (0, 1), (ROOT, ROOT), True), Step(2, (0, 2), (ROOT, ROOT), True)),
    scenario={"name": "digits", "parameters": {"lr": 0.1, "on": True}, "resume_at": None},
    environment={"threads": 1, "cpu": {"flags": ["avx", "sse"]}},
    sources={"src/model.py": "0f" * 32},
    hardware="cpu",
    torch="2.13.0",
    reason=Reason("a bug in warm-up", {"1/model": ROOT}),
)

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
ROOTS = st.text("0123456789abcdef", min_size=32, max_size=32)
PATHS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    phases = draw(st.lists(st.text("abé", min_size=1, max_size=3), min_size=1, max_size=3, unique=True))
    layouts = tuple(
        Layout(phase, tuple(Leaf(phase, path, "scalar", "int") for path in draw(st.lists(PATHS, min_size=1, max_size=3, unique=True))))
        for phase in phases
    )
    count, first = draw(st.integers(1, 4)), draw(st.integers(0, 20))
    roots = st.tuples(*[ROOTS] * len(phases))
    steps = tuple(Step(first + index, tuple(range(len(phases))), draw(roots), draw(st.booleans())) for index in range(count))
    facts = st.dictionaries(NAMES, JSON, max_size=3)
    sources = st.dictionaries(st.from_regex(r"[a-zé][a-z. é]{0,3}(/[a-z]{1,3}){0,2}", fullmatch=True), st.just("ab" * 32), max_size=2)
    reasons = st.none() | st.builds(Reason, NAMES, st.dictionaries(NAMES, ROOTS, max_size=2))
    return Manifest(layouts, steps, draw(facts), draw(facts), draw(sources), draw(NAMES), draw(NAMES), draw(reasons))


def parsed(text: bytes) -> Manifest:
    return manifest.parse(text)


def sealed(document: dict[str, Any]) -> bytes:
    """A document with a seal that fits: what somebody writes who knows how."""
    rest = {key: value for key, value in document.items() if key != "seal"}
    text = json.dumps(rest, sort_keys=True, indent=2) + "\n"
    return (json.dumps({**rest, "seal": hashlib.sha256(text.encode()).hexdigest()}, sort_keys=True, indent=2) + "\n").encode()


def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(EXAMPLE.text())
    return found


@given(manifests())
def test_a_manifest_is_read_as_it_was_written(original: Manifest) -> None:
    text = original.text()
    assert manifest.parse(text.encode()) == original
    assert manifest.parse(text.encode()).text() == text
    assert text.isascii()


def test_the_seal_is_the_sha256_of_the_rest() -> None:
    """Worked out here a second time, so that any tool can check it."""
    assert sealed(document()) == EXAMPLE.text().encode()
    assert parsed(sealed(document())) == EXAMPLE


def test_a_manifest_is_small_to_review() -> None:
    """Sorted keys, two spaces, one line a leaf, a newline at the end."""
    lines = EXAMPLE.text().splitlines()
    assert '        "w: float32[3,2]",' in lines
    assert lines[1] == '  "digest": "xxh3-128",'
    assert EXAMPLE.text().endswith("}\n")


def test_a_leaf_has_one_column_however_many_layouts_name_it() -> None:
    """The table of digests does not grow with every change of layout."""
    assert [columns.tolist() for columns in EXAMPLE.columns] == [[0], [1, 2], [1]]
    assert EXAMPLE.width == 3


def test_roots_are_named_by_step_and_phase() -> None:
    assert dict(EXAMPLE.roots) == dict.fromkeys(["0/loss", "1/loss", "1/model", "2/loss", "2/model"], ROOT)


def test_tuples_are_read_as_lists() -> None:
    assert parsed(replace(EXAMPLE, scenario={"devices": ("cpu",)}).text().encode()).scenario == {"devices": ["cpu"]}  # type: ignore[dict-item]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: 2}, b"x", {"a": [object()]}, {"a", "b"}, Path("a")])
def test_facts_that_json_cannot_hold_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"environment\.x.*exactly"):
        replace(EXAMPLE, environment={"x": value}).text()  # type: ignore[dict-item]


def test_one_flipped_bit_is_noticed_at_every_byte() -> None:
    text = EXAMPLE.text().encode()
    for index in range(len(text)):
        flipped = bytearray(text)
        flipped[index] ^= 1 << index % 8
        with pytest.raises(ValueError, match=r"."):
            parsed(bytes(flipped))
    assert parsed(text) == EXAMPLE


def test_truncation_is_noticed_at_every_byte() -> None:
    text = EXAMPLE.text().encode()
    for length in range(len(text)):
        with pytest.raises(ValueError, match=r"."):
            parsed(text[:length])


def test_a_seal_of_another_manifest_is_noticed() -> None:
    """As a merge of two goldens line by line would leave it."""
    other = replace(EXAMPLE, torch="2.14.1").text()
    own, foreign = document()["seal"], json.loads(other)["seal"]
    assert own != foreign
    with pytest.raises(ValueError, match="does not match its seal"):
        parsed(EXAMPLE.text().replace(own, foreign).encode())


def test_a_newer_format_says_what_to_do() -> None:
    """Whatever else stands in it: nothing of it is known here, its seal neither."""
    with pytest.raises(ValueError, match=r"^format 2 is newer than this gate reads \(1\): update musgd-gate$"):
        parsed(b'{"format": 2, "layout": {}}')


TEXTS = {
    "nothing": (b"", "is not JSON"),
    "no JSON": (b"gate", "is not JSON"),
    "no mapping": (b"[1]", "no manifest of format 1"),
    "no format": (b"{}", "no manifest of format 1"),
    "format true": (b'{"format": true}', "no manifest of format 1"),
    "format text": (b'{"format": "2"}', "no manifest of format 1"),
    "older format": (b'{"format": 0}', "no manifest of format 1"),
    "no seal": (b'{"format": 1}', "has no seal"),
    "no UTF-8": (b'{"format": "\xff"}', "is not UTF-8: byte 12"),
    "NaN": (b'{"format": NaN}', "holds NaN"),
    "infinity": (b'{"format": -Infinity}', "holds -Infinity"),
    "key twice": (b'{"format": 1, "format": 1}', "holds the key 'format' twice"),
    "list bomb": (b"[" * 200_000, "nested too deeply"),
    "mapping bomb": (b'{"a":' * 200_000, "nested too deeply"),
    "endless number": (b'{"format": ' + b"9" * 10_000 + b"}", "."),
}


@pytest.mark.parametrize(("text", "why"), TEXTS.values(), ids=TEXTS)
def test_what_is_no_json_of_ours_is_refused(text: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parsed(text)


def test_sealed_text_in_another_form_is_refused() -> None:
    """One value has one text: the seal alone would let other spellings pass."""
    text = EXAMPLE.text()
    seal = document()["seal"]
    for other in (text.replace('"threads": 1', '"threads": 1.0e0'), text.replace('"cpu"', '"\\u0063pu"', 1), text + "\n", text[:-1]):
        unsealed = other.replace(f'\n  "seal": "{seal}",', "")
        resealed = other.replace(seal, hashlib.sha256(unsealed.encode()).hexdigest())
        with pytest.raises(ValueError, match="canonical"):
            parsed(resealed.encode())


FORGERIES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a key more": (lambda d: d.update(extra=1), "the manifest has the keys"),
    "a key less": (lambda d: d.pop("torch"), "the manifest has the keys"),
    "other digests": (lambda d: d.update(digest="md5"), "digests of kind 'md5'"),
    "number for torch": (lambda d: d.update(torch=2), "torch is no text"),
    "number for hardware": (lambda d: d.update(hardware=None), "hardware is no text"),
    "list for scenario": (lambda d: d.update(scenario=[]), "scenario is no mapping"),
    "list for environment": (lambda d: d.update(environment=[]), "environment is no mapping"),
    "mapping for layouts": (lambda d: d.update(layouts={}), "layouts is no list"),
    "no layouts": (lambda d: d.update(layouts=[]), "names a layout that is not there"),
    "no steps": (lambda d: d.update(steps=[]), "holds no step"),
    "no leaves": (lambda d: d["layouts"][0].update(leaves=[]), "has no leaf"),
    "a leaf that is none": (lambda d: d["layouts"][0].update(leaves=["w"]), "no leaf has the line 'w'"),
    "a number for a leaf": (lambda d: d["layouts"][0].update(leaves=[1]), "a leaf is no text"),
    "a path twice": (lambda d: d["layouts"][0].update(leaves=["w: int", "w: float"]), "one path twice"),
    "a phase with a slash": (lambda d: d["layouts"][0].update(phase="a/b"), "a phase needs a name"),
    "a layout twice": (lambda d: d["layouts"].insert(1, copy.deepcopy(d["layouts"][0])), "laid out twice"),
    "a layout without a step": (lambda d: d["layouts"].append({"phase": "x", "leaves": [": int"]}), "a layout that no step has"),
    "layouts out of order": (lambda d: d["layouts"].reverse(), "order of appearance|distinct phases"),
    "a layout outside": (lambda d: d["steps"][0].update(layouts=[3]), "a layout that is not there"),
    "a negative layout": (lambda d: d["steps"][0].update(layouts=[-1]), "a layout that is not there"),
    "a true layout": (lambda d: d["steps"][0].update(layouts=[False]), "a layout that is not there"),
    "no phases": (lambda d: d["steps"][0].update(layouts=[], roots=[]), "needs distinct phases|order of appearance"),
    "a phase twice in a step": (lambda d: d["steps"][2].update(layouts=[1, 2]), "distinct phases"),
    "a root less": (lambda d: d["steps"][2].update(roots=[ROOT]), "each with its root"),
    "a root that is none": (lambda d: d["steps"][0].update(roots=["x" * 32]), "a root that is no digest"),
    "a root in capitals": (lambda d: d["steps"][0].update(roots=[ROOT.upper()]), "a root that is no digest"),
    "a missing step": (lambda d: d["steps"].append({**d["steps"][2], "step": 4}), "step 4 does not follow step 2"),
    "a step twice": (lambda d: d["steps"].append(d["steps"][2]), "step 2 does not follow step 2"),
    "steps out of order": (lambda d: d["steps"].reverse(), "order of appearance|does not follow"),
    "a negative step": (lambda d: d["steps"][0].update(step=-1), "step -1 does not follow"),
    "a step that is text": (lambda d: d["steps"][0].update(step="0"), "a step has a number"),
    "a step that is true": (lambda d: d["steps"][1].update(step=True), "a step has a number"),
    "kept is a number": (lambda d: d["steps"][1].update(kept=1), "a step has a number and says whether it is kept"),
    "a step's key more": (lambda d: d["steps"][1].update(file="../x"), "a step has the keys"),
    "a source outside": (lambda d: d.update(sources={"../../etc/passwd": "0f" * 32}), "points outside the project"),
    "a source above": (lambda d: d.update(sources={"src/../../x": "0f" * 32}), "points outside the project"),
    "an absolute source": (lambda d: d.update(sources={"/etc/passwd": "0f" * 32}), "points outside the project"),
    "a source without name": (lambda d: d.update(sources={"": "0f" * 32}), "points outside the project"),
    "a source with a dot": (lambda d: d.update(sources={"src/./x": "0f" * 32}), "points outside the project"),
    "a source that ends": (lambda d: d.update(sources={"src/": "0f" * 32}), "points outside the project"),
    "a source with a zero": (lambda d: d.update(sources={"src\0x": "0f" * 32}), "points outside the project"),
    "a source without sha256": (lambda d: d.update(sources={"src/x": "0f"}), "has no sha256"),
    "a reason without text": (lambda d: d["reason"].update(text=None), "the reason is no text"),
    "a reason's key more": (lambda d: d["reason"].update(who="me"), "the reason has the keys"),
    "a reason that replaces text": (lambda d: d["reason"].update(replaces="all"), "replaces is no mapping"),
    "a reason that replaces nonsense": (lambda d: d["reason"].update(replaces={"1/model": "x"}), "a root that is no digest"),
}


@pytest.mark.parametrize(("change", "why"), FORGERIES.values(), ids=FORGERIES)
def test_a_forged_manifest_with_a_fitting_seal_is_refused(change: Callable[[dict[str, Any]], Any], why: str) -> None:
    """The seal is no signature: everything it covers is checked as well."""
    forged = document()
    change(forged)
    with pytest.raises(ValueError, match=why):
        parsed(sealed(forged))


def test_a_corrupt_manifest_is_named(tmp_path: Path) -> None:
    (tmp_path / manifest.FILE).write_text(EXAMPLE.text().replace("digits", "digit"))
    with pytest.raises(CorruptGolden, match="does not match its seal") as caught:
        manifest.read(tmp_path)
    assert caught.value.path == tmp_path / manifest.FILE
    (tmp_path / manifest.FILE).write_text(EXAMPLE.text())
    assert manifest.read(tmp_path) == EXAMPLE


def test_an_endless_manifest_is_not_read(tmp_path: Path) -> None:
    """A sparse file costs its writer nothing."""
    with (tmp_path / manifest.FILE).open("wb") as file:
        file.truncate(manifest.MOST + 1)
    with pytest.raises(CorruptGolden, match="bytes, which no manifest has"):
        manifest.read(tmp_path)


def test_the_kind_of_digest_stands_in_the_manifest() -> None:
    assert document()["digest"] == digest.KIND == "xxh3-128"


def test_canonical_text_does_not_depend_on_the_order_of_keys() -> None:
    assert (
        canonical.dumps({"b": 1, "a": [2.5, "é"]})
        == canonical.dumps({"a": [2.5, "é"], "b": 1})
        == '{\n  "a": [\n    2.5,\n    "\\u00e9"\n  ],\n  "b": 1\n}\n'
    )
    assert canonical.compact({"b": 1, "a": "é"}) == '{"a":"\\u00e9","b":1}'
