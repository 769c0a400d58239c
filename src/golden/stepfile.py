"""The file that holds the whole state after one step.

Tensors stand in it under their full paths. Everything else is one entry of metadata: the lines of all leaves, and the exact text of every
scalar. Both are sorted by phase and path, and nothing tells where or when the state was recorded, so that equal states are equal files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import canonical, digest, files, tensorfile
from golden.errors import CorruptGolden, Refused
from golden.leaf import Buffer, Leaf, view

ENTRY = "golden"


def name(step: int) -> str:
    """Name of a step's file."""
    return f"step-{step:04d}.safetensors"


@dataclass(frozen=True)
class StepFile:
    """A step file whose structure is the one that the manifest implies; its contents are not checked yet.

    Args:
        data: uint8 [bytes], all of its tensors.
        places: where each tensor's bytes start and end in there.
        texts: exact text of each scalar.
    """

    data: npt.NDArray[np.uint8]
    places: Mapping[str, slice]
    texts: Mapping[str, str]

    def content(self, full: str) -> npt.NDArray[np.uint8]:
        """Logical bytes of a leaf as the file has them: uint8 [bytes], read-only; mapped, not copied, for a tensor."""
        if full in self.places:
            return self.data[self.places[full]]
        return np.frombuffer(self.texts.get(full, "").encode(), dtype=np.uint8)

    def differing(self, leaves: Sequence[Leaf], digests: npt.NDArray[np.uint64]) -> list[Leaf]:
        """The leaves whose bytes in this file do not have their digests, uint64 [leaves, 2]."""
        whole = view(self.data)
        parts = (whole[self.places[leaf.full]] if leaf.kind == "tensor" else self.texts.get(leaf.full, "").encode() for leaf in leaves)
        wrong = (digest.of(parts) != digests).any(axis=1)
        return [leaf for leaf, differs in zip(leaves, wrong, strict=True) if differs]


@dataclass(frozen=True)
class _Arrangement:
    """How the tensors of a file lie in it."""

    names: tuple[str, ...]
    listing: str
    places: Mapping[str, slice]
    size: int


class Plan:
    """Writes and reads the files of steps that have the same leaves; what these alone decide is worked out once.

    Args:
        leaves: with distinct full paths.
    """

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self._leaves = leaves
        self._fulls = [leaf.full for leaf in leaves]
        self._foreign = [leaf.full for leaf in leaves if leaf.shape is not None and tensorfile.native(leaf.type, leaf.shape) is None]
        self._scalars = {leaf.full for leaf in leaves if leaf.kind == "scalar"}
        opening = tensorfile.quoted(f'{{"leaves":{canonical.compact(_lines(leaves))},"values":')
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
        contents = dict(zip(self._fulls, data, strict=True))
        arrangement = self._arrangement(tuple(view(contents[full]).nbytes for full in self._foreign))
        start = self._start(arrangement, {full: bytes(contents[full]).decode() for full in self._scalars})
        if len(start) - 8 > tensorfile.MOST_HEADER:
            raise Refused(path.stem, f"a header of {len(start) - 8} bytes", 'keep digests alone (store = "digest")')
        wrong = [name for name, place in arrangement.places.items() if view(contents[name]).nbytes != place.stop - place.start]
        assert not wrong, f"{wrong[0]} has {view(contents[wrong[0]]).nbytes} bytes"
        files.write(path, [start, *(contents[name] for name in arrangement.names)])

    def read(self, path: Path) -> StepFile:
        """Opens a file.

        Raises:
            CorruptGolden: if it is not built as the leaves say.
            StoreError: if the system does not let it be read.
        """
        content = files.read(path)
        try:
            header = tensorfile.header(content)
            texts = self._texts(header)
            arrangement = self._arrangement(self._sizes(header))
            data = tensorfile.check(content, self._start(arrangement, texts), arrangement.size)
        except ValueError as error:
            raise CorruptGolden(path, str(error)) from None
        return StepFile(data, arrangement.places, texts)

    def _arranged(self, foreign: tuple[int, ...]) -> _Arrangement:
        """Tensors in order, given the bytes of those whose dtype does not tell."""
        sizes = dict(zip(self._foreign, foreign, strict=True))
        entries = tensorfile.arranged(
            [
                tensorfile.entry(full, leaf.type, leaf.shape, sizes.get(full))
                for full, leaf in zip(self._fulls, self._leaves, strict=True)
                if leaf.shape is not None
            ]
        )
        ends = list(accumulate((entry.size for entry in entries), initial=0))
        places = {entry.name: slice(*pair) for entry, pair in zip(entries, pairwise(ends), strict=True)}
        return _Arrangement(tuple(places), tensorfile.listing(entries), places, ends[-1])

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
        if not isinstance(values, dict) or set(values) != self._scalars or not all(isinstance(text, str) for text in values.values()):
            raise ValueError("its header does not hold the scalars that the manifest names")
        return values

    def _sizes(self, header: str) -> tuple[int, ...]:
        """Bytes of the tensors whose dtype does not tell."""
        members = canonical.loads(header.encode()) if self._foreign else {}
        return tuple(_size(members.get(full), full) for full in self._foreign)


def _lines(leaves: Sequence[Leaf]) -> dict[str, list[str]]:
    """The lines of each phase, sorted by path."""
    lines: dict[str, list[str]] = {}
    for leaf in sorted(leaves, key=attrgetter("path")):
        lines.setdefault(leaf.phase, []).append(leaf.line())
    return lines


def _size(member: Any, full: str) -> int:
    shape = member.get("shape") if isinstance(member, dict) else None
    if not isinstance(shape, list) or len(shape) != 1 or type(shape[0]) is not int or shape[0] < 0:
        raise ValueError(f"its header does not hold {full} as the manifest implies")
    return int(shape[0])
