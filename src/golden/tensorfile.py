"""safetensors files, byte for byte as the library lays them out, written and read without torch.

Written here, because the library's own calls cannot do it for every version from 0.4.5 on: their raw interface changed, they need the state
a second time in memory, numpy has no bfloat16, and a full disk loses its error number. Any version reads these files; tests hold that they
are the library's bytes. Reading goes the other way round: the reader works out what the file must begin with, and takes nothing else,
so that no length or offset of a damaged file is ever believed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

# Name in the file and bytes an element, in the library's own order: a file lists its tensors from the last of these to the first.
# What came to safetensors after 0.4.5 (complex64, float8_e8m0fnu, ...) is left out: an older library refuses a whole file for it.
NATIVE = {
    "bool": ("BOOL", 1),
    "uint8": ("U8", 1),
    "int8": ("I8", 1),
    "float8_e5m2": ("F8_E5M2", 1),
    "float8_e4m3fn": ("F8_E4M3", 1),
    "int16": ("I16", 2),
    "uint16": ("U16", 2),
    "float16": ("F16", 2),
    "bfloat16": ("BF16", 2),
    "int32": ("I32", 4),
    "uint32": ("U32", 4),
    "float32": ("F32", 4),
    "float64": ("F64", 8),
    "int64": ("I64", 8),
    "uint64": ("U64", 8),
}
_RANK = {name: rank for rank, (name, _) in enumerate(NATIVE.values())}
_ENCODER = json.JSONEncoder(ensure_ascii=False)
MOST_HEADER = 100_000_000  # bytes of header that the library reads at most


@dataclass(frozen=True, slots=True)
class Held:
    """How a file holds a tensor: dtype as safetensors calls it, shape, and size in bytes."""

    dtype: str
    shape: tuple[int, ...]
    size: int


@lru_cache(maxsize=65536)
def native(dtype: str, shape: tuple[int, ...]) -> Held | None:
    """How a file holds a tensor as it is; None where safetensors has no such dtype. The same object for the same question.

    Args:
        dtype: as in a leaf, ``float32`` or ``numpy:float32``.
        shape: of the tensor.
    """
    found = NATIVE.get(dtype.removeprefix("numpy:"))
    return None if found is None else Held(found[0], shape, math.prod(shape) * found[1])


def held(dtype: str, shape: tuple[int, ...], size: int | None = None) -> Held:
    """How a file holds a tensor: as it is where safetensors can, else its bytes as U8 [size].

    Args:
        dtype: as in a leaf.
        shape: of the tensor.
        size: bytes of a tensor whose dtype safetensors cannot hold.
    """
    found = native(dtype, shape)
    if found is not None:
        return found
    assert size is not None
    return Held("U8", (size,), size)


def order(names: Sequence[str], tensors: Sequence[Held]) -> list[int]:
    """Places of tensors in the order of the file: large elements first, which keeps all of them aligned, then by name."""
    by_name = sorted(range(len(names)), key=names.__getitem__)  # texts alone sort faster than pairs
    return sorted(by_name, key=[-_RANK[tensor.dtype] for tensor in tensors].__getitem__)


def listing(members: Iterable[tuple[str, Held]]) -> str:
    """Members of the header for named tensors in the order of the file, as JSON without the braces around them."""
    texts, end = [], 0
    for name, tensor in members:
        first, end = end, end + tensor.size
        texts.append(f'{quoted(name)}:{{"dtype":"{tensor.dtype}","shape":[{_joined(tensor.shape)}],"data_offsets":[{first},{end}]}}')
    return ",".join(texts)


@lru_cache(maxsize=65536)
def _joined(shape: tuple[int, ...]) -> str:
    return ",".join(map(str, shape))


def start(members: str, metadata: str = "") -> bytes:
    """The bytes of a file before its data: length of the header, header, spaces up to a multiple of eight.

    Args:
        members: a listing.
        metadata: JSON of a mapping of one text to another. One: the library does not write two in a fixed order.
    """
    whole = ",".join(part for part in (metadata and f'"__metadata__":{metadata}', members) if part)
    text = f"{{{whole}}}".encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def quoted(text: str) -> str:
    """Text as the library writes it into a header."""
    return _ENCODER.encode(text)


def header(content: npt.NDArray[np.uint8]) -> str:
    """Text of a file's header, of which nothing is checked yet.

    Args:
        content: uint8 [bytes], the whole file.

    Raises:
        ValueError: with what is wrong, as a clause that goes with the name of the file.
    """
    length = int.from_bytes(content[:8].tobytes(), "little")
    if len(content) < 8 or length > min(len(content) - 8, MOST_HEADER):
        raise ValueError(f"is truncated, or no safetensors file: {len(content)} bytes, a header of {length}")
    return content[8 : 8 + length].tobytes().decode()


def check(content: npt.NDArray[np.uint8], beginning: bytes, size: int) -> npt.NDArray[np.uint8]:
    """The data of a file that must begin with these bytes and go on with ``size`` others.

    Raises:
        ValueError: with what is wrong, as a clause that goes with the name of the file.
    """
    expected = len(beginning) + size
    if len(content) < expected:
        raise ValueError(f"is truncated: {len(content)} bytes where the manifest implies {expected}")
    if content[: len(beginning)].tobytes() != beginning:
        raise ValueError("its header is not the one that the manifest implies")
    if len(content) > expected:
        raise ValueError(f"has {len(content) - expected} bytes more than the manifest implies")
    return content[len(beginning) :]
