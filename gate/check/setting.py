"""What a project's pyproject.toml says of its tests: what they need, and whether a change of it concerns them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from gate.config import Config
from gate.errors import ConfigurationError
from golden.keys import nearest, shown

TESTING = ("pytest>=8.0", "pytest-xdist>=3.5", "coverage>=7.17")  # what gate check runs tests with
_USUAL = ("test", "tests", "testing", "check", "checks", "dev", "develop", "development")
_OTHERS = (
    "ruff",
    "mypy",
    "black",
    "isort",
    "flake8",
    "pylint",
    "pyright",
    "codespell",
    "towncrier",
    "commitizen",
    "bumpversion",
    "pydocstyle",
)


def requirements(config: Config) -> tuple[str, ...]:
    """What the project's tests need besides its own dependencies: the extras and groups that `[tool.gate.check] extras` names.

    Without that key, those called test, tests, testing, check, checks, dev, develop or development.

    Raises:
        ConfigurationError: there is no such extra.
    """
    document = _document(config.file.read_bytes())
    offered = {**document.get("dependency-groups", {}), **document.get("project", {}).get("optional-dependencies", {})}
    named = _named(config, document["tool"]["gate"].get("check", {}))
    for name in named or ():
        if name not in offered:
            raise ConfigurationError(f"{config.file}: [tool.gate.check] extras names {name!r}, {nearest(name, list(offered))}")
    chosen = named if named is not None else [name for name in offered if name in _USUAL]
    return tuple(dict.fromkeys([*TESTING, *(item for name in chosen for item in _items(offered, name))]))


def same_for_tests(old: bytes | None, new: bytes | None) -> bool:
    """Whether two states of pyproject.toml differ in the tables of formatters and other tools at most."""
    try:
        return old is not None and new is not None and _without(_document(old)) == _without(_document(new))
    except ValueError:
        return False


def _named(config: Config, table: Any) -> list[str] | None:
    if not isinstance(table, Mapping) or not set(table) <= {"extras"}:
        raise ConfigurationError(f'{config.file}: [tool.gate.check] takes one key, extras = ["test"], and holds {shown(table)}.')
    names = table.get("extras")
    if names is not None and (not isinstance(names, list) or not all(isinstance(name, str) for name in names)):
        raise ConfigurationError(f"{config.file}: [tool.gate.check] extras = {shown(names)}: has to be a list of names.")
    return names


def _items(offered: Mapping[str, Any], name: str) -> Iterator[str]:
    for item in offered.get(name, ()):
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping) and isinstance(item.get("include-group"), str) and item["include-group"] != name:
            yield from _items(offered, item["include-group"])


def _without(document: dict[str, Any]) -> dict[str, Any]:
    tool = {name: table for name, table in document.get("tool", {}).items() if name not in _OTHERS}
    return {**document, "tool": tool}


def _document(content: bytes) -> dict[str, Any]:
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    found: dict[str, Any] = toml.loads(content.decode("utf-8-sig"))
    return found
