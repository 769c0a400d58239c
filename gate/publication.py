"""Puts a run's golden into its place, unless the same one is there already, or another one that nobody said to replace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gate.verdict import Verdict
from golden.aside import aside
from golden.compare import Comparison, compare
from golden.errors import CorruptGolden, MissingGolden
from golden.manifest import Reason
from golden.publish import publish, stage
from golden.store import Golden

SETTINGS = ("run", "steps", "seed", "device", "parameters", "profile", "store", "resume_at")
MOST = 16 * 2**20  # bytes that the goldens of a repository should stay under


@dataclass(frozen=True)
class Published:
    """What became of a golden that was to be published.

    Attributes:
        verdict: `recorded` (there was none), `updated`, `identical` (nothing was written), or `drift` (nothing was written).
        old: the golden that stood there; None where there was none, or a corrupt one was replaced.
        comparison: how the new one differs from it.
    """

    verdict: Verdict
    old: Golden | None = None
    comparison: Comparison = field(default_factory=Comparison)


def offer(golden: Golden, root: Path, target: Path, reason: str | None) -> Published:
    """Publishes a run's golden at `target`, below the goldens' root, where that is new or `reason` says why bits were meant to move.

    A golden with the same bits but other settings (parameters, way of storing) is replaced without a reason: no bit has moved.

    Raises:
        CorruptGolden: the run's golden is not whole, or, without a reason, what stands there is not.
        StoreError: the disk or its permissions; what stood there is whole.
    """
    old = check_standing(target, reason)
    comparison = compare(old, golden, limit=1000) if old else Comparison()
    if old and comparison.identical and _settings(old) == _settings(golden):
        return Published(Verdict.IDENTICAL, old)
    if old and not comparison.identical and reason is None:
        return Published(Verdict.DRIFT, old, comparison)
    replaced = target.is_dir() and any(target.iterdir())
    with aside(root) as folder:
        stage(golden, folder, _reason(old, comparison, reason) if replaced else None)
        publish(folder, target)
    return Published(Verdict.UPDATED if replaced else Verdict.RECORDED, old, comparison)


def _reason(old: Golden | None, comparison: Comparison, reason: str | None) -> Reason | None:
    """What the manifest is to say: why bits moved, and which they were; the old reason where none moved."""
    if old and comparison.identical:
        return old.manifest.reason
    return Reason(reason, old.roots if old else {}) if reason else None


def size(root: Path) -> int:
    """Bytes of all files below the goldens' root."""
    return sum(path.lstat().st_size for path in root.rglob("*") if path.is_file())


def check_standing(target: Path, reason: str | None) -> Golden | None:
    """The golden that stands in a place; a corrupt one counts as none where a reason allows to replace it.

    Raises:
        CorruptGolden: what stands there is not whole, and there is no reason.
    """
    try:
        return Golden.open(target)
    except MissingGolden:
        return None
    except CorruptGolden:
        if reason is None:
            raise
        return None


def _settings(golden: Golden) -> Mapping[str, Any]:
    return {key: golden.manifest.scenario.get(key) for key in SETTINGS}
