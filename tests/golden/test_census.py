"""The census: counts, places and distances of what differs, each against a slow reference."""

from __future__ import annotations

import itertools
import math
import struct
import time
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.census import CHUNK, Census, census, hexadecimal, reading

Array = npt.NDArray[Any]


def single(*values: float) -> bytes:
    return np.array(values, np.float32).tobytes()


def bits(*values: int, unit: str = "<u4") -> bytes:
    return np.array(values, unit).tobytes()


def test_equal_bytes_differ_nowhere_and_have_no_figures() -> None:
    assert census(single(1, 2, 3), single(1, 2, 3), "float32", (3,)) == Census(0, 3, None, None, None, None)


def test_one_flipped_bit_is_counted_placed_and_shown() -> None:
    found = census(single(1, 2, 1, 4), bits(0x3F800000, 0x40000000, 0x3F800001, 0x40800000), "float32", (2, 2))
    assert found == Census(1, 4, 1, (1, 0), "0x3f800000", "0x3f800001")


def test_the_first_index_is_the_first_in_row_major_order() -> None:
    expected = np.zeros((3, 4, 5), np.float64)
    actual = expected.copy()
    actual[1, 0, 4] = actual[0, 3, 2] = actual[2, 0, 0] = 1.0
    found = census(expected, actual, "float64", (3, 4, 5))
    assert (found.differing, found.index) == (3, (0, 3, 2))


def test_the_first_index_may_lie_beyond_the_first_chunk() -> None:
    expected = np.zeros(3 * CHUNK + 7, np.int16)
    actual = expected.copy()
    actual[[2 * CHUNK + 5, 3 * CHUNK + 6]] = 1
    found = census(expected, actual, "int16", expected.shape)
    assert (found.differing, found.index) == (2, (2 * CHUNK + 5,))


def test_a_tensor_without_dimensions_has_the_empty_index() -> None:
    assert census(single(1), single(2), "float32", ()).index == ()


def test_a_tensor_without_elements_differs_nowhere() -> None:
    assert census(b"", b"", "float32", (0, 3)) == Census(0, 0, None, None, None, None)


def test_sides_of_unequal_size_are_refused() -> None:
    with pytest.raises(ValueError, match="4 bytes cannot be compared with 8"):
        census(single(1), single(1, 2), "float32", (1,))


def test_the_signs_of_zeros_differ_and_are_zero_apart() -> None:
    found = census(single(0.0), single(-0.0), "float32", (1,))
    assert (found.differing, found.max_ulp, found.expected, found.actual) == (1, 0, "0x00000000", "0x80000000")


def test_payloads_of_nans_differ_without_a_distance() -> None:
    found = census(bits(0x7FC00000), bits(0x7FC00001), "float32", (1,))
    assert (found.differing, found.max_ulp) == (1, None)


def test_pairs_with_a_nan_are_left_out_of_the_distance_and_kept_in_the_count() -> None:
    found = census(single(math.nan, 1, 5), bits(0x3F800000, 0x3F800003, 0x40A00000), "float32", (3,))
    assert (found.differing, found.max_ulp) == (2, 3)


def test_equal_elements_beside_a_nan_are_no_pair() -> None:
    assert census(single(math.nan, 5), single(0, 5), "float32", (2,)).max_ulp is None


def test_infinity_is_one_step_beyond_the_largest_number() -> None:
    found = census(single(np.finfo(np.float32).max), single(math.inf), "float32", (1,))
    assert found.max_ulp == 1


def test_the_largest_distance_of_doubles_does_not_wrap() -> None:
    largest = struct.unpack("<q", struct.pack("<d", math.inf))[0]
    found = census(np.array([-math.inf]), np.array([math.inf]), "float64", (1,))
    assert found.max_ulp == 2 * largest


FORMATS = {  # name: bits of the exponent, bits of the mantissa, bias
    "float16": (5, 10, 15),
    "bfloat16": (8, 7, 127),
    "float8_e5m2": (5, 2, 15),
    "float8_e4m3fn": (4, 3, 7),
    "float8_e5m2fnuz": (5, 2, 16),
    "float8_e4m3fnuz": (4, 3, 8),
}


