"""How many elements of two byte arrays differ, which is the first, and how far apart they are.

Everything is read as integers, so that a NaN is counted like any other value and -0.0 is not 0.0.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Bytes: TypeAlias = "bytes | bytearray | memoryview | npt.NDArray[Any]"
Array: TypeAlias = "npt.NDArray[Any]"

CHUNK = 1 << 15  # elements read at a time: the working arrays stay in the cache


@dataclass(frozen=True)
class Census:
    """What a comparison of two tensors of one dtype and shape found.

    Attributes:
        differing: number of elements whose bytes differ.
        elements: number of elements; of storage bytes where one byte holds several elements.
        max_ulp: largest distance in units of the last place, over the parts (of a complex, of a packed byte) of all differing
            elements; pairs with a NaN are left out. -0.0 and 0.0 are 0 apart. None where nothing is left, or the dtype is no float.
        index: place of the first differing element in row-major order, one number a dimension; None when nothing differs.
        expected: that element, most significant digit first ("0x3f800000"); a complex is its real and its imaginary part.
        actual: the same of the other side.
    """

    differing: int
    elements: int
    max_ulp: int | None
    index: tuple[int, ...] | None
    expected: str | None
    actual: str | None


@dataclass(frozen=True)
class _Float:
    """A float of sign and magnitude: `width` bytes, `top` the largest magnitude that is no NaN, `parts` of them an element."""

    width: int
    top: int
    parts: int = 1


_HALF, _SINGLE, _DOUBLE = 0x7C00, 0x7F80_0000, 0x7FF0_0000_0000_0000
_FLOATS = {
    "float16": _Float(2, _HALF),
    "bfloat16": _Float(2, 0x7F80),
    "float32": _Float(4, _SINGLE),
    "float64": _Float(8, _DOUBLE),
    "complex32": _Float(2, _HALF, 2),
    "complex64": _Float(4, _SINGLE, 2),
    "complex128": _Float(8, _DOUBLE, 2),
}
_NAN = np.iinfo(np.int16).min


def _minifloat(top: int, bits: int = 8, shift: int = 0) -> Array:
    """Order of each of the 256 bytes as one float of `bits` bits, sign first: int16 [256], `_NAN` where it is none."""
    sign = 1 << (bits - 1)
    code = (np.arange(256) >> shift) & (2 * sign - 1)
    magnitude = code & (sign - 1)
    order = np.where(code & sign, -magnitude, magnitude)
    return np.where(magnitude > top, _NAN, order).astype(np.int16)


def _without_negative_zero() -> Array:
    """Order of the fnuz formats, whose one NaN has the pattern of -0.0."""
    order = _minifloat(0x7F)
    order[0x80] = _NAN
    return order


def _exponents() -> Array:
    """Order of the powers of two of float8_e8m0fnu, which has no sign."""
    order = np.arange(256, dtype=np.int16)
    order[0xFF] = _NAN
    return order


_TABLES: dict[str, tuple[Array, ...]] = {  # one table a part
    "float8_e4m3fn": (_minifloat(0x7E),),
    "float8_e5m2": (_minifloat(0x7C),),
    "float8_e4m3fnuz": (_without_negative_zero(),),
    "float8_e5m2fnuz": (_without_negative_zero(),),
    "float8_e8m0fnu": (_exponents(),),
    "float4_e2m1fn_x2": (_minifloat(7, bits=4), _minifloat(7, bits=4, shift=4)),
}


def census(expected: Bytes, actual: Bytes, dtype: str, shape: tuple[int, ...]) -> Census:
    """Counts the elements that differ between two tensors, given as their logical bytes in row-major order.

    Args:
        expected: all bytes of the one tensor, little-endian; only read.
        actual: all bytes of the other.
        dtype: of both, as a leaf names it ("bfloat16", "numpy:float32"). Unknown ones are compared as bytes of their size.
        shape: of both.

    Raises:
        ValueError: the two do not have the same number of bytes.
    """
    left, right = _flat(expected), _flat(actual)
    if left.size != right.size:
        raise ValueError(
            f"{left.size} bytes cannot be compared with {right.size}: both sides must have dtype {dtype} and shape {list(shape)}"
        )
    width, dims = _element(left.size, shape)
    elements = left.size // width
    name = dtype.removeprefix("numpy:")
    differing, first, distances = 0, None, []
    for start, one, other in _chunks(left, right, width):
        unequal = _unequal(one, other, width)
        count = int(np.count_nonzero(unequal))
        if not count:
            continue
        differing += count
        first = start + int(unequal.argmax()) if first is None else first
        distances.append(_max_ulp(one, other, name))
    if first is None:
        return Census(0, elements, None, None, None, None)
    place = slice(first * width, (first + 1) * width)
    index = tuple(int(i) for i in np.unravel_index(first, dims)) if dims else ()
    texts = (hexadecimal(side[place].tobytes(), name) for side in (left, right))
    return Census(differing, elements, max((d for d in distances if d is not None), default=None), index, *texts)


def hexadecimal(element: bytes, dtype: str) -> str:
    """An element's little-endian bytes as a number, most significant digit first; what is no number stays in storage order."""
    parts = _FLOATS[dtype].parts if dtype in _FLOATS else 1
    size = len(element) // parts
    cut = [element[at : at + size] for at in range(0, len(element), size)]
    return " ".join(f"0x{(part[::-1] if size in (1, 2, 4, 8) else part).hex()}" for part in cut)


