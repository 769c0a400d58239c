from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gate.errors import BaselineFailed, UsageError
from gate.history import Base, Repository
from tests.gate.repositories import commit, digests, git, init, write

MANIFEST = "goldens/cpu/torch-2.13.0/toy/manifest.json"


def manifest(folder: Path) -> Path:
    return folder / MANIFEST


def found(folder: Path, sources: dict[str, str], file: Path | None = None) -> Base:
    return Repository.of(folder).base(sources, file or manifest(folder))


def test_the_commit_that_recorded_is_found(tmp_path: Path) -> None:
    """The last commit that changed the manifest is the base, though later ones have the same sources, also with an edit in the tree."""
    folder = init(tmp_path)
    commit(folder, {"a.py": "a = 0\n"})
    recorded = commit(folder, {"a.py": "a = 1\n", MANIFEST: "1"}, "Record the golden")
    sources = digests(folder, "a.py")
    commit(folder, {"README.md": "text\n"})
    write(folder, {"a.py": "a = 2\n"})
    base = found(folder, sources)
    assert base.commit == recorded
    assert base.title == f"{recorded[: len(base.title.split()[0])]} (Record the golden)"
    assert base.carried == ()


def test_a_golden_of_an_older_state_is_found_backwards(tmp_path: Path) -> None:
    """Where sources moved on before the golden was committed, the newest commit that still has them is the base."""
    folder = init(tmp_path)
    commit(folder, {"a.py": "a = 1\n", "b.py": "b\n"})
    commit(folder, {"b.py": "other\n"})
    sources = digests(folder, "a.py", "b.py")
    newest = commit(folder, {"README.md": "same sources\n"})
    commit(folder, {"a.py": "a = 2\n"})
    commit(folder, {MANIFEST: "1"})
    assert found(folder, sources).commit == newest


def test_a_golden_committed_before_its_sources_is_found_forwards(tmp_path: Path) -> None:
    """The manifest first and its sources one commit later: the later commit is the base."""
    folder = init(tmp_path)
    commit(folder, {"a.py": "a = 1\n"})
    commit(folder, {MANIFEST: "1"})
    later = commit(folder, {"a.py": "a = 2\n"})
    sources = digests(folder, "a.py")
    commit(folder, {"a.py": "a = 3\n"})
    assert found(folder, sources).commit == later


@pytest.mark.parametrize("state", ["untracked", "changed", "ignored", "outside"])
def test_a_manifest_that_is_not_committed_is_searched_from_head(tmp_path: Path, state: str) -> None:
    """A golden just recorded, or lying elsewhere, is held against HEAD first."""
    folder = init(tmp_path / "project")
    old = commit(folder, {"a.py": "a = 1\n", **({MANIFEST: "1"} if state == "changed" else {})})
    if state == "ignored":
        commit(folder, {".gitignore": "goldens/\n"})
    head = commit(folder, {"README.md": "x\n"})
    write(folder if state != "outside" else tmp_path, {MANIFEST: "2"})
    file = manifest(folder if state != "outside" else tmp_path)
    assert found(folder, digests(folder, "a.py"), file).commit == head != old


def test_a_state_on_the_other_side_of_a_merge_is_found(tmp_path: Path) -> None:
    """A merge that took one side's files does not hide the commits of the other side."""
    folder = init(tmp_path)
    commit(folder, {"a.py": "a = 1\n"})
    git(folder, "switch", "-q", "-c", "side")
    side = commit(folder, {"a.py": "a = 2\n"})
    sources = digests(folder, "a.py")
    git(folder, "switch", "-q", "main")
    commit(folder, {"b.py": "b\n"})
    git(folder, "merge", "-q", "-s", "ours", "-m", "merge", "side")
    assert found(folder, sources).commit == side


