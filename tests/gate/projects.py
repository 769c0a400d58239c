"""Real projects to judge: a training of a second, and every way in which one goes wrong."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCENARIOS = '''
import os, signal, sys, time
from pathlib import Path

import numpy as np
import torch

import factor
import golden

HERE = Path(__file__).parent


def train(record, steps=None, phases=lambda step, **all: all, noise=0.0):
    """A linear layer by SGD with momentum."""
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if record.first > 1:
        saved = torch.load(record.folder / "saved.pt", weights_only=False)
        model.load_state_dict(saved["model"])
        if "forgets" not in record.parameters:
            optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"])
    record.start(model=model)
    for step in range(record.first, (steps or record.steps) + 1):
        loss = model(torch.randn(4, 3)).square().mean() * factor.SCALE + noise
        loss.backward()
        optimizer.step()
        record(**phases(step, loss=loss, grads=golden.gradients(model), optimizer=optimizer, model=model))
        optimizer.zero_grad()
        if record.folder is not None and record.first == 1 and step == 2:
            states = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}
            torch.save(states, record.folder / "saved.pt")


def toy(record):
    print("hello from the scenario")
    train(record)


def random(record):
    """Draws from the system where noise.txt says so."""
    noise = float(np.random.default_rng().random()) if (HERE / "noise.txt").read_text().strip() == "1" else 0.0
    train(record, noise=noise)


def raises(record):
    train(record, steps=1)
    raise LookupError("the batch is lost")


def silent(record):
    pass


def short(record):
    train(record, steps=2)


def phases(record):
    train(record, phases=lambda step, **all: all if step != 2 else {key: all[key] for key in ("loss", "model")})


def leaves(record):
    sys.exit(5)


def crashes(record):
    train(record, steps=1)
    os.kill(os.getpid(), signal.SIGKILL)


def waits(record):
    """Goes on for ever after its first step, with a child of its own."""
    import subprocess
    train(record, steps=1)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (HERE / "child.pid").write_text(str(child.pid))
    time.sleep(600)
'''

CONFIG = """
[tool.gate.scenarios.{name}]
run = "scenarios.py:{function}"
steps = {steps}
{more}
"""


@dataclass(frozen=True)
class Answer:
    """What a command said.

    Attributes:
        code: its exit code.
        out, err: both streams.
        document: what `--json` wrote, empty where it wrote nothing.
    """

    code: int
    out: str
    err: str
    document: dict[str, Any]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the result."""
        found: list[dict[str, Any]] = self.document["results"]
        return found

    @property
    def row(self) -> dict[str, Any]:
        """The only row."""
        (only,) = self.rows
        return only

    def brief(self, *keys: str) -> list[tuple[Any, ...]]:
        """Some keys of each row."""
        return [tuple(row[key] for key in keys) for row in self.rows]


@dataclass(frozen=True)
class Project:
    """A folder with scenarios and their configuration."""

    folder: Path

    @classmethod
    def new(cls, folder: Path, **scenarios: str) -> Project:
        """A project with scenarios by name: the function (or "" for that of the name), then further lines of its table."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "scenarios.py").write_text(SCENARIOS)
        (folder / "factor.py").write_text("SCALE = 1.0\n")
        (folder / "noise.txt").write_text("0\n")
        project = cls(folder)
        project.configure(**scenarios)
        return project

    def configure(self, steps: int = 3, /, **scenarios: str) -> None:
        """Writes the configuration anew."""
        tables = ["[tool.gate]\n"]
        for name, text in scenarios.items():
            function, _, more = text.partition("\n")
            tables.append(CONFIG.format(name=name.replace("_", "-"), function=function or name, steps=steps, more=more))
        (self.folder / "pyproject.toml").write_text("".join(tables))

    def copy(self, folder: Path) -> Project:
        """The same project elsewhere."""
        return Project(Path(shutil.copytree(self.folder, folder, dirs_exist_ok=True)))

    def golden(self, name: str) -> Path:
        """The folder of a portable golden, of the only torch there is."""
        (found,) = (self.folder / "goldens/cpu").glob(f"torch-*/{name}")
        return found

    def digest(self) -> str:
        """Of the names and contents of everything below goldens."""
        root = self.folder / "goldens"
        found = [(str(path.relative_to(root)), path.read_bytes() if path.is_file() else b"") for path in sorted(root.rglob("*"))]
        return hashlib.sha256(repr(found).encode()).hexdigest()

    def gate(self, *arguments: str, **variables: str) -> Answer:
        """Runs a command in a process of its own, from the project's folder."""
        target = self.folder.parent / f"{self.folder.name}.json"
        target.unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, "-m", "gate", *arguments, "--json", str(target)],
            cwd=self.folder, env={**os.environ, **variables}, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        document = json.loads(target.read_text()) if target.exists() else {}
        return Answer(done.returncode, done.stdout, done.stderr, document)
