"""What a change touches: a claim that it leaves alone is not its business to prove."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gate import git
from gate.claims.promises import Promise
from gate.mutation.aim import changed

_DEFINED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Change:
    """What is not as it was at a commit.

    Attributes:
        root: the project's folder.
        commit: None where everything is the change.
        lines: those of the work tree that are others, by file; None for all of a file.
    """

    root: Path
    commit: str | None
    lines: Mapping[str, set[int] | None]

    @classmethod
    def since(cls, root: Path, commit: str | None) -> Change:
        """What has changed since. Raises BaselineFailed."""
        return cls(root, commit, changed(root, commit) or {})

    def touches(self, file: str, first: int, last: int) -> bool:
        """Whether a line of a file, from the first to the last, is another one."""
        touched = self.lines.get(file, set())
        return self.commit is None or touched is None or any(first <= line <= last for line in touched)

    def touches_promise(self, promise: Promise) -> bool:
        """Whether it touches a promise: its sentence, the function that promises, or a test that is named to hold it."""
        if promise.owner is None:
            own = self.touches(promise.file, *promise.span)
        else:
            own = self._touches_code(promise.file, promise.owner.split(".") if promise.owner else [])
        return own or any(self._touches_test(test) for test in promise.tests)

    def _touches_test(self, test: str) -> bool:
        file, _, name = test.partition("::")
        return self._touches_code(file, name.partition("[")[0].split("::"))

    def _touches_code(self, file: str, names: Sequence[str]) -> bool:
        """Whether what a file defines under a name is another thing; comments and blanks are none of it."""
        if self.commit is None:
            return True
        if file not in self.lines:
            return False
        path = self.root / file
        after = _trees(path.read_bytes() if path.is_file() else b"", names)
        return not after or after != _trees(git.run(self.root, "show", f"{self.commit}:./{file}", fine=(0, 128)), names)


def _trees(source: bytes, names: Iterable[str]) -> list[str]:
    """What a file defines under a name, as syntax; nothing where it does not parse, or has the name from elsewhere."""
    try:
        found: list[ast.AST] = [ast.parse(source)]
        for name in names:
            inner = (node for outer in found for node in ast.walk(outer) if node is not outer)
            found = [node for node in inner if isinstance(node, _DEFINED) and node.name == name]
        return [ast.dump(node) for node in found]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
