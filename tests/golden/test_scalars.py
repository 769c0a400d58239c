"""Values that are no tensors, as exact text."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import functools
import math
import struct
import uuid
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from golden.scalars import ParameterNames, Scalar, exact, is_scalar


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1


class Mode(enum.IntFlag):
    READ = 1
    WRITE = 2


class Count(int):
    pass


class Version(str):
    __slots__ = ()


def double(bits: int) -> float:
    value: float = struct.unpack(">d", bits.to_bytes(8, "big"))[0]
    return value


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_two_floats_have_one_text_only_if_their_bits_are_equal(one: int, other: int) -> None:
    assert (exact(double(one)) == exact(double(other))) == (one == other)


@given(st.floats(allow_nan=False))
def test_the_text_of_a_float_gives_it_back(value: float) -> None:
    text = exact(value).text
    assert float.fromhex(text.split(" ")[0]) == value
    assert math.copysign(1, float.fromhex(text.split(" ")[0])) == math.copysign(1, value)


@given(st.text(st.characters()), st.text(st.characters()))
def test_two_texts_have_one_text_only_if_they_are_equal(one: str, other: str) -> None:
    assert (exact(one) == exact(other)) == (one == other)
    assert exact(one).text.isascii()


@given(st.integers(-(2**5000), 2**5000), st.integers(-1, 1))
def test_ints_of_any_size_are_exact(value: int, change: int) -> None:
    assert (exact(value) == exact(value + change)) == (change == 0)


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (None, "NoneType", "None"),
        (True, "bool", "True"),
        (17, "int", "17"),
        (-(10**30), "int", "-1000000000000000000000000000000"),
        (0.1, "float", "0x1.999999999999ap-4 (0.1)"),
        (-0.0, "float", "-0x0.0p+0 (-0.0)"),
        (math.inf, "float", "inf (inf)"),
        (double(0x7FF8000000000001), "float", "nan (0x7ff8000000000001)"),
        (complex(0.0, -0.0), "complex", "0x0.0p+0 (0.0) + -0x0.0p+0 (-0.0)j"),
        ("ä\n", "str", '"\\u00e4\\n"'),
        ("\ud800", "str", '"\\ud800"'),
        (b"\x00\xff", "bytes", "00ff"),
        (range(1, 7, 2), "range", "range(1, 7, 2)"),
        (torch.bfloat16, "torch.dtype", "torch.bfloat16"),
        (torch.device("cpu"), "torch.device", "cpu"),
        (torch.channels_last, "torch.memory_format", "torch.channels_last"),
        (torch.strided, "torch.layout", "torch.strided"),
        (torch.per_tensor_affine, "torch.qscheme", "torch.per_tensor_affine"),
        (Colour.RED, "enum Colour", "Colour.RED"),
        (Level.LOW, "enum Level", "Level.LOW"),
        (Mode.READ | Mode.WRITE, "enum Mode", "Mode(3)"),
        (Count(3), "Count", "3"),
        (Version("2.1"), "Version", '"2.1"'),
        (np.float32(0.5), "numpy:float32", "0x3f000000 (0.5)"),
        (np.float64(-0.0), "numpy:float64", "0x8000000000000000 (-0.0)"),
        (np.int8(-3), "numpy:int8", "-3"),
        (np.bool_(True), "numpy:bool", "True"),
        (np.complex64(1j), "numpy:complex64", "0x3f80000000000000 (1j)"),
        (np.datetime64("2024-05-01", "D"), "numpy:datetime64[D]", "0x0000000000004d84 (2024-05-01)"),
        (np.str_("a"), "numpy:str", '"a"'),
        (np.bytes_(b"a"), "numpy:bytes", "61"),
        (np.dtype("float32"), "numpy.dtype", "<f4"),
        (ParameterNames(["0.weight", "0.bias"]), "parameters", '["0.weight", "0.bias"]'),
        (decimal.Decimal("1.10"), "Decimal", "1.10"),
        (fractions.Fraction(1, 3), "Fraction", "1/3"),
        (datetime.timedelta(1), "timedelta", "datetime.timedelta(days=1)"),
        (uuid.UUID(int=1), "UUID", "00000000-0000-0000-0000-000000000001"),
        (math.sin, "function", "sin"),
        (torch.nn.functional.relu, "function", "relu"),
        (np.add, "function", "add"),
        (double, "function", "double"),
        (Colour, "type", "Colour"),
    ],
)
def test_a_scalar_has_this_type_and_text(value: Any, kind: str, text: str) -> None:
    assert is_scalar(value)
    assert exact(value) == Scalar(kind, text)


@pytest.mark.case("G10")
def test_equal_values_of_different_types_are_different() -> None:
    values = [3, 3.0, Count(3), np.float64(3), np.int64(3), np.float32(3), True, 1, 1.0, np.bool_(True), complex(1), "1", b"1", Level.LOW]
    assert len({exact(value) for value in values}) == len(values)


@pytest.mark.case("G25")
def test_floats_that_print_alike_when_rounded_are_different() -> None:
    near = math.nextafter(0.1, 1)
    assert f"{near:.15g}" == f"{0.1:.15g}"
    assert exact(near) != exact(0.1)


def test_an_int_too_long_for_decimal_is_written_in_hexadecimal() -> None:
    assert exact(1 << 20_000).text == "0x1" + "0" * 5000
    assert exact(1 << 4096).text == "0x1" + "0" * 1024
    assert exact((1 << 4096) - 1).text == str((1 << 4096) - 1)


@pytest.mark.parametrize(
    "value", [torch.ones(1), [1], (), {}, object(), np.ones(1), np.longdouble(1), functools.partial(abs), bytearray(b"a"), slice(1), ...]
)
def test_what_is_no_scalar_is_told_apart(value: Any) -> None:
    assert not is_scalar(value)
    with pytest.raises(TypeError, match="is no scalar"):
        exact(value)
