"""What the optimizers of a run say of their replay, for those that can replay recorded work (CUDA graphs, for example) and tell.

golden knows such an optimizer by its method alone: `replay_status()` gives entries, one a group for example, that count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

COUNTS = ("recordings", "replays", "fallbacks")


@runtime_checkable
class Replaying(Protocol):
    """What can say how often it recorded and replayed."""

    def replay_status(self) -> Iterable[Any]:
        """Entries with the attributes `recordings` (made so far), `replays` and `fallbacks` (steps done so), each an int."""


def counts(phases: Mapping[str, Any], others: Iterable[Any] = ()) -> dict[str, int] | None:
    """The sums over everything that was recorded and can say it, each object once.

    Args:
        phases: what `record` was given; also looked into are mappings and sequences among them.
        others: what else replays.

    Returns:
        `{"recordings": 2, "replays": 11, "fallbacks": 0}`; None where nothing there has such a method, or its entries do not count.
    """
    found = {id(value): value for value in _replaying([*phases.values(), *others])}
    entries = [entry for value in found.values() for entry in value.replay_status()]
    if not found or not all(isinstance(getattr(entry, name, None), int) for entry in entries for name in COUNTS):
        return None
    return {name: sum(getattr(entry, name) for entry in entries) for name in COUNTS}


def _replaying(values: Iterable[Any], depth: int = 2) -> Iterator[Replaying]:
    for value in values:
        if isinstance(value, type):
            continue
        if isinstance(value, Replaying):
            yield value
        elif depth and isinstance(value, dict):
            yield from _replaying(value.values(), depth - 1)
        elif depth and isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
            yield from _replaying(value, depth - 1)
