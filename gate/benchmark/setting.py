"""What `[tool.gate.bench.NAME]` says, checked."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gate.config import Config
from gate.errors import ConfigurationError, UsageError
from golden import keys
from golden.keys import check_steps, nearest, shown, wrong
from golden.settings import Settings, check_pairs

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")  # as a scenario's: it is a folder's too
PROCESSES = ("each", "one")
EXAMPLE = '[tool.gate.bench.NAME]\nscenarios = ["digits", "digits-faster"]'


@dataclass(frozen=True)
class Arm:
    """One scenario of a benchmark.

    Attributes:
        name: the scenario's, with a number behind it where that is an arm already.
        settings: the scenario's, with the benchmark's steps.
        beside: whether it is timed for scale alone, neither compared nor judged.
    """

    name: str
    settings: Settings
    beside: bool = False


@dataclass(frozen=True)
class Bench:
    """A benchmark: `[tool.gate.bench.NAME]`.

    Attributes:
        name: its key in the configuration.
        arms: the baseline first, then those that are compared with it, then those beside.
        pairs: how often each arm is timed, each time beside the baseline.
        warmup: first steps of each run that do not count, fewer than its steps.
        process: "each": a fresh process for each run; "one": one for all, where each arm first has a run that does not count.
        margin: by how much a ratio may be off 1 and still make no difference.
        digests: whether each timed run hands back digests of its last step, which have to be equal in every round.
        proof: parameters of the recordings that come before the timed runs alone, such as fewer epochs; with `digests` only.
    """

    name: str
    arms: tuple[Arm, ...]
    pairs: int = 10
    warmup: int = 3
    process: str = "each"
    margin: float = 0.02
    digests: bool = False
    proof: Mapping[str, Any] = field(default_factory=dict)

    @property
    def baseline(self) -> Arm:
        """What the others are compared with."""
        return self.arms[0]

    @property
    def judged(self) -> tuple[Arm, ...]:
        """What is compared with the baseline."""
        return tuple(arm for arm in self.arms[1:] if not arm.beside)

    def resolved(self) -> dict[str, Any]:
        """All of it as JSON holds it, for what is bound to it."""
        keys = ("name", "run", "steps", "seed", "parameters")
        arms = [
            {**{key: getattr(arm.settings, key) for key in keys}, "name": arm.name, "beside": arm.beside}
            | {"parameters": dict(arm.settings.parameters)}
            for arm in self.arms
        ]
        keys = ("name", "pairs", "warmup", "process", "margin")
        own = {"digests": True, "proof": dict(self.proof)} if self.digests else {}
        return {**{key: getattr(self, key) for key in keys}, **own, "arms": arms}


def names(config: Config) -> list[str]:
    """The benchmarks of a configuration, in its order."""
    tables = config.later.get("bench", {})
    return [str(name) for name in tables] if isinstance(tables, Mapping) else []


def find(config: Config, name: str, pairs: int | None = None) -> Bench:
    """The benchmark of a name.

    Args:
        config: the project's.
        name: of the benchmark.
        pairs: instead of the configured number.

    Raises:
        ConfigurationError: its table is wrong; names the file, the key and the nearest known one.
        UsageError: there is no such benchmark.
    """
    tables = config.later.get("bench", {})
    if not isinstance(tables, Mapping) or not tables:
        raise ConfigurationError(f"{config.file}: [tool.gate] holds no benchmark. Add one:\n\n{EXAMPLE}")
    if name not in tables:
        raise UsageError(f"unknown benchmark {name!r} in {config.file}: {nearest(name, names(config))}")
    try:
        bench = _checked(config, name, tables[name])
    except UsageError as error:
        raise ConfigurationError(f"{config.file}: {error}") from None
    return bench if pairs is None else replace(bench, pairs=pairs)


def _checked(config: Config, name: str, table: object) -> Bench:
    where = f"[tool.gate.bench.{name}]"
    if not NAME.fullmatch(name):
        raise UsageError(f"{where}: a benchmark's name is 1 to 100 of a-z, A-Z, 0-9, '.', '_' and '-', the first no '.' or '-'. Rename it.")
    if not isinstance(table, Mapping):
        raise wrong(where, table, "a table with the key scenarios")
    for key in table:
        if key not in CHECKS:
            raise UsageError(f"{where}: unknown key {key!r}, {nearest(str(key), list(CHECKS))}")
    if "scenarios" not in table:
        raise UsageError(f"{where}: the key scenarios is missing. Name the baseline and what is compared with it:\n\n{EXAMPLE}")
    found = {key: CHECKS[key](f"{where} {key}", value) for key, value in table.items()}
    known = _known(config, where, found.pop("define", {}))
    steps = found.pop("steps", None)
    arms = [*_arms(known, f"{where} scenarios", found.pop("scenarios"), steps)]
    others = _arms(known, f"{where} beside", found.pop("beside", ()), steps, beside=True)
    bench = Bench(name, _named([*arms, *others]), **found)
    _check_arms(where, bench)
    return bench


def _known(config: Config, where: str, own: Mapping[str, Any]) -> dict[str, Settings]:
    """The project's scenarios, and those that this benchmark alone has."""
    for name in own:
        if name in config.scenarios:
            raise UsageError(f"{where}: define holds {name!r}, which is a scenario of the project already. Rename it.")
    try:
        known = {**config.scenarios, **{name: Settings.from_table(name, table) for name, table in own.items()}}
        check_pairs(known)
    except UsageError as error:
        raise UsageError(str(error).replace("[tool.gate.scenarios.", f"{where[:-1]}.define.")) from None
    return known


