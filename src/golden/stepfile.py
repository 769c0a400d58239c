"""The file that holds the whole state after one step.

Tensors stand in it under their full paths. Everything else is one entry of metadata: the lines of all leaves, and the exact text of every
scalar. Both are sorted by phase and path, and nothing tells where or when the state was recorded, so that equal states are equal files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import canonical, digest, files, tensorfile
from golden.errors import CorruptGolden, Refused
from golden.leaf import Buffer, Leaf, view

ENTRY = "golden"
_MOST = 1 << 62


def name(step: int) -> str:
    """Name of a step's file."""
    return f"step-{step:04d}.safetensors"


@dataclass(frozen=True)
class StepFile:
    """A step file whose structure is the one that the manifest implies; its contents are not checked yet.

    Args:
        data: uint8 [bytes], all of its tensors.
        fulls: full path of each leaf.
        places: int64 [leaves, 2], where the bytes of each start and end in there; below zero for what is no tensor.
        texts: exact text of each scalar, by full path; None where the file has lost them.
    """

    data: npt.NDArray[np.uint8]
    fulls: Sequence[str]
    places: npt.NDArray[np.int64]
    texts: Mapping[str, str] | None

    def content(self, index: int) -> npt.NDArray[np.uint8]:
        """Logical bytes of a leaf as the file has them: uint8 [bytes], read-only; mapped, not copied, for a tensor."""
        start, end = self.places[index].tolist()
        return np.frombuffer(self._text(self.fulls[index]), dtype=np.uint8) if start < 0 else self.data[start:end]

    def differing(self, digests: npt.NDArray[np.uint64]) -> list[int]:
        """The places of the leaves whose bytes in this file do not have their digests, uint64 [leaves, 2]; what it lost counts as right."""
        whole, places = view(self.data), zip(self.fulls, *self.places.T.tolist(), strict=True)
        parts = (self._text(full) if start < 0 else whole[start:end] for full, start, end in places)
        unequal = (digest.of(parts) != digests).any(axis=1)
        if self.texts is None:
            unequal &= self.places[:, 0] >= 0
        wrong: list[int] = np.flatnonzero(unequal).tolist()
        return wrong

    def _text(self, full: str) -> bytes:
        return (self.texts or {}).get(full, "").encode()


@dataclass(frozen=True)
class _Arrangement:
    """How the tensors of a file lie in it.

    Args:
        order: the leaves, by their places, as the file has them.
        listing: members of its header.
        places: int64 [leaves, 2], where the bytes of each leaf are; below zero for what is no tensor.
        size: bytes of all tensors.
    """

    order: Sequence[int]
    listing: str
    places: npt.NDArray[np.int64]
    size: int


