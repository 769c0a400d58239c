"""Leaves a record of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping

from gate.benchmark.judgement import Speed
from gate.benchmark.result import Result
from gate.config import Config
from gate.evidence import newcomers
from gate.evidence.leaving import Finding, leave
from gate.evidence.present import Present
from gate.evidence.reading import Reading
from gate.evidence.snapshot import Snapshot

_FAILED = (Speed.DRIFT, Speed.NONDETERMINISTIC, Speed.SLOWER)


def put_on_record(config: Config, before: Snapshot, result: Result) -> None:
    """Leaves a record of a benchmark that was judged.

    Raises:
        StaleEvidence: something that was read was written meanwhile; there is no record.
        StoreError: the record cannot be written.
    """
    if result.read is None or result.verdict is Speed.NOT_JUDGED:
        return
    packages = result.read.environment.get("distributions")
    arms, present = {arm.name for arm in result.arms}, Present(config)
    reading = Reading(
        files=tuple(result.read.sources),
        documents=True,
        scenarios=[name for name in config.scenarios if name in arms],
        tables=(f"tool.gate.bench.{result.bench}",),
        patterns=(
            *newcomers.beside(present, map(str, result.read.sources), documents=True),
            *newcomers.within(present, result.read.listed, whole=True),
        ),
        packages={name: str(version) for name, version in packages.items()} if isinstance(packages, Mapping) else {},
    )
    found = "failed" if result.verdict in _FAILED else "inconclusive" if result.verdict is Speed.INCONCLUSIVE else "passed"
    finding = Finding(
        "bench", result.hardware, result.torch, found, {"pairs": len(result.pairs)}, scenario=result.bench,
        environment={name: value for name, value in result.read.environment.items() if not isinstance(value, (Mapping, list))},
        details={"verdict": result.verdict.value},
    )  # fmt: skip
    leave(config, before, finding, reading)
