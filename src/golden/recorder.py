"""What a scenario is given: it is called after each step, and hands the state on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import torch

from golden.errors import ScenarioFailed
from golden.generators import PHASE, states
from golden.grads import Gradients, gradients
from golden.leaf import Snapshot
from golden.plan import Plan

__all__ = ["FULL", "Gradients", "Recorder", "Sink", "gradients"]

Sink: TypeAlias = "Callable[[Snapshot], object]"

FULL = 64 * 1024  # bytes of state a step up to which a recording keeps them, unless told otherwise
_STORES = ("full", "digest", None)
_RESERVED = (PHASE, "__metadata__")


class Recorder:
    """Records the state of a run, step by step, and changes nothing in it: no hook, no draw, no gradient touched, no graph kept.

    Args:
        sink: given the snapshot of each step, in order. Its data is the run's own memory, to be read before the sink returns.
        steps: how many the run has; they count from 1.
        device: of the run.
        seed: of the run.
        parameters: of the scenario.
        store: ``full`` keeps the bytes of every step, ``digest`` none, None decides by step 1: ``full`` up to 64 KiB of state.
        keep: steps whose bytes are kept in any case.
        first: the first step to do; above 1 in a process that resumes, where the start is not recorded again.
        folder: where a scenario that resumes saves its checkpoint and finds it again.

    Raises:
        ValueError: for settings that make no sense.

    Attributes:
        done: the last step that was recorded, ``first - 1`` if none was.
        others: what replays recorded work and is no phase (see `replays`).
    """

    def __init__(
        self,
        sink: Sink,
        *,
        steps: int,
        device: torch.device | str = "cpu",
        seed: int = 0,
        parameters: Mapping[str, Any] | None = None,
        store: str | None = None,
        keep: Collection[int] = (),
        first: int = 1,
        folder: Path | None = None,
    ) -> None:
        if store not in _STORES:
            raise ValueError(f"store is 'full', 'digest' or None, got {store!r}")
        if not 1 <= first <= steps:
            raise ValueError(f"a run has at least one step and starts at one of them, got steps={steps}, first={first}")
        self.steps, self.device, self.seed, self.first, self.folder = steps, torch.device(device), seed, first, folder
        self.parameters: Mapping[str, Any] = MappingProxyType(dict(parameters or {}))
        self.done = first - 1
        self.others: tuple[Any, ...] = ()
        self._sink, self._store, self._keep = sink, store, frozenset(keep)
        self._plan = Plan()
        self._started: Snapshot | None = None
        self._start_called = False
        self._phases: tuple[str, ...] | None = None

    @property
    def store(self) -> str | None:
        """``full`` or ``digest``; None as long as it is not decided."""
        return self._store

    def start(self, /, **phases: Any) -> None:
        """Records the state before the first step, as step 0. Its phases may be others than those of the steps.

        Raises:
            ScenarioFailed: if it comes twice or too late, or the phases cannot be recorded.
        """
        if self._start_called or self._phases is not None:
            raise ScenarioFailed("record.start() is for the state before the first step: call it once, before record()")
        self._check(phases, "record.start()")
        self._start_called = True
        state = self._plan.read(self._with_generators(phases))
        if self.first > 1:
            return
        if self._store is None and state.nbytes > FULL:
            self._store = "digest"
        snapshot = state.snapshot(0, self._store is None or self._kept(0))
        if self._store is not None:
            self._sink(snapshot)
        else:  # small enough to be kept if step 1 is: a copy waits for that
            self._started = replace(snapshot, data=[bytes(buffer) for buffer in snapshot.data or ()])

    def __call__(self, /, **phases: Any) -> None:
        """Records the state after a step. A keyword is a phase, and their order is the order of execution.

        Raises:
            ScenarioFailed: if there are more steps than the run has, no phases, or other phases than at the step before; `Refused`
                for a value that cannot be recorded, with its path.
        """
        step = self.done + 1
        if step > self.steps:
            raise ScenarioFailed(f"record() was called for step {step}, and the run has {self.steps}: loop over range(record.steps)")
        self._check(phases, f"step {step}")
        if self._phases is not None and tuple(phases) != self._phases:
            raise ScenarioFailed(f"step {step} has other phases than step {step - 1}: {_difference(self._phases, tuple(phases))}")
        state = self._plan.read(self._with_generators(phases))
        self._decide(state.nbytes)
        self._sink(state.snapshot(step, self._kept(step)))
        self._phases, self.done = tuple(phases), step

    def replays(self, *others: Any) -> None:
        """Says what else replays recorded work, besides the phases: objects with `replay_status()`, asked when the last step is done."""
        self.others += others

    def mark(self) -> None:
        """Says that what is to be timed of the step begins here. A recording does not mind; `gate bench` does."""

    def look(self) -> None:
        """Says that the run holds as much of the device's memory here as anywhere. A recording does not mind; `gate bench` does."""

    def finish(self) -> None:
        """Says that the scenario has returned.

        Raises:
            ScenarioFailed: if it recorded nothing, or not all of its steps.
        """
        if self.done < self.first:
            raise ScenarioFailed("the scenario recorded no step: call record(...) after each one")
        if self.done < self.steps:
            raise ScenarioFailed(
                f"the scenario recorded {self.done} of {self.steps} steps: loop over range(record.steps), or set steps to {self.done}"
            )

    def _kept(self, step: int) -> bool:
        return self._store == "full" or step in self._keep

    def _decide(self, nbytes: int) -> None:
        """Settles what is kept, at step 1, and hands on the start that has waited for it."""
        if self._store is None:
            self._store = "full" if nbytes <= FULL else "digest"
        if self._started is not None:
            snapshot, self._started = self._started, None
            self._sink(snapshot if self._kept(0) else replace(snapshot, data=None))

    def _with_generators(self, phases: Mapping[str, Any]) -> dict[str, Any]:
        return {**phases, PHASE: states(self.device)}

    def _check(self, phases: Mapping[str, Any], where: str) -> None:
        if not phases:
            raise ScenarioFailed(f"{where} records nothing: give record() the state as keywords, record(model=model, optimizer=optimizer)")
        for phase in phases:
            if phase in _RESERVED:
                raise ScenarioFailed(f"{where} has a phase named {phase!r}, which is golden's own: name it otherwise")
            if not phase.isidentifier():
                raise ScenarioFailed(f"{where} has a phase named {phase!r}: a phase has the name of a keyword argument")


def _difference(expected: tuple[str, ...], actual: tuple[str, ...]) -> str:
    missing = [phase for phase in expected if phase not in actual]
    unexpected = [phase for phase in actual if phase not in expected]
    told = [f"{', '.join(missing)} missing"] * bool(missing) + [f"{', '.join(unexpected)} unexpected"] * bool(unexpected)
    return " and ".join(told) or f"the order is {', '.join(actual)} instead of {', '.join(expected)}"
