"""Goldens take their place whole or not at all: real processes, real signals, real limits, real file systems."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from golden import publish as publishing
from golden.aside import NEW, NOTE, OLD, aside, clear_leftovers
from golden.errors import CorruptGolden, StoreError
from golden.manifest import Reason
from golden.publish import How, exchange, publish, stage, two_renames
from golden.store import Golden, same_bits
from tests.golden import goldens

ROOT = os.getuid() == 0


def published(golden: Golden, target: Path, root: Path, reason: Reason | None = None) -> How:
    with aside(root) as folder:
        stage(golden, folder, reason)
        return publish(folder, target)


def checked(folder: Path) -> Golden:
    golden = Golden.open(folder)
    golden.check()
    return golden


@pytest.fixture
def old(tmp_path: Path) -> Golden:
    return goldens.golden(tmp_path / "runs/old", seed=1)


@pytest.fixture
def new(tmp_path: Path) -> Golden:
    return goldens.golden(tmp_path / "runs/new", seed=2, steps=2)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "goldens"


@pytest.fixture
def target(root: Path, old: Golden) -> Path:
    """A place where the old golden stands."""
    place = root / "cpu/torch-2.13.0/digits"
    published(old, place, root)
    return place


def test_a_golden_is_published_where_none_was(root: Path, old: Golden) -> None:
    """With the folders above it, and nothing else left."""
    place = root / "cpu/torch-2.13.0/digits"
    assert published(old, place, root) is How.RENAME
    assert goldens.contents(place) == goldens.contents(old.folder)
    assert [path.name for path in root.iterdir()] == ["cpu"]


def test_a_golden_takes_the_place_of_another(root: Path, target: Path, new: Golden, old: Golden) -> None:
    """No file of the old one is left, though it had a step more; the run stays as it is."""
    before = goldens.contents(new.folder)
    assert published(new, target, root) is How.EXCHANGE
    assert goldens.contents(target) == goldens.contents(new.folder) == before
    assert same_bits(checked(target), new)
    assert not same_bits(checked(target), old)
    assert [path.name for path in root.iterdir()] == ["cpu"]


def test_its_neighbours_are_not_touched(root: Path, target: Path, new: Golden) -> None:
    neighbour = target.with_name("text")
    published(new, neighbour, root)
    before = {path: path.stat().st_mtime_ns for path in (neighbour, *neighbour.iterdir())}
    published(new, target, root)
    assert {path: path.stat().st_mtime_ns for path in (neighbour, *neighbour.iterdir())} == before


def test_an_empty_folder_is_no_obstacle(root: Path, new: Golden) -> None:
    """As a version control system leaves it that keeps no folders."""
    (root / "digits").mkdir(parents=True)
    published(new, root / "digits", root)
    assert same_bits(checked(root / "digits"), new)


def test_a_reason_goes_into_the_manifest_with_the_roots_it_replaces(root: Path, target: Path, old: Golden, new: Golden) -> None:
    reason = Reason("warm-up starts at zero now", Golden.open(target).roots)
    published(new, target, root, reason)
    found = checked(target)
    assert found.manifest.reason == Reason("warm-up starts at zero now", old.roots)
    assert same_bits(found, new)
    assert new.manifest.reason is None


def test_a_published_golden_may_be_read_by_others(target: Path) -> None:
    """Folder and files have the rights that the user's mask gives, not those of a temporary folder."""
    mask = os.umask(0)
    os.umask(mask)
    assert target.stat().st_mode & 0o777 == 0o777 & ~mask
    assert {path.stat().st_mode & 0o777 for path in target.iterdir()} == {0o666 & ~mask}


def test_a_run_that_is_not_whole_is_not_published(root: Path, target: Path, old: Golden, new: Golden) -> None:
    content = bytearray(new.file(1).read_bytes())
    content[-1] ^= 1
    new.file(1).write_bytes(content)
    with pytest.raises(CorruptGolden, match=r"step-0001\.safetensors"):
        published(new, target, root)
    assert same_bits(checked(target), old)
    assert [path.name for path in root.iterdir()] == ["cpu"]


@pytest.mark.parametrize("name", ["notes.txt", "step-1.pt", ".git"])
def test_what_is_no_golden_is_never_replaced(root: Path, target: Path, new: Golden, name: str) -> None:
    """Whoever points gate at a folder of their own keeps it."""
    (target / name).write_text("mine")
    with pytest.raises(StoreError, match="is in the way") as caught:
        published(new, target, root)
    assert caught.value.path == target / name
    assert (target / name).read_text() == "mine"


def test_a_file_or_a_link_in_the_place_of_a_golden_is_kept(root: Path, target: Path, old: Golden, new: Golden) -> None:
    (root / "file").write_text("mine")
    (root / "link").symlink_to(target)
    for place in (root / "file", root / "link"):
        with pytest.raises(StoreError, match="is in the way: no folder"):
            published(new, place, root)
    assert (root / "file").read_text() == "mine"
    assert (root / "link").is_symlink()
    assert same_bits(checked(target), old)


