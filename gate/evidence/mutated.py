"""Leaves a record of the mutants that `gate mutate` planted."""

from __future__ import annotations

from gate.config import Config
from gate.evidence import newcomers, packages
from gate.evidence.leaving import Finding, leave
from gate.evidence.present import SOURCES, Present
from gate.evidence.reading import Reading
from gate.evidence.snapshot import Snapshot
from gate.mutation.mutant import Status
from gate.mutation.result import Result
from gate.pytest_settings import TABLES


def put_on_record(
    config: Config, before: Snapshot, result: Result, paths: tuple[str, ...], since: str | None, *, whole: bool, tests: tuple[str, ...] = ()
) -> None:
    """Leaves a record of mutants that were judged.

    Args:
        config: the project's.
        before: taken before the first one was planted.
        result: what came of them.
        paths: the files and folders that were named; empty for all sources.
        since: the full id of the commit since which changed lines were looked at; None for all lines.
        whole: whether every operator was asked; of some alone, or of a sample, a record says nothing for sure.
        tests: where they were looked for, if not everywhere. What some have noticed all would; what some have not, others may.

    Raises:
        StaleEvidence: something that was read was written meanwhile; there is no record.
        StoreError: the record cannot be written.
    """
    if result.verdict == "not-judged":
        return
    sure = whole and result.sampled is None
    present = Present(config)
    plugins, absent = newcomers.plugins(present)
    folders = [path.rstrip("/") for path in paths if not path.endswith(".py")]
    named = [f"{folder}/*.py" if folder != "." else "*.py" for folder in folders] if paths else [SOURCES]
    files = {*result.files, *plugins}
    patterns = (*named, *newcomers.of_tests(present), *newcomers.beside(present, files), *absent)
    reading = Reading(
        files=tuple(files),
        scenarios=[name for name in result.witnesses.scenarios if name in config.scenarios],
        tables=TABLES,
        patterns=patterns if since is None else (),
        packages=packages.imported(config.root, result.files),
    )
    if result.survivors:
        found = "inconclusive" if tests else "failed"
    else:
        found = "passed" if sure else "inconclusive"
    finding = Finding(
        "mutation", result.hardware, result.torch, found, result.counts, since=since,
        environment={"torch": result.torch, "python": result.python},
        details={
            "paths": sorted(path.rstrip("/") for path in paths),
            "killed": _killed(result),
            "asked": list(result.witnesses.named),
            "tests": sorted(tests),
        },
    )  # fmt: skip
    leave(config, before, finding, reading)


def _killed(result: Result) -> dict[str, list[str]]:
    """For each function the tests that noticed a fault in it; of several, mostly the first alone is known."""
    found: dict[str, set[str]] = {}
    for one in result.judged:
        if one.status is Status.KILLED:
            killers = found.setdefault(f"{one.mutant.file}::{one.mutant.scope}", set())
            killers |= set(one.tests) if "tests" in one.killed_by else set()
    return {function: sorted(ids) for function, ids in sorted(found.items())}
