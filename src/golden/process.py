"""What a run's process, and each that it spawns, does before it loads anything of the project."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from golden.launch import beside
from golden.rerouting import ProjectFinder
from golden.settings import Request
from golden.sources import Watcher
from golden.tree import Tree

_JOIN = "GOLDEN_PROCESS"  # tells a spawned process which run it belongs to
_DEATH = 1  # PR_SET_PDEATHSIG
# Names that a scenario's file may have, and yet not be imported by: what has them is needed.
_TAKEN = {"golden", "torch", "numpy", "safetensors", "xxhash"}


@dataclass(frozen=True)
class Process:
    """A run's process, set up.

    Attributes:
        request: what it runs.
        module: the name that the scenario's file is imported by, here and in spawned processes.
    """

    request: Request
    module: str

    @classmethod
    def of(cls, request: Request, file: Path) -> Process:
        """The process of a request that stands in a file; spawned processes find it by a variable of the environment."""
        process = cls(request, module_name(request))
        os.environ[_JOIN] = f"{process.module}:{file}"
        return process

    def watcher(self) -> Watcher:
        """Sees what the run reads of the project; not yet begun."""
        request = self.request
        apart = [folder for folder in (request.out, request.folder) if folder is not None]
        return Watcher(Tree(request.project, request.root, apart), beside(request.report, ".journal"))

    def finder(self) -> ProjectFinder:
        """Leads imports to the request's root; not yet installed."""
        request = self.request
        package = request.file.parents[self.module.count(".")]
        roots = dict.fromkeys([*request.import_roots[:1], package, *request.import_roots[1:]])
        return ProjectFinder(Tree(request.project, request.root), list(roots), {self.module: request.file})


def join() -> None:
    """Sets up a process that a run has spawned: its imports and what it reads are the run's."""
    module, _, file = os.environ.get(_JOIN, "").partition(":")
    if file:
        process = Process(Request.from_json(Path(file).read_text(encoding="utf-8")), module)
        process.finder().install()
        process.watcher().join()


def module_name(request: Request) -> str:
    """What the scenario's file is imported by: dotted where it lies in packages, else its stem; another name where that is taken."""
    parts, folder = [request.file.stem], request.file.parent
    while folder != request.root and (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    taken = parts[0] in _TAKEN or parts[0] in sys.stdlib_module_names or parts[0] in sys.modules
    if taken or not all(part.isidentifier() for part in parts):
        return "scenario_" + "".join(c if c.isalnum() else "_" for c in request.file.stem)
    return ".".join(parts)


def die_with(parent: int) -> None:
    """Ends this process when the one that started it is gone, so that nobody's run goes on. On Linux; elsewhere nothing happens."""
    if platform.system() != "Linux":
        return
    ctypes.CDLL(None).prctl(_DEATH, signal.SIGKILL)
    try:
        os.kill(parent, 0)
    except ProcessLookupError:  # it was gone before
        os.kill(os.getpid(), signal.SIGKILL)
