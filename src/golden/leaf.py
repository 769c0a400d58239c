"""One leaf of a training state, and the line of the manifest that stands for it.

::

    0.weight: float32[16,1,3,3] strides=[9,1,3,1] shares=model/0.weight      a tensor
    lr: float                                                                a scalar
    state: dict                                                              a container, or what is none of the two
    "a\\nb": int64[]                                                          text that would not stay on one line is a JSON string

A line and a phase give the leaf back exactly, and no leaf has two lines: :meth:`Leaf.parse` refuses every other spelling.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

Buffer: TypeAlias = "bytes | bytearray | memoryview | npt.NDArray[np.uint8]"

KINDS = ("tensor", "scalar", "container")

# What a type says by itself; any other pairing of kind and type is spelled out at the end of the line.
SCALARS = frozenset({"NoneType", "bool", "bytes", "complex", "float", "int", "str", "torch.device", "torch.dtype"})

# Written as they are: one line on every terminal and in every editor. The set is fixed here, not taken from str.isprintable(),
# which follows the Unicode version of Python: a line must not depend on it.
_UNSAFE = "[\x00-\x1f\x7f-\xa0\xad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\uffff\U000e0000-\U000e0fff]"
# Text that would not stay on one line, or could not be told apart from what surrounds it.
_AWKWARD = re.compile(rf'{_UNSAFE}|^[" ]| \Z')
_AWKWARD_PATH = re.compile(rf'{_UNSAFE}|^[" ]| \Z|: ')
_DTYPE = re.compile(r"[A-Za-z0-9_.:<>|=+-]+")
_INTS = r"\[((?:-?\d+(?:,-?\d+)*)?)\]"
_TENSOR = re.compile(rf'("(?:[^"\\]|\\.)*"|{_DTYPE.pattern}){_INTS}(?: strides={_INTS})?(?: shares=(.+))?')
_OTHER = re.compile(r'("(?:[^"\\]|\\.)*"|.+?)(?: \((scalar|container)\))?(?: shares=(.+))?')
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass(frozen=True, slots=True)
class Leaf:
    """What stands at one path of a training state, without its bytes.

    Args:
        phase: the keyword it was recorded under; neither empty nor holding a ``/``.
        path: below the phase, keys joined by ``/``; empty for the phase itself.
        kind: ``tensor``, ``scalar`` or ``container``.
        type: dtype of a tensor, type of a scalar, free text for a container.
        shape: of a tensor, None for what is none.
        strides: of a tensor in elements, None where it is contiguous.
        shares: full path of the earliest leaf of the step whose bytes overlap with these.

    Raises:
        ValueError: for parts that do not go together.
    """

    phase: str
    path: str
    kind: str
    type: str
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None
    shares: str | None = None

    def __post_init__(self) -> None:
        if not self.phase or "/" in self.phase:
            raise ValueError(f"a phase needs a name without '/', got {self.phase!r}")
        if self.kind not in KINDS:
            raise ValueError(f"kind is one of {', '.join(KINDS)}, got {self.kind!r}")
        if not self.type:
            raise ValueError(f"{self.full!r} needs a type")
        if (self.shape is None) is (self.kind == "tensor"):
            raise ValueError(f"{self.full!r}: a tensor has a shape and nothing else has, got {self.shape} for a {self.kind}")
        if self.strides is not None and (self.shape is None or len(self.strides) != len(self.shape)):
            raise ValueError(f"{self.full!r}: strides {self.strides} do not fit the shape {self.shape}")

    @property
    def full(self) -> str:
        """Full path: ``phase/path``, or the phase alone."""
        return f"{self.phase}/{self.path}" if self.path else self.phase

    def line(self) -> str:
        """The leaf as one line, without its phase.

        Raises:
            ValueError: for text with lone surrogates, which has no UTF-8.
        """
        return f"{_written_path(self.path)}: {_tail(self.kind, self.type, self.shape, self.strides, self.shares)}"

    @classmethod
    def parse(cls, phase: str, line: str) -> Leaf:
        """The leaf whose :meth:`line` this is.

        Raises:
            ValueError: for a line that no leaf of this phase has.
        """
        path, tail = _split(line)
        leaf = cls(phase, path, *_parse_tail(tail))
        if leaf.line() != line:
            raise ValueError(f"no leaf has the line {line!r}")
        return leaf


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The training state after one step.

    Args:
        step: 0 for the start, else from 1.
        leaves: phases in order of execution, the leaves of one phase adjacent; the same tuple object as at the last step while nothing but
            bytes changed, which spares walking it again.
        digests: uint64 [leaves, 2], a row of :mod:`golden.digest` for each leaf.
        data: logical bytes of each leaf where the step is to be kept whole; the text of a scalar in UTF-8, nothing for a container.
    """

    step: int
    leaves: tuple[Leaf, ...]
    digests: npt.NDArray[np.uint64]
    data: Sequence[Buffer] | None = None