def test_a_target_outside_is_the_callers_mistake(tmp_path: Path, root: Path, new: Golden) -> None:
    with aside(root) as folder:
        stage(new, folder)
        for place in (tmp_path / "elsewhere", root / "../elsewhere", root):
            with pytest.raises(ValueError, match="no folder aside"):
                publish(folder, place)
    with pytest.raises(ValueError, match="no folder aside"):
        publish(new.folder, tmp_path / "runs/other")


# Two folders exchanged: at once, or by two renames.


def test_two_folders_are_exchanged_at_once(tmp_path: Path) -> None:
    (tmp_path / "a/one").mkdir(parents=True)
    (tmp_path / "b/other").mkdir(parents=True)
    assert exchange(tmp_path / "a", tmp_path / "b")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["other"]
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["one"]


def test_what_the_system_cannot_exchange_is_left_alone(tmp_path: Path) -> None:
    """It answers as a file system without the call would: not possible, and nothing has happened."""
    (tmp_path / "a/b").mkdir(parents=True)
    assert not exchange(tmp_path / "a", tmp_path / "a/b")
    assert (tmp_path / "a/b").is_dir()


def test_an_exchange_that_fails_names_the_place(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(FileNotFoundError, match="missing"):
        exchange(tmp_path / "a", tmp_path / "missing")


@pytest.fixture
def no_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system without the call."""
    monkeypatch.setattr(publishing, "exchange", lambda one, other: False)


@pytest.mark.usefixtures("no_exchange")
def test_two_renames_replace_a_golden_where_nothing_better_is_to_be_had(root: Path, target: Path, new: Golden) -> None:
    assert published(new, target, root) is How.TWO_RENAMES
    assert goldens.contents(target) == goldens.contents(new.folder)
    assert [path.name for path in root.iterdir()] == ["cpu"]


def test_the_old_golden_comes_back_when_the_second_rename_fails(root: Path, target: Path, old: Golden) -> None:
    with aside(root) as folder:
        folder.rmdir()
        with pytest.raises(FileNotFoundError):
            two_renames(folder, target)
    assert same_bits(checked(target), old)


def test_a_golden_half_replaced_is_put_back_by_the_next_run(root: Path, target: Path, old: Golden, new: Golden) -> None:
    outer = root / ".aside-1-00"
    (outer / NEW).mkdir(parents=True)
    stage(new, outer / NEW)
    (outer / NOTE).write_text("cpu/torch-2.13.0/digits")
    target.rename(outer / OLD)
    assert clear_leftovers(root) == (outer,)
    assert same_bits(checked(target), old)
    assert [path.name for path in root.iterdir()] == ["cpu"]


@pytest.mark.parametrize("where", ["../elsewhere", "/tmp/elsewhere", "cpu/torch-2.13.0/digits"])
def test_a_note_puts_nothing_outside_and_nothing_over_a_golden(root: Path, target: Path, old: Golden, new: Golden, where: str) -> None:
    outer = root / ".aside-1-00"
    (outer / OLD).mkdir(parents=True)
    stage(new, outer / OLD)
    (outer / NOTE).write_text(where)
    assert clear_leftovers(root) == (outer,)
    assert same_bits(checked(target), old)
    assert sorted(path.name for path in root.parent.iterdir()) == ["goldens", "runs"]
    assert not Path("/tmp/elsewhere").exists()


# What is left of a process.


def test_nothing_is_left_of_a_folder_aside(root: Path) -> None:
    with suppress(KeyboardInterrupt), aside(root) as folder:
        (folder / "step-0001.safetensors").write_bytes(b"half")
        raise KeyboardInterrupt
    assert list(root.iterdir()) == []


def test_what_others_are_working_in_is_no_leftover(root: Path) -> None:
    with aside(root) as one, aside(root) as other:
        assert clear_leftovers(root) == ()
        assert one.is_dir()
        assert other.is_dir()


def test_only_folders_aside_are_cleared(root: Path, target: Path) -> None:
    """A link of such a name is not followed, and no file of such a name removed."""
    (root / ".aside-1-0a").mkdir()
    (root / ".aside-1-0b").symlink_to(target)
    (root / ".aside-1-0c").write_text("")
    (root / ".aside-x").mkdir()
    assert clear_leftovers(root) == (root / ".aside-1-0a",)
    assert sorted(path.name for path in root.iterdir()) == [".aside-1-0b", ".aside-1-0c", ".aside-x", "cpu"]
    assert checked(target)


def test_nothing_is_left_over_where_nothing_was(root: Path) -> None:
    assert clear_leftovers(root) == ()


# One process that forks a child a kill: the child traces its own lines, and kills itself before the line whose number it was given.
KILLED = """
import os, signal, sys
from pathlib import Path
from golden import publish as publishing
from golden.aside import aside, clear_leftovers
from golden.publish import publish, stage
from golden.store import Golden, same_bits

root, target, runs, way = Path(sys.argv[1]), Path(sys.argv[2]), [Golden.open(Path(path)) for path in sys.argv[3:5]], sys.argv[5]
if way == "two renames":
    publishing.exchange = lambda one, other: False
TRACED = ("golden/publish.py", "golden/aside.py", "golden/files.py", "shutil.py")

def child(run, kill):
    left = [kill]
    def line(frame, event, argument):
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return line
    sys.settrace(lambda frame, event, argument: line if frame.f_code.co_filename.endswith(TRACED) else None)
    with aside(root) as folder:
        stage(run, folder)
        publish(folder, target)
    sys.settrace(None)
    os._exit(0)

outcomes, missing, kill, ended = {"old": 0, "new": 0}, 0, 0, False
while not ended:
    kill += 1
    before = Golden.open(target)
    was = int(same_bits(before, runs[1]))
    process = os.fork()
    if process == 0:
        child(runs[1 - was], kill)
    status = os.waitpid(process, 0)[1]
    ended = os.WIFEXITED(status)
    assert ended or os.WTERMSIG(status) == signal.SIGKILL, status
    if not target.exists():
        missing += 1
        assert way == "two renames"
    else:
        Golden.open(target).check()
    clear_leftovers(root)
    assert os.listdir(root) == ["cpu"], os.listdir(root)
    assert os.listdir(target.parent) == ["digits"], os.listdir(target.parent)
    after = Golden.open(target)
    after.check()
    whole = [same_bits(after, run) and sorted(os.listdir(target)) == sorted(os.listdir(run.folder)) for run in runs]
    assert whole.count(True) == 1, kill
    outcomes["new" if whole[1 - was] else "old"] += 1
print(kill, outcomes["old"], outcomes["new"], missing)
"""


@pytest.mark.parametrize("way", ["exchange", "two renames"])
def test_killed_before_any_line_the_golden_is_the_old_or_the_new_one_whole(tmp_path: Path, root: Path, way: str) -> None:
    """SIGKILL before every single line that publishing executes; the next run leaves nothing else."""
    old, new = goldens.golden(tmp_path / "runs/old", seed=1, steps=1), goldens.golden(tmp_path / "runs/new", seed=2, steps=1, kept=[])
    target = root / "cpu/digits"
    published(old, target, root)
    command = [
        sys.executable,
        "-W",
        "ignore::DeprecationWarning",
        "-c",
        KILLED,
        str(root),
        str(target),
        str(old.folder),
        str(new.folder),
        way,
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stderr == ""
    kills, stayed, came, missing = map(int, run.stdout.split())
    assert kills == stayed + came
    assert stayed > 50
    assert came > 10
    assert (missing > 0) is (way == "two renames"), "at one moment none stands there, unless they are exchanged at once"


READER = """
import sys
from pathlib import Path
from golden.errors import StoreError
from golden.store import Golden, same_bits
target, runs = Path(sys.argv[1]), [Golden.open(Path(path)) for path in sys.argv[2:4]]
seen, changes = None, 0
print("reading", flush=True)
while changes < 20:
    try:
        golden = Golden.open(target)
        golden.check()
    except StoreError as error:
        assert "replaced" in str(error), error
        continue
    bits = [same_bits(golden, run) for run in runs]
    assert bits.count(True) == 1
    changes += seen not in (None, bits)
    seen = bits
"""


def test_a_reader_sees_the_old_golden_or_the_new_one(root: Path, target: Path, old: Golden, new: Golden) -> None:
    """Another process reads every byte again and again while this one publishes: never is one missing, mixed or corrupt."""
    command = [sys.executable, "-c", READER, str(target), str(old.folder), str(new.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "reading\n"
        count = 0
        while reader.poll() is None:
            count += 1
            published((new, old)[count % 2], target, root)
        assert reader.communicate()[1] == ""
        assert reader.returncode == 0
    assert count >= 20


# A full disk, missing rights.

LIMITED = """
import resource, sys
from pathlib import Path
from golden.aside import aside
from golden.errors import StoreError
from golden.publish import publish, stage
from golden.store import Golden
from tests.golden import goldens

root, target, run = Path(sys.argv[1]), Path(sys.argv[2]), Golden.open(Path(sys.argv[3]))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[4]), resource.RLIM_INFINITY))
try:
    with aside(root) as folder:
        stage(run, folder)
        publish(folder, target)
    print("published")
