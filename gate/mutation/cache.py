"""What earlier runs found, by content: a verdict holds for as long as nothing that it depends on has changed."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gate.mutation.mutant import Judgement, Mutant, Status
from golden.errors import StoreError

_EVERY = 5.0
_KEPT = 500  # files of a kind; the oldest ones go


class Cache:
    """Files below `.gate/mutation`. Only whole ones are ever read, so that a killed run loses seconds at most.

    Args:
        project: the project's folder.
        fresh: reads nothing.
    """

    def __init__(self, project: Path, *, fresh: bool = False) -> None:
        self._folder = project / ".gate" / "mutation"
        self._fresh = fresh
        self._verdicts: dict[str, dict[str, Any]] = {}
        self._changed: set[str] = set()
        self._saved = time.monotonic()
        self._lock = threading.Lock()

    def get(self, kind: str, key: str) -> Any:
        """What was put there; None where nothing was."""
        path = self._folder / kind / f"{key[:40]}.json"
        if self._fresh:
            return None
        with suppress(OSError, ValueError):
            found = json.loads(path.read_text(encoding="utf-8"))
            os.utime(path)
            return found
        return None

    def put(self, kind: str, key: str, value: Any) -> None:
        """Keeps a value.

        Raises:
            StoreError: the disk or its permissions.
        """
        path = self._folder / kind / f"{key[:40]}.json"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            ignore = self._folder.parent / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n", encoding="utf-8")
            aside = path.with_name(f".{path.name}.{os.getpid()}")
            aside.write_text(json.dumps(value), encoding="utf-8")
            aside.replace(path)
            _prune(path.parent)
        except OSError as error:
            raise StoreError.of(error, path) from error

    def judged(self, context: str, mutant: Mutant, covering: str, killers: Mapping[str, str]) -> Judgement | None:
        """An earlier verdict.

        Args:
            context: of everything that all verdicts of the file depend on.
            mutant: the fault.
            covering: of the tests that run it and what they depend on.
            killers: of each such test by itself: a kill holds while its test is the same.
        """
        entry = self._of(context).get(mutant.key)
        if entry is None:
            return None
        tests, asked = (tuple(test for test, digest in entry[key].items() if killers.get(test) == digest) for key in ("tests", "asked"))
        same = entry["covering"] == covering or (tests and tests[0] == next(iter(entry["tests"])))
        if not same:
            return None
        return Judgement(mutant, Status(entry["status"]), tuple(entry["killed_by"]), entry["reason"], tests, asked)

    def keep(self, context: str, judged: Judgement, covering: str, killers: Mapping[str, str]) -> None:
        """Keeps a verdict; written now and then, and by `save`."""
        with self._lock:
            self._of(context)[judged.mutant.key] = {
                "status": judged.status.value,
                "killed_by": list(judged.killed_by),
                "reason": judged.reason,
                "tests": {test: killers.get(test, "") for test in judged.tests},
                "asked": {test: killers.get(test, "") for test in judged.asked},
                "covering": covering,
            }
            self._changed.add(context)
            if time.monotonic() - self._saved > _EVERY:
                self._save()

    def save(self) -> None:
        """Writes what is not yet written."""
        with self._lock:
            self._save()

    def _save(self) -> None:
        for context in sorted(self._changed):
            self.put("verdicts", context, self._verdicts[context])
        self._changed.clear()
        self._saved = time.monotonic()

    def _of(self, context: str) -> dict[str, Any]:
        if context not in self._verdicts:
            self._verdicts[context] = self.get("verdicts", context) or {}
        return self._verdicts[context]


def _prune(folder: Path) -> None:
    paths: Sequence[Path] = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in paths[_KEPT:]:
        path.unlink(missing_ok=True)
