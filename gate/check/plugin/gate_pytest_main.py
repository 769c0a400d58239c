"""Starts pytest with the plugin beside this file, from a request in JSON: `python gate_pytest_main.py REQUEST.json`.

A file of its own instead of `python -m pytest -p ...`: the folder of the plugin then need not stand in PYTHONPATH, which tests hand on.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import json
import os
import platform
import signal
import sys
from pathlib import Path

FOLDER = str(Path(__file__).resolve().parent)
REQUEST = "GATE_CHECK_REQUEST"
NEEDED = {"pytest": (8, 0), "coverage": (7, 17)}
LACKING = 90  # exit code: something is missing; standard output's last line names it
_DEATH = 1  # PR_SET_PDEATHSIG


def main(file: str) -> int:
    """Runs pytest as the request says; pytest's exit code."""
    if platform.system() == "Linux":
        ctypes.CDLL(None).prctl(_DEATH, signal.SIGKILL)
    lacking = missing()
    if lacking:
        sys.stdout.write(f"\n{json.dumps(lacking)}\n")
        return LACKING
    request = json.loads(Path(file).read_text(encoding="utf-8"))
    sys.path[:] = [request["root"], FOLDER, *(entry for entry in sys.path if entry != FOLDER)]
    os.environ[REQUEST] = file
    import pytest

    selection = importlib.import_module("gate_selection")
    # Of a run of some tests by id others are left out by ourselves: collecting all of them has told.
    apart = [selection.Selection(Path(request["folder"]))] if request["ids"] is None else []
    return int(pytest.main(arguments(request), plugins=apart))


def missing() -> list[str]:
    """Requirements that this Python does not meet."""
    return [f"{name}>={'.'.join(map(str, floor))}" for name, floor in NEEDED.items() if _version(name) < floor]


def arguments(request: dict[str, object]) -> list[str]:
    """The command line: the project's own configuration stands before it and holds, but for what would write into the project."""
    # A cache that stands in the work tree would be a change of it; a file that cannot be imported must not keep the others from running.
    words = ["-p", "gate_pytest", "-o", f"cache_dir={request['cache']}", "--continue-on-collection-errors", "--color=no"]
    loads_all = not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    if loads_all and importlib.util.find_spec("pytest_cov"):  # two measurements of one process do not go together
        words.append("--no-cov")
    if importlib.util.find_spec("xdist") and (loads_all or request["jobs"]):
        words += ["-p", "xdist", "-n", str(request["jobs"])]
    return words + (["--collect-only", "-q"] if request["mode"] == "collect" else [])


def _version(name: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in importlib.metadata.version(name).split(".")[:2])
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return ()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