def test_a_merge_that_first_has_the_state_is_found(tmp_path: Path) -> None:
    """Two files from two branches are together in the merge alone."""
    folder = init(tmp_path)
    commit(folder, {"a.py": "a = 1\n", "b.py": "b = 1\n"})
    git(folder, "switch", "-q", "-c", "side")
    commit(folder, {"a.py": "a = 2\n"})
    git(folder, "switch", "-q", "main")
    commit(folder, {"b.py": "b = 2\n"})
    git(folder, "merge", "-q", "-m", "merge", "side")
    merge = git(folder, "rev-parse", "HEAD")
    sources = digests(folder, "a.py", "b.py")
    commit(folder, {"a.py": "a = 3\n"})
    commit(folder, {MANIFEST: "1"})
    assert found(folder, sources).commit == merge


@pytest.mark.case("G29")
def test_line_ends_do_not_count(tmp_path: Path) -> None:
    """Sources with CRLF are those of the commit that holds them with LF, and the other way round; a file with NUL is as it is."""
    folder = init(tmp_path)
    head = commit(folder, {"a.py": "a = 1\nb = 2\n", "b.py": "c\r\nd\r\n", "c.bin": b"\0\r\n"})
    write(folder, {"a.py": "a = 1\r\nb = 2\r\n", "b.py": "c\nd\n"})
    sources = digests(folder, "a.py", "b.py", "c.bin")
    assert found(folder, sources).commit == head
    write(folder, {"c.bin": b"\0\n"})
    with pytest.raises(BaselineFailed, match=r"others: c\.bin"):
        found(folder, digests(folder, "a.py", "b.py", "c.bin"))


def test_renamed_and_deleted_sources_are_found_where_they_were(tmp_path: Path) -> None:
    """A source that HEAD no longer has, or has elsewhere, is found in the commit that had it."""
    folder = init(tmp_path)
    first = commit(folder, {"old.py": "x = 1\n", "gone.py": "y\n", MANIFEST: "1"})
    sources = digests(folder, "old.py", "gone.py")
    git(folder, "mv", "old.py", "new.py")
    commit(folder, {"gone.py": None})
    assert found(folder, sources).commit == first


def test_a_source_that_no_commit_has_is_named(tmp_path: Path) -> None:
    """A golden of uncommitted sources has no base; the paths and the way out are told, the matching path is not."""
    folder = init(tmp_path)
    commit(folder, {"a.py": "a = 1\n", "same.py": "x\n"})
    write(folder, {"a.py": "a = 2\n", "new.py": "n\n"})
    with pytest.raises(BaselineFailed, match=r"others: a\.py, new\.py\. Name the commit with --base") as error:
        found(folder, digests(folder, "a.py", "same.py", "new.py"))
    assert error.value.reason == "baseline-failed"


@pytest.mark.parametrize("name", ["größe 模型.py", "a [1]*?.py", ":(top)x.py", "-x.py", "two\nlines.py", 'quo"te\\.py', "tab\t.py"])
def test_odd_names(tmp_path: Path, name: str) -> None:
    """Spaces, other alphabets and what git takes for a pattern are plain names; a name of two lines has no base, and is no fault."""
    folder = init(tmp_path / "pröject x")
    head = commit(folder, {name: "a = 1\n", MANIFEST: "1"})
    sources = digests(folder, name)
    commit(folder, {name: "a = 2\n"})
    if "\n" in name:
        with pytest.raises(BaselineFailed, match="No commit has the sources"):
            found(folder, sources)
    else:
        assert found(folder, sources).commit == head


def test_a_project_in_a_subfolder(tmp_path: Path) -> None:
    """Paths are relative to the project, and another project's file of the same name is not taken for it."""
    top = init(tmp_path)
    head = commit(top, {"sub/p/a.py": "a = 1\n", "a.py": "other\n", f"sub/p/{MANIFEST}": "1"})
    repository = Repository.of(top / "sub/p")
    assert (repository.top, repository.prefix, repository.project) == (top, "sub/p/", top / "sub/p")
    assert found(top / "sub/p", digests(top / "sub/p", "a.py")).commit == head
    with pytest.raises(BaselineFailed):
        found(top / "sub/p", digests(top, "a.py"))


