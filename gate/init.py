"""Sets a project up: its configuration, a scenario made from a training script, a workflow and a hook. Never overwrites."""

from __future__ import annotations

import importlib
import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from gate import inventory, script, template
from gate.errors import UsageError
from gate.script import Script
from gate.version import public
from golden.errors import StoreError
from golden.project import read_gate

FORMAT = 1
GOLDENS = "goldens"
SCENARIOS = f"{GOLDENS}/scenarios.py"
WORKFLOW = ".github/workflows/gate.yml"
HOOK = ".pre-commit-config.yaml"


@dataclass(frozen=True)
class Place:
    """Where a project is set up.

    Attributes:
        root: its folder, which has or gets the pyproject.toml.
        top: the repository's folder, where workflows are looked for; the root where there is no repository.
    """

    root: Path
    top: Path

    @property
    def prefix(self) -> str:
        """The project's folder in the repository, "" where it is the repository."""
        inner = self.root.relative_to(self.top).as_posix()
        return "" if inner == "." else inner

    @property
    def pyproject(self) -> Path:
        """The file of the configuration."""
        return self.root / "pyproject.toml"


@dataclass(frozen=True)
class Setup:
    """What `init` did.

    Attributes:
        root: the project's folder.
        script: what the scenario was made from, None where there was none.
        ready: whether the scenario runs as it is; a skeleton is to be filled in first.
        wrote: paths with what was written there.
        left: paths with why nothing was written there, and what to do.
    """

    root: Path
    scenario: str
    script: Path | None
    ready: bool
    wrote: tuple[tuple[Path, str], ...] = ()
    left: tuple[tuple[Path, str], ...] = ()

    @property
    def next(self) -> str:
        """What to do now."""
        return "gate record" if self.ready else f"fill in {SCENARIOS} where it says {template.MARK}, then: gate record"

    def as_json(self) -> dict[str, Any]:
        """The result as `--json` writes it; paths as they are on this machine."""
        return {
            "format": FORMAT,
            "project": str(self.root),
            "scenario": self.scenario,
            "script": self.script and str(self.script),
            "ready": self.ready,
            "wrote": [{"path": str(path), "what": what} for path, what in self.wrote],
            "left": [{"path": str(path), "why": why} for path, why in self.left],
            "next": self.next,
        }

    def text(self) -> str:
        """What standard output is to hold."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for path, what in self.wrote:
            yield f"wrote {_shown(path, self.root)}: {what}"
        for path, why in self.left:
            yield f"left {_shown(path, self.root)} as it is: {why}"
        yield ""
        yield f"Next: {self.next}"


@dataclass(frozen=True)
class _File:
    """A file to write where there is none; `add` is what to do by hand where there is one."""

    path: Path
    text: str
    what: str
    add: str


def init(start: Path, named: Path | None) -> Setup:
    """Sets up the project that a folder belongs to.

    Args:
        start: the current folder.
        named: the training script; looked for where None.

    Raises:
        UsageError: the project is set up already, the script cannot be read, or several are there and none is named.
        StoreError: something cannot be written.
    """
    where = place(start)
    before = _pyproject(where.pyproject)
    found = script.read(_inside(start, named, where.root)) if named else script.only(where.root)
    scenario = template.function_name(found.file.stem if found else "training")
    file = where.root / SCENARIOS
    names = list(script.scenarios(file)) or [scenario]
    addition = template.configuration(names, SCENARIOS, GOLDENS)
    _check_addition(where.pyproject, before, addition)
    wrote, left = [], []
    for each in (_scenario_file(file, where.root, scenario, found), *_files(where, before)):
        if _write(each):
            wrote.append((each.path, each.what))
        else:
            left.append((each.path, each.add))
    _append(where.pyproject, before, addition)
    wrote.insert(0, (where.pyproject, f"[tool.gate] with {_counted(names)}"))
    ready = file not in dict(wrote) or (found is not None and found.training is not None)
    return Setup(where.root, names[0], found.file if found else None, ready, tuple(wrote), tuple(left))


def place(start: Path) -> Place:
    """The folder of the nearest pyproject.toml of the repository (of any above, where there is no repository), else the current one."""
    start = start.resolve()
    folders = [start, *start.parents]
    top = next((folder for folder in folders if (folder / ".git").exists()), None)
    within = folders[: folders.index(top) + 1] if top else folders
    root = next((folder for folder in within if (folder / "pyproject.toml").is_file()), start)
    return Place(root, top or root)


def _pyproject(file: Path) -> str:
    """What stands in pyproject.toml, "" where there is none. Raises UsageError where that has [tool.gate]."""
    if not file.is_file():
        return ""
    if read_gate(file) is not None:
        raise UsageError(f"{file} has [tool.gate] already, and init never overwrites. Change it there, or remove it to set up anew.")
    return file.read_bytes().decode("utf-8")


def _check_addition(file: Path, before: str, addition: str) -> None:
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        toml.loads(f"{before}\n{addition}".replace("\r\n", "\n"))
    except ValueError as error:
        raise UsageError(f"{file}: [tool.gate] cannot stand at its end ({error}). Write it where it can:\n\n{addition}") from None


def _inside(start: Path, named: Path, root: Path) -> Path:
    file = (start / named).resolve()
    if not file.is_file():
        raise UsageError(f"{named}: there is no such file. Name the training script.")
    if not file.is_relative_to(root):
        raise UsageError(f"{named} lies outside the project {root}. Run gate init in the script's own project.")
    return file


def _scenario_file(file: Path, root: Path, name: str, found: Script | None) -> _File:
    if found and found.training:
        inner = PurePosixPath(found.file.relative_to(root).as_posix())
        text = template.following(name, inner, found.training, len(PurePosixPath(SCENARIOS).parts) - 1)
        what = f"the scenario {name}, which runs {inner} as it is"
    else:
        text = template.skeleton(name, SCENARIOS, found)
        what = f"a scenario to fill in: {_why_skeleton(found, root)}"
    return _File(file, text, what, "its scenarios are configured")


def _why_skeleton(found: Script | None, root: Path) -> str:
    if found is None:
        return "no script here was found to train"
    return f"no function of {found.file.relative_to(root).as_posix()} steps an optimizer and knows its model"


def _files(where: Place, pyproject: str) -> Iterator[_File]:
    requirements = "-r requirements.txt" if (where.root / "requirements.txt").is_file() else None
    dependencies = "." if re.search(r"^\s*\[\s*project\s*\]", pyproject, re.MULTILINE) else requirements
    python = ".".join(platform.python_version_tuple()[:2])
    workflow = template.workflow(where.prefix, python, public(inventory.torch_version()), dependencies)
    yield _File(where.top / WORKFLOW, workflow, "a workflow that verifies every change", "it is there already")
    hook = template.hook(where.prefix)
    yield _File(
        where.top / HOOK,
        hook,
        "a pre-commit hook that verifies (pre-commit install makes it work)",
        f"add there what is not there:\n{hook}",
    )


def _write(file: _File) -> bool:
    """Writes a file, and says whether it did: one that is there stays as it is."""
    try:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        with file.path.open("x", encoding="utf-8", newline="\n") as target:
            target.write(file.text)
    except FileExistsError:
        return False
    except OSError as error:
        raise StoreError.of(error, file.path) from error
    return True


def _append(file: Path, before: str, addition: str) -> None:
    gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    text = f"{gap}{addition}"
    try:
        with file.open("a", encoding="utf-8", newline="\r\n" if "\r\n" in before else "\n") as target:
            target.write(text)
    except OSError as error:
        raise StoreError.of(error, file) from error


def _counted(names: list[str]) -> str:
    return f"the scenario {names[0]}" if len(names) == 1 else f"the scenarios {', '.join(names)}"


def _shown(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
