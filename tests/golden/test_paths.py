"""How keys become paths."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from golden import paths
from golden.errors import Refused

NUMBERS = st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.complex_numbers(allow_nan=False)
ATOMS = st.none() | st.binary(max_size=3) | NUMBERS
WORDS = st.text(st.sampled_from("ab/~:(), 01\"'int"), max_size=8)
KEYS = ATOMS | WORDS | st.tuples(ATOMS | WORDS, ATOMS | WORDS)


class Colour(enum.Enum):
    RED = 1


class Word(str):
    __slots__ = ()


@given(st.lists(KEYS, max_size=6))
def test_no_two_keys_of_a_mapping_have_one_path(keys: list[Any]) -> None:
    mapping = dict.fromkeys(keys)
    assert len({paths.segment(key, "here") for key in mapping}) == len(mapping)


@given(KEYS)
def test_a_segment_is_never_empty_and_has_no_slash(key: Any) -> None:
    segment = paths.segment(key, "here")
    assert segment
    assert "/" not in segment


@pytest.mark.parametrize(
    ("key", "segment"),
    [
        ("0.weight", "0.weight"),
        ("a/b", "a~1b"),
        ("a~b", "a~0b"),
        (0, "int:0"),
        ("int:0", "str:int:0"),
        ("", "str:"),
        (True, "bool:True"),
        (None, "NoneType:None"),
        (0.5, "float:0x1.0000000000000p-1 (0.5)"),
        (-0.0, "float:-0x0.0p+0 (-0.0)"),
        ((1, "a"), 'tuple:(int:1, str:"a")'),
        (Colour.RED, "enum Colour:Colour.RED"),
        (Word("a"), "Word:a"),
        (np.int64(3), "numpy:int64:3"),
        (torch.float32, "torch.dtype:torch.float32"),
    ],
)
def test_keys_are_written_with_their_type_unless_they_are_text(key: Any, segment: str) -> None:
    assert paths.segment(key, "here") == segment


@pytest.mark.parametrize("key", [torch.ones(1), frozenset({1}), object(), "\ud800", (object(),)])
def test_keys_without_a_lasting_name_are_refused_with_the_path(key: Any) -> None:
    with pytest.raises(Refused, match=r"^optimizer/state: "):
        paths.segment(key, "optimizer/state")
