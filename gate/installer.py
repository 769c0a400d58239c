"""Runs uv, which makes environments, and tells its failures in a few lines."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

from gate.errors import NoTorch

# What would lead uv to another interpreter, project or set of versions than the one it is told.
_FOREIGN = frozenset(
    {"VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_PROJECT", "UV_PROJECT_ENVIRONMENT"}
    | {
        "UV_WORKING_DIR",
        "UV_WORKING_DIRECTORY",
        "UV_CONSTRAINT",
        "UV_OVERRIDE",
        "UV_EXCLUDE",
        "UV_REQUIRE_HASHES",
        "UV_TARGET",
        "UV_PREFIX",
    }
)
_PROGRESS = re.compile(
    r"\s*(Using|Resolv|Prepar|Install|Uninstall|Download|Built|Building|Creating|Activate|Audited|Checked|warning:|[+~-] \S+==)"
)
_FRAME = re.compile(r"^[\s\xd7\u2500-\u257f\u25b6]+")  # a cross, lines and an arrow
_LINES = 6
_WIDTH = 300

_OTHER_PYTHON = "Run gate under a Python that it supports, or give an interpreter that has it: --python PATH."
_WHEELS = "name a folder of wheels by UV_FIND_LINKS, or give an interpreter that has it: --python PATH."
_CACHES = "or move the caches: XDG_CACHE_HOME (environments) and UV_CACHE_DIR (uv's own)."
_ADVICE = {  # what uv says to what to do, the first that occurs
    "No space left on device": f"Free disk space, {_CACHES}",
    "network was disabled": f"UV_OFFLINE is set: unset it, {_WHEELS}",
    "has no wheels with a matching": _OTHER_PYTHON,
    "does not satisfy Python": _OTHER_PYTHON,
    "there is no version of torch": "Name a version that exists.",
    "was not found in the package registry": "Correct the requirement, or name where it is by UV_INDEX or UV_FIND_LINKS.",
    "error sending request": f"Check the network, {_WHEELS}",
    "Failed to fetch": f"Check the network, {_WHEELS}",
    "Permission denied": f"Correct the permissions, {_CACHES}",
}


class Failed(Exception):  # noqa: N818
    """uv said no; holds its reason in a few lines, and what to do."""


def program() -> str:
    """Where uv is: the one installed with gate, else the one on the PATH.

    Raises:
        NoTorch: there is none.
    """
    try:
        from uv import find_uv_bin

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
    if found is None:
        raise NoTorch(
            "uv, which installs other versions of torch, was not found. Run pip install uv, or give an interpreter: --python PATH."
        )
    return found


def environment(base: Mapping[str, str], cache: Path | None = None) -> dict[str, str]:
    """`base` for uv; `cache` is a folder for its cache where it has none of its own."""
    kept = {key: value for key, value in base.items() if key not in _FOREIGN} | {"NO_COLOR": "1"}
    return kept if cache is None or "UV_CACHE_DIR" in kept else kept | {"UV_CACHE_DIR": str(cache)}


def run(arguments: list[str], variables: Mapping[str, str], tell: Callable[[str], object] = lambda line: None) -> str:
    """What uv prints to its standard output.

    Args:
        arguments: the command and its arguments, all paths absolute.
        variables: its whole environment.
        tell: called with each line of progress.

    Raises:
        NoTorch: there is no uv.
        Failed: uv's reason.
    """
    command, pipe = [program(), *arguments], subprocess.PIPE
    # From the root, where no pyproject.toml of a project adds its constraints.
    with subprocess.Popen(
        command, cwd="/", env=dict(variables), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, errors="replace"
    ) as process:
        try:
            assert process.stderr is not None
            lines = list(_told(process.stderr, tell))
            output = process.stdout.read() if process.stdout else ""
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise Failed(reason("\n".join(lines)) or f"uv ended with exit code {process.returncode} and gave no reason.")
    return output


def reason(stderr: str) -> str:
    """uv's reason in a few lines, without its progress and its frames, and what to do about it."""
    lines = [_FRAME.sub("", line) for line in stderr.splitlines() if line.strip() and not _PROGRESS.match(line)]
    start = next((index for index, line in enumerate(lines) if line.startswith("error")), 0)  # warnings come before
    kept = (
        lines[start:] if len(lines) - start <= _LINES else [*lines[start : start + 2], *lines[2 - _LINES :]]
    )  # the last cause is the root
    text = "\n".join(line if len(line) <= _WIDTH else f"{line[: _WIDTH // 2]} ... {line[-_WIDTH // 2 :]}" for line in kept)
    advice = next((advice for mark, advice in _ADVICE.items() if mark.lower() in stderr.lower()), "")
    return f"{text}\n{advice}".strip()


def _told(stream: IO[str], tell: Callable[[str], object]) -> Iterator[str]:
    for line in stream:
        tell(line.strip())
        yield line.rstrip()


def python(minor: str, variables: Mapping[str, str]) -> Path | None:
    """A Python of a minor version ("3.11") that this machine has; None where it has none."""
    try:
        return Path(run(["python", "find", "--no-project", "--no-python-downloads", minor], variables).strip())
    except Failed:
        return None
