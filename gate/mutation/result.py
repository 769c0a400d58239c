"""What a mutation run found: for people, for machines, and for evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gate.mutation.mutant import Judgement, Status
from gate.screen import plain

FORMAT = 1
_APART = {"skipped": 0, "xfailed": 0, "xpassed": 0}
_SHOWN = 40


@dataclass(frozen=True)
class Witnesses:
    """Who was asked.

    Attributes:
        tests: how many tests run a mutated file's lines.
        test_files: of so many files.
        apart: how many tests were skipped, xfailed or xpassed, which witness nothing.
        unstable: tests that passed and failed without a fault: none of their verdicts was believed.
        scenarios: whose goldens were asked.
        left_out: why scenarios were not.
        late: those of the scenarios that take long: they were asked only about what nobody else had noticed.
        named: tests that promises name: each was asked about every mutant of what promises that it runs, until it killed one.
    """

    tests: int
    test_files: int
    apart: Mapping[str, int] = field(default_factory=dict)
    unstable: Sequence[str] = ()
    scenarios: Sequence[str] = ()
    left_out: Sequence[str] = ()
    late: Sequence[str] = ()
    named: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """As `--json` has it."""
        return {
            "tests": {"asked": self.tests, "files": self.test_files, **_APART, **self.apart, "unstable": list(self.unstable)},
            "goldens": {"scenarios": list(self.scenarios), "late": list(self.late), "left_out": list(self.left_out)},
        }


@dataclass(frozen=True)
class Result:
    """The verdicts of one run.

    Attributes:
        judged: all of them, by file and line.
        witnesses: who was asked.
        files: what was read, by its sha256: sources, tests, goldens.
        torch, python, hardware: where it ran.
        sampled: of how many mutants these are a sample; None where they are all.
        seed: of the sample.
        seconds: what the judging took; new: how many verdicts were not known from an earlier run.
    """

    judged: tuple[Judgement, ...]
    witnesses: Witnesses
    files: Mapping[str, str] = field(default_factory=dict)
    torch: str = ""
    python: str = ""
    hardware: str = ""
    sampled: int | None = None
    seed: int = 0
    seconds: float = 0.0
    new: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """How many came to what; they add up to the total."""
        found = Counter(one.status for one in self.judged)
        return {"total": len(self.judged), **{status.value: found[status] for status in Status}}

    @property
    def killers(self) -> dict[str, int]:
        """How many were noticed by whom."""
        found = Counter(one.killed_by for one in self.judged if one.status is Status.KILLED)
        return {"tests": found["tests",], "goldens": found["goldens",], "both": found["tests", "goldens"]}

    @property
    def survivors(self) -> tuple[Judgement, ...]:
        """Those that nobody noticed."""
        return tuple(one for one in self.judged if one.status is Status.SURVIVED)

    @property
    def verdict(self) -> str:
        """What it comes to: "survived", "killed", or "not-judged" where no fault was judged at all."""
        if self.survivors:
            return "survived"
        return "killed" if any(one.status is Status.KILLED for one in self.judged) else "not-judged"

    @property
    def exit_code(self) -> int:
        """0, 1 where one survived, 3 where none was judged."""
        return {"killed": 0, "survived": 1, "not-judged": 3}[self.verdict]

    def as_json(self) -> dict[str, Any]:
        """As `--json` writes it: the same for the same content, so that it holds no times."""
        found: dict[str, Any] = {"format": FORMAT, "verdict": self.verdict}
        if self.verdict == "not-judged":
            found["reason"] = "nothing-checked"
        found |= {"mutants": [one.as_json() for one in self.judged], "counts": self.counts, "killed_by": self.killers}
        found |= {"sample": None if self.sampled is None else {"of": self.sampled, "seed": self.seed}}
        return found | {"witnesses": self.witnesses.as_json(), "torch": self.torch, "python": self.python, "hardware": self.hardware}

    def text(self) -> str:
        """What standard output is to hold."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield from self._survivors()
        yield from self._table()
        yield ""
        yield from self._asked()
        yield self._sentence()

    def _survivors(self) -> Iterator[str]:
        for one in self.survivors[:_SHOWN]:
            mutant = one.mutant
            yield f"{mutant.file}:{mutant.line}: {mutant.operator}: {one.reason}"
            yield from (f"  - {plain(line.strip())}" for line in mutant.before.splitlines()[:4])
            yield from (f"  + {plain(line.strip())}" for line in mutant.after.splitlines()[:4])
        if len(self.survivors) > _SHOWN:
            yield f"... and {len(self.survivors) - _SHOWN} more survivors: --json FILE has them all"
        if self.survivors:
            yield ""

    def _table(self) -> Iterator[str]:
        files = list(dict.fromkeys(one.mutant.file for one in self.judged))
        width = max([4, *map(len, files)])
        heads = ("mutants", *(status.value for status in Status))
        yield f"{'file':{width}}  {'  '.join(heads)}"
        for file in files:
            mine = [one for one in self.judged if one.mutant.file == file]
            found = Counter(one.status.value for one in mine)
            numbers = [len(mine), *(found[status.value] for status in Status)]
            yield f"{file:{width}}  {'  '.join(f'{number:>{len(head)}}' for number, head in zip(numbers, heads, strict=True))}"

    def _asked(self) -> Iterator[str]:
        who = self.witnesses
        apart = ", ".join(f"{number} {status}" for status, number in who.apart.items() if number)
        yield f"tests asked: {who.tests} of {who.test_files} files{f' ({apart})' if apart else ''}"
        goldens = ", ".join(who.scenarios) or "none, so that the tests are the only witness"
        yield f"goldens asked: {goldens}"
        if who.late:
            yield f"asked only about what nobody else had noticed, because they take long: {', '.join(who.late)}"
        yield from (f"left out: {plain(line)}" for line in who.left_out)
        if who.unstable:
            yield f"not believed, because they fail without a fault as well: {', '.join(who.unstable)}"
        killed = self.killers
        yield f"noticed by tests alone {killed['tests']}, by goldens alone {killed['goldens']}, by both {killed['both']}"
        if self.sampled is not None:
            yield f"A SAMPLE of {len(self.judged)} of {self.sampled} mutants (--seed {self.seed}): what the others would show is not known"

    def _sentence(self) -> str:
        counts = self.counts
        if self.verdict == "not-judged":
            return f"not-judged: nothing-checked: none of {counts['total']} mutants could be judged"
        rate = f" ({self.new} new in {self.seconds:.1f} s, {self.new / self.seconds:.1f} a second)" if self.new and self.seconds else ""
        if self.survivors:
            return (
                f"survived: {counts['survived']} of {counts['total']} mutants{rate}. Next: write a test that fails for each, "
                "or pardon what changes nothing: # gate: equivalent REASON"
            )
        return f"killed: none of {counts['total']} mutants survived{rate}. Next: nothing to do"
