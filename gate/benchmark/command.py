"""`gate bench`: proves bits equal, times, judges; goes on where it was stopped."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from gate.benchmark import bits, place, result, setting
from gate.benchmark.clock import Clock
from gate.benchmark.journal import Journal, changed
from gate.benchmark.judgement import Speed
from gate.benchmark.place import Place
from gate.benchmark.proof import Proof, Read, Refusal, Refused
from gate.benchmark.result import Result
from gate.benchmark.setting import Bench
from gate.errors import UsageError
from gate.runs import Runs
from gate.trial import Means
from gate.verdict import Reason
from golden.lock import lock


@dataclass(frozen=True)
class Wanted:
    """What a command line asks for.

    Attributes:
        name: of the benchmark.
        device: "cpu" or "cuda", None for the one that is usual.
        pairs: instead of the configured number.
        fresh: whether to drop what an earlier, unfinished run has timed.
        strict: whether `slower` is a failure.
        journal: a folder for what was timed instead of `.gate/bench`, with which another machine of the same kind may go on.
        seconds: after which no further round is begun that might not end in time.
    """

    name: str
    device: str | None = None
    pairs: int | None = None
    fresh: bool = False
    strict: bool = False
    journal: Path | None = None
    seconds: float | None = None


def run(means: Means, wanted: Wanted) -> Result:
    """Runs a benchmark.

    Raises:
        UsageError: the command line or the configuration is wrong.
        NoAccelerator: it runs on CUDA alone, and there is none here.
        NoTorch: there is no interpreter for it.
        Locked: another process times it.
        StoreError: `.gate/` cannot be written.
        RunError: golden itself is at fault.
        KeyboardInterrupt: all processes have ended; what was timed stays for the next time.
    """
    end = None if wanted.seconds is None else time.monotonic() + wanted.seconds
    bench = setting.find(means.config, wanted.name, wanted.pairs)
    if end is not None and bench.process == "one":
        raise UsageError(
            f'--seconds ends a benchmark between rounds, and {bench.name} times them all in one process. Set process = "each".'
        )
    where = place.choose(means, bench, wanted.device)
    journal = Journal.of(means.config.root, bench.name, wanted.journal)
    with lock(journal.folder):
        if wanted.fresh:
            journal.drop()
        try:
            read = _standing(means, bench, where, journal, anywhere=wanted.journal is not None)
            return _timed(means, bench, where, journal, read, wanted.strict, end)
        except Refused as error:
            return result.refused(bench.name, where.hardware, where.torch, error.refusal, wanted.strict)


def _standing(means: Means, bench: Bench, where: Place, journal: Journal, anywhere: bool = False) -> Read:
    """What the times stand on: of an unfinished run that still holds, else proven now."""
    bound = where.bound(anywhere)
    read, why = journal.resume(where.project, bench.resolved(), bound)
    if read is not None:
        means.progress.say(f"{bench.name}: going on with {len(journal.figures())} runs that were timed before (--fresh starts anew)")
        return read
    if why:
        means.progress.say(f"{bench.name}: starting anew: {why}")
        journal.drop()
    with Runs(where.project) as runs:
        read = Proof(bench, where, runs, means.progress).read()
    journal.begin(read, bound)
    return read


def _timed(means: Means, bench: Bench, where: Place, journal: Journal, read: Read, strict: bool, end: float | None = None) -> Result:
    clock = Clock(bench, where, journal, means.progress, end)
    clock.run()
    if moved := changed(where.project, read.sources):
        journal.drop()
        told = f"{', '.join(moved)} changed while the runs were timed, and no state of the project has these times: run again."
        raise Refused(Refusal(Speed.NOT_JUDGED, told, Reason.SCENARIO_FAILED))
    arms, pairs = result.arms(bench, journal.figures(), clock.rounds())
    verdict = result.concluded(arms)
    equal = bits.summary(journal.figures(), clock.rounds(), bench)
    found = Result(bench.name, where.hardware, where.torch, verdict, True, arms, pairs, read, strict=strict, digests=equal)
    journal.finish(found.as_json())
    return found
