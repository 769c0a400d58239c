"""Every claim of a project, held against its evidence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from gate import encoding, output
from gate.claims import figures, holding, pages, promises
from gate.claims.change import Change
from gate.claims.issue import Issue, Weight
from gate.claims.prose import is_prose
from gate.claims.witnesses import Witnesses
from gate.collected import Collected
from gate.config import Config
from gate.errors import ConfigurationError, UsageError
from gate.evidence.present import Present
from gate.evidence.statement import Kind
from gate.evidence.status import View
from gate.pytest_settings import text_of
from gate.verdict import Verdict, worst
from golden.errors import StoreError
from golden.keys import nearest, shown

FORMAT = 1
KEYS = ("promise", "work")
_HELD = re.compile(r"h[eo]ld[\s_-]*by", re.IGNORECASE)
_OWN = (".git", ".gate")
_ROOT = re.compile(r'"([0-9a-f]{32})"')


@dataclass(frozen=True)
class Claims:
    """What was claimed, and what is wrong with it.

    Attributes:
        issues: in order of files and lines.
        figures: how many figures stand between markers.
        promises: how many sentences name who holds them.
        allowed: hardware whose evidence may be missing.
    """

    issues: tuple[Issue, ...]
    figures: int = 0
    promises: int = 0
    allowed: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 where a claim is wrong, 3 where one cannot be judged, but for want of nothing except what may be missing; else 0."""
        codes = {Weight.CLAIM: 1, Weight.UNJUDGED: Verdict.NOT_JUDGED.exit_code}
        counting = [issue for issue in self.issues if not issue.hardware or not set(issue.hardware) <= set(self.allowed)]
        return worst([0, *(codes.get(issue.weight, 0) for issue in counting)])

    def count(self, weight: Weight) -> int:
        """How many issues weigh so."""
        return sum(issue.weight is weight for issue in self.issues)

    def as_json(self) -> dict[str, Any]:
        """The result as `--json` writes it."""
        return {"figures": self.figures, "promises": self.promises, "issues": [issue.as_json() for issue in self.issues]}


@dataclass(frozen=True)
class Scope:
    """Where claims stand: `[tool.gate.claims]`.

    Attributes:
        promise: folders in which every public sentence that promises has to say who holds it.
        work: the folder of pages that may say what a run covers.
    """

    promise: tuple[str, ...] = ()
    work: str = "docs/work"

    @classmethod
    def of(cls, config: Config) -> Scope:
        """As configured. Raises ConfigurationError naming the key."""
        table, where = config.later.get("claims", {}), f"{config.file}: [tool.gate.claims]"
        if not isinstance(table, Mapping):
            raise ConfigurationError(f"{where} is {shown(table)}, but has to be a table.")
        for key in table:
            if key not in KEYS:
                raise ConfigurationError(f"{where}: unknown key {key!r}, {nearest(key, list(KEYS))}")
        folders, work = table.get("promise", []), table.get("work", cls.work)
        if not isinstance(folders, list) or not all(isinstance(folder, str) for folder in folders):
            raise ConfigurationError(f'{where} promise = {shown(folders)}: has to be a list of folders, such as ["src/toy"].')
        for folder in folders:
            if not (config.root / folder).is_dir():
                raise ConfigurationError(f"{where} promise names {folder!r}, and there is no such folder.")
        if not isinstance(work, str):
            raise ConfigurationError(f"{where} work = {shown(work)}: has to be a folder.")
        return cls(tuple(folders), work)


def review(view: View, since: frozenset[str] = frozenset(), allowed: tuple[str, ...] = ()) -> Claims:
    """Judges every claim of a project. What a change leaves alone has to be right, but needs no evidence of its own.

    Args:
        view: the project and its evidence.
        since: the id of the commit that the change, and a record of it alone, begins with; empty where everything is the change.
        allowed: hardware whose evidence may be missing.

    Raises:
        ConfigurationError: [tool.gate.claims] is wrong.
        BaselineFailed: git does not know one of the commits.
    """
    scope, present = Scope.of(view.config), view.here.present
    witnesses = Witnesses(view.archive.records, view.here, since)
    change = Change.since(view.config.root, next(iter(since), None))
    issues: list[Issue] = []
    told = list(_promises(present, scope, issues))
    collected = Collected(partial(text_of, view.config.root))
    subjects = (subject for filed in view.archive.records for subject in filed.record.subjects)
    known = {subject.name for subject in subjects if subject.kind is Kind.FILE}
    marked = 0
    for file, text in _texts(present, filter(is_prose, present.files)):
        marked += len(figures.figures(text))
        for issue in figures.judged(file, text, witnesses):
            issues += _weighed([issue], change.touches(file, issue.line, issue.line))
        if not _is_history(file):
            issues += figures.unmarked(file, text)
        if PurePosixPath(file).is_relative_to(scope.work):
            issues += pages.judged(
                file, text, view.config.root, lambda path: path.endswith(".py") or path in known, partial(_digests, view)
            )
    for promise in told:
        if promise.twin or not promise.tests:
            issues.append(promises.misplaced(promise) if promise.twin else promises.untold(promise))
            continue
        found = list(holding.judged(promise, collected.answer, witnesses, view.required.needs))
        issues += _weighed(found, bool(found) and change.touches_promise(promise))
    held = sum(bool(promise.tests) for promise in told)
    return Claims(tuple(sorted(issues, key=lambda issue: (issue.file, issue.line))), marked, held, allowed)


