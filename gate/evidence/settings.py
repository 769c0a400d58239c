"""pytest's settings outside pyproject.toml, as evidence knows them, and where by them all a session looks for tests."""

from __future__ import annotations

import configparser
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from gate.config import parse
from golden.canonical import Json

FILES = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg")  # in pytest's order; the last two are shared
TABLES = tuple(f"{file}:pytest" for file in FILES)
_SHARED = ("tox.ini", "setup.cfg")
_SECTIONS = ("pytest", "tool:pytest")
_TESTS = ("test_*.py", "*_test.py")
_DOCTESTS = "test*.txt"  # pytest runs the examples in them unless told otherwise


def value(file: str, text: str | None) -> Json:
    """What pytest reads of a file, as one value: its sections by name; the text of one that does not parse; None where it reads nothing.

    Args:
        file: one of `FILES`.
        text: its content; None where there is no such file.
    """
    if text is None:
        return None
    try:
        found = _sections(file, text)
    except (ValueError, configparser.Error):
        return text
    return None if file in _SHARED and not found else found


@dataclass(frozen=True)
class Search:
    """Where pytest looks for tests.

    Attributes:
        places: folders and files, relative to the project, globs allowed; empty for the whole project.
        names: globs of the names of files that hold tests.
        plugins: modules that `-p` in addopts names.
    """

    places: tuple[str, ...]
    names: tuple[str, ...]
    plugins: tuple[str, ...]

    @classmethod
    def of(cls, root: Path, document: Mapping[str, Any]) -> Search:
        """By the first file that holds settings, as pytest takes it; `document` is pyproject.toml's."""
        options = next(filter(lambda found: found is not None, _options(root, document)), None) or {}
        words = _words(options.get("addopts"))
        names = _words(options.get("python_files")) or list(_TESTS)
        names += ["*.py"] if "--doctest-modules" in words else []
        names += [word.partition("=")[2] for word in words if word.startswith("--doctest-glob=")] or [_DOCTESTS]
        places = [place.rstrip("/").removeprefix("./") for place in _words(options.get("testpaths"))]
        plugins = [after for word, after in pairwise(words) if word == "-p"]
        plugins += [word[2:] for word in words if word.startswith("-p") and len(word) > 2]
        places = [] if {"", "."} & set(places) else places
        return cls(tuple(places), tuple(names), tuple(name for name in plugins if not name.startswith("no:")))


def _options(root: Path, document: Mapping[str, Any]) -> Iterator[Mapping[str, Any] | None]:
    for file in FILES:
        if file == "tox.ini":
            yield _of_pyproject(document)
        found = value(file, _text(root / file))
        if isinstance(found, dict):
            inner = found.get("tool:pytest" if file == "setup.cfg" else "pytest", {})
            yield inner if isinstance(inner, dict) else {}


def _of_pyproject(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    tool = document.get("tool")
    found = tool.get("pytest") if isinstance(tool, Mapping) else None
    if not isinstance(found, Mapping):
        return None
    options = found.get("ini_options", found)
    return options if isinstance(options, Mapping) else None


def _sections(file: str, text: str) -> dict[str, Json]:
    if file.endswith(".toml"):
        found = parse(text).get("pytest")
        return {"pytest": {str(key): _plain(inner) for key, inner in found.items()}} if isinstance(found, Mapping) else {}
    reader = configparser.ConfigParser(interpolation=None, strict=False, delimiters=("=", ":"), allow_no_value=True)
    reader.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    reader.read_string(text)
    return {name: dict(reader.items(name)) for name in _SECTIONS if reader.has_section(name)}


def _plain(found: Any) -> Json:
    return [str(item) for item in found] if isinstance(found, list) else found if isinstance(found, (bool, int)) else str(found)


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None


def _words(given: Any) -> list[str]:
    """A list of words, or a text that holds some."""
    if isinstance(given, list):
        return [str(item) for item in given]
    try:
        return shlex.split(given) if isinstance(given, str) else []
    except ValueError:
        return str(given).split()