def value(code: int, name: str) -> Fraction | None:
    """The number behind a pattern, worked out from the format's definition: None for NaN, a huge one for infinity."""
    exponent_bits, mantissa_bits, bias = FORMATS[name]
    sign = -1 if code >> (exponent_bits + mantissa_bits) else 1
    exponent = (code >> mantissa_bits) & (2**exponent_bits - 1)
    mantissa = code & (2**mantissa_bits - 1)
    if name.endswith("fnuz"):
        if code == 0x80:
            return None
    elif name == "float8_e4m3fn":
        if exponent == 15 and mantissa == 7:
            return None
    elif exponent == 2**exponent_bits - 1 and mantissa:
        return None
    whole, power = (1, exponent - bias) if exponent else (0, 1 - bias)
    unit = Fraction(2**power) if power >= 0 else Fraction(1, 2**-power)
    return sign * (whole + Fraction(mantissa, 2**mantissa_bits)) * unit


def places(name: str) -> dict[int, int]:
    """Rank of each pattern among the values of its format, NaN left out: equal values have equal ranks."""
    exponent_bits, mantissa_bits, _ = FORMATS[name]
    values = {code: value(code, name) for code in range(2 ** (1 + exponent_bits + mantissa_bits))}
    ranks = {number: rank for rank, number in enumerate(sorted({v for v in values.values() if v is not None}))}
    return {code: ranks[number] for code, number in values.items() if number is not None}


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz"])
def test_the_distance_of_all_pairs_of_an_8_bit_float_is_the_number_of_values_between_them(name: str) -> None:
    rank = places(name)
    for one in range(0, 256, 3):
        for other in range(256):
            expected = abs(rank[one] - rank[other]) if one in rank and other in rank and one != other else None
            assert census(bytes([one]), bytes([other]), name, (1,)).max_ulp == expected, (one, other)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_the_distance_of_16_bit_floats_is_the_number_of_values_between_them(name: str) -> None:
    rank = places(name)
    some = [0, 1, 0x8000, 0x8001, 0x3C00, 0x3C01, 0xBC00, 0x7BFF, 0x7C00, 0xFC00, 0x7F7F, 0x7F80, 0x7C01, 0x7F81, 0xFFFF]
    for one, other in itertools.permutations(some, 2):
        expected = abs(rank[one] - rank[other]) if one in rank and other in rank else None
        assert census(bits(one, unit="<u2"), bits(other, unit="<u2"), name, (1,)).max_ulp == expected, (hex(one), hex(other))


def test_float8_e8m0_counts_powers_of_two_and_has_one_nan() -> None:
    assert census(bytes([0, 7]), bytes([254, 7]), "float8_e8m0fnu", (2,)).max_ulp == 254
    assert census(bytes([0]), bytes([255]), "float8_e8m0fnu", (1,)).max_ulp is None


def test_both_halves_of_a_byte_with_two_floats_count() -> None:
    low = census(bytes([0x21]), bytes([0x24]), "float4_e2m1fn_x2", (1,))
    high = census(bytes([0x21]), bytes([0xA1]), "float4_e2m1fn_x2", (1,))  # 2 against -2
    assert (low.differing, low.max_ulp, low.expected, low.actual) == (1, 3, "0x21", "0x24")
    assert (high.differing, high.max_ulp) == (1, 4)


@pytest.mark.parametrize(("name", "unit"), [("complex32", np.float16), ("complex64", np.float32), ("complex128", np.float64)])
def test_a_complex_is_one_element_and_its_parts_are_measured_apart(name: str, unit: type) -> None:
    expected: Array = np.array([1, 2, 3, 4, 5, 6], unit)
    actual = expected.copy()
    actual[3] = np.nextafter(np.nextafter(actual[3], unit(9)), unit(9))
    actual[4] = math.nan
    found = census(expected, actual, name, (3,))
    assert (found.differing, found.elements, found.max_ulp, found.index) == (2, 3, 2, (1,))


def test_a_complex_shows_its_real_part_first() -> None:
    found = census(single(1, 2), single(1, 3), "complex64", (1,))
    assert (found.expected, found.actual) == ("0x3f800000 0x40000000", "0x3f800000 0x40400000")