def view(buffer: Buffer) -> memoryview:
    """The bytes of a contiguous buffer, flat and not copied."""
    whole = memoryview(cast("bytes", buffer))  # an array is a buffer, which types before Python 3.12 cannot say
    return whole.cast("B") if whole.nbytes else memoryview(b"")


def _split(line: str) -> tuple[str, str]:
    """Path and the rest of a line."""
    quoted = _QUOTED.match(line)
    if quoted:
        path, separator, rest = _read(quoted.group()), line[quoted.end() : quoted.end() + 2], line[quoted.end() + 2 :]
    else:
        path, separator, rest = line.partition(": ")
    if separator != ": ":
        raise ValueError(f"no leaf has the line {line!r}")
    return path, rest


def _written_path(text: str) -> str:
    """A path as it stands in a line: itself, or a JSON string."""
    return _quoted(text) if _AWKWARD_PATH.search(text) else text


def _written(text: str) -> str:
    """Any other text as it stands in a line: itself, or a JSON string."""
    return _quoted(text) if not text or _AWKWARD.search(text) else text


@lru_cache(maxsize=65536)
def _tail(kind: str, named: str, shape: tuple[int, ...] | None, strides: tuple[int, ...] | None, shares: str | None) -> str:
    """All of a line but its path. States repeat few of them many times."""
    shared = "" if shares is None else f" shares={_written(shares)}"
    if shape is None:
        return f"{_written_type(named)}{'' if kind == _kind(named) else f' ({kind})'}{shared}"
    dtype = named if _DTYPE.fullmatch(named) else _quoted(named)
    spread = "" if strides is None else f" strides=[{','.join(map(str, strides))}]"
    return f"{dtype}[{','.join(map(str, shape))}]{spread}{shared}"


@lru_cache(maxsize=65536)
def _parse_tail(tail: str) -> tuple[str, str, tuple[int, ...] | None, tuple[int, ...] | None, str | None]:
    """Inverse of ``_tail``: kind, type, shape, strides, shares."""
    tensor = _TENSOR.fullmatch(tail)
    if tensor:
        dtype, shape, strides, shares = tensor.groups()
        return "tensor", _read(dtype), _ints(shape), None if strides is None else _ints(strides), None if shares is None else _read(shares)
    other = _OTHER.fullmatch(tail)
    if other is None:
        raise ValueError(f"no leaf has {tail!r} in its line")
    text, kind, shares = other.groups()
    named = _read(text)
    return kind or _kind(named), named, None, None, None if shares is None else _read(shares)


def _written_type(text: str) -> str:
    """Type of what is no tensor: quoted where it would read as a tensor's, or as what may follow it."""
    plain = _written(text)
    ambiguous = _TENSOR.fullmatch(plain) or plain.endswith((" (scalar)", " (container)")) or " shares=" in plain
    return _quoted(text) if ambiguous else plain


def _kind(text: str) -> str:
    """Kind that a type has unless the line says otherwise."""
    return "scalar" if text in SCALARS else "container"


def _quoted(text: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"{text!r} holds lone surrogates, which have no UTF-8")
    return json.dumps(text)


def _read(text: str) -> str:
    """Inverse of ``_written``."""
    return str(json.loads(text)) if text.startswith('"') else text


def _ints(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()