def reading(text: str, dtype: str) -> str | None:
    """The value behind `hexadecimal`, for people ("1.0000001"); None where the dtype has no plain reading.

    The text is exact, the reading is not: it says neither which NaN it is, nor more digits than tell the value from its neighbours.
    """
    name = dtype.removeprefix("numpy:")
    raw = bytes.fromhex(text.removeprefix("0x")) if " " not in text else b""
    if name == "bfloat16":
        return f"{struct.unpack('>f', raw + bytes(2))[0]:.5g}"
    if name not in _PLAIN or len(raw) != np.dtype(name).itemsize:
        return None
    return str(np.frombuffer(raw[::-1], np.dtype(name).newbyteorder("<"))[0])


_PLAIN = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def _flat(data: Bytes) -> Array:
    """The bytes as uint8 [n], without a copy where they are contiguous."""
    if isinstance(data, np.ndarray):
        return np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    return np.frombuffer(data, np.uint8)


def _element(size: int, shape: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """Bytes an element, and the shape that indices are told in: that of the storage where bytes hold several elements."""
    count = math.prod(shape)
    if count and size and size % count == 0:
        return size // count, shape
    return 1, (size,)


def _chunks(left: Array, right: Array, width: int) -> Iterator[tuple[int, Array, Array]]:
    """Yields (number of the first element, its bytes on both sides) for `CHUNK` elements at a time."""
    step = CHUNK * width
    for at in range(0, left.size, step):
        yield at // width, left[at : at + step], right[at : at + step]


def _unequal(one: Array, other: Array, width: int) -> Array:
    """Which elements differ: bool [elements]."""
    unit = next(size for size in (8, 4, 2, 1) if width % size == 0)
    unequal: Array = np.not_equal(one.view(f"u{unit}"), other.view(f"u{unit}"))
    if unit < width:
        unequal = np.any(unequal.reshape(-1, width // unit), axis=1)
    return unequal


def _max_ulp(one: Array, other: Array, dtype: str) -> int | None:
    """The largest distance of two parts that differ and are no NaN; None where there is no such pair."""
    if dtype in _TABLES:
        distances = [_distance(table[one], table[other], one, other, _NAN + 1) for table in _TABLES[dtype]]
        return max((d for d in distances if d is not None), default=None)
    if dtype not in _FLOATS:
        return None
    form = _FLOATS[dtype]
    bits, others = one.view(f"i{form.width}"), other.view(f"i{form.width}")
    return _distance(_order(bits, form), _order(others, form), bits, others, -form.top)


def _order(bits: Array, form: _Float) -> Array:
    """Signed integers in the order of the floats, both zeros at 0; a NaN becomes the lowest integer of all."""
    lowest = np.iinfo(bits.dtype).min
    sign = bits >> (8 * form.width - 1)
    magnitude: Array = bits & ~np.array(lowest, bits.dtype)
    nan = magnitude > form.top if magnitude.max() > form.top else None
    magnitude ^= sign
    magnitude -= sign
    if nan is not None:
        magnitude[nan] = lowest
    return magnitude


def _distance(order: Array, others: Array, bits: Array, other_bits: Array, lowest: int) -> int | None:
    """The largest distance of two orders; pairs with one below `lowest` (NaN) are left out, and those of equal bits are no pairs."""
    high, low = np.maximum(order, others), np.minimum(order, others)
    pairs = bits != other_bits
    if low.min() < lowest:
        pairs &= low >= lowest
    if not pairs.any():
        return None
    high -= low  # may wrap, and is right once read without a sign
    high *= pairs
    return int(high.view(f"u{high.itemsize}").max())
