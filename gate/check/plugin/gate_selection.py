"""Says whether PYTEST_ADDOPTS takes part of the tests: it stands in no file of the project, so that nobody would know of it later.

What the project's own configuration selects is all that there is; what the environment selects besides is a part of it. Of pytest's own
options those count that are listed here. What an option of a plugin does, or a plugin that the variable loads, shows in the tests that
are gone when they have been collected, those left out that pytest itself deselects, by its own options.

Only what is selected counts. Other options may change what passes (-W, --strict-markers; --runxfail lets a test pass that should have
failed and did not), as any other variable of the environment may. And that a plugin which `-p no:NAME` keeps out would have found tests
in files of its own nobody sees, but for pytest's own.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

VARIABLE = "PYTEST_ADDOPTS"
# Options that leave tests out, run nothing of them, or have others collected than the configuration says.
_PARTS = (
    "file_or_dir", "keyword", "markexpr", "lf", "last_failed_no_failures", "stepwise", "stepwise_skip", "stepwise_reset", "deselect",
    "ignore", "ignore_glob", "collectonly", "override_ini", "inifilename", "rootdir", "confcutdir", "noconftest", "pyargs", "doctestglob",
    "setuponly", "setupplan", "help", "version", "markers", "showfixtures", "show_fixtures_per_test", "cacheshow",
)  # fmt: skip
_COLLECTING = ("no:python", "no:unittest", "no:doctest")
_STRICT = {"strict=true", "strict_config=true", "strict_markers=true"}  # what pytest 9 makes of --strict and its like: -o strict=true


class Selection:
    """Writes `part` into a folder, what the variable holds, where it does take part of them.

    Args:
        folder: where.
    """

    def __init__(self, folder: Path) -> None:
        self._given, self._file = os.environ.get(VARIABLE, ""), folder / "part"
        self._odd = False
        self._deselected: set[pytest.Item] = set()

    def pytest_configure(self, config: pytest.Config) -> None:
        """Reads the variable alone, by pytest's own parser."""
        if not self._given.strip():
            return
        try:
            found, usual = (vars(config._parser.parse_known_args(words)) for words in (shlex.split(self._given), []))
            own = _own(config)
        except (AttributeError, TypeError, ValueError):  # another pytest: who cannot tell does not vouch for it
            self._tell()
            return
        if _STRICT.issuperset(found.get("override_ini") or ()):
            found.pop("override_ini", None)
            usual.pop("override_ini", None)
        changed = {option for option in {*found, *usual} if found.get(option) != usual.get(option)}
        plugins = [name.strip() for name in found.get("plugins") or ()]
        self._odd = not changed <= own or not all(name.startswith("no:") for name in plugins)
        if changed & {*_PARTS} or {*plugins} & {*_COLLECTING}:
            self._tell()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> Generator[None, object, object]:
        """A file that a plugin passes over and pytest would not."""
        ignored = yield
        main = config.pluginmanager.get_plugin("main")
        if ignored and self._odd and not (main and main.pytest_ignore_collect(collection_path, config)):
            self._tell()
        return ignored

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, object, object]:
        """Tests that are gone, be it that nobody says so."""
        before = {*items}
        done = yield
        if self._odd and before - {*items} - self._deselected:
            self._tell()
        return done

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Takes note of what pytest's own options deselect."""
        frame = sys._getframe(1)
        while frame.f_back and str(frame.f_globals.get("__name__")).startswith("pluggy"):
            frame = frame.f_back
        if str(frame.f_globals.get("__name__")).startswith("_pytest."):
            self._deselected |= {*items}

    def _tell(self) -> None:
        self._file.write_text(self._given, encoding="utf-8", errors="replace")


def _own(config: pytest.Config) -> set[str]:
    """pytest's own options: those that it has without the plugins of others."""
    manager = pytest.PytestPluginManager()
    fresh = pytest.Config(manager)
    for name, plugin in config.pluginmanager.list_name_plugin():
        if str(getattr(plugin, "__name__", "")).startswith("_pytest."):
            manager.import_plugin(name)
    return {*vars(fresh._parser.parse_known_args([]))}
