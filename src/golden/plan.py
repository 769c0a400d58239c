"""The plan of a training state: what was learnt at one step about the next.

Walking a state of 1,100 tensors costs several times what hashing it does. Mostly the next step has the same leaves, so each phase is
first shown to the section that was built for it, which looks at everything that makes up a leaf; only a phase that is built differently is
walked anew. A plan holds no tensor between two steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from typing import Any

import numpy as np
from torch import Tensor
from xxhash import xxh3_128_digest

from golden import blocks, sharing
from golden.digest import rows
from golden.errors import ScenarioFailed
from golden.leaf import Buffer, Leaf, Snapshot
from golden.memory import View, whole
from golden.names import Names
from golden.nodes import Flat
from golden.section import Section
from golden.staging import Staging

_NONE = np.empty(0, np.int64)


class _Data(list[Buffer]):
    """Bytes of leaves, with the values whose memory they are: as long as one can be read, the other is there."""

    def __init__(self, buffers: Iterable[Buffer], held: Sequence[Flat]) -> None:
        super().__init__(buffers)
        self._held = held


class State:
    """The state at one moment: valid until the next is read, and while nothing changes it.

    Args:
        leaves: of all phases.
        sections: the phases, in order.
        staging: for what is on a device.
    """

    def __init__(self, leaves: tuple[Leaf, ...], sections: Sequence[Section], staging: Staging) -> None:
        self.leaves = leaves
        self._sections, self._staging = sections, staging

    @property
    def nbytes(self) -> int:
        """Logical bytes of all leaves."""
        return sum(section.nbytes for section in self._sections)

    def snapshot(self, step: int, keep: bool) -> Snapshot:
        """Digests of the state, and its bytes if they are to be kept; lets go of the state.

        Args:
            step: its number.
            keep: whether the snapshot has data. Where memory is contiguous the data is that memory, not a copy: what it reads as is
                the state as long as nothing changes that.
        """
        data = [section.data() for section in self._sections] if keep else None
        self._bring(data)
        dense = [section.dense() for section in self._sections]
        backwards = reversed(list(chain.from_iterable(dense)))  # what the step wrote last may still be in the cache
        found = rows(map(xxh3_128_digest, backwards))[::-1]
        ends = list(accumulate(map(len, dense), initial=0))
        digests = [section.digests(found[start:end]) for section, start, end in zip(self._sections, ends, ends[1:], strict=False)]
        held = [section.release() for section in self._sections]
        return Snapshot(step, self.leaves, np.concatenate(digests), None if data is None else _Data(chain.from_iterable(data), held))

    def _bring(self, data: list[list[Buffer]] | None) -> None:
        """Digests and data of what is not in the host's memory, or is a lazy view. Copies are made as their turn comes."""
        pending = [(index, place, tensor) for index, section in enumerate(self._sections) for place, tensor in section.pending()]
        here = (number for number, (_, _, tensor) in enumerate(pending) if tensor.device.type == blocks.HOST)
        there = (number for number, (_, _, tensor) in enumerate(pending) if tensor.device.type != blocks.HOST)
        copied = self._staging.fetch((number, blocks.resolved(pending[number][2])) for number in there)
        for number, view in chain(_views((number, blocks.resolved(pending[number][2])) for number in here), copied):
            index, place, _ = pending[number]
            self._sections[index].put(place, view)
            if data is not None:
                data[index][place] = bytes(whole(view))


