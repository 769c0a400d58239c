"""Which installed distributions files import, by their text: nothing is imported, so that gate's own process stays what it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path

from gate import encoding
from gate.inventory import canonical

_IMPORT = re.compile(r"^\s*(?:from|import)\s+(\w+)", re.MULTILINE)
_ALWAYS = {"pytest"}  # it is there whether or not a test names it


def imported(root: Path, files: Iterable[str]) -> dict[str, str]:
    """Names and versions of the distributions that hold a module which one of the files names in an import, and of pytest.

    Args:
        root: the project's folder.
        files: relative to it; those that are no Python source, or are gone, name nothing.
    """
    tops = set(_ALWAYS)
    for path in files:
        if path.endswith(".py") and (root / path).is_file():
            tops |= set(_IMPORT.findall(encoding.text((root / path).read_bytes())))
    found: dict[str, str] = {}
    for item in distributions():
        if item.metadata["Name"] and tops & _tops(item) and not _is_editable(item):
            found.setdefault(canonical(item.metadata["Name"]), item.version)
    return dict(sorted(found.items()))


def _tops(item: Distribution) -> set[str]:
    """Top-level modules of a distribution. RECORD is read as text: importlib's objects take seconds."""
    lines = (item.read_text("RECORD") or "").splitlines()
    return {line.partition(",")[0].strip('"').partition("/")[0].partition(".")[0] for line in lines}


def _is_editable(item: Distribution) -> bool:
    """Whether its sources lie elsewhere and are known by their content."""
    origin = item.read_text("direct_url.json")
    return bool(origin and json.loads(origin).get("dir_info", {}).get("editable"))
