"""One thing that is wrong, doubtful or worth a look, with its place."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class Weight(str, Enum):
    """How much an issue weighs, heaviest first."""

    CLAIM = "claim"  # judged and wrong
    UNJUDGED = "not-judged"  # there is no evidence to hold it against, though there has to be
    INCONCLUSIVE = "inconclusive"  # nor of this, which the change leaves alone: told, and nothing more
    WARNING = "warning"

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Issue:
    """One finding.

    Attributes:
        file: relative to the project.
        line: from 1.
        message: what is wrong and what to do.
        hardware: whose evidence it lacks; none where that is none's in particular.
    """

    weight: Weight
    file: str
    line: int
    message: str
    hardware: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The finding on one line."""
        return f"{self.file}:{self.line}: {self.weight}: {self.message}"

    def as_json(self) -> dict[str, Any]:
        """The finding as `--json` writes it."""
        return {"kind": self.weight.value, "file": self.file, "line": self.line, "message": self.message}
