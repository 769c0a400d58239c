"""Says whether PYTEST_ADDOPTS takes part of the tests: it stands in no file of the project, so that nobody would know of it later.

What the project's own configuration selects is all that there is; what the environment selects besides is a part of it.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

VARIABLE = "PYTEST_ADDOPTS"
# Options that leave tests out, run nothing of them, or have others collected than the configuration says.
_PARTS = (
    "file_or_dir", "keyword", "markexpr", "lf", "stepwise", "stepwise_skip", "deselect", "ignore", "ignore_glob",
    "collectonly", "override_ini", "inifilename", "rootdir", "confcutdir", "noconftest", "pyargs", "setuponly", "setupplan",
)  # fmt: skip

# Options that select nothing whatever the configuration selects; of those of plugins nobody knows.
_PLAIN = (
    "verbose", "quiet", "color", "code_highlight", "tbstyle", "reportchars", "plugins", "capture", "durations", "durations_min", "maxfail",
    "showlocals", "show_capture", "no_header", "no_summary", "failedfirst", "newfirst", "pythonwarnings", "xmlpath", "fulltrace",
    "cacheclear", "numprocesses", "dist", "tx", "timeout", "basetemp",
)  # fmt: skip


class Selection:
    """Writes `part` into a folder, what the variable holds, where it does take part of them.

    Args:
        folder: where.
    """

    def __init__(self, folder: Path) -> None:
        self._given, self._file = os.environ.get(VARIABLE, ""), folder / "part"
        self._odd = False

    def pytest_configure(self, config: pytest.Config) -> None:
        """Reads the variable alone, by pytest's own parser."""
        if not self._given.strip():
            return
        try:
            found, usual = (vars(config._parser.parse_known_args(words)) for words in (shlex.split(self._given), []))
        except (AttributeError, TypeError, ValueError):  # another pytest: who cannot tell does not vouch for it
            self._tell()
            return
        changed = {option for option in {*found, *usual} if found.get(option) != usual.get(option)}
        self._odd = not changed <= {*_PLAIN}
        if changed & {*_PARTS}:
            self._tell()

    def pytest_deselected(self) -> None:
        """An option of a plugin may take part of them, too."""
        if self._odd:
            self._tell()

    def _tell(self) -> None:
        self._file.write_text(self._given, encoding="utf-8", errors="replace")
