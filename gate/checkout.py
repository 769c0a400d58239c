"""Writes a project as a commit has it into a folder outside the project."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gate import git
from gate.errors import BaselineFailed
from gate.history import Base, Repository

_LINK = b"120000"  # the mode of its entry in a tree


@contextlib.contextmanager
def checked_out(repository: Repository, base: Base) -> Iterator[Path]:
    """The project as a commit has it, in a folder that is gone afterwards.

    It is written as a checkout writes it, with a temporary index. `git archive` would leave out what the attribute export-ignore names,
    which a run may need, and put other text into what export-subst names, which then is not what was recorded. Submodules that are
    checked out come along, each at the commit that the base names; so do the sources that the base carries.

    Raises:
        BaselineFailed: git cannot give the files, or no folder outside the project can be written to.
    """
    with tempfile.TemporaryDirectory(prefix="gate-base-", dir=_outside(repository.top), ignore_cleanup_errors=True) as name:
        scratch = Path(name).resolve()
        _write(repository.top, base.commit, repository.prefix, scratch / "tree", scratch / "index")
        project = scratch / "tree" / repository.prefix
        project.mkdir(parents=True, exist_ok=True)
        for path in base.carried:
            _carry(repository.project, project, path)
        yield project


def _carry(project: Path, copy: Path, path: str) -> None:
    """Brings a file that git does not hold; a committed link on its way that led outside by its place is made to lead there again."""
    for step in [Path(path), *Path(path).parents][::-1]:
        if (copy / step).is_symlink() and not (copy / step).exists():
            (copy / step).unlink()
            (copy / step).symlink_to((project / step).resolve())
    if not (copy / path).exists():
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(project / path, copy / path)


def _outside(top: Path) -> Path:
    places = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp"), top.parent]  # noqa: S108
    able = (place for place in places if place.is_dir() and not place.resolve().is_relative_to(top) and os.access(place, os.W_OK))
    place = next(able, None)
    if place is None:
        raise BaselineFailed(f"No folder outside {top} can be written to. Set TMPDIR to one.")
    return place


def _write(top: Path, commit: str, prefix: str, folder: Path, index: Path) -> None:
    git.run(top, "read-tree", commit, index=index)
    entries = _entries(top, prefix or ".", index)
    if prefix and any(mode.startswith(_LINK) for mode, _ in entries):  # it may lead to a sibling of the project
        entries = _entries(top, ".", index)
    target = b"--prefix=" + os.fsencode(folder) + b"/"
    files = b"\0".join(path for _, path in entries)
    git.run(top, "checkout-index", "--force", "--quiet", "-z", "--stdin", target, stdin=files, index=index)
    for entry, name in entries:
        mode, link, _ = entry.decode().split()
        path = os.fsdecode(name)
        if mode == git.SUBMODULE and (top / path / ".git").exists():
            _write_submodule(top / path, link, folder / path, index)


def _entries(top: Path, folder: str, index: Path) -> list[list[bytes]]:
    """Pairs of "mode object stage" and path, of everything in the index below a folder."""
    listed = git.run(top, *git.LITERAL, "ls-files", "-z", "--stage", "--", folder, index=index)
    return [record.split(b"\t", 1) for record in listed.split(b"\0") if record]


def _write_submodule(top: Path, commit: str, folder: Path, index: Path) -> None:
    try:
        _write(top, commit, "", folder, index)
    except BaselineFailed as error:
        raise BaselineFailed(f"Submodule {top} cannot be had at {commit[:10]}: {error}. Run git submodule update --init.") from None
