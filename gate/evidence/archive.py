"""The files of records: those of this work tree in `.gate/evidence`, those kept in the repository in `goldens/<hardware>/evidence`."""

from __future__ import annotations

import glob
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gate.config import Config
from gate.evidence.present import FOLDER
from gate.evidence.statement import Record, parse
from golden.errors import StoreError

MOST = 1 << 26  # bytes; no record is larger
EARLIER = 20  # records of one thing that stay in this work tree: one of them may be of what a revert brings back
_MARK = "?" * 16  # the part of a digest that ends a name


@dataclass(frozen=True)
class Filed:
    """A record and where it lies.

    Attributes:
        kept: whether it lies in the repository rather than in this work tree alone.
    """

    record: Record
    path: Path
    kept: bool


@dataclass(frozen=True)
class Archive:
    """All records of a project.

    Attributes:
        records: newest first; of two of one time the one that is kept.
        spoilt: files that hold no record, and why: they count as none.
    """

    records: tuple[Filed, ...]
    spoilt: tuple[tuple[Path, str], ...] = ()


def write(config: Config, record: Record) -> Path:
    """Writes a record of this work tree, whole or not at all; earlier ones that read the very same go.

    Raises:
        StoreError: the disk or its permissions.
    """
    path = put(config.root / ".gate" / FOLDER, record)
    _thin(path, record)
    return path


def put(folder: Path, record: Record) -> Path:
    """Writes a record into a folder, whole or not at all; one that is there already stays.

    Raises:
        StoreError: the disk or its permissions.
    """
    path = folder / record.file
    aside = folder / f".{record.file}.{secrets.token_hex(4)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with aside.open("x", encoding="ascii") as file:
            file.write(record.text())
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        raise StoreError.of(error, path) from error
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
    return path


def load(config: Config) -> Archive:
    """Reads all records of a project. Raises StoreError where a folder cannot be read."""
    records: list[Filed] = []
    spoilt: list[tuple[Path, str]] = []
    for path, kept in _files(config):
        try:
            if not _is_plain(path):
                raise ValueError("is a link, a folder or no plain file, or larger than any record")
            records.append(Filed(parse(path.read_bytes(), path.name), path, kept))
        except ValueError as error:
            spoilt.append((path, str(error)))
        except FileNotFoundError:  # another gate has replaced it
            continue
        except OSError as error:
            raise StoreError.of(error, path) from error
    records.sort(key=lambda filed: (filed.record.time, filed.kept, filed.path.name), reverse=True)
    return Archive(tuple(records), tuple(spoilt))


def kept_folder(config: Config, hardware: str) -> Path:
    """Where the repository keeps records of a hardware."""
    return config.goldens / hardware / FOLDER


def _is_plain(path: Path) -> bool:
    """Whether it may be read: opening a pipe would wait for its writer. Raises OSError where it is gone."""
    facts = path.lstat()
    return stat.S_ISREG(facts.st_mode) and facts.st_size <= MOST


def _read(record: Record) -> tuple[object, ...]:
    """What a record was made of: mutants of one file may have read what those of all sources did."""
    return record.subjects, record.since, record.details.get("paths")


def _thin(path: Path, record: Record) -> None:
    """Removes earlier records of one thing that read the same, and all but the newest of the others."""
    earlier: list[tuple[str, Path]] = []
    for other in path.parent.glob(f"{glob.escape(path.name[: -len(_MARK) - len('.json')])}{_MARK}.json"):
        with suppress(OSError, ValueError):
            if not _is_plain(other):
                continue
            known = parse(other.read_bytes(), other.name)
            same = _read(known) == _read(record)
            earlier.append(("" if same and other != path else known.time, other))
    for _, other in [*sorted(earlier, reverse=True)[EARLIER:], *(item for item in earlier if not item[0])]:
        with suppress(OSError):
            other.unlink(missing_ok=True)


def _files(config: Config) -> Iterator[tuple[Path, bool]]:
    yield from ((path, False) for path in _json(config.root / ".gate" / FOLDER))
    slugs = sorted(path.name for path in config.goldens.iterdir() if path.is_dir()) if config.goldens.is_dir() else []
    for slug in slugs:
        yield from ((path, True) for path in _json(kept_folder(config, slug)))


def _json(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix == ".json" and not path.name.startswith(".")) if folder.is_dir() else []
