"""Where a session of pytest looks for tests."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from gate.pytest_settings import Settings

_TESTS = ("test_*.py", "*_test.py")
_DOCTESTS = "test*.txt"  # pytest runs the examples in them unless told otherwise


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
    def of(cls, settings: Settings) -> Search:
        """By pytest's settings."""
        words = settings.words("addopts")
        names = [*(settings.words("python_files") or _TESTS)]
        names += ["*.py"] if "--doctest-modules" in words else []
        names += [word.partition("=")[2] for word in words if word.startswith("--doctest-glob=")] or [_DOCTESTS]
        places = [place.rstrip("/").removeprefix("./") for place in settings.words("testpaths")]
        plugins = [after for word, after in pairwise(words) if word == "-p"]
        plugins += [word[2:] for word in words if word.startswith("-p") and len(word) > 2]
        places = [] if {"", "."} & set(places) else places
        return cls(tuple(places), tuple(names), tuple(name for name in plugins if not name.startswith("no:")))
