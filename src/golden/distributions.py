"""Which distributions a run imported, by name and version."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlparse

# Golden brings these along: that a process holds them says nothing about the scenario.
_OURS = frozenset({"musgd-gate", "safetensors", "xxhash"})
# Every run's arithmetic is these; torch contracts by opt_einsum where it finds it.
_ALWAYS = frozenset({"numpy", "opt_einsum", "torch"})


def baseline() -> frozenset[str]:
    """Names of the modules in this process once torch is in: call it just before the scenario's file is imported.

    What torch imports by itself where it finds it (tqdm, for one) says what is installed, not what the scenario used.
    """
    import torch  # noqa: F401

    return frozenset(sys.modules)


def imported(before: frozenset[str] = frozenset(), project: Path | None = None) -> dict[str, str]:
    """The distributions whose modules this process has imported, normalised name to version, sorted; torch and numpy among them.

    Args:
        before: `baseline()`; modules that were there already do not count.
        project: the project's folder; a distribution installed from it in editable form is left out, as its sources are recorded.
    """
    modules = {name: module for name, module in sys.modules.items() if name not in before or name.partition(".")[0] in _ALWAYS}
    tops = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names
    found: dict[str, str] = {}
    for top, claimants in _claims(tops).items():
        for claimant in claimants if len(claimants) == 1 else _owners(top, claimants, modules):
            name = normalised(claimant.metadata["Name"])
            if name not in _OURS and not _is_project(claimant, project):
                found[name] = claimant.version
    return dict(sorted(found.items()))


def normalised(name: str) -> str:
    """A distribution's name as indexes compare it: "Ruamel.YAML" gives "ruamel-yaml"."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _claims(tops: set[str]) -> dict[str, list[Distribution]]:
    """For each of `tops` the distributions that hold a module or package of that name; of two of one name the first on the path."""
    found: dict[str, list[Distribution]] = {}
    seen: set[str] = set()
    for distribution in distributions():
        name = distribution.metadata["Name"]
        if not name or normalised(name) in seen:
            continue
        seen.add(normalised(name))
        for top in _tops(distribution) & tops:
            found.setdefault(top, []).append(distribution)
    return found


def _tops(distribution: Distribution) -> set[str]:
    listed = distribution.read_text("top_level.txt")
    if listed and listed.strip():
        return set(listed.split())
    return {path.partition("/")[0].partition(".")[0] for path in _files(distribution)}


def _files(distribution: Distribution) -> list[str]:
    """Paths of the distribution's files, relative to its folder of packages. RECORD is read as text: importlib's objects take seconds."""
    record = distribution.read_text("RECORD") or ""
    return [line.rsplit(",", 2)[0].strip('"') for line in record.splitlines()]


def _owners(top: str, claimants: list[Distribution], modules: Mapping[str, ModuleType]) -> list[Distribution]:
    """Those of `claimants`, which share the namespace `top`, that hold the file of an imported module."""
    files = [module.__file__ for name, module in modules.items() if name.partition(".")[0] == top and getattr(module, "__file__", None)]
    found = []
    for claimant in claimants:
        root = Path(str(claimant.locate_file("")))
        held = {str(root / path) for path in _files(claimant)}
        if any(file in held for file in files):
            found.append(claimant)
    return found


def _is_project(distribution: Distribution, project: Path | None) -> bool:
    origin = distribution.read_text("direct_url.json")
    if project is None or not origin:
        return False
    facts = json.loads(origin)
    if not facts.get("dir_info", {}).get("editable"):
        return False
    folder = Path(unquote(urlparse(facts["url"]).path)).resolve()
    return folder == project.resolve() or project.resolve() in folder.parents
