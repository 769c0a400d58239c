"""Whether this machine honours the portable profile: asked once an interpreter, by the known answers that ship with golden."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from typing import Any

from gate.trial import Trial
from golden import launch

PATIENCE = 300.0  # seconds that a first import of torch may take


def ask(trial: Trial, *arguments: str) -> Any:
    """What `python -m golden` prints as JSON under a trial's interpreter and environment; None where it fails."""
    command = [str(trial.interpreter.python), str(launch.MAIN), *arguments]
    try:
        done = subprocess.run(
            command, env=trial.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=PATIENCE
        )
        return json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


class KnownAnswers:
    """Remembers what was asked; several threads may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[Path, bool | None] = {}

    def honoured(self, trial: Trial) -> bool | None:
        """Whether the known answers are right here, under the torch of a trial; None where the question fails."""
        python = trial.interpreter.python
        with self._lock:
            if python not in self._answers:
                answer = ask(trial, "known")
                self._answers[python] = bool(answer["honoured"]) if isinstance(answer, dict) and "honoured" in answer else None
            return self._answers[python]
