"""Runs what is still to be timed, in one process or in many, one at a time."""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gate.benchmark import bits
from gate.benchmark.journal import Journal
from gate.benchmark.judgement import Speed
from gate.benchmark.place import Place
from gate.benchmark.proof import Refusal, Refused
from gate.benchmark.schedule import Slot, is_whole, order, slots
from gate.benchmark.setting import Bench
from gate.failure import FAULT, RunError
from gate.progress import Progress
from gate.verdict import Reason
from golden.launch import Children, beside

START = 15.0  # seconds that a process takes to start, at most, where torch is large and the disk slow


@dataclass(frozen=True)
class Clock:
    """Times the runs of a benchmark."""

    bench: Bench
    place: Place
    journal: Journal
    progress: Progress
    end: float | None = None  # by time.monotonic()

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
            begun, longest = time.monotonic(), self._usual(figures, whole)
            for part in [missing] if self.bench.process == "one" and missing else [[slot] for slot in missing]:
                if self._is_first(part[0]):
                    now = time.monotonic()
                    longest = max(longest, now - begun if part[0] is not missing[0] else 0.0)
                    self._leave(now, longest)
                    begun = now
                self._run(children, part)
                bits.check(self.journal.figures(), self.bench)

    def rounds(self) -> list[int]:
        """The rounds that are whole."""
        done = list(self.journal.figures())
        return [number for number in range(self.bench.pairs) if is_whole(self.bench, number, done)]

    def _is_first(self, slot: Slot) -> bool:
        """Whether a run begins a round."""
        return isinstance(slot.round, int) and slot.arm is order(self.bench, slot.round)[0]

    def _usual(self, figures: Mapping[str, Mapping[str, Any]], whole: Collection[str]) -> float:
        """Seconds that the longest round has taken so far, with the starts of its processes roughly; 0 where there is none."""
        rounds = {label.partition(" ")[0] for label in whole if label.partition(" ")[0].isdecimal()}
        runs = {number: [figures[label]["whole"] for label in whole if label.startswith(f"{number} ")] for number in rounds}
        return max((sum(several) / 1e3 + START * len(several) for several in runs.values()), default=0.0)

    def _leave(self, now: float, longest: float) -> None:
        """Ends before a round that might not end in time. Raises Refused."""
        if self.end is not None and now + longest > self.end:
            told = f"Stopped before its time was up: {len(self.rounds())} of {self.bench.pairs} pairs are timed, and stay."
            raise Refused(Refusal(Speed.NOT_JUDGED, f"{told} Run it again to go on."))

    def _counts(self, label: str, done: Sequence[str]) -> bool:
        number = label.partition(" ")[0]
        return is_whole(self.bench, int(number), done) if number.isdecimal() else number == "device"

    def _run(self, children: Children, part: Sequence[Slot]) -> None:
        arm = part[0].arm
        out = self.journal.folder / "out"
        out.mkdir(exist_ok=True)
        request = replace(
            self.place.request(arm, out, self.journal.report), turns=tuple(replace(slot.turn, digests=self.bench.digests) for slot in part)
        )
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
