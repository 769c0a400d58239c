"""One need held against the records: fresh, stale, inconclusive or missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from gate.evidence.archive import Filed
from gate.evidence.freshness import Change, Here
from gate.evidence.leaving import PASSED
from gate.evidence.required import Need
from gate.evidence.statement import Record
from gate.layout import builds, torch_folders
from gate.machine import device_of
from golden.settings import Settings

COMMANDS = {"tests": "gate check --all", "goldens": "gate verify", "mutation": "gate mutate", "bench": "gate bench"}
_NOTHING = {"tests": ("passed", "no test passed"), "mutation": ("killed", "no mutant was killed")}


class State(str, Enum):
    """What is said of a need, worst first."""

    MISSING = "missing"
    STALE = "stale"
    INCONCLUSIVE = "inconclusive"
    FRESH = "fresh"

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Answer:
    """What the records say of one need, or of one scenario of it.

    Attributes:
        reason: why it is not fresh; of a fresh one what people should know (None for nothing).
        filed: the record that decides; None where there is none.
        changes: what has changed since it was made.
    """

    state: State
    reason: str | None = None
    filed: Filed | None = None
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True)
class Bench:
    """Where needs are judged.

    Attributes:
        here: the project and the machine.
        records: newest first.
        since: ids of the commits a record may have begun with that looked at a change alone; empty: only whole ones count.
    """

    here: Here
    records: tuple[Filed, ...]
    since: frozenset[str] = frozenset()

    def answers(self, need: Need) -> list[tuple[str | None, Answer]]:
        """An answer for each scenario of a need, or one without."""
        scenarios: tuple[str | None, ...] = need.scenarios or (None,)
        return [(scenario, self._answer(need, scenario)) for scenario in scenarios]

    def _lacks_golden(self, need: Need, scenario: str) -> bool:
        """Whether a scenario has no golden that a record could be of."""
        config = self.here.present.config
        settings, folder = config.scenarios[scenario], config.goldens / need.hardware
        name = settings.same_as or settings.name
        held = builds(folder, need.torch, name) if need.torch else [torch / name for torch in torch_folders(folder)]
        return not any((golden / "manifest.json").is_file() for golden in held)

    def _answer(self, need: Need, scenario: str | None) -> Answer:
        if need.check == "goldens" and scenario and self._lacks_golden(need, scenario):
            return Answer(State.MISSING, f"no golden. Run {recording(need, self.here.present.config.scenarios[scenario])}")
        found = [filed for filed in self.records if need.fits(filed.record) and filed.record.scenario == scenario]
        fitting = [filed for filed in found if filed.record.since is None or filed.record.since in self.since]
        if not fitting:
            partly = f" (the change since {found[0].record.since or ''} alone was looked at)" if found else ""
            return Answer(State.MISSING, f"no record{partly}. Run {command(need)}", found[0] if found else None)
        changes = {filed.path: self.here.changes(filed.record) for filed in fitting}
        fresh = [filed for filed in fitting if not changes[filed.path]]
        whole = [filed for filed in fresh if gap(filed.record) is None]
        if whole:
            return _ended(whole[0])
        if fresh:
            return Answer(State.MISSING, gap(fresh[0].record), fresh[0])
        return Answer(State.STALE, None, fitting[0], changes[fitting[0].path])


def gap(record: Record) -> str | None:
    """Why a record proves nothing of its hardware: what was skipped was not checked. None where it does prove something."""
    key, told = _NOTHING.get(record.check, ("", ""))
    if record.since is not None and not record.counts.get("skipped") and not record.counts.get("total"):
        return None  # a change that touches no test, or no line that can be mutated
    if key and not record.counts.get(key) and record.result == PASSED:
        return told
    if record.check != "tests" or device_of(record.hardware) != "cuda":
        return None
    cuda = record.details.get("cuda")
    counts: Mapping[str, object] = cuda if isinstance(cuda, Mapping) else record.counts
    if counts.get("skipped"):
        return f"{counts['skipped']} tests that need the GPU were skipped there, and skipped is not checked"
    return None if counts.get("passed") else "no test that needs the GPU ran there"


def command(need: Need) -> str:
    """The command that would bring the missing record."""
    text = " ".join((COMMANDS[need.check], *need.paths, *(need.scenarios if need.check == "bench" else ())))
    if need.check == "mutation":
        text += " --device cuda" if device_of(need.hardware) == "cuda" else ""
    if need.check == "goldens":
        text += f" --goldens goldens/{need.hardware}" if device_of(need.hardware) == "cuda" else ""
        text += f" --torch {need.torch}" if need.torch else ""
    return f"{text} on a machine with {need.hardware}, and gate status --keep" if device_of(need.hardware) == "cuda" else text


def recording(need: Need, settings: Settings) -> str:
    """The command that would record a scenario's golden."""
    cuda = device_of(need.hardware) == "cuda"
    text = f"gate record {settings.same_as or settings.name}" + (" --device cuda" if cuda else "")
    text += f" --torch {need.torch}" if need.torch else ""
    return f"{text} on a machine with {need.hardware}" if cuda else text


def worst(states: Iterable[State]) -> State:
    """The worst of several; of none: missing."""
    return min(states, key=list(State).index, default=State.MISSING)


def _ended(filed: Filed) -> Answer:
    counts = ", ".join(f"{number} {name}" for name, number in filed.record.counts.items() if number)
    if filed.record.result == PASSED:
        skipped = filed.record.counts.get("skipped", 0)
        return Answer(State.FRESH, f"{skipped} skipped, which is not passed" if skipped else None, filed)
    return Answer(State.INCONCLUSIVE, f"it {filed.record.result if filed.record.result == 'failed' else 'could not say'}: {counts}", filed)
