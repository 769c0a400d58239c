"""A digest of each phase of a step, for runs of which nothing else is kept."""

from __future__ import annotations

import hashlib

from golden.leaf import Snapshot


def digests(snapshot: Snapshot) -> dict[str, str]:
    """One for each phase, in order: equal where all that a comparison looks at is, leaf by leaf, and the bytes.

    Args:
        snapshot: of a step; its digests are read, not its data.

    Returns:
        SHA-256 in hexadecimal, by phase.
    """
    found = {leaf.phase: hashlib.sha256() for leaf in snapshot.leaves}
    for leaf, row in zip(snapshot.leaves, snapshot.digests, strict=True):
        found[leaf.phase].update(leaf.line().encode() + b"\n" + row.tobytes())
    return {phase: hashed.hexdigest() for phase, hashed in found.items()}