@pytest.mark.parametrize(("name", "unit"), [("int64", "<i8"), ("uint16", "<u2"), ("bool", "|b1"), ("qint32", "<i4"), ("int8", "|i1")])
def test_what_is_no_float_has_no_distance(name: str, unit: str) -> None:
    found = census(np.array([0, 1, 1], unit), np.array([0, 0, 1], unit), name, (3,))
    assert (found.differing, found.elements, found.max_ulp, found.index) == (1, 3, None, (1,))


def test_elements_of_any_size_are_compared_whole() -> None:
    for width in (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 40):
        expected = np.arange(5 * width, dtype=np.uint8)
        actual = expected.copy()
        actual[3 * width - 1] ^= 1
        actual[3 * width :: width] ^= 128
        found = census(expected, actual, "numpy:V", (5, 1))
        assert (found.differing, found.elements, found.index) == (3, 5, (2, 0)), width


def test_packed_elements_are_told_by_their_storage_byte() -> None:
    found = census(bytes([1, 2, 3]), bytes([1, 2, 4]), "quint4x2", (3, 2))
    assert (found.differing, found.elements, found.index, found.expected, found.actual) == (1, 3, (2,), "0x03", "0x04")


def test_numpy_arrays_are_measured_like_tensors() -> None:
    expected, actual = single(1), bits(0x3F800002)
    assert census(expected, actual, "numpy:float32", (1,)).max_ulp == 2


def test_neither_side_is_written_to() -> None:
    expected, actual = np.array([1.0, -2.0, math.nan]), np.array([1.5, 2.0, 0.0])
    before = expected.tobytes(), actual.tobytes()
    census(expected, actual, "float64", (3,))
    assert (expected.tobytes(), actual.tobytes()) == before


def test_bytes_that_start_at_an_odd_address_count_the_same() -> None:
    expected, actual = np.arange(100, dtype=np.float32), np.arange(100, dtype=np.float32) * np.float32(1.5)
    odd = [np.frombuffer(b"x" + side.tobytes(), np.uint8)[1:] for side in (expected, actual)]
    assert census(odd[0], odd[1], "float32", (100,)) == census(expected, actual, "float32", (100,))


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)), min_size=1, max_size=50))
def test_figures_are_those_of_a_loop_over_the_elements(pairs: list[tuple[int, int]]) -> None:
    left, right = zip(*pairs, strict=True)
    differing = [place for place, (one, other) in enumerate(pairs) if one != other]
    distances = [
        abs(order(pairs[place][0]) - order(pairs[place][1]))
        for place in differing
        if max(code & 0x7FFFFFFF for code in pairs[place]) <= 0x7F800000
    ]
    found = census(bits(*left), bits(*right), "float32", (len(pairs),))
    assert found.differing == len(differing)
    assert found.max_ulp == max(distances, default=None)
    assert found.index == ((differing[0],) if differing else None)


def order(code: int) -> int:
    return -(code & 0x7FFFFFFF) if code >> 31 else code


def test_what_is_no_number_is_shown_in_storage_order() -> None:
    assert hexadecimal(b"\x01\x02\x03", "numpy:V3") == "0x010203"
    assert hexadecimal(b"\x01\x02", "int16") == "0x0201"


@pytest.mark.parametrize(
    ("text", "name", "read"),
    [
        ("0x3f800001", "float32", "1.0000001"),
        ("0x3f80", "bfloat16", "1"),
        ("0x8000", "float16", "-0.0"),
        ("0x7ff8000000000000", "float64", "nan"),
        ("0xffff", "int16", "-1"),
        ("0xffff", "numpy:uint16", "65535"),
        ("0x3f800000 0x40000000", "complex64", None),
        ("0x01", "bool", None),
        ("0x01", "float32", None),
    ],
)
def test_an_element_can_be_read_by_people_where_its_dtype_is_plain(text: str, name: str, read: str | None) -> None:
    assert reading(text, name) == read


def test_a_hundred_million_differing_elements_are_counted_within_three_seconds() -> None:
    expected = np.zeros(10**8, np.uint32)
    actual = np.ones(10**8, np.uint32)
    begun = time.process_time()  # of this process, which others may keep from its core
    found = census(expected, actual, "float32", (10**4, 10**4))
    assert time.process_time() - begun < 3
    assert (found.differing, found.max_ulp) == (10**8, 1)
