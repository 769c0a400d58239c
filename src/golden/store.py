"""Reads a golden, and takes nothing on trust: what does not fit together is a corrupt golden, named by its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from golden import digest, files, manifest, stepfile, table
from golden.errors import CorruptGolden, GoldenError, MissingGolden, StoreError
from golden.leaf import Leaf
from golden.manifest import Manifest, Step
from golden.stepfile import StepFile

# gate: equivalent how many are open at a time decides about speed alone
OPEN_FILES = 16  # step files mapped at a time: each holds a file descriptor
TRIES = 5  # gate: equivalent how often a golden that is being replaced is read again is no promise


# gate: equivalent [truth] nobody changes one
@dataclass(frozen=True)
class _Shape:
    """What all steps with the same layouts have in common."""

    leaves: tuple[Leaf, ...]
    lines: tuple[str, ...]
    columns: npt.NDArray[np.intp]
    places: Mapping[str, int]

    @cached_property
    def file(self) -> stepfile.Plan:
        """Of their step files."""
        return stepfile.Plan(self.leaves, self.lines)


class Golden:
    """A golden on disk. Everything but the contents of its step files has been checked once it is open.

    Args:
        folder: that holds it.
        known: its manifest.
        digests: uint64 [steps, columns, 2], all of them.
        identity: of the folder when it was read: another golden may be put in its place at any time.
    """

    def __init__(self, folder: Path, known: Manifest, digests: npt.NDArray[np.uint64], identity: tuple[int, int, int]) -> None:
        self.folder, self.manifest = folder, known
        # gate: equivalent [truth] open, the one way to make a golden, sets it
        self._table, self._identity, self._bare = digests, identity, False
        self._index = {step.step: index for index, step in enumerate(known.steps)}
        self._shapes: dict[tuple[int, ...], _Shape] = {}
        self._digests: dict[int, bytes] = {}
        self._file = lru_cache(maxsize=OPEN_FILES)(self._opened)

    @classmethod
    def open(cls, folder: Path, *, bare: bool = False) -> Golden:
        """Opens a golden; of one that is being replaced meanwhile, the old or the new.

        Args:
            folder: that holds it.
            bare: also read step files that have lost their metadata: to look at, not to judge by.

        Raises:
            MissingGolden: if there is no such folder, or nothing in it.
            CorruptGolden: naming the file and what is wrong with it.
            StoreError: if the system does not let it be read.
        """
        for _ in range(TRIES):
            identity = _identity(folder)
            try:
                golden = _read(folder, identity)
            except GoldenError:  # also that there is none: the folder of a replaced golden is emptied
                if _identity(folder) == identity:
                    raise
            else:
                if _identity(folder) == identity:
                    golden._bare = bare
                    return golden
        raise StoreError(folder, "is replaced again and again: run again once nobody records here")

    @property
    def steps(self) -> tuple[int, ...]:
        """Numbers of the steps recorded, ascending."""
        return tuple(self._index)

    @property
    def roots(self) -> Mapping[str, str]:
        """Root digest of each phase of each step, ``3/model`` to 32 hexadecimal digits: what a reason says it replaces."""
        return self.manifest.roots

    def leaves(self, step: int) -> tuple[Leaf, ...]:
        """Leaves of one step in order; the same tuple for all steps that are laid out alike."""
        return self._shape(step).leaves

    def phases(self, step: int) -> tuple[str, ...]:
        """Phases of one step, in order of execution."""
        return tuple(self.manifest.layouts[index].phase for index in self._step(step).layouts)

    def root(self, step: int, phase: str) -> str:
        """Root digest of one phase, 32 hexadecimal digits."""
        return self.manifest.roots[f"{step}/{phase}"]

    def find(self, step: int, full: str) -> int | None:
        """Place of a full path among the leaves of a step, None if it has no such leaf."""
        return self._shape(step).places.get(full)

    def kept(self, step: int) -> bool:
        """Whether the whole state of a step was kept."""
        return self._step(step).kept

    def file(self, step: int) -> Path:
        """The file that holds the whole state of a step that was kept."""
        return self.folder / stepfile.name(step)

    def digests(self, step: int) -> npt.NDArray[np.uint64]:
        """Digests of all leaves of a step, in their order: uint64 [leaves, 2], high half first."""
        found: npt.NDArray[np.uint64] = self._table[self._index[step], self._shape(step).columns]
        return found

    def digest(self, step: int, full: str) -> bytes:
        """Digest of one leaf: 16 bytes, high half first."""
        if step not in self._digests:
            self._digests[step] = self.digests(step).astype(">u8").tobytes()
        place = digest.BYTES * self._shape(step).places[full]
        return self._digests[step][place : place + digest.BYTES]

    def bytes(self, step: int, full: str, *, check: bool = True) -> npt.NDArray[np.uint8] | None:
        """Logical bytes of a leaf: uint8 [bytes], read-only, mapped and not copied; None where the step was not kept.

        Args:
            step: its number.
            full: path of the leaf with its phase.
            check: hold them against their digest; False reads a damaged file as it is.

        Raises:
            CorruptGolden: if the file is not built as the manifest says, or these bytes do not have their digest.
            KeyError: if the step has no such leaf.
        """
        wanted = self.digest(step, full)
        if not self.kept(step):
            return None
        found = self._file(step).content(self._shape(step).places[full])
        if check and digest.digest(found) != wanted:
            raise CorruptGolden(self.file(step), f"{full} does not have its digest")
        return found

    def text(self, step: int, full: str, *, check: bool = True) -> str | None:
        """Exact text of a scalar, None where the step was not kept, and for what is no scalar; otherwise as :meth:`bytes`."""
        content = self.bytes(step, full, check=check)
        return None if content is None else (self._file(step).texts or {}).get(full)

    def differing(self, step: int) -> list[Leaf]:
        """The leaves of a kept step whose bytes in its file do not have their digests."""
        leaves = self.leaves(step)
        return [leaves[place] for place in self._file(step).differing(self.digests(step))]

    def check(self) -> None:
        """Reads every byte of it.

        Raises:
            CorruptGolden: naming the first file and leaf that do not have their digest.
        """
        for step in self.steps:
            wrong = self.differing(step) if self.kept(step) else []
            if wrong:
                others = f", nor have {len(wrong) - 1} others" if len(wrong) > 1 else ""
                raise CorruptGolden(self.file(step), f"{wrong[0].full} does not have its digest{others}")

    def _step(self, step: int) -> Step:
        return self.manifest.steps[self._index[step]]

    def _shape(self, step: int) -> _Shape:
        layouts = self._step(step).layouts
        if layouts not in self._shapes:
            self._shapes[layouts] = _shape(self.manifest, layouts)
        return self._shapes[layouts]

    def _opened(self, step: int) -> StepFile:
        """Maps a step file, unless another golden has taken the place of this one."""
        try:
            found = self._shape(step).file.read(self.file(step), self._bare)
        except GoldenError:
            self._same()
            raise
        self._same()
        return found

    def _same(self) -> None:
        if _identity(self.folder) != self._identity:
            raise StoreError(self.folder, "was replaced while it was being read: run again")


def same_bits(one: Golden, other: Golden) -> bool:
    """Whether two goldens have the same steps, in each the same phases, and the same root digest for each of them."""
    return one.roots == other.roots


def _identity(folder: Path) -> tuple[int, int, int]:
    """What tells a folder from another that takes its place; the number of a removed one may be used again, at another time."""
    try:
        found = folder.stat()
    except FileNotFoundError:
        raise MissingGolden(f"{folder}: there is no golden here") from None
    except OSError as error:
        raise StoreError.of(error, folder) from error
    return found.st_dev, found.st_ino, found.st_ctime_ns


def _read(folder: Path, identity: tuple[int, int, int]) -> Golden:
    names = _names(folder)
    known = manifest.read(folder)
    expected = {manifest.FILE, table.FILE, *(stepfile.name(step.step) for step in known.steps if step.kept)}
    for name in sorted(names ^ expected):
        raise CorruptGolden(folder / name, "is no file of this golden" if name in names else "is missing")
    return Golden(folder, known, table.read(folder, known), identity)


def _names(folder: Path) -> set[str]:
    """Names of the files in a golden's folder, all of them regular ones."""
    try:
        paths = sorted(folder.iterdir())
        for path in paths:
            files.check_regular(path)
    except NotADirectoryError:
        raise CorruptGolden(folder, "is no folder") from None
    except OSError as error:
        raise StoreError.of(error, folder) from error
    if not paths:
        raise MissingGolden(f"{folder}: there is no golden here, the folder is empty")
    return {path.name for path in paths}


def _shape(known: Manifest, layouts: tuple[int, ...]) -> _Shape:
    leaves = tuple(leaf for index in layouts for leaf in known.layouts[index].leaves)
    lines = tuple(line for index in layouts for line in known.layouts[index].lines)
    return _Shape(leaves, lines, table.columns(known, layouts), {leaf.full: place for place, leaf in enumerate(leaves)})