except StoreError as error:
    print(error.reason, error.path.name, error.why, sep="|")
try:
    goldens.golden(root / "written")
    print("written")
except StoreError as error:
    print(error.reason, error.path.name, error.why, sep="|")
"""


def test_a_file_that_may_not_grow_leaves_the_old_golden_whole(root: Path, target: Path, old: Golden, new: Golden) -> None:
    """At every limit from nothing to enough: published whole, or not at all; a writer leaves no half of a file."""
    sizes = sorted(path.stat().st_size for path in new.folder.iterdir())
    outcomes = []
    for limit in (0, 1, sizes[0] - 1, sizes[0], sizes[1] - 1, sizes[-1] - 1, sizes[-1] + 10_000):
        command = [sys.executable, "-c", LIMITED, str(root), str(target), str(new.folder), str(limit)]
        published_line, written_line = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        assert published_line == "published" or published_line.startswith("io|")
        outcomes.append(published_line == "published")
        assert same_bits(checked(target), new if outcomes[-1] else old)
        left = {path.name: path for path in (root / "written").iterdir()}
        if written_line == "written":
            checked(root / "written")
        else:
            reason, name, why = written_line.split("|")
            assert (reason, why) == ("io", "File too large")
            assert name not in left
            assert "manifest.json" not in left
        for path in (*left.values(), root / "written"):
            path.unlink() if path.is_file() else path.rmdir()
        assert [path.name for path in root.iterdir()] == ["cpu"]
    assert outcomes == [False] * 6 + [True]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if not ROOT or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small file system, and not everywhere")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_named_and_the_old_golden_whole(tmp_path: Path, small_disk: Path, old: Golden) -> None:
    place = small_disk / "cpu/digits"
    published(old, place, small_disk)
    large = goldens.golden(tmp_path / "runs/large", steps=40)
    with pytest.raises(StoreError, match="No space left on device") as caught:
        published(large, place, small_disk)
    assert small_disk in caught.value.path.parents
    assert same_bits(checked(place), old)
    assert [path.name for path in small_disk.iterdir()] == ["cpu"]
    with pytest.raises(StoreError, match="No space left on device") as caught:
        goldens.golden(small_disk / "run", steps=40)
    assert not caught.value.path.exists()
    assert not (small_disk / "run/manifest.json").exists()


def test_a_read_only_disk_is_named(small_disk: Path, old: Golden, new: Golden) -> None:
    place = small_disk / "cpu/digits"
    published(old, place, small_disk)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StoreError, match="Read-only file system") as caught:
        published(new, place, small_disk)
    assert small_disk in caught.value.path.parents
    assert same_bits(checked(place), old)


NOBODY = """
import os, sys
from pathlib import Path
from golden.aside import aside, clear_leftovers
from golden.errors import StoreError
from golden.lock import lock
from golden.publish import publish, stage
from golden.store import Golden
from golden.writer import Writer

