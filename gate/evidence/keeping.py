"""`gate status --keep`: puts into the repository the records that a merge needs and CI cannot repeat, and removes what they replace."""

from __future__ import annotations

from dataclasses import replace

from gate.evidence import archive
from gate.evidence.archive import Filed
from gate.evidence.judging import State
from gate.evidence.status import Status, View
from golden.errors import StoreError


def keep(view: View) -> Status:
    """Keeps the fresh records of GPUs, and of what `keep` in [tool.gate.required] names.

    A record replaces those of the same check, hardware, torch and scenario; one of a need that is not fresh replaces nothing.

    Returns:
        The state before, with a note for each file that was written or removed.

    Raises:
        StoreError: the disk or its permissions; what was written until then stays, and is whole.
    """
    found = view.status()
    notes = []
    for line in found.lines:
        for filed in line.filed:
            if line.state is State.FRESH and view.required.keeps(filed.record):
                notes += _put(view, filed)
    return replace(found, notes=(*found.notes, *(notes or ["nothing to keep: no fresh record that CI cannot repeat is new"])))


def _put(view: View, filed: Filed) -> list[str]:
    folder = archive.kept_folder(view.config, filed.record.hardware)
    notes = []
    if not filed.kept:
        path = archive.put(folder, filed.record)
        notes.append(f"kept {path.relative_to(view.config.root).as_posix()}")
    for other in view.archive.records:
        if other.kept and other.record.file != filed.record.file and _same(other, filed):
            try:
                other.path.unlink(missing_ok=True)
            except OSError as error:
                raise StoreError.of(error, other.path) from error
            notes.append(f"removed {other.path.relative_to(view.config.root).as_posix()}, which it replaces")
    return notes


def _same(one: Filed, other: Filed) -> bool:
    """Whether two records are of one thing."""

    def key(filed: Filed) -> tuple[str | None, ...]:
        return (filed.record.check, filed.record.hardware, filed.record.torch, filed.record.scenario)

    return key(one) == key(other)
