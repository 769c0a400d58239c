from __future__ import annotations

import os
from pathlib import Path

import pytest

from gate.checkout import checked_out
from gate.errors import BaselineFailed
from gate.history import Repository
from tests.gate.repositories import commit, git, init, write


def listing(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_commit_s_files_stand_outside_the_project(tmp_path: Path) -> None:
    """Every file as committed, none of the work tree's edits, outside the project, gone afterwards; the repository is left as it was."""
    folder = init(tmp_path / "pröject x")
    commit(folder, {"a.py": "a = 1\n", "sub/ü b.py": "b\n", "run.sh": "#!/bin/sh\n"})
    (folder / "run.sh").chmod(0o755)
    commit(folder, {})
    write(folder, {"a.py": "a = 2\n", "new.py": "n\n"})
    before = git(folder, "status", "--porcelain"), (folder / ".git/index").read_bytes()
    repository = Repository.of(folder)
    with checked_out(repository, repository.named("HEAD")) as copy:
        assert listing(copy) == {"a.py": b"a = 1\n", "sub/ü b.py": b"b\n", "run.sh": b"#!/bin/sh\n"}
        assert os.access(copy / "run.sh", os.X_OK)
        assert not copy.is_relative_to(folder)
    assert not copy.exists()
    assert (git(folder, "status", "--porcelain"), (folder / ".git/index").read_bytes()) == before


def test_what_an_archive_would_leave_out_or_change_is_there(tmp_path: Path) -> None:
    """export-ignore and export-subst are for releases; a run gets the files as they were recorded."""
    folder = init(tmp_path)
    files = {".gitattributes": "goldens export-ignore\nv.py export-subst\n", "goldens/s.py": "s\n", "v.py": "v = '$Format:%H$'\n"}
    commit(folder, files)
    repository = Repository.of(folder)
    with checked_out(repository, repository.named("HEAD")) as copy:
        assert listing(copy) == {name: content.encode() for name, content in files.items()}


def test_a_subfolder_s_project_alone_is_written(tmp_path: Path) -> None:
    """The rest of the repository stays out, unless a link of the project may lead there."""
    folder = init(tmp_path)
    commit(folder, {"p/a.py": "a\n", "shared/x.csv": "x\n"})
    repository = Repository.of(folder / "p")
    with checked_out(repository, repository.named("HEAD")) as copy:
        assert listing(copy) == {"a.py": b"a\n"}
        assert [path.name for path in copy.parent.iterdir()] == ["p"]
    (folder / "p/data").symlink_to("../shared")
    commit(folder, {})
    with checked_out(repository, repository.named("HEAD")) as copy:
        assert (copy / "data/x.csv").read_text() == "x\n"


def test_a_split_sparse_index_stays_whole(tmp_path: Path) -> None:
    """Settings that make git keep parts of an index elsewhere, or leave files out, do not reach the temporary one."""
    folder = init(tmp_path)
    commit(folder, {"a/a.py": "a\n", "b/b.py": "b\n"})
    git(folder, "config", "core.splitIndex", "true")
    git(folder, "sparse-checkout", "set", "a")
    assert not (folder / "b").exists()
    before = sorted(path.name for path in (folder / ".git").iterdir())
    repository = Repository.of(folder)
    with checked_out(repository, repository.named("HEAD")) as copy:
        assert listing(copy) == {"a/a.py": b"a\n", "b/b.py": b"b\n"}
    assert sorted(path.name for path in (folder / ".git").iterdir()) == before


def test_carried_files_come_along(tmp_path: Path) -> None:
    """Ignored data is copied; through a committed link that leads outside it is reached where it is, and never written to."""
    folder = init(tmp_path / "project")
    write(tmp_path, {"outside/y.csv": "y\n"})
    (folder / "far").symlink_to("../outside")
    (folder / "absolute").symlink_to(tmp_path / "outside")
    commit(folder, {".gitignore": "data/\n"})
    write(folder, {"data/deep/x.csv": "x\n"})
    repository = Repository.of(folder)
    base = repository.named("HEAD", ["data/deep/x.csv", "far/y.csv", "absolute/y.csv"])
    assert base.carried == ("absolute/y.csv", "data/deep/x.csv", "far/y.csv")
    with checked_out(repository, base) as copy:
        assert [(copy / path).read_text() for path in base.carried] == ["y\n", "x\n", "y\n"]
    assert (tmp_path / "outside/y.csv").read_text() == "y\n"
    assert (folder / "data/deep/x.csv").exists()


def test_submodules_come_along_at_the_commit_that_is_named(tmp_path: Path) -> None:
    """Each submodule that is checked out stands in the copy as the base names it; one that is not here at that commit is an error."""
    library = init(tmp_path / "library")
    commit(library, {"lib.py": "x = 1\n"})
    folder = init(tmp_path / "project")
    git(folder, "submodule", "--quiet", "add", str(library), "vendor/lib")
    git(folder, "submodule", "--quiet", "add", str(library), "vendor/absent")
    base = commit(folder, {"a.py": "a\n"})
    commit(folder / "vendor/lib", {"lib.py": "x = 2\n"})
    commit(folder, {})
    git(folder, "submodule", "--quiet", "deinit", "vendor/absent")
    repository = Repository.of(folder)
    with checked_out(repository, repository.named(base)) as copy:
        assert (copy / "vendor/lib/lib.py").read_text() == "x = 1\n"
        assert list((copy / "vendor/absent").iterdir()) == []
    git(folder, "update-index", "--cacheinfo", f"160000,{'1' * 40},vendor/lib")
    git(folder, "commit", "-q", "-m", "a commit that nobody has")
    with (
        pytest.raises(BaselineFailed, match=r"Submodule .*vendor/lib cannot be had at 1111111111: .*git submodule update"),
        checked_out(repository, repository.named("HEAD")),
    ):
        pass


def test_a_temporary_folder_within_the_project_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TMPDIR inside the repository would put the copy among the project's files."""
    folder = init(tmp_path)
    commit(folder, {"a.py": "a\n", "tmp/x": "x\n"})
    monkeypatch.setattr("tempfile.tempdir", str(folder / "tmp"))
    repository = Repository.of(folder)
    with checked_out(repository, repository.named("HEAD")) as copy:
        assert not copy.is_relative_to(folder)


def test_an_error_inside_still_clears_up(tmp_path: Path) -> None:
    """The copy goes whatever happens to its user."""
    folder = init(tmp_path)
    commit(folder, {"a.py": "a\n"})
    repository = Repository.of(folder)
    seen: list[Path] = []
    with pytest.raises(ZeroDivisionError), checked_out(repository, repository.named("HEAD")) as copy:  # noqa: PT012
        seen.append(copy)
        _ = 1 // 0
    assert not seen[0].parent.exists()
