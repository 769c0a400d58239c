"""What was timed so far, on disk, so that a benchmark that was stopped goes on: `.gate/bench/NAME`, or NAME below `--journal DIR`.

```
state.json         what the times are bound to: settings, machine, digests of the sources
time.turns         one line of figures a run, written by the timed processes as each run ends
time.log           what they printed
result.json        the result, once there is one; the others are gone then
```
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gate.benchmark.proof import Read
from golden.errors import StoreError
from golden.launch import beside
from golden.sources import read_content
from golden.timing import SUFFIX

FORMAT = 2  # 1 did not say which folders were listed


@dataclass(frozen=True)
class Journal:
    """The files of one benchmark."""

    folder: Path

    @classmethod
    def of(cls, project: Path, name: str, folder: Path | None = None) -> Journal:
        """The journal of a benchmark; its folder is made.

        Args:
            project: the project's folder.
            name: of the benchmark.
            folder: another one for journals, such as one that goes from machine to machine.

        Raises:
            StoreError: it cannot be.
        """
        elsewhere, folder = folder is not None, (folder or project / ".gate" / "bench") / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if elsewhere:
                return cls(folder)
            ignore = project / ".gate" / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n", encoding="utf-8")
        except OSError as error:
            raise StoreError.of(error, folder) from error
        return cls(folder)

    @property
    def report(self) -> Path:
        """Where a timed process reports."""
        return self.folder / "time.report.json"

    @property
    def result(self) -> Path:
        """Where the last whole result is."""
        return self.folder / "result.json"

    @property
    def _state(self) -> Path:
        return self.folder / "state.json"

    @property
    def _turns(self) -> Path:
        return beside(self.report, SUFFIX)

    def begin(self, read: Read, bound: Mapping[str, Any]) -> None:
        """Starts anew: what was timed before is gone. Raises StoreError."""
        state = {"format": FORMAT, "read": read.as_json(), "machine": dict(bound)}
        try:
            self.drop()
            self._state.write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise StoreError.of(error, self._state) from error

    def resume(self, project: Path, settings: Mapping[str, Any], bound: Mapping[str, Any]) -> tuple[Read | None, str]:
        """What an earlier, unfinished benchmark stood on, if that still holds.

        Returns:
            What it read, None to start anew; and why, "" where there is nothing to go on with.
        """
        state = self._load()
        if state is None:
            return None, ""
        read = Read(**state["read"])
        changes = [
            *(changed(project, read.sources)),
            *(["its settings"] if read.settings != json.loads(json.dumps(settings)) else []),
            *(["the machine or its software"] if state["machine"] != json.loads(json.dumps(bound)) else []),
        ]
        if changes:
            return None, f"{_listed(changes)} changed since {len(self.figures())} runs were timed"
        return read, ""

    def figures(self) -> dict[str, dict[str, Any]]:
        """The figures of the runs so far, by label; a line that was cut off by the end of its process is none."""
        return {found["label"]: found for found in self._lines()}

    def keep(self, labels: Collection[str]) -> None:
        """Drops the figures of other runs: of rounds that were not finished, of runs that do not count. Raises StoreError."""
        kept = [json.dumps(found) + "\n" for label, found in self.figures().items() if label in labels]
        part = self._turns.with_suffix(".part")
        try:
            part.write_text("".join(kept), encoding="ascii")
            part.replace(self._turns)
        except OSError as error:
            raise StoreError.of(error, self._turns) from error

    def finish(self, document: Mapping[str, Any]) -> None:
        """Keeps the result, and removes what it came of. Raises StoreError."""
        part = self.result.with_suffix(".part")
        try:
            part.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
            part.replace(self.result)
            self.drop()
        except OSError as error:
            raise StoreError.of(error, self.result) from error

    def drop(self) -> None:
        """Removes what was timed so far."""
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        for path in (self._state, self._turns, *(beside(self.report, end) for end in (".log", ".report.json", ".request.json"))):
            path.unlink(missing_ok=True)

    def _load(self) -> dict[str, Any] | None:
        try:
            state = json.loads(self._state.read_text(encoding="utf-8"))
            return dict(state) if state["format"] == FORMAT and set(state) == {"format", "read", "machine"} else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _lines(self) -> Iterator[dict[str, Any]]:
        try:
            text = self._turns.read_text(encoding="ascii")
        except (FileNotFoundError, UnicodeDecodeError):
            return
        for line in text.splitlines():
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict) and "label" in found:
                yield found


def changed(project: Path, sources: Mapping[str, str]) -> list[str]:
    """The sources that do not hold what they held."""
    found = {path: read_content(project / path) for path in sources}
    return [path for path, digest in sources.items() if (content := found[path]) is None or content.digest != digest]


def _listed(changes: list[str]) -> str:
    more = f" and {len(changes) - 3} more" if len(changes) > 3 else ""
    return ", ".join(changes[:3]) + more
