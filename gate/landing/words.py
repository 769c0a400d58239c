"""The parts of `gate run` that run nothing: what is said, held to what is there."""

from __future__ import annotations

from dataclasses import replace

from gate import amended, tracking
from gate.claims import review as claims
from gate.claims.issue import Weight
from gate.config import Config
from gate.evidence.judging import State
from gate.evidence.status import View
from gate.facts import count
from gate.landing.line import Line, left_out
from gate.trailers import review as trailers
from gate.trailers.rule import Rule
from gate.verdict import Verdict, worst


def status(view: View, since: frozenset[str], allowed: tuple[str, ...]) -> Line:
    """Whether all is fresh that a merge needs."""
    found = view.status(since, allowed)
    poor = [line for line in found.lines if line.state is not State.FRESH]
    told = [f"{line.need.title}: {line.state}{' (ALLOWED)' if line.allowed else ''}: {line.reason}" for line in poor]
    waived = sum(line.allowed for line in poor)
    why = f"{len(found.lines) - len(poor)} of {len(found.lines)} fresh" + (f", {waived} ALLOWED to be otherwise" if waived else "")
    return Line(
        "status", "allowed" if poor and not found.exit_code else found.verdict, found.exit_code, why, (*told, *found.notes), found.as_json()
    )


def golden_changes(config: Config, since: str | None) -> Line:
    """Whether somebody says of every golden whose bits changed that they were meant to."""
    lost = tuple(tracking.ignored(config.goldens, config.root))
    if since is None:
        line = left_out("golden changes", "no revision to compare with: --since REV")
        return _incomplete(line, lost) if lost else line
    found = amended.amended(config, since)
    faults = sum(bool(change.faults) for change in found.changes)
    why = f"{len(found.changes)} of {found.compared} changed" + (f", {faults} without all that a meant change needs" if faults else "")
    line = Line("golden changes", Verdict.DRIFT.value if faults else "passed", found.exit_code, why, tuple(found.lines()), found.as_json())
    return _incomplete(line, lost) if lost else line


def _incomplete(line: Line, lost: tuple[str, ...]) -> Line:
    """A line where git does not hold all of the goldens: a clone cannot judge them; what is wrong stays wrong."""
    code = worst([line.code, Verdict.NOT_JUDGED.exit_code])
    word = line.word if code == line.code else Verdict.NOT_JUDGED.value
    why = f"git ignores files of {count(len(lost), 'golden')}"
    return replace(line, word=word, code=code, why=why if not line.code else f"{line.why}; {why}", details=(*line.details, *lost))


def claimed(view: View, since: frozenset[str], allowed: tuple[str, ...]) -> Line:
    """Whether documents and docstrings say what the evidence does."""
    found = claims.review(view, since, allowed)
    words = {Weight.CLAIM: "wrong", Weight.UNJUDGED: "not judged", Weight.INCONCLUSIVE: "inconclusive", Weight.WARNING: "warned of"}
    counts = {words[weight]: found.count(weight) for weight in Weight}
    told = ", ".join(f"{number} {weight}" for weight, number in counts.items() if number) or "none wrong"
    word = "claim" if found.exit_code == 1 else Verdict.NOT_JUDGED.value if found.exit_code else "passed"
    why = f"{count(found.figures, 'figure')}, {count(found.promises, 'promise')}: {told}"
    return Line("claims", word, found.exit_code, why, tuple(issue.text for issue in found.issues), found.as_json())


def trailed(config: Config, since: str | None) -> Line:
    """Whether commits say what they have to, and the log of provenance keeps its rule."""
    rule = Rule.of(config)
    if rule is None:
        return left_out("trailers", "there is no [tool.gate.trailers]")
    found = trailers.review(config, rule, since)
    why = f"{count(found.commits, 'commit')} of {', '.join(rule.paths)}" + (
        f", {count(len(found.faults), 'fault')}" if found.faults else ""
    )
    return Line(
        "trailers", "trailer" if found.faults else "passed", found.exit_code, why, tuple(f.text for f in found.faults), found.as_json()
    )
