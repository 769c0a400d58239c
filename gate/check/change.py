"""What changed in a project since a commit: content before and now, uncommitted and untracked work included."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gate import git
from gate.history import Repository

_OURS = ".gate/"
_TOOLING = {".gitignore", ".gitattributes", ".gitmodules", ".mailmap", ".editorconfig", ".pre-commit-config.yaml", "makefile", "py.typed"}
_TOOL_FOLDERS = (".github", ".gitlab", ".circleci", ".vscode", ".idea", ".devcontainer")
_DOCUMENTS = {".md", ".rst", ".adoc", ".mdx"}
_IMAGES = {".svg", ".png", ".jpg", ".jpeg", ".gif"}
_TEXTS = {"license", "licence", "notice", "authors", "contributors", "changelog", "changes", "readme", "codeowners", "citation.cff"}


@dataclass(frozen=True)
class Change:
    """A file that is not what it was.

    Attributes:
        path: relative to the project, with forward slashes.
        old, new: what it held and holds; None where there was or is no such file.
    """

    path: str
    old: bytes | None
    new: bytes | None

    @property
    def python(self) -> bool:
        """Whether it is Python's source."""
        return self.path.endswith(".py")

    @property
    def document(self) -> bool:
        """Whether it is documentation or a setting of other tools, by its name: of no use to a test unless one reads it."""
        pure = PurePosixPath(self.path)
        name, suffix = pure.name.lower(), pure.suffix.lower()
        if name in _TOOLING or suffix in _DOCUMENTS | {".pyi"} or pure.parts[0] in _TOOL_FOLDERS:
            return True
        below = any(part.lower() in ("docs", "doc") for part in pure.parts[:-1])
        texts = pure.stem.lower() in _TEXTS or name in _TEXTS
        return (texts and suffix in ("", ".txt", ".cff")) or (below and suffix in _IMAGES | {".txt"})

    @property
    def listed(self) -> str | None:
        """The folder, with a slash at its end, that lists other names than before; None for a file that was and is there."""
        parent = PurePosixPath(self.path).parent.as_posix()
        return None if self.old is not None and self.new is not None else f"{'' if parent == '.' else parent}/"


def changes(repository: Repository, commit: str | None) -> tuple[Change, ...]:
    """Every file of the project that differs from a commit's, by path; None stands for an empty one. What git ignores is not seen.

    Raises:
        BaselineFailed: git cannot tell.
    """
    project = repository.project
    against = commit or _empty(repository)
    changed = _names(
        project, "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=none", "--relative", against
    )
    untracked = _names(project, "ls-files", "-z", "--others", "--exclude-standard")
    objects = git.Objects(repository.top)
    try:
        found = [_change(repository, objects, commit, path) for path in sorted({*changed, *untracked})]
    finally:
        objects.close()
    return tuple(change for change in found if change.old != change.new or change.old is None)


def files(project: Path) -> tuple[str, ...]:
    """The project's files: those that git tracks, and others that it does not ignore; in a folder without git all but hidden ones."""
    if not _has_git(project):
        return tuple(sorted(_walk(project)))
    named = set(_names(project, "ls-files", "-z", "--cached", "--others", "--exclude-standard"))
    return tuple(sorted(path for path in named if (project / path).is_file()))


def _has_git(project: Path) -> bool:
    return any((folder / ".git").exists() for folder in (project, *project.parents))


def _walk(project: Path) -> Iterator[str]:
    for folder, names, found in os.walk(project):
        here = Path(folder)
        names[:] = [
            name for name in names if not name.startswith(".") and name != "__pycache__" and not (here / name / "pyvenv.cfg").exists()
        ]
        yield from ((here / name).relative_to(project).as_posix() for name in found if not name.startswith("."))


def _change(repository: Repository, objects: git.Objects, commit: str | None, path: str) -> Change:
    blob = objects.find(commit, repository.prefix + path) if commit else None
    file = repository.project / path
    return Change(path, objects.read(blob) if blob else None, file.read_bytes() if file.is_file() else None)


def _names(project: Path, *arguments: str) -> list[str]:
    answer = os.fsdecode(git.run(project, *arguments, "--", "."))
    return [name for name in answer.split("\0") if name and not name.startswith(_OURS)]


def _empty(repository: Repository) -> str:
    """The tree without files."""
    return git.run(repository.top, "hash-object", "-t", "tree", "--stdin").decode().strip()
