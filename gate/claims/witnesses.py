"""What the fresh evidence says: figures, tests that passed, and what killed a mutant of which function."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from gate.evidence.archive import Filed
from gate.evidence.freshness import Here
from gate.evidence.judging import gap
from gate.evidence.required import Need
from gate.evidence.statement import Record
from gate.version import agrees


class Witnesses:
    """The records that are fresh and prove something, each of its check, hardware, torch and scenario the newest.

    Args:
        records: newest first.
        here: the project and the machine now.
        since: ids of the commits that a record of a change alone may have begun with.
    """

    def __init__(self, records: tuple[Filed, ...], here: Here, since: frozenset[str] = frozenset()) -> None:
        self._filed, self._here, self._since = records, here, since

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """All of them."""
        found: dict[tuple[str | None, ...], Record] = {}  # of mutants each that lay elsewhere, too
        for filed in self._filed:
            record = filed.record
            whole = record.since is None or record.since in self._since
            if whole and gap(record) is None and not self._here.changes(record):
                where = ",".join(_paths(record)) if record.check == "mutation" else None
                found.setdefault((record.check, record.hardware, record.torch, record.scenario, record.since, where), record)
        return tuple(found.values())

    def of(self, check: str, hardware: str, torch: str | None = None) -> list[Record]:
        """Records of a check of everything: all scenarios of `goldens`, under each torch; of mutants most, else the newest."""
        found = [
            record
            for record in self.records
            if (record.check, record.hardware, record.since) == (check, hardware, None) and (torch is None or agrees(torch, record.torch))
        ]
        if check == "mutation":
            found.sort(key=lambda record: -record.counts.get("total", 0))
        return found if check == "goldens" else found[:1]

    def whole(self, check: str, need: Need | None = None) -> bool:
        """Whether there is evidence of a check of everything, or of all that a need asks for."""
        found = (record for record in self.records if record.check == check and record.since is None)
        return any(need is None or need.fits(record) for record in found)

    @cached_property
    def passed(self) -> Mapping[str, frozenset[str]] | None:
        """Names of the tests that passed, by file; None where there is no evidence of tests."""
        records = [record for record in self.records if record.check == "tests"]
        found: dict[str, set[str]] = {}
        for record in records:
            for file, names in _mapping(record.details.get("passed")).items():
                found.setdefault(file, set()).update(map(str, names))
        return {file: frozenset(names) for file, names in found.items()} if records else None

    @cached_property
    def killers(self) -> Mapping[str, frozenset[str]] | None:
        """Ids of tests that killed a mutant, by "FILE::FUNCTION"; None where there is no evidence of mutation."""
        records = [record for record in self.records if record.check == "mutation"]
        found: dict[str, set[str]] = {}
        for record in records:
            for function, ids in _mapping(record.details.get("killed")).items():
                found.setdefault(function, set()).update(map(str, ids))
        return {function: frozenset(ids) for function, ids in found.items()} if records else None

    def asked(self, file: str | None) -> Mapping[str, frozenset[str]]:
        """Ids of the tests that were asked of every mutant they run, by hardware: where they are no killers, they kill nothing.

        Args:
            file: the source in which the mutants have to lie; None for any.
        """
        found: dict[str, set[str]] = {}
        for record in self.records:
            if record.check == "mutation" and record.since is None and (file is None or _covers(record, file)):
                names = record.details.get("asked")
                found.setdefault(record.hardware, set()).update(map(str, names if isinstance(names, list) else ()))
        return {hardware: frozenset(names) for hardware, names in found.items()}


def _covers(record: Record, file: str) -> bool:
    return any(path in (".", file) or file.startswith(f"{path}/") for path in _paths(record) or ["."])


def _paths(record: Record) -> list[str]:
    paths = record.details.get("paths")
    return [str(path) for path in paths] if isinstance(paths, list) else []


def _mapping(value: object) -> Mapping[str, list[object]]:
    return {str(key): list(inner) for key, inner in value.items() if isinstance(inner, list)} if isinstance(value, Mapping) else {}
