"""States as the recorder reads them, for tests."""

from __future__ import annotations

from typing import Any

from golden.digest import of
from golden.leaf import Leaf, Snapshot
from golden.plan import Plan


def read(plan: Plan | None = None, /, **phases: Any) -> Snapshot:
    """One snapshot with its data, checked to agree with its digests."""
    snapshot = (plan or Plan()).read(phases).snapshot(1, keep=True)
    assert snapshot.data is not None
    assert (of(snapshot.data) == snapshot.digests).all()
    return snapshot


def leaves(plan: Plan | None = None, /, **phases: Any) -> dict[str, tuple[Leaf, bytes]]:
    """Leaf and bytes by full path."""
    snapshot = read(plan, **phases)
    assert snapshot.data is not None
    return {leaf.full: (leaf, bytes(data)) for leaf, data in zip(snapshot.leaves, snapshot.data, strict=True)}


def lines(plan: Plan | None = None, /, **phases: Any) -> list[str]:
    """The manifest's lines, each with its phase in front."""
    return [f"{leaf.phase} {leaf.line()}" for leaf in read(plan, **phases).leaves]


def texts(plan: Plan | None = None, /, **phases: Any) -> dict[str, str]:
    """Exact text of the scalars by full path."""
    return {full: data.decode() for full, (leaf, data) in leaves(plan, **phases).items() if leaf.kind == "scalar"}


def same(one: Snapshot, other: Snapshot) -> bool:
    """Whether two snapshots hold the same bits."""
    return one.leaves == other.leaves and bool((one.digests == other.digests).all())
