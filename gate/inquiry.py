"""Asks another Python what it holds."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gate import inventory

PATIENCE = 300.0  # seconds; a first import of torch from a slow disk takes long
LONGEST = 200  # characters of what it said: a program that is no Python may repeat all that it was given


@dataclass(frozen=True)
class Holding:
    """What a Python holds.

    Attributes:
        python: its version, "3.11.7".
        torch: the full version of its torch, empty where it has none.
        distributions: names to versions.
    """

    python: str
    torch: str
    distributions: Mapping[str, str]

    @property
    def lacking(self) -> list[str]:
        """Of what golden needs, the distributions that are missing."""
        return [name for name in inventory.NEEDED if name not in self.distributions and not (name == "torch" and self.torch)]


class NoAnswer(Exception):  # noqa: N818
    """The executable is no Python, or what was to be imported cannot be; holds the last line that it said."""


def ask(python: Path, variables: Mapping[str, str], *, load: bool = False) -> Holding:
    """What a Python holds, read from its metadata; with `load`, torch and the others are imported and torch says its version itself.

    Raises:
        NoAnswer: it does not answer.
    """
    code = Path(inventory.__file__).read_text(encoding="utf-8")
    command = [str(python), "-c", code, *(["load"] if load else [])]
    try:  # from the root, so that no folder of a project is taken for a package
        done = subprocess.run(
            command, cwd="/", env=dict(variables), capture_output=True, text=True, errors="replace", check=False, timeout=PATIENCE
        )
    except OSError as error:
        raise NoAnswer(error.strerror or str(error)) from None
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"no answer within {PATIENCE:.0f} s") from None
    try:
        facts = json.loads(done.stdout.splitlines()[-1])
        return Holding(facts["python"], facts["torch"], facts["distributions"])
    except (ValueError, IndexError, KeyError, TypeError):
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise NoAnswer(said if len(said) <= LONGEST else f"{said[:LONGEST]}...") from None