class Plan:
    """Writes and reads the files of steps that have the same leaves; what these alone decide is worked out once.

    Args:
        leaves: with distinct full paths.
        lines: theirs, where they are at hand.
    """

    def __init__(self, leaves: Sequence[Leaf], lines: Sequence[str] | None = None) -> None:
        self._leaves = leaves
        self._fulls = [leaf.full for leaf in leaves]
        shaped = [(index, leaf.type, leaf.shape) for index, leaf in enumerate(leaves) if leaf.shape is not None]
        self._foreign = [index for index, dtype, shape in shaped if tensorfile.native(dtype, shape) is None]
        # Sorted, because the texts are written so on every step, and what is sorted already costs no sorting.
        self._scalars = sorted((leaf.full, index) for index, leaf in enumerate(leaves) if leaf.kind == "scalar")
        opening = tensorfile.quoted(f'{{"leaves":{canonical.compact(_lines(leaves, lines or [leaf.line() for leaf in leaves]))},"values":')
        self._head = f'{{"{ENTRY}":{opening[:-1]}'
        self._arrangement = lru_cache(maxsize=1)(self._arranged)

    def write(self, path: Path, data: Sequence[Buffer]) -> None:
        """Writes a file.

        Args:
            path: of the new file.
            data: logical bytes of each leaf; the text of a scalar in UTF-8.

        Raises:
            StoreError: if it cannot be written.
            Refused: if there is more beside the tensors than a safetensors file can hold.
        """
        arrangement = self._arrangement(tuple(view(data[index]).nbytes for index in self._foreign))
        start = self._start(arrangement, {full: bytes(data[index]).decode() for full, index in self._scalars})
        if len(start) - 8 > tensorfile.MOST_HEADER:
            raise Refused(path.stem, f"a header of {len(start) - 8} bytes", 'keep digests alone (store = "digest")')
        files.write(path, [start, *(self._whole(arrangement, index, data[index]) for index in arrangement.order)])

    def _whole(self, arrangement: _Arrangement, index: int, buffer: Buffer) -> Buffer:
        start, end = arrangement.places[index].tolist()
        assert view(buffer).nbytes == end - start, f"{self._fulls[index]} has {view(buffer).nbytes} bytes"
        return buffer

    def read(self, path: Path, bare: bool = False) -> StepFile:
        """Opens a file.

        Args:
            path: of the file.
            bare: also take one without its metadata, as safetensors' own functions leave behind when they load and save it.

        Raises:
            CorruptGolden: if it is not built as the leaves say.
            StoreError: if the system does not let it be read.
        """
        content = files.read(path)
        try:
            header = tensorfile.header(content)
            texts = None if bare and not header.startswith('{"__metadata__"') else self._texts(header)
            arrangement = self._arrangement(self._sizes(header))
            start = tensorfile.start(arrangement.listing) if texts is None else self._start(arrangement, texts)
            data = tensorfile.check(content, start, arrangement.size)
        except ValueError as error:
            raise CorruptGolden(path, str(error)) from None
        return StepFile(data, self._fulls, arrangement.places, texts)

    def _arranged(self, foreign: tuple[int, ...]) -> _Arrangement:
        """Tensors in order, given the bytes of those whose dtype does not tell; ValueError where those are forged."""
        sizes = dict(zip(self._foreign, foreign, strict=True))
        shaped = [(index, leaf.type, leaf.shape) for index, leaf in enumerate(self._leaves) if leaf.shape is not None]
        tensors = [tensorfile.held(dtype, shape, sizes.get(index)) for index, dtype, shape in shaped]
        names = [self._fulls[index] for index, _, _ in shaped]
        order = tensorfile.order(names, tensors)
        listing = tensorfile.listing((names[which], tensors[which]) for which in order)
        ends = list(accumulate((tensors[which].size for which in order), initial=0))
        if ends[-1] > _MOST:
            raise ValueError(f"should hold {ends[-1]} bytes, which no file does")
        leaves = [shaped[which][0] for which in order]
        places = np.full((len(self._leaves), 2), -1, np.int64)
        places[leaves, 0], places[leaves, 1] = ends[:-1], ends[1:]
        return _Arrangement(leaves, listing, places, ends[-1])

    def _start(self, arrangement: _Arrangement, texts: Mapping[str, str]) -> bytes:
        """What a file begins with."""
        values = tensorfile.quoted(canonical.compact(texts) + "}")[1:]
        return tensorfile.start(arrangement.listing, f"{self._head}{values}}}")

    def _texts(self, header: str) -> dict[str, str]:
        """Texts of the scalars, from the metadata."""
        head = f'{{"__metadata__":{self._head}'
        if not header.startswith(head):
            raise ValueError("its header does not hold the leaves that the manifest names")
        metadata, _ = json.JSONDecoder().raw_decode(f'"{header[len(head) :]}')
        values = canonical.loads(metadata[:-1].encode())
        known = [full for full, _ in self._scalars]
        if not isinstance(values, dict) or sorted(values) != known or not all(isinstance(text, str) for text in values.values()):
            raise ValueError("its header does not hold the scalars that the manifest names")
        return values

    def _sizes(self, header: str) -> tuple[int, ...]:
        """Bytes of the tensors whose dtype does not tell."""
        members = canonical.loads(header.encode()) if self._foreign else {}
        return tuple(_size(members.get(self._fulls[index]), self._fulls[index]) for index in self._foreign)


def _lines(leaves: Sequence[Leaf], lines: Sequence[str]) -> dict[str, list[str]]:
    """The lines of each phase, sorted by path."""
    found: dict[str, list[str]] = {}
    for index in sorted(range(len(leaves)), key=[leaf.path for leaf in leaves].__getitem__):
        found.setdefault(leaves[index].phase, []).append(lines[index])
    return found


def _size(member: Any, full: str) -> int:
    shape = member.get("shape") if isinstance(member, dict) else None
    if not isinstance(shape, list) or len(shape) != 1 or type(shape[0]) is not int or shape[0] < 0:
        raise ValueError(f"its header does not hold {full} as the manifest implies")
    return int(shape[0])
