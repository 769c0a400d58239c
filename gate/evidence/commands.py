"""Commands that leave a record: what they read is hashed before they begin and after they have ended."""

from __future__ import annotations

from gate import git
from gate import mutate as mutants
from gate.benchmark import command as benchmark
from gate.benchmark.result import Result as Benchmark
from gate.check import judge
from gate.check.result import Checked
from gate.config import Config
from gate.evidence import benched, checked, mutated
from gate.evidence.snapshot import Snapshot
from gate.mutation.result import Result as Mutation
from gate.progress import Progress
from gate.trial import Means


def check(config: Config, asked: judge.Asked, progress: Progress) -> Checked:
    """Runs tests, as `gate.check.judge.check` does, and leaves a record of them."""
    before = Snapshot.take(config)
    result = judge.check(config, asked, progress)
    return checked.put_on_record(config, before, result, ours=asked.torch is None and asked.python is None)


def mutate(means: Means, asked: mutants.Asked) -> Mutation:
    """Plants faults, as `gate.mutate.mutate` does, and leaves a record of them where the project has a pyproject.toml.

    Raises:
        StaleEvidence: something that was read was written meanwhile; there is no record.
    """
    before = Snapshot.take(means.config)
    result = mutants.mutate(means, asked)
    if means.config.file.is_file():
        since = git.run(means.config.root, "rev-parse", f"{asked.since}^{{commit}}").decode().strip() if asked.since else None
        mutated.put_on_record(means.config, before, result, asked.paths, since, whole=not asked.operators, tests=asked.tests)
    return result


def bench(means: Means, wanted: benchmark.Wanted) -> Benchmark:
    """Times scenarios, as `gate.benchmark.command.run` does, and leaves a record of it.

    Raises:
        StaleEvidence: something that was read was written meanwhile; there is no record.
    """
    before = Snapshot.take(means.config)
    result = benchmark.run(means, wanted)
    benched.put_on_record(means.config, before, result)
    return result
