"""The lock of a folder, between real processes."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from golden.errors import Locked, StoreError
from golden.lock import FILE, lock

HOLDER = """
import sys, time
from pathlib import Path
from golden.lock import lock
with lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock until its input ends."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_the_holder_is_named(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(Locked) as caught, lock(tmp_path):
        pass
    assert caught.value.reason == "locked"
    assert str(caught.value) == f"{tmp_path / FILE}: held by process {holder.pid} on {platform.node()}: wait for it to end, or end it"


def test_the_lock_is_free_once_its_holder_has_left(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.communicate("")
    assert list(tmp_path.iterdir()) == []
    with lock(tmp_path):
        assert (tmp_path / FILE).read_text() == f"process {os.getpid()} on {platform.node()}"
    assert list(tmp_path.iterdir()) == []


def test_a_killed_holder_locks_nobody_out(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    """Its file stays behind, with its number in it, and is taken over."""
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert str(holder.pid) in (tmp_path / FILE).read_text()
    with lock(tmp_path):
        assert str(holder.pid) not in (tmp_path / FILE).read_text()


def test_the_lock_is_left_when_the_work_fails(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), lock(tmp_path):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_one_process_cannot_hold_it_twice(tmp_path: Path) -> None:
    with lock(tmp_path), pytest.raises(Locked, match=f"process {os.getpid()} "), lock(tmp_path):
        pass


def test_folders_are_locked_apart(tmp_path: Path) -> None:
    with lock(tmp_path / "a"), lock(tmp_path / "b"):
        assert (tmp_path / "a" / FILE).exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"), lock(tmp_path / "file"):
        pass


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / FILE).symlink_to(tmp_path / "mine.txt")
    with pytest.raises(StoreError, match=r"\.lock"), lock(tmp_path):
        pass
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_many_processes_hold_it_one_at_a_time(tmp_path: Path) -> None:
    """Each adds one to a number as often as it gets the lock; with the file removed on every release none is lost."""
    code = """
import sys
from pathlib import Path
from golden.errors import Locked
from golden.lock import lock
counter, done = Path(sys.argv[2]), 0
while done < 50:
    try:
        with lock(Path(sys.argv[1])):
            counter.write_text(str(int(counter.read_text()) + 1))
            done += 1
    except Locked:
        pass
"""
    counter = tmp_path / "counter"
    counter.write_text("0")
    processes = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "locked"), str(counter)]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert counter.read_text() == "150"
