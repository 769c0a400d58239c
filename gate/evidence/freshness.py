"""Whether what a record read is still what it was, and how it has changed where it is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gate.evidence.present import Present
from gate.evidence.statement import Kind, Record, Subject
from gate.machine import Machine
from gate.pytest_settings import FILES, TABLES, file_of
from gate.version import agrees
from golden.canonical import Json
from golden.keys import shown


@dataclass(frozen=True)
class Change:
    """One thing that is no longer what a record read.

    Attributes:
        subject: as it was.
        told: what changed, as a sentence without its end.
        files: the project's files that changed; none for packages.
        gone: whether a file is not there any more.
    """

    subject: Subject
    told: str
    files: tuple[str, ...] = ()
    gone: bool = False


@dataclass(frozen=True)
class Here:
    """The project and the machine as they are now.

    Attributes:
        running: the full version of the torch that this interpreter holds; empty where it has none.
    """

    present: Present
    machine: Machine
    running: str

    def changes(self, record: Record) -> tuple[Change, ...]:
        """What has changed since a record was made; nothing where it is fresh."""
        return tuple(change for subject in record.subjects if self._compared(record, subject) for change in self._change(record, subject))

    def _compared(self, record: Record, subject: Subject) -> bool:
        """Versions can be asked of the interpreter here alone; of another machine or environment they stay what they were."""
        if subject.kind is not Kind.PACKAGE:
            return True
        ours = record.environment.get("interpreter", "running") == "running" and record.hardware in self.machine.slugs()
        return ours and (record.check != "goldens" or agrees(record.torch, self.running))

    def _change(self, record: Record, subject: Subject) -> Iterator[Change]:
        now = self.present.subject(subject.kind, subject.name)
        if now is None or now.digest != subject.digest:
            if subject.kind in (Kind.NAMES, Kind.CHANGED):
                made = record.made - self.present.tracked if subject.kind is Kind.NAMES and record.made else frozenset[str]()
                yield from (change for change in _names(subject, now) if change.files[0] not in made)
            else:
                yield _told(subject, now, self.present)


def _told(subject: Subject, now: Subject | None, present: Present) -> Change:
    name, kind, file = subject.name, subject.kind, present.config.file.name
    if kind is Kind.FILE:
        return Change(subject, f"{name} {'is gone' if now is None else 'has other content'}", (name,), gone=now is None)
    if kind is Kind.PACKAGE:
        return Change(subject, f"package {name} was {subject.value}, {'is gone' if now is None else f'now {now.value}'}")
    if kind is Kind.SCENARIO:
        return Change(subject, f"[tool.gate.scenarios.{name}]: {_settings(subject.value, now)}", (file,))
    value = now.value if now else None
    became = "is gone" if value is None else "is new" if subject.value is None else "has other content"
    if name in TABLES:
        instead = present.pytest.file
        if value is None and instead in FILES[: FILES.index(file_of(name))]:
            return Change(subject, f"pytest reads {instead} instead of {file_of(name)}", (instead,))
        return Change(subject, f"what pytest reads of {file_of(name)} {became}", (file_of(name),))
    return Change(subject, f"[{name}] in {file} {became}", (file,))


def _settings(before: Json, now: Subject | None) -> str:
    if now is None or not isinstance(before, Mapping) or not isinstance(now.value, Mapping):
        return "is gone"
    keys = sorted(key for key in {*before, *now.value} if before.get(key) != now.value.get(key))
    return ", ".join(f"{key} {shown(before.get(key))}, now {shown(now.value.get(key))}" for key in keys)


def _names(subject: Subject, now: Subject | None) -> Iterator[Change]:
    """Each file for itself: each may have come or gone in another commit."""
    before, after = _listed(subject.value), _listed(now.value if now else [])
    new, gone = "is new", "is gone"
    if subject.kind is Kind.CHANGED:
        new, gone = f"is changed since {subject.name[:10]} as well", f"is as in {subject.name[:10]} again"
    yield from (Change(subject, f"{name} {new}", (name,)) for name in after if name not in before)
    yield from (Change(subject, f"{name} {gone}", (name,)) for name in before if name not in after)


def _listed(value: Any) -> list[str]:
    return [str(name) for name in value] if isinstance(value, list) else []