def test_a_repository_in_another_is_its_own(tmp_path: Path) -> None:
    """The innermost repository is asked, though the outer one tracks files of the same names."""
    outer = init(tmp_path)
    commit(outer, {"inner/a.py": "a = 1\n"})
    inner = init(tmp_path / "inner")
    head = commit(inner, {"a.py": "a = 2\n"})
    assert Repository.of(inner).top == inner
    assert found(inner, digests(inner, "a.py")).commit == head


def submodule(tmp_path: Path) -> tuple[Path, str, dict[str, str]]:
    """A repository whose submodule moved on after the golden was recorded; its folder, the base and the golden's sources."""
    library = init(tmp_path / "library")
    commit(library, {"lib.py": "x = 1\n"})
    folder = init(tmp_path / "project")
    commit(folder, {"a.py": "a\n"})
    git(folder, "submodule", "--quiet", "add", str(library), "vendor/lib")
    base = commit(folder, {MANIFEST: "1"})
    sources = digests(folder, "a.py", "vendor/lib/lib.py")
    commit(folder / "vendor/lib", {"lib.py": "x = 2\n"})
    commit(folder, {})
    return folder, base, sources


def test_sources_in_a_submodule_count_as_the_commit_names_it(tmp_path: Path) -> None:
    """The submodule's own history gives the content of the commit that the outer commit names."""
    folder, base, sources = submodule(tmp_path)
    assert found(folder, sources).commit == base
    assert found(folder, digests(folder, "vendor/lib/lib.py")).commit == git(folder, "rev-parse", "HEAD")


def test_a_project_that_is_a_submodule(tmp_path: Path) -> None:
    """A submodule's own history is searched."""
    folder, _, _ = submodule(tmp_path)
    inner = folder / "vendor/lib"
    assert found(inner, digests(inner, "lib.py")).commit == git(inner, "rev-parse", "HEAD")


def test_ignored_sources_are_carried_while_they_are_as_recorded(tmp_path: Path) -> None:
    """Data that git ignores needs no commit; once it is another, no base can be had, and the file is named."""
    folder = init(tmp_path)
    head = commit(folder, {"a.py": "a\n", ".gitignore": "data/\n"})
    write(folder, {"data/x.csv": "1,2\n"})
    sources = digests(folder, "a.py", "data/x.csv")
    assert found(folder, sources) == Base(head, found(folder, sources).title, ("data/x.csv",))
    write(folder, {"data/x.csv": "1,3\n"})
    with pytest.raises(BaselineFailed, match=r"data/x\.csv is no longer what"):
        found(folder, sources)
    (folder / "data/x.csv").unlink()
    with pytest.raises(BaselineFailed, match=r"data/x\.csv is no longer there"):
        found(folder, sources)


def test_sources_behind_links(tmp_path: Path) -> None:
    """A link within the repository leads to what the commit holds there, one that leads outside is carried."""
    folder = init(tmp_path / "project")
    write(tmp_path, {"outside/y.csv": "y\n"})
    write(folder, {"real/x.csv": "x\n"})
    (folder / "data").symlink_to("real")
    (folder / "far").symlink_to("../outside")
    base = commit(folder, {MANIFEST: "1"})
    sources = digests(folder, "data/x.csv", "far/y.csv")
    commit(folder, {"real/x.csv": "changed\n"})
    assert (found(folder, sources).commit, found(folder, sources).carried) == (base, ("far/y.csv",))


