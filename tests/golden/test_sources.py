"""What a run reads of a project, seen in real processes."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.sources import _CHUNK, Content, _content, digest_text, read_content

# Watches the code it is given, which runs in the root; `moved` runs it on the root "base" of the project.
SCRIPT = """
import json, os, sys
from pathlib import Path
from golden.sources import Watcher
from golden.tree import Tree
import early

def main():
    project, root, code = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    os.chdir(root)
    watcher = Watcher(Tree(project, root), Path(sys.argv[4]))
    watcher.install()
    exec(compile(code, "<scenario>", "exec"), {"watcher": watcher, "project": project, "root": root})
    print(json.dumps([watcher.sources(), list(watcher.foreign()), list(watcher.edited())]))

if __name__ == "__main__":
    main()
"""


@dataclass(frozen=True)
class Seen:
    sources: dict[str, str]
    foreign: list[str]
    edited: list[str]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "conf.yaml").write_bytes(b"lr: 0.1\r\n")
    (folder / "model.py").write_text("width = 3\n")
    (folder / "data.bin").write_bytes(bytes(range(256)))
    return folder


def watch(project: Path, code: str, root: Path | None = None) -> Seen:
    script = project.parent / "script.py"
    script.write_text(SCRIPT)
    (project.parent / "early.py").write_text("")
    arguments = [sys.executable, str(script), str(project), str(root or project), code, str(project.parent / "journal")]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answer: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return Seen(*answer)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_imports_and_files_opened_for_reading_are_sources(project: Path) -> None:
    """Code, configuration and data count alike; what is not touched does not, nor do folders and what lies outside."""
    (project / "unused.py").write_text("")
    code = """
import sys; sys.path.insert(0, str(root))
import model, os, json
open("conf.yaml").read(); os.close(os.open(b"data.bin", os.O_RDONLY)); os.listdir("."); open("/etc/hostname", "a+").close
try: open("missing.txt")
except FileNotFoundError: pass
"""
    seen = watch(project, code)
    assert seen.sources == {
        "conf.yaml": sha(b"lr: 0.1\n"),
        "data.bin": sha(bytes(range(256))),
        "model.py": sha(b"width = 3\n"),
    }
    assert not seen.foreign
    assert not seen.edited


def test_what_the_run_writes_is_no_source(project: Path) -> None:
    """A file that the run made, moved into place or overwrote before it read it is its own; one it read first was an input."""
    code = """
import os
open("made.txt", "w").write("a"); open("made.txt").read()
open("part", "w").write("b"); os.replace("part", "moved.txt"); open("moved.txt").read()
open("model.py", "w").write("width = 4\\n"); open("model.py").read()
open("conf.yaml").read(); open("conf.yaml", "w").write("lr: 9\\n"); open("conf.yaml").read()
"""
    seen = watch(project, code)
    assert seen.sources == {"conf.yaml": sha(b"lr: 0.1\n")}
    assert not seen.edited


def test_what_a_library_writes_unseen_is_no_source(project: Path) -> None:
    """A binary file that changed since the run began was written by it without Python; one that stood there is an input."""
    code = """
import os, time
time.sleep(0.02)
os.system("printf 'a\\\\0b' > new.pt; printf 'a\\\\0c' > data.bin.new; printf text > late.txt")
open("new.pt", "rb").read(); open("data.bin", "rb").read(); open("late.txt").read()
os.system("mv data.bin.new data.bin")
"""
    seen = watch(project, code)
    assert seen.sources == {"data.bin": sha(bytes(range(256))), "late.txt": sha(b"text")}
    assert not seen.edited


def test_an_edit_during_the_run_is_noticed(project: Path) -> None:
    """Somebody else's edit of a source leaves the digest of what was read first, and the file is named; removing it is an edit too."""
    code = """
import os, subprocess
open("conf.yaml").read(); open("model.py").read()
subprocess.run("printf 'lr: 0.2\\\\n' > conf.yaml; rm model.py", shell=True)
"""
    seen = watch(project, code)
    assert seen.sources["conf.yaml"] == sha(b"lr: 0.1\n")
    assert seen.edited == ["conf.yaml", "model.py"]


