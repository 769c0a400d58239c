"""What a project held at its commits: files, and the tests that pytest collected there."""

from __future__ import annotations

from dataclasses import dataclass, field

from gate import encoding
from gate.collected import Answer, Collected
from gate.git import Objects
from gate.history import Repository


class Past:
    """Reads what commits hold through processes that stay; `close` ends them.

    A file of tests is parsed once as long as what it is read with stays what it was: neighbouring commits rarely differ there.
    """

    def __init__(self, repository: Repository) -> None:
        self._prefix, self._objects = repository.prefix, Objects(repository.top)
        self._texts: dict[str, _Text] = {}

    def close(self) -> None:
        """Ends the processes."""
        self._objects.close()

    def has(self, commit: str, file: str) -> bool:
        """Whether a commit holds a file, by its path in the project."""
        return self._find(commit, file) is not None

    def answer(self, commit: str, file: str, name: str) -> Answer:
        """What pytest collects at a commit from a file under a name."""
        if not self.has(commit, file):
            return Answer.NONE
        known = self._texts.get(file)
        if known and self._holds(known, commit):
            answer = known.collected.answer(file, name)
            if self._holds(known, commit):  # it may have read more
                return answer
        known = self._texts[file] = _Text(self, commit)
        return known.collected.answer(file, name)

    def read(self, commit: str, file: str, seen: dict[str, str | None]) -> str | None:
        """A file's text at a commit, None where there is none; its id goes into `seen`."""
        seen[file] = blob = self._find(commit, file)
        content = None if blob is None else self._objects.read(blob)
        if content is None or file.endswith(".py"):
            return None if content is None else encoding.text(content)
        return content.decode("utf-8", errors="replace")

    def _find(self, commit: str, file: str) -> str | None:
        return self._objects.find(commit, f"{self._prefix}{file}")

    def _holds(self, known: _Text, commit: str) -> bool:
        """Whether at a commit all is as it was read."""
        return all(self._find(commit, file) == blob for file, blob in known.seen.items())


@dataclass
class _Text:
    """The tests of a commit, and the ids of all that was read to tell them."""

    past: Past
    commit: str
    seen: dict[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.collected = Collected(lambda file: self.past.read(self.commit, file, self.seen))
