"""A small repository whose checks have left records, without one of them having to run."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gate.config import Config, find
from gate.evidence import Finding, Reading, Snapshot, leave
from gate.evidence.status import Line, Status, View
from golden import manifest
from tests.gate.repositories import commit, git, init
from tests.golden.goldens import golden

TORCH = "2.13.0"
FILES = {
    "src/replay.py": "def replay():\n    return 1\n",
    "src/update.py": "def update(w):\n    return w - 1\n",
    "tests/test_replay.py": "def test_it():\n    pass\n",
    "scenarios.py": "def digits(record): pass\n",
    "README.md": "# Toy\n",
    "CHANGELOG.md": "# Changes\n",
    ".gitignore": ".gate/\n",
}
CONFIG = """
[tool.ruff]
line-length = 100

[tool.gate]
torch = ["2.13.0"]

[tool.gate.required]
tests = ["cpu", "h200"]
goldens = ["cpu"]
mutation = ["cpu"]

[tool.gate.scenarios.digits]
run = "scenarios.py:digits"
steps = 2

[tool.gate.scenarios.text]
run = "scenarios.py:text"
steps = 2
"""


@dataclass(frozen=True)
class Toy:
    """A repository with two scenarios, their goldens, two sources and a test."""

    folder: Path

    @classmethod
    def new(cls, folder: Path) -> Toy:
        """With one commit, and no record yet."""
        init(folder)
        toy = cls(folder)
        for name in ("digits", "text"):
            toy.golden(name)
        commit(folder, {**FILES, "pyproject.toml": CONFIG}, "Begin")
        return toy

    @property
    def config(self) -> Config:
        """As it stands now."""
        return find(self.folder)

    def golden(self, name: str, seed: int = 0, reason: manifest.Reason | None = None, hardware: str = "cpu") -> Path:
        """Records a golden anew."""
        folder = self.folder / f"goldens/{hardware}/torch-{TORCH}/{name}"
        shutil.rmtree(folder, ignore_errors=True)
        golden(folder, seed=seed, steps=2, scenario={"name": name}, hardware=hardware, torch=TORCH, reason=reason)
        return folder

    def commit(self, message: str = "change", **files: str | bytes | None) -> str:
        """Commits files; `__` in a name stands for a slash, a trailing `_py`, `_md`, `_toml` for the suffix."""
        return commit(self.folder, {_path(name): content for name, content in files.items()}, message)

    def git(self, *arguments: str) -> str:
        """Runs git here."""
        return git(self.folder, *arguments)

    def tests(self, hardware: str = "cpu", **facts: Any) -> Path:
        """A record of all tests."""
        passed: dict[str, Any] = {"tests/test_replay.py": ["test_it"]}
        details = {"passed": passed, **({"cuda": {"passed": 1, "skipped": 0}} if hardware != "cpu" else {})}
        usual: dict[str, Any] = {"result": "passed", "counts": {"passed": 169, "failed": 0, "skipped": 0}, "details": details}
        reading = Reading(
            files=("src/replay.py", "src/update.py", "tests/test_replay.py"), tables=("tool.pytest",), patterns=("tests/*.py",),
            packages=facts.pop("packages", {}),
        )  # fmt: skip
        return self.leave(Finding("tests", hardware, TORCH, **{**usual, **facts}), reading)

    def mutation(self, **facts: Any) -> Path:
        """A record of mutants of update.py."""
        details = {"killed": {"src/update.py::update": ["tests/test_replay.py::test_it"]}, "paths": []}
        usual: dict[str, Any] = {"result": "passed", "counts": {"killed": 7}, "details": details}
        return self.leave(Finding("mutation", "cpu", TORCH, **{**usual, **facts}), Reading(("src/update.py", "tests/test_replay.py")))

    def verified(self, name: str, **facts: Any) -> Path:
        """A record of a golden, as `verify` leaves it."""
        usual: dict[str, Any] = {"result": "passed", "counts": {"identical": 1}, "scenario": name}
        reading = Reading(
            files=("src/update.py", "scenarios.py"), documents=True, goldens=(f"goldens/cpu/torch-{TORCH}/{name}",), scenarios=(name,)
        )
        return self.leave(Finding("goldens", "cpu", TORCH, **{**usual, **facts}), reading)

    def everything(self) -> None:
        """All that a merge needs."""
        self.tests()
        self.tests("h200")
        self.mutation()
        self.verified("digits")
        self.verified("text")

    def leave(self, finding: Finding, reading: Reading) -> Path:
        """Leaves a record now."""
        return leave(self.config, Snapshot.take(self.config), finding, reading)

    def status(self) -> Status:
        """What is there of what a merge needs."""
        return View.of(self.config).status()

    def states(self) -> dict[str, str]:
        """The state of each need."""
        return {f"{line.need.hardware}/{line.need.check}": line.state.value for line in self.status().lines}

    def line(self, name: str) -> Line:
        """One need by "cpu/tests"."""
        return next(line for line in self.status().lines if f"{line.need.hardware}/{line.need.check}" == name)


def _path(name: str) -> str:
    stem, _, suffix = name.rpartition("_")
    return f"{stem.replace('__', '/')}.{suffix}"
