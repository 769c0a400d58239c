"""Arrays of numpy as leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from golden.errors import Refused
from tests.golden.states import leaves, lines, read, same

DTYPES = ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16", ">f4", "U5", "S3", "M8[ns]", "m8[s]", "V4"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_array_of_this_dtype_is_its_bytes(dtype: str) -> None:
    array = np.frombuffer(bytes(range(1, 1 + 2 * np.dtype(dtype).itemsize)), dtype)
    leaf, data = leaves(a=array)["a"]
    assert (leaf.kind, leaf.shape, data) == ("tensor", (2,), array.tobytes())
    assert same(read(a=array), read(a=array.copy()))
    changed = np.frombuffer(bytes([0]) + array.tobytes()[1:], dtype)
    assert not same(read(a=array), read(a=changed))


@pytest.mark.parametrize(
    ("array", "line"),
    [
        (np.zeros((2, 3), np.float32), "a : numpy:float32[2,3]"),
        (np.zeros((2, 3), np.float32).T, "a : numpy:float32[3,2] strides=[1,3]"),
        (np.zeros(4, np.int64)[::-2], "a : numpy:int64[2] strides=[-2]"),
        (np.zeros(()), "a : numpy:float64[]"),
        (np.zeros((0, 3), bool), "a : numpy:bool[0,3]"),
        (np.zeros(1, ">f4"), "a : numpy:>f4[1]"),
        (np.zeros(1, "U5"), "a : numpy:<U5[1]"),
        (np.zeros(1, "M8[ns]"), 'a : "numpy:<M8[ns]"[1]'),
    ],
)
def test_the_line_of_an_array_names_numpy_dtype_shape_and_layout(array: Any, line: str) -> None:
    assert lines(a=array) == [line]


def test_an_array_and_a_tensor_in_one_memory_share_it() -> None:
    array = np.zeros(4, np.float32)
    assert lines(a=array[::-1], b=torch.from_numpy(array)[3:]) == [
        "a : numpy:float32[4] strides=[-1]",
        "b : float32[1] shares=a",
    ]


def test_the_undefined_padding_of_long_doubles_is_no_difference() -> None:
    one, other = np.ones(3, np.longdouble), np.ones(3, np.longdouble)
    other.view(np.uint8).reshape(3, -1)[:, 12:] ^= 0xFF
    assert same(read(a=one), read(a=other))
    assert not same(read(a=one), read(a=np.full(3, 2, np.longdouble)))


def test_a_masked_array_is_its_data_mask_and_fill_value() -> None:
    array = np.ma.masked_array(np.arange(3), [False, True, False])
    assert lines(a=array) == ["a : MaskedArray", "a data: numpy:int64[3]", "a mask: numpy:bool[3]", "a fill_value: numpy:int64 (scalar)"]
    other = np.ma.masked_array(np.arange(3), [False, True, True])
    assert not same(read(a=array), read(a=other))


def test_an_array_of_a_subclass_has_its_class_above_it() -> None:
    class Signal(np.ndarray[Any, Any]):
        pass

    assert lines(a=np.arange(3).view(Signal)) == ["a : Signal", "a array: numpy:int64[3]"]


@pytest.mark.parametrize(
    "array",
    [
        np.array([object()]),
        np.zeros(2, [("x", "f4"), ("y", "i4")]),
        np.zeros(2, [("x", "i4"), ("y", "i8")])["y"],
    ],
)
def test_arrays_whose_bytes_are_not_their_values_are_refused_with_the_path(array: Any) -> None:
    with pytest.raises(Refused, match=r"^a/b/0: an array of"):
        read(a={"b": [array]})


def test_variable_length_text_is_refused() -> None:
    if not hasattr(np.dtypes, "StringDType"):
        pytest.skip("numpy has no variable-length text before 2.0")
    with pytest.raises(Refused, match="pointers"):
        read(a=np.array(["abc"], dtype=np.dtypes.StringDType()))
