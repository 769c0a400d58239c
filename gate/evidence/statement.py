"""One record as a value, and as the text of its file: an in-toto Statement v1.

The text is JSON whose lines begin with an uneven number of spaces. git tells a renamed file by the lines, cut into pieces of 64 bytes,
that it shares with a removed one. Two branches that each replace one record would be told to have renamed it to two names, and conflict.
Indented by a number that follows from the record's own digest, no two records share enough lines.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from golden import canonical
from golden.canonical import Json, as_list, as_mapping, as_text, expect, has_keys

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:musgd-gate:evidence:1"
CHECKS = ("tests", "goldens", "mutation", "bench")
MADE = "made"  # of details: files that came to, or went from, where the check looked, and that git does not hold: it made them itself
_LONGEST = 400  # characters of a value that stays on one line
_KEYS = {"check", "counts", "details", "environment", "hardware", "result", "scenario", "since", "time", "torch"}


class Kind(str, Enum):
    """What a subject is the digest of."""

    FILE = "file"  # a project file's content, line ends as git keeps them
    SCENARIO = "scenario"  # a scenario's resolved settings
    TABLE = "table"  # a table of pyproject.toml
    NAMES = "names"  # which files a pattern has: a new one was not read
    PACKAGE = "package"  # a distribution's version
    CHANGED = "changed"  # which files differ from a commit


@dataclass(frozen=True)
class Subject:
    """Something that a check read.

    Attributes:
        name: a path relative to the project, a scenario, a dotted table, a pattern, a distribution, a commit.
        digest: sha256, 64 hexadecimal digits.
        value: what was digested where that is short and worth telling; None for files.
    """

    kind: Kind
    name: str
    digest: str
    value: Json = None

    @classmethod
    def of_value(cls, kind: Kind, name: str, value: Json) -> Subject:
        """A subject whose content is a value of JSON's own types."""
        return cls(kind, name, digest_of(value), value)

    def as_json(self) -> dict[str, Any]:
        """The resource descriptor."""
        notes = {} if self.kind is Kind.FILE else {"annotations": {"kind": self.kind.value, "value": self.value}}
        return {"name": self.name, "digest": {"sha256": self.digest}, **notes}

    @classmethod
    def from_json(cls, document: Any) -> Subject:
        """Reads a resource descriptor. Raises ValueError."""
        found = as_mapping(document, "a subject")
        digest = as_text(as_mapping(found.get("digest"), "a digest").get("sha256"), "a sha256")
        notes = as_mapping(found.get("annotations", {}), "annotations")
        return cls(Kind(notes.get("kind", "file")), as_text(found.get("name"), "a name"), digest, notes.get("value"))


@dataclass(frozen=True)
class Record:
    """What is known of one check that ran.

    Attributes:
        check: of `CHECKS`.
        hardware: slug of what it ran on.
        torch: version as goldens' folders have it.
        result: "passed", "failed" or "inconclusive".
        counts: figures by name; claims in documents name them.
        environment: what it ran in, for people.
        time: when it ended, UTC, "2026-11-29T19:15:00.000000Z": later is greater.
        subjects: what it read, each once.
        scenario: of a record of `goldens`.
        since: the commit that the change it looked at began with; None where it looked at everything.
        details: more, by the kind of check: tests that passed, what killed which mutant.
    """

    check: str
    hardware: str
    torch: str
    result: str
    counts: Mapping[str, int]
    environment: Mapping[str, Json]
    time: str
    subjects: tuple[Subject, ...]
    scenario: str | None = None
    since: str | None = None
    details: Mapping[str, Json] = field(default_factory=dict)

    @property
    def made(self) -> frozenset[str]:
        """Files that the check made or removed itself, such as checkpoints: no source of it, there or not."""
        found = self.details.get(MADE, [])
        return frozenset(map(str, found)) if isinstance(found, list) else frozenset()

    @property
    def title(self) -> str:
        """What reports call it."""
        return " ".join(filter(None, (self.check, self.hardware, f"torch {self.torch}", self.scenario)))

    @property
    def digest(self) -> str:
        """Of all that it says; the name of its file ends with a part of it."""
        return digest_of(self._document())

    @property
    def file(self) -> str:
        """The name of its file: other content, other name."""
        who = "-".join(filter(None, (self.check, self.hardware, f"torch-{self.torch}", self.scenario)))
        return f"{who}-{self.digest[:16]}.json"

    def text(self) -> str:
        """The content of its file."""
        lines = list(_lines(self._document(), ""))
        return "\n".join(" " * _indent(self.digest, number) + line for number, line in enumerate(lines)) + "\n"

    def _document(self) -> dict[str, Any]:
        predicate = {key: getattr(self, key) for key in sorted(_KEYS)}
        subjects = [subject.as_json() for subject in self.subjects]
        return {"_type": STATEMENT, "subject": subjects, "predicateType": PREDICATE, "predicate": predicate}


def parse(content: bytes, name: str) -> Record:
    """The record that a file of this name holds.

    Raises:
        ValueError: it is none, is of another format, or was edited: its name no longer fits. A clause that goes with the file's name.
    """
    document = as_mapping(canonical.loads(content), "the statement")
    expect(document.get("_type") == STATEMENT, f"is no statement of {STATEMENT}")
    expect(document.get("predicateType") == PREDICATE, f"is no evidence that this gate reads ({PREDICATE})")
    predicate = as_mapping(document.get("predicate"), "the predicate")
    has_keys(predicate, _KEYS, "the predicate")
    expect(predicate["check"] in CHECKS, f"is of an unknown check {predicate['check']!r}")
    counts, details = as_mapping(predicate["counts"], "counts"), as_mapping(predicate["details"], "details")
    expect(all(type(count) is int for count in counts.values()), "has a count that is no whole number")
    for key in ("hardware", "torch", "result", "time"):
        as_text(predicate[key], key)
    subjects = tuple(map(Subject.from_json, as_list(document.get("subject"), "subject")))
    record = Record(**{**predicate, "counts": counts, "details": details, "subjects": subjects})
    expect(record.file == name, "does not fit its name: it was edited or renamed")
    return record


def digest_of(value: Json) -> str:
    """The sha256 of a value's canonical text."""
    return hashlib.sha256(canonical.compact(value).encode()).hexdigest()


def _lines(value: Any, end: str, key: str = "") -> Iterator[str]:
    """The lines of a value; what fits on one line stays there, so that a subject is a line."""
    whole = f"{key}{canonical.compact(value)}{end}"
    if len(whole) <= _LONGEST or not isinstance(value, (dict, list)) or not value:
        yield whole
        return
    keyed = isinstance(value, dict)
    items = (
        [(f"{canonical.compact(name)}: ", value[name]) for name in sorted(value)] if isinstance(value, dict) else [("", v) for v in value]
    )
    yield f"{key}{'{' if keyed else '['}"
    for place, (name, inner) in enumerate(items):
        yield from _lines(inner, "," if place + 1 < len(items) else "", name)
    yield f"{'}' if keyed else ']'}{end}"


def _indent(digest: str, line: int) -> int:
    return hashlib.sha256(f"{digest}{line}".encode()).digest()[0] % 64
