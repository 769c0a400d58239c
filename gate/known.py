"""Whether this machine honours the portable profile: asked once an interpreter, by the known answers that ship with golden."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gate.inquiry import NoAnswer
from gate.trial import Trial
from golden import launch

PATIENCE = 300.0  # seconds that a first import of torch may take


def answer(python: Path, variables: Mapping[str, str], *arguments: str) -> Any:
    """What `python -m golden` prints as JSON under an interpreter, in an environment.

    Raises:
        NoAnswer: it fails; holds the last line that it said.
    """
    command = [str(python), str(launch.MAIN), *arguments]
    plain: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "errors": "replace"}
    try:
        done = subprocess.run(command, env=dict(variables), check=False, timeout=PATIENCE, **plain)
        return json.loads(done.stdout)
    except OSError as error:
        raise NoAnswer(error.strerror or str(error)) from None
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"no answer within {PATIENCE:.0f} s") from None
    except ValueError:
        raise NoAnswer((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]) from None


def ask(trial: Trial, *arguments: str) -> Any:
    """The same under a trial's interpreter and environment; None where it fails."""
    try:
        return answer(trial.interpreter.python, trial.environment, *arguments)
    except NoAnswer:
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
