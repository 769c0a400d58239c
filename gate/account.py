"""What rows that came out alike have in common, told once: their facts, and what to do next."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gate import facts
from gate.facts import Fact, count, listed
from gate.row import Results, Row
from gate.screen import plain
from gate.verdict import Cause, Reason, Verdict

NAMED = 8  # scenarios that a command names one by one


@dataclass(frozen=True)
class Group:
    """Rows of one verdict, cause and reason, in the order judged; never empty."""

    rows: tuple[Row, ...]

    @property
    def verdict(self) -> Verdict:
        """What is said of all of them."""
        return self.rows[0].verdict

    @property
    def cause(self) -> Cause | None:
        """Why all of them drifted."""
        return self.rows[0].cause

    @property
    def reason(self) -> Reason | None:
        """Why none of them was judged."""
        return self.rows[0].reason

    @property
    def scenarios(self) -> list[str]:
        """Their scenarios, each once."""
        return list(dict.fromkeys(row.scenario for row in self.rows))

    @property
    def verdict_and_why(self) -> str:
        """`drift (environment)`."""
        why = self.cause or self.reason
        return f"{self.verdict} ({why})" if why else f"{self.verdict}"


def groups(rows: Iterable[Row]) -> list[Group]:
    """Rows that came out alike, the worst first, so that one change that broke many goldens is told once."""
    alike: dict[tuple[Verdict, Cause | None, Reason | None], list[Row]] = {}
    for row in rows:
        alike.setdefault((row.verdict, row.cause, row.reason), []).append(row)
    worst = list(Verdict).index
    return sorted((Group(tuple(some)) for some in alike.values()), key=lambda group: worst(group.verdict))


def headline(group: Group) -> str:
    """Who, where and what: `digits on cpu under torch 2.13.0: drift (code)`."""
    hardware = dict.fromkeys(row.hardware for row in group.rows if row.hardware)
    versions = dict.fromkeys(row.torch for row in group.rows if row.torch)
    on = f" on {listed(hardware)}" if hardware else ""
    under = f" under torch {listed(versions)}" if versions else ""
    many = f", {len(group.rows)} rows" if len(group.rows) > 1 else ""
    base = ", against the base" if group.rows[0].against == "base" else ""
    return plain(f"{listed(group.scenarios)}{on}{under}{many}{base}: {group.verdict_and_why}")


def told(group: Group) -> list[Fact]:
    """The facts of a drift or of two runs that differ, those that explain most first."""
    leading = group.rows[0]
    judged = group.verdict is Verdict.DRIFT  # two runs here share machine, environment and sources
    return [
        *([("machine", _machine(group))] if judged else ()),
        *(facts.environment([row.environment_changes for row in group.rows]) if judged else ()),
        *_cause(group),
        *(facts.sources([row.changed_sources for row in group.rows]) if judged else ()),
        *(facts.first(leading.first, _owner(group)) if leading.first else ()),
        ("next", next_step(group)),
        *facts.extent(leading.comparison),
        *_kept(leading),
    ]


def messages(results: Results) -> Iterator[str]:
    """One message a row that could not be judged: who, why, and what to do."""
    for row in results.rows:
        if row.verdict is Verdict.NOT_JUDGED:
            yield f"{headline(Group((row,)))}: {row.message or 'no more is known'}"


def next_step(group: Group) -> str:
    """What to do about the rows of a group, as one clause."""
    update = f'gate record {_arguments(group)} --update --reason "..."'
    if group.verdict is Verdict.DRIFT:
        return plain(_after_drift(group, update))
    if group.verdict is Verdict.NONDETERMINISTIC:
        return f"find what {listed(group.scenarios)} draws anew each time (a clock, an unseeded generator, threads), and seed it"
    if group.reason is Reason.NO_GOLDEN:
        return plain(f"gate record {_arguments(group)}")
    if group.verdict is Verdict.NOT_JUDGED:
        return "do what the message on standard error says"
    return "commit the goldens"


def closing(results: Results) -> str:
    """The last line: what happened, and what to do next."""
    if not results.rows:
        return f"{results.verdict}: nothing was judged. Next: name a scenario, or gate record"
    tally = Counter(str(row.verdict) for row in results.rows)
    several = groups(results.rows)
    if results.verdict is Verdict.IDENTICAL:
        held = "as the base gives it" if all(row.against == "base" for row in results.rows) else "as recorded"
        return f"identical: every bit of {count(len(results.rows), 'row')} {held}. Next: nothing to do"
    if len(tally) == 1:
        counted = f"{several[0].verdict_and_why if len(several) == 1 else results.verdict}: {count(len(results.rows), 'row')}"
    else:
        counted = f"{results.verdict}: " + ", ".join(f"{tally[verdict]} {verdict}" for verdict in Verdict if tally[verdict])
    return f"{counted}. Next: {next_step(several[0])}"


def _machine(group: Group) -> str:
    known = [row.honoured for row in group.rows if row.honoured is not None]
    if not known:
        return "not asked whether it honours the portable profile"
    if all(known):
        return "honours the portable profile: all known answers are right here"
    return "does NOT honour the portable profile: its known answers come out otherwise here"


def _cause(group: Group) -> Iterator[Fact]:
    """The cause with the cost of each arm, and why it is unknown where it is."""
    arms = "; ".join(f"{arm.name}: {arm.verdict}, {arm.seconds:.1f} s" for arm in group.rows[0].arms)
    if group.verdict is Verdict.DRIFT:
        text = str(group.cause) if group.cause else "not looked for"
        yield "cause", plain(f"{text} ({arms})" if arms else text)
    elif arms:
        yield "runs", plain(arms)
    for message in dict.fromkeys(row.message for row in group.rows if row.message):
        yield "", plain(message)


def _after_drift(group: Group, update: str) -> str:
    leading = group.rows[0]
    if leading.message and group.cause is Cause.CODE and not leading.arms:
        return f"mend {leading.scenario} where the line under the cause says"  # no base was asked: the code is at odds with itself
    if group.cause is Cause.CODE:
        undo = f"undo the change in {leading.changed_sources[0]}" if leading.changed_sources else "undo the change"
        return f"{undo}, or keep the new bits: {update}" if leading.against == "golden" else undo
    if any(row.honoured is False for row in group.rows):
        return "judge on a machine that honours the portable profile (gate doctor)"
    if group.cause is Cause.ENVIRONMENT:
        changed = leading.environment_changes[0]["path"] if leading.environment_changes else "the environment"
        return f"set {changed} back, or record for the environment as it is: {update}"
    if group.cause is None and not leading.arms:
        return "leave out --no-cause to learn the cause"
    return f"gate verify {_arguments(group)} --base REV, with a REV whose bits are right"


def _kept(row: Row) -> Iterator[Fact]:
    if row.run:
        yield "kept", plain(f"{row.run} (gate diff opens it)")


def _owner(group: Group) -> str:
    """Which of several rows a fact is told of."""
    row = group.rows[0]
    return f"{row.scenario} under torch {row.torch}" if len(group.rows) > 1 else ""


def _arguments(group: Group) -> str:
    """The arguments that name the rows of a group; of many none, for recording an equal golden writes nothing."""
    words = list(group.scenarios) if len(group.scenarios) <= NAMED else []
    hardware = {row.hardware for row in group.rows if row.hardware}
    if hardware and not any(name.startswith("cpu") for name in hardware):
        words += ["--device", "cuda"]
    versions = [row.torch for row in group.rows if row.torch]
    if versions:
        words += ["--torch", versions[0] if len(set(versions)) == 1 else "all"]
    return shlex.join(words)
