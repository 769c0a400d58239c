"""What a Python interpreter holds: its version, its torch and its distributions, told without importing torch.

Another interpreter runs this file's text and prints the answer, so it imports the standard library alone and keeps to the syntax of
Python 3.7: an interpreter that is too old has to be able to say so.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import platform
import re
import sys
from pathlib import Path
from typing import Any, Dict, List  # noqa: UP035  (Python 3.7)

NEEDED = ("torch", "numpy", "safetensors", "xxhash")  # what golden needs to run a scenario
_VERSION = re.compile(r"^__version__\s*(?::[^=]*)?=\s*['\"]([^'\"]+)['\"]", re.MULTILINE)


def torch_version() -> str:
    """The full version of the torch that an import would bring ("2.13.0+cu130"); empty where there is none.

    The metadata of the distribution often leave out which build it is; torch's own file holds it.
    """
    metadata = importlib.import_module("importlib.metadata")
    try:
        found = metadata.distribution("torch")
    except metadata.PackageNotFoundError:
        return _read(_imported())
    return _read(Path(found.locate_file("torch"))) or _read(_imported()) or str(found.version)


def distributions() -> Dict[str, str]:  # noqa: UP006
    """Names, in lower case with dashes, to versions; of two of a name the one that comes first on the path."""
    found: Dict[str, str] = {}  # noqa: UP006
    for item in importlib.import_module("importlib.metadata").distributions():
        name = item.metadata["Name"]
        if name:
            found.setdefault(canonical(name), item.version)
    return found


def canonical(name: str) -> str:
    """A distribution's name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _imported() -> Path:
    spec = importlib.util.find_spec("torch")  # of a top-level name: looks for it, imports nothing
    return Path(spec.origin).parent if spec and spec.origin else Path()


def _read(folder: Path) -> str:
    try:
        match = _VERSION.search((folder / "version.py").read_text(encoding="utf-8"))
    except OSError:
        return ""
    return match.group(1) if match else ""


def _loaded() -> str:
    for name in NEEDED:
        importlib.import_module(name)
    return str(importlib.import_module("torch").__version__)


def main(arguments: List[str]) -> None:  # noqa: UP006
    """Prints one line of JSON; with the argument `load` torch is imported, and the version is what it then says."""
    facts: Dict[str, Any] = {"python": platform.python_version(), "torch": "", "distributions": {}}  # noqa: UP006
    if sys.version_info >= (3, 8):  # noqa: UP036
        facts["torch"], facts["distributions"] = torch_version(), distributions()
    if arguments == ["load"]:
        facts["torch"] = _loaded()
    sys.stdout.write("\n" + json.dumps(facts) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
