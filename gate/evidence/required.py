"""What a merge needs: `[tool.gate.required]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from gate.config import Config
from gate.errors import ConfigurationError
from gate.evidence.removal import removed
from gate.evidence.statement import CHECKS, Record
from gate.layout import hardware_folders, shown_version, torch_folders, version_of
from gate.machine import device_of
from gate.version import agrees, valid
from golden.keys import nearest, shown

KEEP, PATHS = LISTS = ("keep", "paths")
EXAMPLE = '[tool.gate.required]\ntests = ["cpu", "h200"]\ngoldens = ["cpu", "h200"]\nmutation = ["cpu"]'


@dataclass(frozen=True)
class Need:
    """One line of what a merge needs.

    Attributes:
        torch: the version asked for; None takes any.
        scenarios: of `goldens`, the scenarios that all have to be verified; of `bench`, the benchmarks.
        paths: of `mutation`, what has to be covered; empty for all sources.
    """

    check: str
    hardware: str
    torch: str | None = None
    scenarios: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What reports call it."""
        return " ".join(filter(None, (self.check, self.hardware, self.torch and f"torch {self.torch}")))

    def fits(self, record: Record) -> bool:
        """Whether a record may answer it, as far as its name and its paths tell."""
        named = (record.check, record.hardware) == (self.check, self.hardware) and (self.torch is None or agrees(self.torch, record.torch))
        return named and (self.check != "mutation" or _covers(record.details.get("paths"), self.paths))


@dataclass(frozen=True)
class Required:
    """What a merge needs.

    Attributes:
        needs: in the order of the table; at least one.
        keep: `keep` of the table: what is kept in the repository besides the records of GPUs: hardware, hardware/torch-VERSION, or a check.
    """

    needs: tuple[Need, ...]
    keep: tuple[str, ...] = ()

    def keeps(self, record: Record) -> bool:
        """Whether CI cannot repeat a record, or need not."""
        names = {record.check, record.hardware, f"{record.hardware}/torch-{record.torch}"}
        return device_of(record.hardware) == "cuda" or bool(names & set(self.keep))


def _covers(recorded: object, wanted: tuple[str, ...]) -> bool:
    """Whether a record of mutants of some paths, or of all, holds for those wanted."""
    known = [str(path) for path in recorded] if isinstance(recorded, list) else []
    return not known or (
        bool(wanted) and all(any(other in (path, ".") or path.startswith(f"{other}/") for other in known) for path in wanted)
    )


def required(config: Config, running: str) -> Required:
    """The table; without one, the goldens of every hardware that has some, or had some that were removed without a word.

    Args:
        config: the project's.
        running: the full version of the torch in use.

    Raises:
        ConfigurationError: names the key and the nearest known one; or there is neither a table nor a golden.
    """
    table = config.later.get("required")
    dropped = removed(config)
    if table is None:
        folders = [folder.name for folder in hardware_folders(config.goldens)]
        found = {"goldens": sorted({*folders, *dropped})}
        if not found["goldens"]:
            raise ConfigurationError(f"{config.file} does not say what a merge needs, and there are no goldens. Write:\n\n{EXAMPLE}")
        table = found
    needs = tuple(_needs(config, _checked(config, table), running, dropped))
    if not needs:
        raise ConfigurationError(f"{config.file}: [tool.gate.required] requires nothing, which nothing could fail. Write:\n\n{EXAMPLE}")
    return Required(needs, tuple(table.get(KEEP, ())))


def _checked(config: Config, table: Any) -> Mapping[str, Any]:
    where = f"{config.file}: [tool.gate.required]"
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{where} is {shown(table)}, but has to be a table. Write:\n\n{EXAMPLE}")
    for key, value in _lists(table):
        if key.partition(".")[0] not in (*CHECKS, *LISTS):
            raise ConfigurationError(f"{where}: unknown key {key!r}, {nearest(key, [*CHECKS, *LISTS])}")
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            raise ConfigurationError(f'{where} {key} = {shown(value)}: has to be a list of hardware, such as ["cpu", "h200"].')
        if len(set(value)) != len(value):
            raise ConfigurationError(f"{where} {key} = {shown(value)}: names one twice. Remove one.")
        for item in value if key in CHECKS else ():
            _split(where, key, item)
    mutated = {item.partition("/")[0] for item in table.get("mutation", ())}
    for hardware in table[PATHS] if isinstance(table.get(PATHS), Mapping) else ():
        if hardware not in mutated:
            raise ConfigurationError(f"{where} {PATHS}: mutation is not required on {hardware!r}. Add it there, or remove its paths.")
    _check_paths(config, where, table)
    _check_keep(config, where, table)
    return table


