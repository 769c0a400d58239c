"""Compares what two goldens or kept runs hold, file by file where both have files, and counts what differs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gate.match import Match, goldens, matched
from gate.row import FORMAT
from gate.typed import changes
from gate.verdict import Reason, Verdict, worst_verdict
from golden import environment
from golden.compare import Comparison, Difference, compare_files
from golden.errors import GoldenError
from golden.manifest import Manifest
from golden.store import Golden

MOST = 1000  # differences that are listed, and whose census is taken


@dataclass(frozen=True)
class Pair:
    """Two goldens held against each other.

    Attributes:
        name: what the report calls them.
        expected: folder of the one side.
        actual: folder of the other side.
        verdict: `identical`, `drift`, or `not-judged` where one of them cannot be read.
        comparison: all differences.
        environment_changes: {"path", "expected", "actual"} each, the weightiest first; so are settings_changes.
        changed_sources: project paths whose content differs or that one side alone has, the scenario's own file first.
        damaged: step files whose contents do not have the digests recorded beside them.
        message: why it was not judged.
    """

    name: str
    expected: str
    actual: str
    verdict: Verdict
    comparison: Comparison = field(default_factory=Comparison)
    environment_changes: tuple[Mapping[str, Any], ...] = ()
    changed_sources: tuple[str, ...] = ()
    settings_changes: tuple[Mapping[str, Any], ...] = ()
    damaged: tuple[str, ...] = ()
    reason: Reason | None = None
    message: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The pair as it stands in `results`: everything but the list of differences."""
        return {
            "golden": self.name,
            "expected": self.expected,
            "actual": self.actual,
            "verdict": self.verdict.value,
            "reason": self.reason and self.reason.value,
            "message": self.message,
            **_counts([self.comparison]),
            "environment_changes": [dict(change) for change in self.environment_changes],
            "changed_sources": list(self.changed_sources),
            "settings_changes": [dict(change) for change in self.settings_changes],
            "damaged": list(self.damaged),
        }


@dataclass(frozen=True)
class Diff:
    """What `diff` gives back.

    Attributes:
        pairs: at least one, in order of their places.
        unmatched: goldens of either side that nothing on the other stands for; they are named and do not count.
    """

    pairs: tuple[Pair, ...]
    unmatched: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst of the pairs."""
        return worst_verdict(pair.verdict for pair in self.pairs)

    @property
    def exit_code(self) -> int:
        """0 identical, 1 drift, 3 not judged."""
        return self.verdict.exit_code

    def as_json(self) -> dict[str, Any]:
        """The result as `--json` writes it: sums over all pairs, at most `MOST` differences, and each pair under `results`."""
        listed = [{"golden": pair.name, **found.as_json()} for pair in self.pairs for found in pair.comparison.differences]
        return {
            "format": FORMAT,
            "verdict": self.verdict.value,
            **_counts([pair.comparison for pair in self.pairs]),
            "differences": listed[:MOST],
            "differences_left_out": max(len(listed) - MOST, 0),
            "environment_changes": _once(change for pair in self.pairs for change in pair.environment_changes),
            "changed_sources": _once(source for pair in self.pairs for source in pair.changed_sources),
            "settings_changes": _once(change for pair in self.pairs for change in pair.settings_changes),
            "damaged": _once(path for pair in self.pairs for path in pair.damaged),
            "unmatched": list(self.unmatched),
            "results": [pair.as_json() for pair in self.pairs],
        }


def diff(expected: Path, actual: Path) -> Diff:
    """Compares two goldens, two kept runs, or all goldens in two folders that stand for each other.

    Where both sides have kept a step whole, what its files hold is compared, whether or not it is what was recorded; elsewhere digests.

    Args:
        expected: a golden, or a folder of goldens (a hardware folder, the goldens' root, a kept run).
        actual: what is held against it.

    Raises:
        UsageError: a path that is not there.
        MissingGolden: nothing to compare.
        GoldenError: the only golden of one side cannot be read.
    """
    pairs, unmatched = matched(goldens(expected), goldens(actual))
    return Diff(tuple(_pair(match) for match in pairs), tuple(map(str, unmatched)))


def _pair(match: Match) -> Pair:
    names = (match.name, str(match.expected), str(match.actual))
    try:
        one, other = Golden.open(match.expected, bare=True), Golden.open(match.actual, bare=True)
        comparison, damaged = compare_files(one, other, limit=MOST)
    except GoldenError as error:
        return Pair(*names, Verdict.NOT_JUDGED, reason=Reason(error.reason), message=str(error))
    return Pair(
        *names,
        Verdict.IDENTICAL if comparison.identical else Verdict.DRIFT,
        comparison,
        tuple(environment.difference(one.manifest.environment, other.manifest.environment)),
        _sources(one.manifest, other.manifest),
        tuple(changes(one.manifest.scenario, other.manifest.scenario)),
        tuple(map(str, damaged)),
    )


def _sources(expected: Manifest, actual: Manifest) -> tuple[str, ...]:
    """Project paths whose content is not the same on both sides, the scenario's own file first."""
    one, other = expected.sources, actual.sources
    own = str(expected.scenario.get("run", "")).rpartition(":")[0]
    changed = (path for path in {*one, *other} if one.get(path) != other.get(path))
    return tuple(sorted(changed, key=lambda path: (path != own, path)))


def _counts(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Differences of structure and of bits apart: in all, and by step and phase where there are some."""
    found = [difference for comparison in comparisons for difference in comparison.differences]
    return {
        "structure": sum(comparison.structure for comparison in comparisons),
        "bits": sum(comparison.bits for comparison in comparisons),
        "first": found[0].as_json() if found else None,
        "steps": _tally((str(difference.step), difference) for difference in sorted(found, key=lambda difference: difference.step)),
        "phases": _tally((difference.phase, difference) for difference in found),
    }


def _tally(found: Iterable[tuple[str, Difference]]) -> dict[str, dict[str, int]]:
    tally: dict[str, dict[str, int]] = {}
    for key, difference in found:
        counts = tally.setdefault(key, {"structure": 0, "bits": 0})
        counts["structure" if difference.kind.structural else "bits"] += 1
    return tally


def _once(items: Iterable[Any]) -> list[Any]:
    """Items as they come, each once."""
    return list({json.dumps(item, sort_keys=True): item for item in items}.values())
