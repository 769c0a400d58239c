"""The parts of `gate run` that run something: each where no fresh record stands for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gate import mutate as mutants
from gate import report, verify
from gate.check import judge, wording
from gate.evidence import commands
from gate.evidence.judging import Bench, State
from gate.evidence.leaving import Finding, leave
from gate.evidence.reading import Reading
from gate.evidence.required import Need
from gate.evidence.snapshot import Snapshot
from gate.evidence.status import View
from gate.facts import count
from gate.landing.line import Line, left_out
from gate.machine import device_of
from gate.selection import NothingChecked, Wanted
from gate.trial import Means
from gate.verdict import worst

FRESH = State.FRESH.value


@dataclass(frozen=True)
class Work:
    """What is to be done, and what stands already.

    Attributes:
        means: with what.
        view: the records before anything was run.
        since: the full id of the commit that the change begins with; None where the whole tree is the change.
    """

    means: Means
    view: View
    since: str | None

    def check(self) -> Line:
        """The tests: all of them, or those that the change touches."""
        machine = self.view.here.machine
        asked = self._open("tests", [machine.cuda or machine.portable])
        if isinstance(asked, Line):
            return asked
        wanted = judge.Asked(since=self.since, everything=self.since is None, jobs=self.means.jobs)
        result = commands.check(self.means.config, wanted, self.means.progress)
        told = result.message or f"{result.counts['passed']} passed{result.left}"
        details = (*wording.messages(result), *wording.text(result).splitlines()) if result.exit_code else ()
        return Line("check", result.verdict.value, result.exit_code, told, details, result.as_json())

    def mutate(self) -> Line:
        """Planted faults: in everything that has to be covered, or in the changed lines."""
        machine = self.view.here.machine
        asked = self._open("mutation", [machine.portable, *([machine.cuda] if machine.cuda else [])])
        if isinstance(asked, Line):
            return asked
        lines = [self._mutated(need) for need in asked]
        return _joined("mutate", lines)

    def verify(self) -> Line:
        """The goldens of the hardware that is here."""
        asked = self._open("goldens", list(self.view.here.machine.slugs()))
        if isinstance(asked, Line):
            return asked
        return _joined("verify", [self._verified(need) for need in asked])

    def _open(self, check: str, hardware: Sequence[str]) -> list[Need] | Line:
        """The needs of a check that can be met here and are not met yet, or why there is none."""
        name = {"tests": "check", "mutation": "mutate", "goldens": "verify"}[check]
        known = self.view.status().lines
        lines = [line for line in known if line.need.check == check and line.need.hardware in hardware]
        if not lines:
            elsewhere = sorted({line.need.hardware for line in known if line.need.check == check})
            told = f"is needed on {', '.join(elsewhere)} alone" if elsewhere else "is not in [tool.gate.required]"
            return left_out(name, f"{check} {told}")
        poor = [line.need for line in lines if line.state is not State.FRESH]
        if poor:
            return poor
        times = sorted(filed.record.time[:19] for line in lines for filed in line.filed)
        return Line(name, FRESH, 0, f"as checked before on these very sources ({times[0]} UTC)")

    def _mutated(self, need: Need) -> Line:
        device = device_of(need.hardware)
        asked = mutants.Asked(paths=need.paths, since=self.since, device=device)
        try:
            result = commands.mutate(self.means, asked)
        except NothingChecked as error:
            if self.since is None:
                raise
            self._nothing_to_mutate(need)
            return Line("mutate", "nothing to check", 0, str(error))
        counts = ", ".join(f"{number} {name}" for name, number in result.counts.items() if number)
        return Line(
            "mutate",
            result.verdict,
            result.exit_code,
            counts,
            tuple(result.text().splitlines()) if result.exit_code else (),
            result.as_json(),
        )

    def _nothing_to_mutate(self, need: Need) -> None:
        """A change of no line that can be mutated is evidence as well."""
        before = Snapshot.take(self.means.config)
        counts, details = {"total": 0, "killed": 0}, {"paths": list(need.paths)}
        finding = Finding("mutation", need.hardware, self.view.running, "passed", counts, since=self.since, details=details)
        leave(self.means.config, before, finding, Reading())

    def _verified(self, need: Need) -> Line:
        answers = Bench(self.view.here, self.view.archive.records).answers(need)
        names = tuple(scenario for scenario, answer in answers if scenario and answer.state is not State.FRESH)
        wanted = Wanted(names, device_of(need.hardware), self.means.config.goldens / need.hardware, need.torch)
        results = verify.verify(self.means, wanted)
        told = f"{need.hardware}, torch {need.torch or self.view.running}: {count(len(results.rows), 'row')} {results.verdict.value}"
        details = (*report.messages(results), *report.text(results).splitlines()) if results.exit_code else ()
        return Line("verify", results.verdict.value, results.exit_code, told, details, results.as_json())


def _joined(name: str, lines: Sequence[Line]) -> Line:
    """Several lines as one, with the word of the worst."""
    code = worst(line.code for line in lines)
    leading = next(line for line in lines if line.code == code)
    details = tuple(detail for line in lines for detail in line.details)
    return Line(
        name, leading.word, code, "; ".join(line.why for line in lines), details, {"results": [dict(line.result) for line in lines]}
    )