os.chdir(sys.argv[1])  # the folders above may be closed to others
root, target, run = Path("goldens"), Path("goldens/cpu/torch-2.13.0/digits"), Golden.open(Path("runs/new"))
if os.getuid() == 0:
    os.setuid(65534)

def publishes():
    with aside(root) as folder:
        stage(run, folder)
        publish(folder, target)

def locks():
    with lock(root):
        pass

for act in (publishes, locks, lambda: Writer(root / "x"), lambda: clear_leftovers(root)):
    try:
        act()
        print("done")
    except StoreError as error:
        print(error.reason, error.path.relative_to(root).parts[:1], error.why)
"""


@pytest.mark.parametrize("which", ["root", "parent"])
@pytest.mark.usefixtures("new")
def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path, root: Path, target: Path, old: Golden, which: str) -> None:
    """The root, or only the folder in which the golden stands: the old golden stays, and nothing lies about."""
    tmp_path.chmod(0o755)
    (root / ".aside-1-00").mkdir()
    root.chmod(0o555 if which == "root" else 0o777)
    target.parent.chmod(0o555)
    command = [sys.executable, "-c", NOBODY, str(tmp_path)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    root.chmod(0o755)
    target.parent.chmod(0o755)
    if which == "root":
        assert lines[0].startswith("io ('.aside-")
        assert lines[1:] == ["io ('.lock',) Permission denied", "io ('x',) Permission denied", "io ('.aside-1-00',) Permission denied"]
    else:
        assert lines == ["io ('cpu',) Permission denied", "done", "done", "done"]
    assert all(line == "done" or line.endswith("Permission denied") for line in lines)
    assert same_bits(checked(target), old)


def test_folders_made_for_nothing_are_removed(root: Path, new: Golden) -> None:
    """A place that cannot be taken: the name of the golden is too long for the file system."""
    with pytest.raises(StoreError, match="File name too long"):
        published(new, root / "cpu/torch-2.13.0" / ("x" * 300), root)
    assert list(root.iterdir()) == []