class Plan:
    """Reads the training state, step after step.

    Args:
        names: of parameters, where some are known from elsewhere.
        staging: for what is on a device.
    """

    def __init__(self, names: Names | None = None, staging: Staging | None = None) -> None:
        self._names = names or Names()
        self._staging = staging or Staging()
        self._sections: dict[str, Section] = {}
        self._parameters: dict[str, list[int]] = {}
        self._current: list[Section] = []
        self._addresses: list[list[int]] = []
        self._ranges = _Ranges(())
        self._shares: list[tuple[int, int]] = []
        self._leaves: tuple[Leaf, ...] = ()

    def read(self, phases: Mapping[str, Any]) -> State:
        """The state that the phases hold at this moment.

        Args:
            phases: name to value, in order of execution.

        Raises:
            Refused: for what cannot be recorded, with its path.
            ScenarioFailed: if a value's own code fails.
        """
        try:
            self._follow(phases)
        except RecursionError as error:
            self._sections.clear()
            raise ScenarioFailed("the state is too deep for the stack that is left: record a part of it, or from further up") from error
        except BaseException:
            self._sections.clear()
            raise
        sections = [self._sections[phase] for phase in phases]
        return State(self._shared(sections), sections, self._staging)

    def _follow(self, phases: Mapping[str, Any]) -> None:
        """Brings the sections up to date: those whose paths hang on names last, once the names are up to date."""
        hanging = [phase for phase in phases if phase in self._sections and self._sections[phase].named]
        stale = [phase for phase in phases if phase not in hanging and not self._holds(phase, phases[phase])]
        learnt = bool(stale) or self._moved(phases)
        if learnt:
            self._names.learn(phases)
        for phase in stale:
            self._sections[phase] = Section(phase, phases[phase], self._names)
        rebuilt = self._follow_named(phases, hanging)
        if not learnt and (rebuilt or self._moved(phases)):  # in a phase that holds optimizers and Modules
            self._names.learn(phases)
            self._follow_named(phases, hanging)
        self._parameters = self._identities(phases)

    def _follow_named(self, phases: Mapping[str, Any], hanging: Sequence[str]) -> bool:
        """Whether one of them had to be built anew."""
        stale = [phase for phase in hanging if not self._holds(phase, phases[phase])]
        for phase in stale:
            self._sections[phase] = Section(phase, phases[phase], self._names)
        return bool(stale)

    def _holds(self, phase: str, value: Any) -> bool:
        return phase in self._sections and self._sections[phase].follow(value)

    def _identities(self, phases: Mapping[str, Any]) -> dict[str, list[int]]:
        return {phase: self._sections[phase].parameters for phase in phases if phase in self._sections}

    def _moved(self, phases: Mapping[str, Any]) -> bool:
        """Whether the phases' Modules have other parameters than those whose names were learnt."""
        return self._identities(phases) != self._parameters

    def _shared(self, sections: list[Section]) -> tuple[Leaf, ...]:
        """The leaves with what they share; the very tuple of the last step if that is what they are."""
        addresses = [section.addresses for section in sections]
        same = sections == self._current
        if same and addresses == self._addresses:
            return self._leaves
        if not same:
            self._ranges = _Ranges(sections)
        shares = self._ranges.shares(addresses)
        if not same or shares != self._shares:
            leaves = list(chain.from_iterable(section.leaves for section in sections))
            for place, first in shares:
                leaves[place] = replace(leaves[place], shares=leaves[first].full)
            if tuple(leaves) != self._leaves:
                self._leaves = tuple(leaves)
        self._current, self._addresses, self._shares = sections, addresses, shares
        return self._leaves


def _views(found: Iterable[tuple[int, Tensor]]) -> Iterator[tuple[int, View]]:
    """The bytes of plain tensors in the host's memory: each valid until the iterator goes on, which lets go of its tensor first."""
    for number, tensor in found:
        yield number, blocks.view(tensor)
        del tensor


class _Ranges:
    """What lies in memory, in the order of all leaves, but for the addresses."""

    def __init__(self, sections: Sequence[Section]) -> None:
        offsets = accumulate((len(section.leaves) for section in sections), initial=0)
        places = np.concatenate([_NONE, *(section.places + offset for section, offset in zip(sections, offsets, strict=False))])
        spaces = list(chain.from_iterable(section.spaces for section in sections))
        codes = {space: code for code, space in enumerate(dict.fromkeys(spaces))}
        self._order = np.argsort(places)
        self._places = places[self._order]
        spans = np.concatenate([_NONE, *(section.spans for section in sections)])[self._order]
        self._ranges = sharing.Ranges(spans, np.array([codes[space] for space in spaces], np.int64)[self._order])

    def shares(self, addresses: Sequence[list[int]]) -> list[tuple[int, int]]:
        """Places, among all leaves, of each leaf that lies in the memory of an earlier one, and of the earliest of those."""
        starts = np.array(list(chain.from_iterable(addresses)), np.int64)[self._order]
        first = self._ranges.earliest(starts)
        later = np.flatnonzero(first != np.arange(len(first)))
        return list(zip(self._places[later].tolist(), self._places[first[later]].tolist(), strict=True))
