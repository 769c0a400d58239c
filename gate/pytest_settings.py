"""Which of a project's files pytest takes its configuration from, and what stands in it: the first that holds one, and no other."""

from __future__ import annotations

import configparser
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from gate import encoding
from gate.config import parse

PYPROJECT = "pyproject.toml"
FILES = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", PYPROJECT, "tox.ini", "setup.cfg")  # in the order of pytest 9
_OWN = FILES[:4]  # the configuration even where they hold nothing
_SECTIONS = {"setup.cfg": "tool:pytest"}  # "pytest" in the others
TABLES = ("tool.pytest", *(f"{file}:pytest" for file in FILES if file != PYPROJECT))  # as evidence calls what each file may hold

Read = Callable[[str], str | None]


@dataclass(frozen=True)
class Settings:
    """pytest's configuration.

    Attributes:
        file: the one that holds it; "" where none does.
        content: pytest's part of it: of pyproject.toml the table [tool.pytest], of others the table or section by its name; the text of a
            file that pytest refuses, and stops at.
        options: by name, as written.
    """

    file: str = ""
    content: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, read: Read) -> Settings:
        """By the first file that is a configuration.

        Args:
            read: gives the text of a file of the project's folder, None where there is none.
        """
        return next((found for file in FILES if (found := _settings(file, read(file))) is not None), cls())

    @classmethod
    def at(cls, root: Path) -> Settings:
        """Those of a folder. Of the folders above it, which pytest asks where this one holds none, nothing is known."""
        return cls.of(partial(text_of, root))

    def table(self, name: str) -> Any:
        """What pytest reads of one of `TABLES`; None where it reads nothing of it, be it that another file comes first."""
        return self.content if file_of(name) == self.file else None

    def words(self, option: str) -> tuple[str, ...]:
        """An option that is a list, or a text that holds words; none where it is not there or cannot be read."""
        given = self.options.get(option)
        if isinstance(given, list):
            return tuple(map(str, given))
        try:
            return tuple(shlex.split(given)) if isinstance(given, str) else ()
        except ValueError:  # a quote without its end
            return ()


def file_of(table: str) -> str:
    """The file that one of `TABLES` stands in."""
    return PYPROJECT if table == TABLES[0] else table.partition(":")[0]


def text_of(root: Path, file: str) -> str | None:
    """The text of a file of a folder; None where there is none, be it that no file can have the name, or that it leads out."""
    if ".." in PurePosixPath(file).parts or PurePosixPath(file).is_absolute():
        return None
    try:
        content = (root / file).read_bytes()
        return encoding.text(content) if file.endswith(".py") else content.decode("utf-8", errors="replace")
    except (OSError, ValueError):  # the latter of a null character
        return None


def _settings(file: str, text: str | None) -> Settings | None:
    """What pytest reads of a file; None where it goes on to the next one."""
    if text is None:
        return None
    text = text.removeprefix("\ufeff")
    try:
        return _of_toml(file, parse(text)) if file.endswith(".toml") else _of_ini(file, text)
    except (ValueError, configparser.Error):
        return Settings(file, text)


def _of_toml(file: str, document: Mapping[str, Any]) -> Settings | None:
    tool = document.get("tool") if file == PYPROJECT else document
    found = tool.get("pytest") if isinstance(tool, Mapping) else None
    if not isinstance(found, Mapping):
        return None if file == PYPROJECT else Settings(file, {})
    if file != PYPROJECT:
        return Settings(file, {"pytest": found}, found)
    options = found.get("ini_options", found)
    return Settings(file, found, options if isinstance(options, Mapping) else {}) if found else None


def _of_ini(file: str, text: str) -> Settings | None:
    """Raises ValueError or configparser.Error where pytest stops: two of one name, or setup.cfg's section of long ago."""
    reader = configparser.ConfigParser(interpolation=None, delimiters=("=", ":"), allow_no_value=True, default_section="\0")
    reader.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    reader.read_string(text)
    section = _SECTIONS.get(file, "pytest")
    if reader.has_section(section):
        return Settings(file, {section: dict(reader.items(section))}, dict(reader.items(section)))
    if file in _SECTIONS and reader.has_section("pytest"):
        raise ValueError
    return Settings(file, {}) if file in _OWN else None
