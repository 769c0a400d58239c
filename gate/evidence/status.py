"""`gate status`: what was checked, where, on which sources; fresh, stale (which file, which commit), missing, inconclusive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from gate import interpreter
from gate.config import Config
from gate.errors import BaselineFailed, NoTorch
from gate.evidence import archive
from gate.evidence.archive import Archive, Filed
from gate.evidence.commits import Commit
from gate.evidence.display import lines
from gate.evidence.freshness import Change, Here
from gate.evidence.judging import Answer, Bench, State, worst
from gate.evidence.past import Past
from gate.evidence.present import Present
from gate.evidence.required import Need, Required, required
from gate.evidence.statement import Kind
from gate.machine import Machine
from gate.screen import plain
from gate.verdict import Reason, Verdict

FORMAT = 1
_NAMED = 3  # changes that one line tells


@dataclass(frozen=True)
class Traced:
    """A change, and the first commit that made it.

    Attributes:
        commit: None where no commit did, or none is known.
        committed: whether one must have, for the work tree is as HEAD has it.
    """

    change: Change
    commit: Commit | None
    committed: bool = False

    @property
    def is_stray(self) -> bool:
        """Whether it is a new file in no commit, which a run may have written."""
        listed = self.change.subject.value
        named = isinstance(listed, list) and self.change.files[:1] != () and self.change.files[0] not in listed
        return self.change.subject.kind is Kind.NAMES and named and self.commit is None and not self.committed

    @property
    def text(self) -> str:
        """The change with its commit."""
        nowhere = "in no commit that is known here" if self.committed else "in no commit"
        since = f"since {self.commit.title}" if self.commit else nowhere if self.change.files else ""
        return f"{self.change.told} {since}".strip()


@dataclass(frozen=True)
class Line:
    """One need and what the records say of it.

    Attributes:
        torch: the version asked for, or that of the record.
        reason: why it is not fresh, in one sentence; of a fresh one what people should know.
        files: the project's files that changed.
        commit: the first commit that changed one of them.
        traced: every change.
        filed: the records it rests on.
        allowed: whether it may be other than fresh (`--allow-stale`).
    """

    need: Need
    torch: str | None
    state: State
    reason: str | None = None
    files: tuple[str, ...] = ()
    commit: Commit | None = None
    traced: tuple[Traced, ...] = ()
    filed: tuple[Filed, ...] = ()
    allowed: bool = False

    def as_json(self) -> dict[str, Any]:
        """The line as it stands in `records`."""
        return {
            "check": self.need.check,
            "hardware": self.need.hardware,
            "torch": self.torch,
            "state": self.state.value,
            "reason": self.reason,
            "files": list(self.files),
            "commit": self.commit.id if self.commit else None,
            "changes": [{"what": found.change.told, "commit": found.commit.id if found.commit else None} for found in self.traced],
            "evidence": [filed.path.name for filed in self.filed],
            "allowed": self.allowed,
        }


@dataclass(frozen=True)
class Status:
    """What `status` gives back.

    Attributes:
        lines: one a need; at least one.
        notes: what the user should know besides: files that hold no record, what was kept.
    """

    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 when all is fresh, or allowed not to be; else 3."""
        return 0 if all(line.state is State.FRESH or line.allowed for line in self.lines) else Verdict.NOT_JUDGED.exit_code

    @property
    def verdict(self) -> str:
        """`fresh` or `not-judged`."""
        return State.FRESH.value if self.exit_code == 0 else Verdict.NOT_JUDGED.value

    def as_json(self) -> dict[str, Any]:
        """The result as `--json` writes it."""
        reason = None if self.exit_code == 0 else Reason.STALE_EVIDENCE.value
        rows = [line.as_json() for line in self.lines]
        return {"format": FORMAT, "verdict": self.verdict, "reason": reason, "records": rows, "notes": list(self.notes)}

    def text(self, explain: bool = False) -> str:
        """What standard output is to hold; `explain` lists every change and every record."""
        body = lines(
            ("check", "hardware", "torch", "state", "why"),
            [(n.need.check, n.need.hardware, n.torch or "-", str(n.state), n.reason or "") for n in self.lines],
        )
        return "".join([body, *(f"{line}\n" for line in self._explained() if explain), "\n", f"{self._closing()}\n"])

    def _explained(self) -> Iterator[str]:
        for line in self.lines:
            yield f"\n{line.need.title}: {line.state}"
            yield from dict.fromkeys(f"  {plain(found.text)}" for found in line.traced)  # of several scenarios maybe the same
            yield from (f"  {filed.path.name} ({'kept' if filed.kept else 'here'}, {filed.record.time})" for filed in line.filed)

    def _closing(self) -> str:
        poor = [line for line in self.lines if line.state is not State.FRESH]
        if not poor:
            return f"fresh: all {len(self.lines)} of what a merge needs. Next: nothing to do"
        tally = {state: sum(line.state is state for line in poor) for state in State}
        counted = ", ".join(f"{number} {state}" for state, number in tally.items() if number)
        allowed = " (allowed)" if self.exit_code == 0 else ""
        return f"{counted} of {len(self.lines)} that a merge needs{allowed}. Next: gate run, or gate status --explain for every change"


