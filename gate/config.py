"""The project's configuration: `[tool.gate]` of the nearest pyproject.toml."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from gate.errors import ConfigurationError, Unconfigured, UsageError
from gate.version import agrees, valid
from golden.keys import nearest, shown
from golden.settings import Settings, check_pairs

LATER = ("bench", "check", "claims", "required", "trailers")  # names that other commands read; what they hold is checked there
KEYS = ("goldens", "torch", "scenarios", *LATER)
EXAMPLE = '[tool.gate.scenarios.NAME]\nrun = "goldens/scenarios.py:NAME"'


@dataclass(frozen=True)
class Config:
    """A project's configuration, checked.

    Attributes:
        root: the project's folder, absolute, links resolved; everything else is relative to it.
        goldens: the folder that holds the goldens, absolute.
        torch: the versions that `--torch all` means; empty: the running one alone.
        scenarios: by name, in the order of the file.
        name: the distribution's name, None without a [project] table.
        dependencies: the project's own requirements as written, without extras.
        dynamic: whether the build backend computes the requirements, so that the file does not hold them.
        later: what other commands read, as written: `bench`, `claims`, `required`, `trailers`.
    """

    root: Path
    goldens: Path
    torch: tuple[str, ...] = ()
    scenarios: Mapping[str, Settings] = field(default_factory=dict)
    name: str | None = None
    dependencies: tuple[str, ...] = ()
    dynamic: bool = False
    later: Mapping[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        """The file that all this was read from."""
        return self.root / "pyproject.toml"

    def select(self, names: Sequence[str] = ()) -> list[Settings]:
        """The named scenarios in the order named, each once; all of them without a name.

        Raises:
            UsageError: an unknown name, with the nearest known one, or no scenario at all.
        """
        if not self.scenarios:
            raise ConfigurationError(f"{self.file}: [tool.gate] holds no scenario. Add one:\n\n{EXAMPLE}")
        for name in names:
            if name not in self.scenarios:
                raise UsageError(f"unknown scenario {name!r} in {self.file}: {nearest(name, list(self.scenarios))}")
        return [self.scenarios[name] for name in dict.fromkeys(names or self.scenarios)]


def find(start: Path) -> Config:
    """The configuration that holds for a folder: of the nearest pyproject.toml, there or above, with a table [tool.gate].

    Raises:
        Unconfigured: there is none.
        ConfigurationError: it is wrong; names the file, the key and the nearest known one.
    """
    start = start.resolve()
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            document = read(file)
            if "gate" in _table(file, document, "tool"):
                return _check(file, document)
    raise Unconfigured(
        f"No pyproject.toml with a table [tool.gate] in {start} or above it. "
        f"Let gate init write one, or write it into the project's folder:\n\n{EXAMPLE}"
    )


def read(file: Path) -> Mapping[str, Any]:
    """A TOML file's document. Raises ConfigurationError naming the file, the line and what is wrong."""
    try:
        document = parse(file.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{file}: is not UTF-8 (byte {error.start}). Save it as UTF-8.") from None
    except ValueError as error:  # the parser's own words end with the line and the column
        raise ConfigurationError(f"{file}: does not parse: {error}. Correct that line.") from None
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}.") from None
    return document


def parse(text: str) -> Mapping[str, Any]:
    """The document of a TOML text. Raises ValueError in the parser's words."""
    document: Mapping[str, Any] = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads(text)
    return document


def _check(file: Path, document: Mapping[str, Any]) -> Config:
    gate = _table(file, document["tool"], "gate", "tool.gate")
    for key in gate:
        if key not in KEYS:
            raise ConfigurationError(f"{file}: unknown key {key!r} in [tool.gate], {nearest(key, list(KEYS))}")
    root = file.parent
    project = _table(file, document, "project")
    return Config(
        root,
        _goldens(file, gate.get("goldens", "goldens")),
        _versions(file, gate.get("torch", ())),
        _scenarios(file, _table(file, gate, "scenarios", "tool.gate.scenarios")),
        project.get("name") if isinstance(project.get("name"), str) else None,
        tuple(item for item in _list(project.get("dependencies")) if isinstance(item, str)),
        "dependencies" in _list(project.get("dynamic")),
        {key: gate[key] for key in LATER if key in gate},
    )


def _scenarios(file: Path, tables: Mapping[str, Any]) -> dict[str, Settings]:
    try:
        scenarios = {name: Settings.from_table(name, table) for name, table in tables.items()}
        check_pairs(scenarios)
    except UsageError as error:
        raise ConfigurationError(f"{file}: {error}") from None
    _check_folders(file, scenarios)
    for settings in scenarios.values():
        _check_inside(file, f"[tool.gate.scenarios.{settings.name}] run", settings.run.rpartition(":")[0])
    return scenarios


def _check_folders(file: Path, names: Iterable[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.casefold(), name)
        if other != name:  # one folder where the file system ignores case, so that one golden would replace the other
            raise ConfigurationError(f"{file}: scenarios {other!r} and {name!r} differ in case alone and would share a folder. Rename one.")


def _goldens(file: Path, value: object) -> Path:
    where = "[tool.gate] goldens"
    allowed = "has to be a folder inside the project, relative to it, with forward slashes"
    if not isinstance(value, str) or not value.strip() or "\\" in value or "\0" in value:
        raise ConfigurationError(f"{file}: {where} = {shown(value)}: {allowed}.")
    parts = PurePosixPath(value).parts
    if PurePosixPath(value).is_absolute() or ".." in parts or not parts or parts[0] in (".git", ".gate"):
        raise ConfigurationError(f"{file}: {where} = {shown(value)}: {allowed}, and neither the project itself nor below .git or .gate.")
    _check_inside(file, where, value)
    return file.parent.joinpath(*parts)


def _check_inside(file: Path, where: str, path: str) -> None:
    real = (file.parent / path).resolve()
    if not real.is_relative_to(file.parent):
        raise ConfigurationError(f"{file}: {where} = {path!r} leads outside the project, to {real}. Put it inside, without a link.")


def _versions(file: Path, value: object) -> tuple[str, ...]:
    where = "[tool.gate] torch"
    if not isinstance(value, (list, tuple)) or value == []:
        raise ConfigurationError(f'{file}: {where} = {shown(value)}: has to be a list of versions, such as ["2.4.0", "2.9.1"].')
    versions: list[str] = []
    for item in value:
        if not isinstance(item, str) or not valid(item):
            raise ConfigurationError(f'{file}: {where} holds {shown(item)}, which is no version. Write it as a string, such as "2.9.1".')
        if any(agrees(item, other) or agrees(other, item) for other in versions):
            raise ConfigurationError(f"{file}: {where} names {item} twice. Remove one.")
        versions.append(item)
    return tuple(versions)


def _table(file: Path, parent: Mapping[str, Any], key: str, name: str = "") -> Mapping[str, Any]:
    value = parent.get(key, {})
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{file}: {name or key} is {shown(value)}, but has to be a table. Write it as [{name or key}].")
    return value


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
