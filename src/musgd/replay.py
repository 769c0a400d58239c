"""The recordings of one optimizer: found by what they were made for, bounded in number, given up in one place.

A bucket that cannot be replayed is stepped eagerly, and says so: by one warning, in the status, or as an error where that is asked for.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar, cast

import torch

from musgd.bucket import Bucket, Name
from musgd.device import Device, UnsupportedError, is_captured, open_device
from musgd.packed import why_not

OnFallback = Literal["warn", "raise"]

# Alternating sets of gradients and a switched nesterov need two each.
KEPT = 4
# A recording that failed may have met a full memory; one that failed so often will not succeed.
ATTEMPTS = 3


class ReplayWarning(UserWarning):
    """A group is stepped eagerly although its replay was asked for."""


class ReplayError(RuntimeError):
    """The same, where fallbacks are errors. Nothing has been stepped."""


@dataclass(frozen=True)
class GroupStatus:
    """What became of replay for the parameters of one group, device and dtype.

    Attributes:
        group: Index of the group.
        device: Its parameters' device.
        dtype: Their dtype.
        mode: What the last step did: "recorded" or "eager".
        reason: Why eager, or None.
        recordings: Made so far.
        kept: Of these, those still held.
        replays: Steps done by replay so far.
        fallbacks: Steps done eagerly so far although replay was asked for.
        pool_bytes: Reserved by torch's allocator for all recordings of this optimizer on this device.
        driver_bytes: Taken by the driver for the recordings held.
        kernels: Why torch's operations do the work rather than the Triton kernels, or None where the kernels do what they can.
    """

    group: int
    device: str
    dtype: str
    mode: Literal["recorded", "eager"]
    reason: str | None
    recordings: int
    kept: int
    replays: int
    fallbacks: int
    pool_bytes: int
    driver_bytes: int
    kernels: str | None


class Kept(Protocol):
    """What is kept: a recording, alone or with what belongs to it."""

    @property
    def driver_bytes(self) -> int:
        """Memory of the device that the driver took for it."""
        ...

    def release(self) -> None:
        """Give it up."""
        ...


K = TypeVar("K", bound=Kept)


@dataclass(eq=False)
class Slot:
    """The recordings of one bucket name, least recently used first, and what has been counted there."""

    recordings: OrderedDict[Hashable, Kept] = field(default_factory=OrderedDict)
    made: int = 0
    replays: int = 0
    fallbacks: int = 0
    reason: str | None = "no step yet"
    failures: defaultdict[Hashable, list[str]] = field(default_factory=lambda: defaultdict(list))
    warned: set[str] = field(default_factory=set)


class Replays:
    """Finds, makes and gives up recordings."""

    def __init__(self) -> None:
        self._slots: dict[Name, Slot] = {}
        self._devices: dict[torch.device, Device] = {}
        self.generation = 0  # gate: equivalent [number] generations are compared with one another alone

    def find(self, bucket: Bucket, key: Callable[[], Hashable], make: Callable[[Device], K], on_fallback: OnFallback) -> K | None:
        """The bucket's recording for that key, made where there is none; None, and said so, where there can be none.

        Raises:
            ReplayError: There can be none, and fallbacks are errors.
        """
        slot = self._slots.setdefault(bucket.name, Slot())
        try:
            device = self._supported(bucket)
            wanted = key()
            if wanted in slot.recordings:
                slot.recordings.move_to_end(wanted)
            else:
                self._make(slot, wanted, lambda: make(device))
        except Exception as cause:
            self.fall_back(bucket, cause, on_fallback)
            return None
        return cast(K, slot.recordings[wanted])

    def replayed(self, bucket: Bucket) -> None:
        """Count a step done by replay."""
        slot = self._slots[bucket.name]
        slot.replays += 1
        slot.reason = None

    def fall_back(self, bucket: Bucket, cause: Exception, on_fallback: OnFallback) -> None:
        """Say why a step is done eagerly: once per reason.

        Raises:
            ReplayError: Fallbacks are errors.
        """
        slot = self._slots[bucket.name]
        slot.reason = str(cause).strip() or type(cause).__name__
        text = f"MuSGD: group {bucket.group} cannot be replayed: {slot.reason}"
        if on_fallback == "raise":
            raise ReplayError(f"{text}; give it parameters that can, or let on_fallback be 'warn'") from cause
        slot.fallbacks += 1
        if slot.reason not in slot.warned:
            slot.warned.add(slot.reason)
            warnings.warn(f"{text}; its steps are done eagerly, with the same bits", ReplayWarning, stacklevel=2)

    def drop(self, bucket: Bucket, recording: Kept) -> None:
        """Give up one recording, which did not replay."""
        slot = self._slots[bucket.name]
        for key in [key for key, kept in slot.recordings.items() if kept is recording]:
            slot.failures[key].append("its replay failed")
            del slot.recordings[key]
        self.generation += 1  # gate: equivalent [number] generations are compared alone, and two more is another one as well
        recording.release()

    def release(self) -> None:
        """Give up all recordings and their memory; what is wanted later is recorded anew."""
        for slot in self._slots.values():
            while slot.recordings:
                slot.recordings.popitem()[1].release()
            slot.failures.clear()
        self.generation += 1  # gate: equivalent [number] generations are compared alone, and two more is another one as well
        while self._devices:
            self._devices.popitem()[1].tidy()

    def status(self) -> list[GroupStatus]:
        """One entry a group, device and dtype that was stepped, in the order of the groups."""
        pools = {device: seam.pool_bytes() for device, seam in self._devices.items()}
        return [
            GroupStatus(
                group=group,
                device=str(device),
                dtype=str(dtype).removeprefix("torch."),
                mode="eager" if slot.reason else "recorded",
                reason=slot.reason,
                recordings=slot.made,
                kept=len(slot.recordings),
                replays=slot.replays,
                fallbacks=slot.fallbacks,
                pool_bytes=pools.get(device, 0),
                driver_bytes=sum(recording.driver_bytes for recording in slot.recordings.values()),
                kernels=why_not(device),
            )
            for (group, device, dtype), slot in sorted(self._slots.items(), key=lambda item: item[0][0])
        ]

    def _supported(self, bucket: Bucket) -> Device:
        if is_captured():
            raise UnsupportedError("somebody else is capturing this step")
        for p in bucket.params:
            if type(p) not in (torch.Tensor, torch.nn.Parameter):
                raise UnsupportedError(f"it holds a {type(p).__name__}")
        device = bucket.params[0].device
        if device not in self._devices:
            self._devices[device] = open_device(device)
        return self._devices[device]

    def _make(self, slot: Slot, key: Hashable, make: Callable[[], Kept]) -> None:
        failures = slot.failures[key]
        if len(failures) >= ATTEMPTS:
            raise UnsupportedError(f"given up after {ATTEMPTS} failures, the last one: {failures[-1]}")
        while len(slot.recordings) >= KEPT:
            slot.recordings.popitem(last=False)[1].release()
            self.generation += 1  # gate: equivalent [number] generations are compared alone, and two more is another one as well
        try:
            recording = make()
        except Exception as cause:
            failures.append(str(cause).strip() or type(cause).__name__)
            raise
        slot.made += 1
        slot.recordings[key] = recording