def _arms(known: Mapping[str, Settings], where: str, wanted: Sequence[str], steps: int | None, beside: bool = False) -> list[Arm]:
    for name in wanted:
        if name not in known:
            raise UsageError(f"{where} names no scenario: {name!r}, {nearest(name, list(known))}")
    return [Arm(name, replace(known[name], steps=steps or known[name].steps), beside) for name in wanted]


def _named(arms: Sequence[Arm]) -> tuple[Arm, ...]:
    """The arms, each by a name of its own: `digits`, `digits (2)`."""
    seen: Counter[str] = Counter()
    found = []
    for arm in arms:
        seen[arm.name] += 1
        found.append(arm if seen[arm.name] == 1 else replace(arm, name=f"{arm.name} ({seen[arm.name]})"))
    return tuple(found)


def _check_arms(where: str, bench: Bench) -> None:
    """Holds what one key alone cannot show: equal bits are to be expected, and steps are left to be timed."""
    base = bench.baseline.settings
    if bench.proof and not bench.digests:
        raise UsageError(
            f"{where}: proof changes what is recorded first, and nothing proves the bits of what is timed. Set digests = true, or drop it."
        )
    for arm in bench.judged:
        if _golden(arm.settings) != _golden(base):
            raise UsageError(
                f"{where}: {arm.name} is not same_as {base.name}, so that its bits need not be equal. "
                f'Set same_as = "{_golden(base)}" in its table, or name it under beside, where times are not compared.'
            )
    for arm in bench.arms:
        if arm.settings.steps <= bench.warmup:
            raise UsageError(
                f"{where}: warmup is {bench.warmup}, and {arm.name} has {arm.settings.steps} steps, so that none would count. "
                f"Set steps to more, or warmup to less."
            )


def _golden(settings: Settings) -> str:
    return settings.same_as or settings.name


def _whole(low: int, allowed: str) -> Callable[[str, object], int]:
    def check(where: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise wrong(where, value, allowed)
        return value

    return check


def _list(least: int, allowed: str) -> Callable[[str, object], tuple[str, ...]]:
    def check(where: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or len(value) < least or not all(isinstance(item, str) for item in value):
            raise wrong(where, value, allowed)
        return tuple(value)

    return check


def _switch(where: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise wrong(where, value, "true or false")
    return value


def _process(where: str, value: object) -> str:
    if not isinstance(value, str) or value not in PROCESSES:
        raise wrong(where, value, '"each" (a fresh process for each run) or "one" (one for all)')
    return value


def _margin(where: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or not 0 <= value < 1:
        raise wrong(where, value, "a number from 0 to less than 1, such as 0.02 for 2 %")
    return float(value)


def _define(where: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{where} is {shown(value)}, but has to hold scenarios: [tool.gate.bench.NAME.define.SCENARIO].")
    return value


CHECKS: dict[str, Callable[[str, object], Any]] = {
    "scenarios": _list(2, "a list of two or more names of scenarios, the baseline first"),
    "beside": _list(0, "a list of names of scenarios that are timed for scale"),
    "pairs": _whole(1, "a whole number, 1 or more"),
    "warmup": _whole(0, "a whole number of steps, 0 or more"),
    "process": _process,
    "steps": check_steps,
    "margin": _margin,
    "digests": _switch,
    "proof": keys.CHECKS["parameters"],
    "define": _define,
}
