"""Which folders of the project a run listed: what is in them may have decided its bits, opened or not."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from gate.listing_main import VARIABLE
from golden.launch import MAIN, Children, Ended, beside
from golden.settings import Request
from golden.tree import Tree

_LISTENER = Path(__file__).resolve().with_name("listing_main.py")


class Listeners(Children):
    """Processes that note which folders they list, in Python; beside that they are golden's own."""

    def run(self, python: Path, request: Request, environment: Mapping[str, str], log: Path | None) -> Ended:
        """As Children's."""
        notes = beside(request.report, ".listed")
        notes.unlink(missing_ok=True)
        return super().run(python, request, {**environment, VARIABLE: json.dumps([str(MAIN), str(notes)])}, log)

    def _start(self, arguments: list[str], environment: Mapping[str, str], output: int) -> subprocess.Popen[bytes]:
        return super()._start([str(_LISTENER) if word == str(MAIN) else word for word in arguments], environment, output)


def listed(request: Request) -> frozenset[str]:
    """The project's folders that a run has listed, relative to its root, a slash at the end ("/": the root itself). Removes the notes."""
    notes = beside(request.report, ".listed")
    try:
        lines = notes.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return frozenset()
    notes.unlink()
    tree = Tree(request.project, request.root)
    places = [tree.place(json.loads(line)) for line in lines]
    return frozenset("/" if place.path == "." else f"{place.path}/" for place in places if place is not None)