@dataclass(frozen=True)
class View:
    """The records of a project, and everything needed to judge them.

    Attributes:
        running: the full version of the torch in use; empty where there is none.
    """

    config: Config
    archive: Archive
    here: Here
    required: Required
    running: str

    @classmethod
    def of(cls, config: Config) -> View:
        """Looks at a project. Raises ConfigurationError and StoreError."""
        try:
            running = interpreter.running().torch
        except NoTorch:
            running = ""
        return cls(config, archive.load(config), Here(Present(config), Machine.here(), running), required(config, running), running)

    def status(self, since: frozenset[str] = frozenset(), allowed: tuple[str, ...] = ()) -> Status:
        """Judges every need.

        Args:
            since: ids of the commits that a record of a change alone may have begun with.
            allowed: hardware of which evidence may be stale or missing.
        """
        bench = Bench(self.here, self.archive.records, since)
        with Past(self.config) as past:
            found = [replace(_line(need, bench, past), allowed=need.hardware in allowed) for need in self.required.needs]
            strays = [one.change.files[0] for line in found for one in line.traced if one.is_stray] + self._made(found)
            shallow = past.shallow and any(one.committed and one.commit is None for line in found for one in line.traced)
        notes = [f"{path}: {why}. It counts as no record" for path, why in self.archive.spoilt]
        notes += [f"{_counted(strays)} in no commit: commit what a run reads, and let git ignore what it writes"] if strays else []
        notes += ["This clone is shallow, so commits may be missing: git fetch --unshallow"] if shallow else []
        return Status(tuple(found), tuple(notes))

    def _made(self, found: list[Line]) -> list[str]:
        """Files that checks made themselves, as far as they are still there and git neither holds nor ignores them."""
        present = self.here.present
        made = {path for line in found for filed in line.filed for path in filed.record.made}
        return sorted(made.intersection(present.files) - present.tracked) if made else []


def status(config: Config) -> Status:
    """What a merge needs, and what is there of it.

    Raises:
        ConfigurationError: [tool.gate.required] is wrong.
        StoreError: records cannot be read.
    """
    return View.of(config).status()


def _counted(files: list[str]) -> str:
    names = list(dict.fromkeys(files))
    more = f" and {len(names) - 1} more are" if len(names) > 1 else " is"
    return f"{plain(names[0])}{more}"


def _line(need: Need, bench: Bench, past: Past) -> Line:
    """The worst of the need's answers, told."""
    try:
        answers = bench.answers(need)
    except BaselineFailed as error:
        return Line(need, need.torch, State.INCONCLUSIVE, str(error))
    state = worst(answer.state for _, answer in answers)
    poor = [(scenario, answer) for scenario, answer in answers if answer.state is state]
    past.ask(change.files[0] for _, answer in answers for change in answer.changes if change.files)
    traced = tuple(one for _, answer in answers for change in answer.changes for one in _traced(change, past))
    files = tuple(dict.fromkeys(file for found in traced for file in found.change.files))
    filed = tuple(answer.filed for _, answer in answers if answer.filed)
    commit = past.oldest(list({found.commit.id: found.commit for found in traced if found.commit}.values()))
    torch = need.torch or (filed[0].record.torch if filed else None)
    return Line(need, torch, state, _reason(state, poor, len(answers), traced), files, commit, traced, filed)


def _traced(change: Change, past: Past) -> Iterator[Traced]:
    """A change with its commit; a file that was edited before it went is told as both."""
    file = change.files[0] if change.files else ""
    commit, committed = past.first(change.subject, file), bool(file) and past.is_committed(file)
    if commit and change.subject.kind is Kind.FILE and change.gone and past.holds(commit, file):
        yield Traced(replace(change, told=f"{file} has other content", gone=False), commit)
        commit = past.removed(file)
    yield Traced(change, commit, committed)


def _reason(state: State, poor: list[tuple[str | None, Answer]], total: int, traced: tuple[Traced, ...]) -> str | None:
    names = [scenario for scenario, _ in poor if scenario]
    who = f"{', '.join(names)}: " if names and len(names) < total and state is not State.FRESH else ""
    if state is State.STALE:
        texts = list(dict.fromkeys(found.text for found in traced))
        return who + "; ".join(texts[:_NAMED]) + (f"; and {len(texts) - _NAMED} more" if len(texts) > _NAMED else "")
    reason = next((answer.reason for _, answer in poor if answer.reason), None)
    return f"{who}{reason}" if reason else None
