"""Goldens that say they come from elsewhere: whole and sealed, as if they had been recorded there."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from golden import manifest
from golden.store import Golden
from tests.gate.projects import Project


def project(folder: Path, scenarios: str, steps: int, **tables: str) -> Project:
    """A project with one file of scenarios."""
    folder.mkdir(parents=True)
    (folder / "scenarios.py").write_text(scenarios)
    found = Project(folder)
    found.configure(steps, **tables)
    return found


def relabelled(golden: Path, target: Path, **environment: Any) -> Golden:
    """Copies a golden to where the hardware and torch that the target's path names would have recorded it."""
    shutil.copytree(golden, target)
    known = manifest.read(golden)
    facts = {"hardware": target.parent.parent.name, "torch": target.parent.name.removeprefix("torch-")}
    told = replace(known, **facts, environment={**known.environment, **environment})  # type: ignore[arg-type]
    (target / manifest.FILE).write_text(told.text())
    return Golden.open(target)