def test_line_ends_alone_are_no_edit(project: Path) -> None:
    """A checkout that rewrites line ends while the run goes on changes nothing."""
    seen = watch(project, "import os; open('conf.yaml').read(); os.system(\"printf 'lr: 0.1\\\\n' > conf.yaml\")")
    assert not seen.edited


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_that_the_run_starts_are_watched(project: Path, method: str) -> None:
    """What a forked process reads counts, and what it writes does not; a spawned one is watched once it has joined."""
    worker = """
import os
def work(journal, project, join):
    if join:
        from pathlib import Path
        from golden.sources import Watcher
        from golden.tree import Tree
        Watcher(Tree(Path(project), Path(project)), Path(journal)).join()
    open("conf.yaml").read()
    open("made.txt", "w").write("x")
    open("made.txt").read()
"""
    (project.parent / "worker.py").write_text(worker)
    code = f"""
import multiprocessing, worker
process = multiprocessing.get_context({method!r}).Process(
    target=worker.work, args=(str(watcher.journal), str(project), {method == "spawn"}))
process.start(); process.join(); assert process.exitcode == 0
open("made.txt").read()
"""
    seen = watch(project, code)
    assert set(seen.sources) == {"conf.yaml"}
    assert not seen.edited


def test_two_states_of_one_file_are_an_edit(project: Path) -> None:
    """A file that a worker read otherwise than the run did is named, even where it holds at the end what it held first."""
    code = """
import os
open("conf.yaml").read()
os.system("cp -p conf.yaml ../kept; printf new > conf.yaml")
if os.fork() == 0:
    watcher._read.clear()
    open("conf.yaml").read(); os._exit(0)
os.wait(); os.system("cp ../kept conf.yaml")
"""
    assert watch(project, code).edited == ["conf.yaml"]


def test_a_module_from_the_project_is_foreign_to_another_root(tmp_path: Path, project: Path) -> None:
    """With another root, files of the root are the sources, and what was read or imported from the project is named."""
    base = tmp_path / "base"
    base.mkdir()
    (base / "model.py").write_text("width = 2\n")
    code = """
import sys
exec(open("model.py").read())
sys.path.insert(0, str(project))
import model
open(project / "conf.yaml").read()
"""
    seen = watch(project, code, base)
    assert seen.sources == {"model.py": sha(b"width = 2\n")}
    assert seen.foreign == ["conf.yaml", "model.py"]


def test_modules_loaded_before_the_watch_count(tmp_path: Path, project: Path) -> None:
    """A project module that was imported at start-up, by a .pth file for example, is a source."""
    assert "early.py" in watch(project, "", root=tmp_path).sources


def test_a_closed_watcher_is_deaf(project: Path) -> None:
    """After `close` nothing more is noted."""
    assert not watch(project, "watcher.close(); open('conf.yaml').read()").sources


def test_odd_arguments_leave_the_call_to_itself(project: Path) -> None:
    """Descriptors, names with NUL bytes, pipes and files without permission raise what they raise anyway, and nothing waits."""
    code = """
import os
read, write = os.pipe(); os.fdopen(read).close()
for odd in ("a\\0b", b"\\xff\\xfe", "", 7.5):
    try: open(odd)
    except (ValueError, OSError, TypeError): pass
os.mkfifo("pipe"); os.close(os.open("pipe", os.O_RDONLY | os.O_NONBLOCK))
"""
    assert not watch(project, code).sources


@given(st.lists(st.sampled_from([b"\r", b"\n", b"a", b"\r\n", b"\0"]), max_size=12), st.integers(1, 5))
def test_reading_by_chunks_is_digesting_the_whole(parts: list[bytes], size: int) -> None:
    """Wherever the chunks end, also between CR and LF, the digest is that of the whole text."""
    data = b"".join(parts)
    found = _content(data[i : i + size] for i in range(0, len(data), size))
    assert found == Content(digest_text(data), b"\0" in data)


def test_line_ends_count_as_git_keeps_them(tmp_path: Path) -> None:
    """CR LF is LF, a lone CR is not, and a file with a NUL byte is digested byte by byte, also across chunks."""
    assert digest_text(b"a\r\nb\r\n") == digest_text(b"a\nb\n") == sha(b"a\nb\n")
    assert digest_text(b"a\rb") == sha(b"a\rb") != digest_text(b"a\nb")
    assert digest_text(b"a\r\n\0") == sha(b"a\r\n\0") != digest_text(b"a\n\0")
    file = tmp_path / "large"
    file.write_bytes(b"a" * (_CHUNK - 1) + b"\r\n" + b"b" * _CHUNK)
    assert read_content(file) == Content(sha(b"a" * (_CHUNK - 1) + b"\n" + b"b" * _CHUNK), binary=False)


def test_what_is_no_readable_file_has_no_content(tmp_path: Path) -> None:
    """Folders and missing files have none."""
    assert read_content(tmp_path) is None
    assert read_content(tmp_path / "missing") is None