def test_a_pointer_of_git_lfs_stands_for_its_content(tmp_path: Path) -> None:
    """The commit holds a pointer with the content's sha256, the work tree the content."""
    folder = init(tmp_path)
    write(folder, {"big.bin": b"\0content"})
    sources = digests(folder, "big.bin")
    pointer = f"version https://git-lfs.example/spec/v1\noid sha256:{sources['big.bin']}\nsize 8\n"
    head = commit(folder, {"big.bin": pointer})
    assert found(folder, sources).commit == head
    with pytest.raises(BaselineFailed):
        found(folder, digests(folder, "big.bin"))


def test_a_shallow_clone_says_so(tmp_path: Path) -> None:
    """Where older commits were left out, the way to get them is named, for a search and for a named revision; what is there is found."""
    origin = init(tmp_path / "origin")
    old = commit(origin, {"a.py": "a = 1\n"})
    sources = digests(origin, "a.py")
    commit(origin, {"a.py": "a = 2\n"})
    git(tmp_path, "clone", "-q", "--depth", "1", origin.as_uri(), "clone")
    repository = Repository.of(tmp_path / "clone")
    assert repository.shallow
    with pytest.raises(BaselineFailed, match=r"shallow.*git fetch --unshallow"):
        repository.base(sources, manifest(tmp_path / "clone"))
    with pytest.raises(BaselineFailed, match=r"shallow.*git fetch --unshallow"):
        repository.named(old)
    assert repository.base(digests(origin, "a.py"), manifest(tmp_path / "clone")).commit == git(origin, "rev-parse", "HEAD")
    assert not Repository.of(origin).shallow


def test_revisions_by_name(tmp_path: Path) -> None:
    """Branches, tags and abbreviations name a commit; another word is a mistake of usage, also one that looks like an option."""
    folder = init(tmp_path)
    first = commit(folder, {"a.py": "a = 1\n"})
    git(folder, "tag", "-m", "annotated", "v1")
    head = commit(folder, {"a.py": "a = 2\n"})
    repository = Repository.of(folder)
    assert [repository.named(name).commit for name in ("v1", "HEAD~1", first[:8], "main")] == [first, first, first, head]
    for name in ("nope", "--all", "", "HEAD:a.py"):
        with pytest.raises(UsageError, match=f"--base {name}: git knows no such commit"):
            repository.named(name)


def test_a_named_base_carries_what_it_lacks(tmp_path: Path) -> None:
    """Ignored data comes along, new code that git does not ignore does not, nor does what the commit has itself."""
    folder = init(tmp_path)
    commit(folder, {"a.py": "a\n", "own.csv": "1\n"})
    commit(folder, {".gitignore": "*.csv\n", "own.csv": None})
    write(folder, {"data.csv": "1\n", "new.py": "n\n", "own.csv": "2\n"})
    repository = Repository.of(folder)
    assert repository.named("HEAD~1", ["a.py", "data.csv", "new.py", "own.csv"]).carried == ("data.csv",)
    assert repository.named("HEAD", ["a.py", "data.csv", "new.py", "own.csv"]).carried == ("data.csv", "own.csv")


def test_the_state_of_the_tree(tmp_path: Path) -> None:
    """Its commit, None before the first, and what differs from it: changed, staged, deleted, new, below the project alone."""
    folder = init(tmp_path)
    write(folder, {"p/a.py": "a\n"})
    assert Repository.of(folder / "p").state().commit is None
    head = commit(folder, {"p/a.py": "a\n", "p/b.py": "b\n", "p/c.py": "c\n", "other.py": "o\n"})
    assert Repository.of(folder / "p").state().changed == ()
    write(folder, {"p/a.py": "A\n", "p/b.py": None, "p/ü x.py": "u\n", "other.py": "O\n"})
    git(folder, "mv", "p/c.py", "p/d.py")
    state = Repository.of(folder / "p").state()
    assert (state.commit, set(state.changed)) == (head, {"a.py", "b.py", "c.py", "d.py", "ü x.py"})


