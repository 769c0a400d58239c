"""What a check read, by name, and its digests."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gate.evidence.present import Present, is_document
from gate.evidence.statement import Kind, Subject


@dataclass(frozen=True)
class Reading:
    """What a check read. Everything that its result may depend on, and nothing else: each item that changes makes the record stale.

    Attributes:
        files: paths, relative to the project with forward slashes, or absolute; those outside the project, evidence and pyproject.toml
            are left out.
        documents: whether Markdown counts, because the check reads it as data; otherwise files of it are left out.
        goldens: folders of goldens, whose files count; absolute or relative to the project.
        scenarios: names of scenarios whose settings count.
        tables: dotted names of tables of pyproject.toml that count, such as "tool.pytest".
        patterns: of which a new file counts ("tests/*.py"; `*` stands for slashes too).
        packages: versions of the distributions imported, by name.
    """

    files: Iterable[str | Path] = ()
    documents: bool = False
    goldens: Iterable[str | Path] = ()
    scenarios: Iterable[str] = ()
    tables: Iterable[str] = ()
    patterns: Iterable[str] = ()
    packages: Mapping[str, str] = field(default_factory=dict)

    def paths(self, present: Present) -> list[str]:
        """Paths of all project files that were read, each once, sorted; a file that is not there any more included."""
        named = [_relative(present, path) for path in self.files]
        folders = [present.config.root / golden for golden in self.goldens]
        held = [_relative(present, path) for folder in folders for path in folder.rglob("*") if path.is_file()]
        wanted = {path for path in named if path and (self.documents or not is_document(path))} | {path for path in held if path}
        own = {present.config.file.name}
        return sorted(path for path in wanted - own if not present.is_evidence(path))

    def subjects(self, present: Present, since: str | None = None, without: Collection[str] = ()) -> Iterator[Subject]:
        """Its subjects as they are now, each once; what is gone is left out.

        Args:
            present: the project.
            since: the commit that a change begins with: every file changed since counts too.
            without: files that were read and are none.
        """
        changed = present.changed(since) if since else []
        named = [(Kind.FILE, path) for path in sorted({*self.paths(present), *changed} - {*without})]
        named += [(kind, name) for kind, names in self._values(since) for name in sorted(set(names))]
        yield from filter(None, (present.subject(kind, name) for kind, name in named))
        for name, version in sorted(self.packages.items()):
            yield Subject.of_value(Kind.PACKAGE, name, version)

    def _values(self, since: str | None) -> list[tuple[Kind, Iterable[str]]]:
        changed = [since] if since else []
        return [(Kind.SCENARIO, self.scenarios), (Kind.TABLE, self.tables), (Kind.NAMES, self.patterns), (Kind.CHANGED, changed)]


def _relative(present: Present, path: str | Path) -> str | None:
    """A path as it stands in the project; None where it lies outside."""
    root = present.config.root
    try:
        return (root / path).relative_to(root).as_posix()
    except ValueError:
        return None
