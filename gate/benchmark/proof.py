"""The proof that comes before any time: every arm is recorded, and what is compared has the baseline's bits at every step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gate.benchmark.judgement import Speed
from gate.benchmark.place import Place
from gate.benchmark.setting import Arm, Bench
from gate.failure import FAULT, LOG_LINES, RunError
from gate.progress import Progress
from gate.runs import Outcome, Runs
from gate.verdict import Reason
from golden.compare import Comparison, compare
from golden.difference import Difference
from golden.launch import steps_done

CENSUS = 1000  # differences whose elements are counted


@dataclass(frozen=True)
class Read:
    """What a benchmark stands on; evidence of it vouches for this.

    Attributes:
        sources: digests of the project files that its scenarios read, by path.
        settings: the benchmark's and its scenarios', resolved.
        environment: of the baseline's recording, on this machine as it is.
        listed: the project's folders that its scenarios listed, with a slash at the end, sorted.
    """

    sources: Mapping[str, str]
    settings: Mapping[str, Any]
    environment: Mapping[str, Any]
    listed: Sequence[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """As it stands in the result."""
        facts = {"sources": dict(self.sources), "settings": dict(self.settings), "environment": dict(self.environment)}
        return {**facts, "listed": list(self.listed)}


@dataclass(frozen=True)
class Refusal:
    """Why nothing is timed.

    Attributes:
        verdict: drift, nondeterministic or not judged.
        first: the earliest executed difference.
        run: where what differs is kept, or the log of what failed.
    """

    verdict: Speed
    message: str
    reason: Reason | None = None
    first: Difference | None = None
    run: str | None = None


class Refused(Exception):  # noqa: N818  (says what is the case)
    """Ends a proof; holds why."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


@dataclass(frozen=True)
class Proof:
    """Proves a benchmark's arms equal."""

    bench: Bench
    place: Place
    runs: Runs
    progress: Progress

    def read(self) -> Read:
        """Records every arm and compares those that are judged.

        Raises:
            Refused: bits differ, two runs of one arm do, or an arm cannot be run.
            RunError: golden itself is at fault.
        """
        recorded = {arm.name: self._recorded(arm) for arm in self.bench.arms}
        base = recorded[self.bench.baseline.name].open()
        for arm in self.bench.judged:
            comparison = compare(base, recorded[arm.name].open(), limit=CENSUS)
            if not comparison.identical:
                self._differ(arm, recorded, comparison)
        sources = {path: digest for outcome in recorded.values() for path, digest in outcome.open().manifest.sources.items()}
        listed = sorted({folder for outcome in recorded.values() for folder in outcome.listed})
        return Read(dict(sorted(sources.items())), self.bench.resolved(), base.manifest.environment, listed)

    def _recorded(self, arm: Arm, again: str = "", keep: tuple[int, ...] = ()) -> Outcome:
        name = arm.name.replace(" ", "-").replace("(", "").replace(")", "")
        place = self.runs.place(self.place.hardware, self.place.interpreter.torch, name, again)
        settings = replace(arm.settings, parameters={**arm.settings.parameters, **self.bench.proof})
        request = replace(self.place.request(replace(arm, settings=settings), place.golden, place.report), keep=keep)
        title = f"{self.bench.name}: recording {arm.name}{again and f' ({again})'}"

        def step() -> str:
            return f"step {steps_done(request)} of {request.end}"

        with self.progress.task(title, step):
            outcome = self.runs.run(self.place.interpreter.python, request, self.place.variables(arm.settings.seed))
        if not outcome.ok:
            raise self._failed(arm, outcome)
        return outcome

    def _differ(self, arm: Arm, recorded: Mapping[str, Outcome], comparison: Comparison) -> None:
        """Runs both sides again, with the tensors of the first step that differs, and says which it is."""
        base, first = self.bench.baseline, comparison.first
        assert first is not None, "what is not identical differs somewhere"
        sides = {}
        for side in (base, arm):
            again = self._recorded(side, "again", (first.step,))
            own = compare(recorded[side.name].open(), again.open(), limit=CENSUS)
            if not own.identical:
                kept = [self._kept(recorded[side.name]), self._kept(again)]
                told = f"Two runs of {side.name}, of the same code on the same machine, differ. Both: gate diff {' '.join(kept)}"
                raise Refused(Refusal(Speed.NONDETERMINISTIC, told, None, own.first, kept[0]))
            sides[side.name] = again.open()
        tensors = sides[base.name], sides[arm.name]
        counted = compare(recorded[base.name].open(), recorded[arm.name].open(), tensors=tensors, limit=CENSUS)
        kept = [self._kept(recorded[base.name]), self._kept(recorded[arm.name])]
        message = f"{arm.name} has not the bits of {base.name}: their times would be those of two different things. Both: gate diff"
        raise Refused(Refusal(Speed.DRIFT, f"{message} {' '.join(kept)}", None, counted.first, kept[1]))

    def _failed(self, arm: Arm, outcome: Outcome) -> Refused:
        if outcome.report.reason == FAULT:
            raise RunError(f"{outcome.report.message}\n{outcome.report.traceback or ''}")
        self._kept(outcome)
        told = [f"{arm.name}: {outcome.report.message}", outcome.report.traceback or outcome.tail(LOG_LINES)]
        reason = Reason(outcome.report.reason or Reason.SCENARIO_FAILED)
        run = self._shown(outcome.place.golden.parent)
        return Refused(Refusal(Speed.NOT_JUDGED, "\n".join(filter(None, told)), reason, None, run))

    def _kept(self, outcome: Outcome) -> str:
        return self._shown(self.runs.keep(outcome))

    def _shown(self, path: Any) -> str:
        return str(path.relative_to(self.place.project).as_posix())