def test_variables_that_a_hook_exports_do_not_mislead(tmp_path: Path) -> None:
    """Run by a git hook of another repository, the project's own is asked, and the index that the hook works on is left alone."""
    folder = init(tmp_path / "project")
    head = commit(folder, {"a.py": "a\n"})
    other = init(tmp_path / "other")
    hook = other / ".git/hooks/pre-commit"
    code = f"import pathlib; from gate.history import Repository; p = pathlib.Path({str(folder)!r}); r = Repository.of(p); print(r.state())"
    hook.write_text(f'#!/bin/sh\ntest -n "$GIT_INDEX_FILE" || exit 9\n{sys.executable} -c "{code}" > {tmp_path}/said\n')
    hook.chmod(0o755)
    commit(other, {"b.py": "b\n"})
    assert (tmp_path / "said").read_text() == f"State(commit='{head}', changed=())\n"


def test_a_worktree_is_its_own_place(tmp_path: Path) -> None:
    """A linked worktree is searched from its own HEAD."""
    folder = init(tmp_path / "main")
    commit(folder, {"a.py": "a = 1\n"})
    git(folder, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    head = commit(tmp_path / "tree", {"a.py": "a = 2\n"})
    repository = Repository.of(tmp_path / "tree")
    assert (repository.top, repository.named("HEAD").commit) == (tmp_path / "tree", head)
    assert found(tmp_path / "tree", digests(tmp_path / "tree", "a.py")).commit == head


def test_no_repository_no_commit_and_no_git_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each says what is missing and what to do."""
    with pytest.raises(BaselineFailed, match=r"is in no git repository.*git init"):
        Repository.of(tmp_path)
    init(tmp_path)
    write(tmp_path, {"a.py": "a\n"})
    with pytest.raises(BaselineFailed, match="no commit yet"):
        found(tmp_path, digests(tmp_path, "a.py"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BaselineFailed, match=r"git was not found on the PATH.*Install git"):
        Repository.of(tmp_path)


def test_a_golden_without_sources_has_no_base(tmp_path: Path) -> None:
    """Every commit would do, so none does."""
    commit(init(tmp_path), {"a.py": "a\n"})
    with pytest.raises(BaselineFailed, match="names no source"):
        found(tmp_path, {})


@pytest.mark.skipif(os.getuid() != 0, reason="takes root to give a folder away")
def test_a_repository_of_another_owner_says_how_to_allow_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git refuses it, and the command that allows it is named; allowed by a variable, as containers do, it is read."""
    head = commit(init(tmp_path), {"a.py": "a\n"})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    for path in (tmp_path, *tmp_path.rglob("*")):
        os.chown(path, 12345, 12345)
    monkeypatch.delenv("SUDO_UID", raising=False)
    with pytest.raises(BaselineFailed, match=r"does not trust .*git config --global --add safe\.directory"):
        Repository.of(tmp_path)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "safe.directory")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(tmp_path))
    assert Repository.of(tmp_path).named("HEAD").commit == head


def test_a_long_history_is_searched_in_seconds(tmp_path: Path) -> None:
    """A thousand commits that each change a source, the one looked for being among the first: within ten seconds on a busy machine."""
    folder = init(tmp_path)
    stream = "".join(
        f"commit refs/heads/main\ncommitter A <a@b> {1_600_000_000 + n} +0000\ndata 1\nx\n"
        + "".join(f"M 644 inline src/f{k}.py\ndata {len(text := f'{n if k == n % 20 else k}')}\n{text}\n" for k in range(20))
        for n in range(1000)
    )
    subprocess.run(["git", "fast-import", "--quiet"], cwd=folder, input=stream.encode(), check=True)
    first = git(folder, "rev-list", "--max-parents=0", "HEAD")
    git(folder, "checkout", "-q", first)
    sources = digests(folder, *(f"src/f{k}.py" for k in range(20)))
    git(folder, "checkout", "-q", "main")
    begun = time.monotonic()
    assert found(folder, sources).commit == git(folder, "rev-list", "-1", "main~980")
    assert time.monotonic() - begun < 10
