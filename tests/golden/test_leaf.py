"""Lines of the manifest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.leaf import Leaf, view

TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('":/~= \n\r\t\\()[]é\u2028\x85\x00'), max_size=12)
PHASE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/"), min_size=1, max_size=5)
TYPE = TEXT.filter(bool) | st.sampled_from(
    ["float32", "int", "dict", "torch.dtype", "numpy:float32", "sparse_coo float32[3,4] coalesced", "a shares=b", "dict (scalar)", "x[3]"]
)
SHARES = st.none() | TEXT


@st.composite
def leaves(draw: st.DrawFn) -> Leaf:
    phase, path, kind, named, shares = (
        draw(PHASE),
        draw(TEXT),
        draw(st.sampled_from(["tensor", "scalar", "container"])),
        draw(TYPE),
        draw(SHARES),
    )
    if kind != "tensor":
        return Leaf(phase, path, kind, named, shares=shares)
    shape = tuple(draw(st.lists(st.integers(0, 10**20), max_size=4)))
    strides = draw(st.none() | st.lists(st.integers(-(10**20), 10**20), min_size=len(shape), max_size=len(shape)).map(tuple))
    return Leaf(phase, path, kind, named, shape, strides, shares)


LINES = [
    (Leaf("model", "0.weight", "tensor", "float32", (16, 1, 3, 3)), "0.weight: float32[16,1,3,3]"),
    (
        Leaf("model", "w", "tensor", "float32", (16, 1, 3, 3), (9, 1, 3, 1), "model/x"),
        "w: float32[16,1,3,3] strides=[9,1,3,1] shares=model/x",
    ),
    (Leaf("loss", "", "tensor", "float32", ()), ": float32[]"),
    (Leaf("optimizer", "lr", "scalar", "float"), "lr: float"),
    (Leaf("optimizer", "state", "container", "dict"), "state: dict"),
    (Leaf("p", "a", "container", "float"), "a: float (container)"),
    (Leaf("p", "a", "scalar", "Fraction"), "a: Fraction (scalar)"),
    (Leaf("p", "a", "container", "sparse_coo float32[3,4] coalesced"), "a: sparse_coo float32[3,4] coalesced"),
    (Leaf("p", "a", "container", "float32[3]"), 'a: "float32[3]"'),
    (Leaf("p", "a", "tensor", "some dtype", (3,)), 'a: "some dtype"[3]'),
    (Leaf("p", "a: b", "scalar", "int"), '"a: b": int'),
    (Leaf("p", "a:", "scalar", "int"), "a:: int"),
    (Leaf("p", "a\nb", "scalar", "int"), '"a\\nb": int'),
    (Leaf("p", "größe=~0~1x", "scalar", "int"), "größe=~0~1x: int"),
    (Leaf("p", '"', "scalar", "int"), '"\\"": int'),
    (Leaf("p", "a", "tensor", "numpy:float64", (2,), (-1,), "p/x y"), "a: numpy:float64[2] strides=[-1] shares=p/x y"),
    (Leaf("p", "a", "tensor", "int8", (2,), None, ""), 'a: int8[2] shares=""'),
]


@pytest.mark.parametrize(("leaf", "line"), LINES)
def test_a_leaf_has_this_line_and_the_line_gives_it_back(leaf: Leaf, line: str) -> None:
    assert leaf.line() == line
    assert Leaf.parse(leaf.phase, line) == leaf


@given(leaves())
def test_every_leaf_has_one_line_that_gives_it_back(leaf: Leaf) -> None:
    line = leaf.line()
    assert line.splitlines() == [line]
    assert Leaf.parse(leaf.phase, line) == leaf


@given(
    st.text(st.sampled_from('ab: "\\[]=,0123()') | st.characters(exclude_categories=["Cs"]))
    | leaves().map(Leaf.line).map(lambda line: line[1:])
)
def test_whatever_is_read_as_a_leaf_is_its_line(line: str) -> None:
    """No leaf has two lines: what parses is written in the same way again."""
    try:
        leaf = Leaf.parse("p", line)
    except ValueError:
        return
    assert leaf.line() == line


@pytest.mark.parametrize(
    "line",
    [
        "",
        "lr",
        "lr:float",
        "lr: ",
        '"lr": float',
        '"lr: float',
        '"lr"x: float',
        '"\\u00e9": float',
        "lr:  float",
        "lr: float ",
        "lr: float (scalar)",
        "lr: dict (container)",
        "w: float32[03]",
        "w: float32[3] strides=[1,1]",
        "w: float32[3] shares=",
        "w: float32[3] shares=a strides=[1]\n",
        'w: "float32"[3]',
        "w: float32[٣]",
        "w: float32[" + "9" * 5000 + "]",
        "a\nb: float",
        "a\u2028b: float",
        'x: "a\\ud800"',
    ],
)
def test_other_spellings_are_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"no leaf has|do not fit|needs a type|JSON|Expecting|Exceeds|surrogates"):
        Leaf.parse("p", line)


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        (("", "a", "scalar", "int"), "a phase needs a name"),
        (("a/b", "c", "scalar", "int"), "a phase needs a name"),
        (("p", "a", "number", "int"), "kind is one of"),
        (("p", "a", "scalar", ""), "'p/a' needs a type"),
        (("p", "a", "tensor", "float32"), "'p/a': a tensor has a shape"),
        (("p", "a", "scalar", "int", ()), "'p/a': a tensor has a shape"),
        (("p", "a", "scalar", "int", None, ()), "'p/a': strides"),
        (("p", "a", "tensor", "int8", (3,), (1, 1)), "'p/a': strides"),
    ],
)
def test_parts_that_do_not_go_together_are_refused(parts: tuple[str, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Leaf(*parts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "leaf", [Leaf("p", "\ud800", "scalar", "int"), Leaf("p", "a", "scalar", "\udfff"), Leaf("p", "a", "scalar", "int", shares="\ud800")]
)
def test_lone_surrogates_are_refused(leaf: Leaf) -> None:
    """They have no UTF-8, and two of them would read back as another character."""
    with pytest.raises(ValueError, match="surrogates"):
        leaf.line()


def test_the_full_path_of_a_phase_is_the_phase() -> None:
    assert Leaf("loss", "", "scalar", "float").full == "loss"
    assert Leaf("model", "0/w", "container", "dict").full == "model/0/w"


def test_the_bytes_of_a_buffer_are_not_copied() -> None:
    array = np.arange(6, dtype=np.uint8).reshape(2, 3)
    bytes_ = view(array)
    array[1, 2] = 77
    assert (bytes_.nbytes, bytes_.ndim, bytes_[5]) == (6, 1, 77)


@pytest.mark.parametrize("empty", [b"", bytearray(), memoryview(b""), np.zeros((0, 3), np.uint8), np.zeros((3, 0), np.float32)])
def test_an_empty_buffer_has_no_bytes(empty: bytes) -> None:
    """An array with a zero in its shape cannot be cast, and is a buffer all the same."""
    assert view(empty).nbytes == 0