def _check_paths(config: Config, where: str, table: Mapping[str, Any]) -> None:
    for key, paths in _lists(table):
        for path in paths if key.partition(".")[0] == PATHS else ():
            place = (config.root / path).resolve()
            inside = place.is_relative_to(config.root) and not PurePosixPath(path).is_absolute()
            if not inside or not (place.suffix == ".py" if place.is_file() else any(place.rglob("*.py"))):
                raise ConfigurationError(f"{where} {key} names {path!r}, where the project has no Python file. Correct or remove it.")


def _check_keep(config: Config, where: str, table: Mapping[str, Any]) -> None:
    """Each item has to be a check that is required, or hardware of which something is."""
    required = {check: items for check, items in table.items() if check in CHECKS and items}
    hardware = sorted({item.partition("/")[0] for items in required.values() for item in items})
    for item in table.get(KEEP, ()):
        slug, slash, version = item.partition("/torch-")
        known = item in required or (slug in hardware and (not slash or valid(version)))
        if known and slash and device_of(slug) == "cpu" and config.torch:
            known = any(agrees(version, torch) for torch in config.torch)
        if not known:
            raise ConfigurationError(
                f"{where} {KEEP} names {item!r}, of which nothing is required, {nearest(item, [*required, *hardware])}"
                " (a check, a hardware, or hardware/torch-VERSION)"
            )


def _lists(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Keys and values; of paths by hardware, each hardware's own."""
    for key, value in table.items():
        yield from (
            ((f"{key}.{inner}", paths) for inner, paths in value.items())
            if key == PATHS and isinstance(value, Mapping)
            else ((key, value),)
        )


def _paths(config: Config, table: Mapping[str, Any], hardware: str) -> tuple[str, ...]:
    """What has to be mutated there, each once and spelled as `gate mutate` spells it: "./src/", "src" and a link to it are one path."""
    given = table.get(PATHS, ())
    places = [(config.root / path).resolve() for path in (given.get(hardware, ()) if isinstance(given, Mapping) else given)]
    return tuple(dict.fromkeys(place.relative_to(config.root).as_posix() for place in places))


def _split(where: str, key: str, item: str) -> tuple[str, str | None]:
    """Hardware and version of "cpu" or "cpu/torch-2.9.1"."""
    hardware, slash, torch = item.partition("/torch-")
    if not hardware or "/" in hardware or (slash and not valid(torch)):
        raise ConfigurationError(f'{where} {key} names {shown(item)}: has to be a hardware folder, "h200", or "h200/torch-2.11.0".')
    return hardware, torch or None


def _needs(config: Config, table: Mapping[str, Any], running: str, dropped: Mapping[str, tuple[str, ...]]) -> Iterator[Need]:
    benches = tuple(config.later.get("bench", ()))
    for check, items in table.items():
        for item in items if check not in LISTS else ():
            hardware, torch = _split("", check, item)
            if check != "goldens":
                yield Need(
                    check,
                    hardware,
                    torch,
                    benches if check == "bench" else (),
                    _paths(config, table, hardware) if check == "mutation" else (),
                )
                continue
            for version in [torch] if torch else _versions(config, hardware, running, dropped):
                yield Need(check, hardware, version, _able(config, hardware))


def _able(config: Config, hardware: str) -> tuple[str, ...]:
    """The scenarios that run on such a device, recorded or not: somebody has to record them."""
    return tuple(settings.name for settings in config.scenarios.values() if device_of(hardware) in settings.devices)


def _versions(config: Config, hardware: str, running: str, dropped: Mapping[str, tuple[str, ...]]) -> list[str | None]:
    """On CPUs the configured versions, else the running one; on GPUs, where builds differ, those that have goldens, or had some."""
    if device_of(hardware) == "cpu":
        return [*config.torch] or [shown_version(hardware, running) if running else None]
    there = [version_of(folder) for folder in torch_folders(config.goldens / hardware)]
    return [*there, *(version for version in dropped.get(hardware, ()) if version not in there)] or [None]
