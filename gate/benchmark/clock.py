"""Runs what is still to be timed, in one process or in many, one at a time."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gate.benchmark.journal import Journal
from gate.benchmark.judgement import Speed
from gate.benchmark.place import Place
from gate.benchmark.proof import Refusal, Refused
from gate.benchmark.schedule import Slot, is_whole, slots
from gate.benchmark.setting import Bench
from gate.failure import FAULT, RunError
from gate.progress import Progress
from gate.verdict import Reason
from golden.launch import Children, beside


@dataclass(frozen=True)
class Clock:
    """Times the runs of a benchmark."""

    bench: Bench
    place: Place
    journal: Journal
    progress: Progress

    def run(self) -> None:
        """Times what is missing in the journal.

        Raises:
            Refused: a run failed.
            RunError: golden itself is at fault.
            StoreError: something cannot be written.
            KeyboardInterrupt: the user's; what was timed stays.
        """
        figures = self.journal.figures()
        whole = {label for label in figures if self._counts(label, list(figures))}
        self.journal.keep(whole)
        missing = list(slots(self.bench, whole, self.place.device))
        done = len(whole)

        def told() -> str:
            return f"{len(self.journal.figures())} of {done + len(missing)} runs"

        with self.progress.task(f"{self.bench.name}: timing", told), Children() as children:
            for part in [missing] if self.bench.process == "one" and missing else [[slot] for slot in missing]:
                self._run(children, part)

    def rounds(self) -> list[int]:
        """The rounds that are whole."""
        done = list(self.journal.figures())
        return [number for number in range(self.bench.pairs) if is_whole(self.bench, number, done)]

    def _counts(self, label: str, done: Sequence[str]) -> bool:
        number = label.partition(" ")[0]
        return is_whole(self.bench, int(number), done) if number.isdecimal() else number == "device"

    def _run(self, children: Children, part: Sequence[Slot]) -> None:
        arm = part[0].arm
        out = self.journal.folder / "out"
        out.mkdir(exist_ok=True)
        request = replace(self.place.request(arm, out, self.journal.report), turns=tuple(slot.turn for slot in part))
        log = beside(self.journal.report, ".log")
        ended = children.run(self.place.interpreter.python, request, self.place.variables(arm.settings.seed), log)
        shutil.rmtree(out, ignore_errors=True)
        report = ended.report
        if report.status == "ok":
            return
        if report.reason == FAULT:
            raise RunError(f"{report.message}\n{report.traceback or ''}")
        told = "\n".join(filter(None, (f"While it was timed: {report.message}", report.traceback)))
        raise Refused(Refusal(Speed.NOT_JUDGED, told, Reason(report.reason or Reason.SCENARIO_FAILED), None, str(log)))
