"""Values that are no tensors, as exact text.

::

    None True 17        NoneType, bool, int: decimal, from 2**4096 on hexadecimal (Python refuses to write long decimals)
    0x1.999999999999ap-4 (0.1)      float: hexadecimal, so exact; nan (0x7ff8000000000000) with its payload
    "a\\u00e4"          str: a JSON string in ASCII
    00ff                bytes
    torch.float32       torch's dtypes, devices, layouts, memory formats, quantization schemes
    Color.RED           enum: by class and name; flags by value
    step_lr             function, builtin, method, class: by qualified name, without its module and what it closes over

Scalars of numpy have the type ``numpy:float32`` and are never those of Python.
[held by tests/golden/test_scalars.py::test_equal_values_of_different_types_are_different]
A subclass of int, float, str, bytes or complex has its own name as type, and the text of its base.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import json
import struct
import types
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

_LONGEST = 4096  # bits of an int that is written in decimal
_UNSTABLE = (np.longdouble, np.clongdouble, np.void, np.object_)  # padding bytes, pointers


@dataclass(frozen=True)
class Scalar:
    """A scalar's type and exact text."""

    type: str
    text: str


class ParameterNames(tuple[str, ...]):
    """Names of the parameters of one group of an optimizer, in order: one scalar, however many there are."""

    __slots__ = ()


def is_scalar(value: object) -> bool:
    """Whether ``value`` is recorded as one text."""
    return _writer(type(value)) is not None


def exact(value: Any) -> Scalar:
    """Type and text of a scalar; equal for two scalars only if they are the same value of the same type.

    Raises:
        TypeError: for what is no scalar.
    """
    write = _writer(type(value))
    if write is None:
        raise TypeError(f"{type(value).__name__} is no scalar")
    return write(value)


def _writer(cls: type) -> Callable[[Any], Scalar] | None:
    """How to write values of a class, None for what is no scalar. Found once a class."""
    if cls not in _writers:
        _writers[cls] = _find(cls)
    return _writers[cls]


def _find(cls: type) -> Callable[[Any], Scalar] | None:
    if issubclass(cls, enum.Enum):
        return _enum
    if issubclass(cls, np.generic):
        return None if issubclass(cls, _UNSTABLE) else _numpy
    for base, (name, write) in _SUBCLASSED.items():
        if issubclass(cls, base):
            return _named(name if cls is base else cls.__name__, write)
    if cls in _EXACT:
        return _named(*_EXACT[cls])
    if issubclass(cls, type):
        return _named("type", lambda value: str(value.__qualname__))
    if issubclass(cls, np.dtype):
        return _named("numpy.dtype", lambda value: str(value.str if value.kind != "V" else value))
    return None


def _named(name: str, write: Callable[[Any], str]) -> Callable[[Any], Scalar]:
    return lambda value: Scalar(name, write(value))


def _int(value: int) -> str:
    return int.__repr__(value) if int.bit_length(value) <= _LONGEST else int.__format__(value, "#x")


def _float(value: float) -> str:
    if value != value:
        return f"nan (0x{struct.pack('>d', value).hex()})"
    return f"{float.hex(value)} ({float.__repr__(value)})"


def _complex(value: complex) -> str:
    return f"{_float(value.real)} + {_float(value.imag)}j"


def _str(value: str) -> str:
    return json.dumps(str.__str__(value))


def _enum(value: enum.Enum) -> Scalar:
    cls = type(value).__qualname__
    if isinstance(value, enum.Flag):
        return Scalar(f"enum {cls}", f"{cls}({_int(value.value)})")
    return Scalar(f"enum {cls}", f"{cls}.{value.name}")


def _numpy(value: np.generic) -> Scalar:
    """Scalars of numpy: numbers by their bits and value."""
    dtype = value.dtype
    bits = f"0x{value.tobytes()[::-1].hex()}" if dtype.byteorder != ">" else f"0x{value.tobytes().hex()}"
    kind = dtype.kind
    if kind in "biu":
        return Scalar(f"numpy:{dtype.name}", str(value))
    if kind == "U":
        return Scalar("numpy:str", _str(str(value)))
    if kind == "S":
        return Scalar("numpy:bytes", value.tobytes().hex())
    if kind == "f":
        return Scalar(f"numpy:{dtype.name}", f"{bits} ({float(value)!r})")
    return Scalar(f"numpy:{dtype.name}", f"{bits} ({value!s})" if kind in "cMm" else bits)


def _callable(value: Any) -> str:
    return str(value.__qualname__)


# bool before int; subclasses of these keep their own name.
_SUBCLASSED: dict[type, tuple[str, Callable[[Any], str]]] = {
    bool: ("bool", repr),
    int: ("int", _int),
    float: ("float", _float),
    complex: ("complex", _complex),
    str: ("str", _str),
    bytes: ("bytes", bytes.hex),
}
_EXACT: dict[type, tuple[str, Callable[[Any], str]]] = {
    type(None): ("NoneType", repr),
    ParameterNames: ("parameters", lambda names: json.dumps(list(names))),
    range: ("range", repr),
    torch.dtype: ("torch.dtype", str),
    torch.device: ("torch.device", str),
    torch.layout: ("torch.layout", str),
    torch.memory_format: ("torch.memory_format", str),
    torch.qscheme: ("torch.qscheme", str),
    types.FunctionType: ("function", _callable),
    types.BuiltinFunctionType: ("function", _callable),
    types.MethodType: ("function", _callable),
    types.WrapperDescriptorType: ("function", _callable),
    types.MethodDescriptorType: ("function", _callable),
    np.ufunc: ("function", lambda value: str(value.__name__)),
    decimal.Decimal: ("Decimal", str),
    fractions.Fraction: ("Fraction", str),
    datetime.date: ("date", repr),
    datetime.datetime: ("datetime", repr),
    datetime.time: ("time", repr),
    datetime.timedelta: ("timedelta", repr),
    uuid.UUID: ("UUID", str),
}
_writers: dict[type, Callable[[Any], Scalar] | None] = {}
