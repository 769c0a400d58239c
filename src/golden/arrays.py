"""Arrays of numpy: which are plain memory, and how they are named and read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from golden.errors import Refused
from golden.memory import View, strided

Array: TypeAlias = "npt.NDArray[Any]"

_PADDED = (np.dtype(np.longdouble), np.dtype(np.clongdouble))
_MANTISSA = np.finfo(np.longdouble).nmant


def plain(array: Array) -> bool:
    """Whether an array is numpy's own class: one leaf."""
    return type(array) is np.ndarray


def check(array: Array, path: str) -> None:
    """Refuses an array whose bytes are not its values.

    Raises:
        Refused: for object, structured and variable-length text dtypes, and for views between elements.
    """
    dtype = array.dtype
    if dtype.hasobject or dtype.kind not in "biufcmMSUV":
        raise Refused(path, f"an array of dtype {dtype}", "its bytes are pointers: record a list, or an array of numbers")
    if dtype.fields is not None or dtype.subdtype is not None:
        raise Refused(path, f"an array of structured dtype {dtype}", "record a mapping of its fields")
    if any(stride % max(dtype.itemsize, 1) for stride in array.strides):
        raise Refused(path, f"an array of {dtype} with strides of {array.strides} bytes", "record a copy() of it")


def name(dtype: np.dtype[Any]) -> str:
    """``numpy:float32``; a foreign byte order, a length or a unit as numpy writes them: ``numpy:>f4``, ``numpy:<U5``, ``numpy:<M8[ns]``."""
    described = dtype.isnative and (dtype.kind in "biufc" or (dtype.kind == "V" and dtype.type is not np.void))
    return f"numpy:{dtype.name if described else dtype.str}"


def strides(array: Array) -> tuple[int, ...]:
    """Strides in elements."""
    return tuple(stride // max(array.itemsize, 1) for stride in array.strides)


def address(array: Array) -> int:
    """Address of the first element."""
    where: int = array.__array_interface__["data"][0]
    return where


def view(array: Array) -> View:
    """The array's bytes where they lie; a copy with cleared padding where numpy leaves bytes undefined (80-bit floats)."""
    if array.dtype in _PADDED and _MANTISSA == 63:
        values = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(-1, 16).copy()
        values[:, 10:] = 0
        return memoryview(values.reshape(-1)).toreadonly()
    return strided(address(array), array.shape, array.strides, array.itemsize)


def parts(array: Array) -> tuple[str, Mapping[str, Any]]:
    """What an array of a subclass consists of."""
    if isinstance(array, np.ma.MaskedArray):
        return "MaskedArray", {"data": array.data, "mask": np.ma.getmaskarray(array), "fill_value": array.fill_value}
    return type(array).__name__, {"array": array.view(np.ndarray)}