def _weighed(found: Iterable[Issue], touched: bool) -> Iterator[Issue]:
    """What evidence does not reach is not judged, where the change touches it."""
    for issue in found:
        yield replace(issue, weight=Weight.UNJUDGED) if touched and issue.weight is Weight.INCONCLUSIVE else issue


def refresh(view: View) -> list[str]:
    """Writes every figure of a document as the evidence says. What lies outside the project, or is half a figure, stays as it is.

    Returns:
        What became of the documents whose figures are others now, or cannot be told from what stands around them, a line each.

    Raises:
        StoreError: the disk or its permissions; each document is whole.
    """
    witnesses, root = Witnesses(view.archive.records, view.here), view.config.root.resolve()
    told = []
    for file, text in _texts(view.here.present, filter(is_prose, view.here.present.files)):
        odd = next((figure for figure in figures.figures(text) if not figure.whole), None)
        if odd:
            told.append(f"{file}:{odd.line}: its figures stay as they are: {odd.fault}")
            continue
        new = figures.refreshed(text, witnesses)
        if new == text:
            continue
        path = (view.config.root / file).resolve()
        if not path.is_relative_to(root) or path.relative_to(root).parts[0] in _OWN:
            told.append(f"{file} leads out of the project, to {path}: its figures stay as they are. Put the document itself there")
            continue
        try:
            output.replace(path, new)
        except OSError as error:
            raise StoreError.of(error, path) from error
        told.append(f"refreshed {file}")
    return told


def _promises(present: Present, scope: Scope, issues: list[Issue]) -> Iterator[promises.Promise]:
    """All sentences that have to name who holds them, or do; what is wrong with their form goes to the issues."""
    for file, text in _texts(present, (path for path in present.files if path.endswith(".py"))):
        has_to = any(PurePosixPath(file).is_relative_to(folder) for folder in scope.promise)
        if has_to or _HELD.search(text):
            yield from _of_source(file, text, has_to, issues)
    for file, text in _texts(present, (path for path in present.files if is_prose(path) and "/" not in path)):
        issues += promises.misspelt_in_document(file, text)
        yield from promises.of_document(file, text)


def _of_source(file: str, text: str, has_to: bool, issues: list[Issue]) -> Iterator[promises.Promise]:
    try:
        found = list(promises.of_source(file, text))
        issues += promises.misspelt_in_source(file, text)
    except encoding.Failures as error:
        line, _ = encoding.place(text, error)
        if has_to:
            raise UsageError(encoding.told(file, text, error)) from None
        issues.append(Issue(Weight.WARNING, file, line, "does not parse, so nobody looks at who holds what it says. Correct that line"))
        return
    yield from (promise for promise in found if has_to or promise.tests)


def _texts(present: Present, paths: Any) -> Iterator[tuple[str, str]]:
    """Files that can be read as text, with their text; line ends as they are."""
    for path in paths:
        file: Path = present.config.root / path
        if file.is_file():
            content = file.read_bytes()
            yield path, encoding.text(content) if path.endswith(".py") else content.decode("utf-8", errors="surrogateescape")


def _is_history(file: str) -> bool:
    return PurePosixPath(file).stem.upper() in ("CHANGELOG", "CHANGES", "HISTORY")


def _digests(view: View) -> frozenset[str]:
    present = view.here.present
    subjects = (subject.digest for filed in view.archive.records for subject in filed.record.subjects)
    contents = filter(None, map(present.digest, present.files))
    manifests = (text for _, text in _texts(present, (path for path in present.files if path.endswith("/manifest.json"))))
    return frozenset((*subjects, *contents, *(root for text in manifests for root in _ROOT.findall(text))))
