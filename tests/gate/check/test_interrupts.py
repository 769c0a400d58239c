"""A check that is killed or interrupted at any moment: nothing is changed, nothing is left running, and the next one is right."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.gate.check.toys import Toy

MOMENTS = 20
TOKEN = "GATE_TEST_TOKEN"
FILES = {
    "pyproject.toml": "[tool.gate]\n",
    "lib.py": "def one():\n    return 1\n",
    "test_sleeps.py": """
import os, subprocess, sys, time, lib

SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(300)"]

def test_grandchildren():
    '''One in the group, one in a session of its own, whose parent is gone at once.'''
    assert lib.one() == 1
    child = subprocess.Popen(SLEEP)
    orphan = f"import subprocess; subprocess.Popen({SLEEP!r}, start_new_session=True)"
    subprocess.run([sys.executable, "-S", "-c", orphan], check=True)
    time.sleep(0.4)
    child.kill()
    child.wait()

def test_more():
    time.sleep(0.2)
    assert lib.one() == 1
""",
}

# waits for ever where interrupts are ignored, which processes inherit
INTERRUPTS = """

def test_interrupt():
    import signal, subprocess, sys
    waits = "import time; print(1, flush=True); time.sleep(300)"
    with subprocess.Popen([sys.executable, "-S", "-c", waits], stdout=subprocess.PIPE) as child:
        assert child.stdout.read(1) == b"1"
        child.send_signal(signal.SIGINT)
        try:
            assert child.wait(20) != 0
        finally:
            child.kill()
"""


def digest(folder: Path) -> str:
    """Of names and contents of everything in the work tree but `.gate` and git's own."""
    found = []
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if relative.parts[0] not in (".gate", ".git"):
            found.append((str(relative), path.read_bytes() if path.is_file() else b""))
    return hashlib.sha256(repr(found).encode()).hexdigest()


def left(token: str) -> list[str]:
    """Processes that live and carry a token in their environment: their numbers and command lines."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            alive = (folder / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
            if alive and f"{TOKEN}={token}".encode() in (folder / "environ").read_bytes():
                found.append(f"{folder.name} " + (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def start(toy: Toy, token: str, target: Path) -> subprocess.Popen[bytes]:
    """Begins a check in a session of its own."""
    command = [sys.executable, "-m", "gate", "check", "--since", "HEAD", "--jobs", "1", "--json", str(target)]
    nothing, variables = subprocess.DEVNULL, {**os.environ, TOKEN: token, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    return subprocess.Popen(command, cwd=toy.folder, env=variables, stdout=nothing, stderr=nothing, start_new_session=True)


def gone(token: str) -> bool:
    """Whether all processes end, soon."""
    deadline = time.monotonic() + 20
    while left(token) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not left(token)


def selected(document: Mapping[str, Any]) -> tuple[Any, ...]:
    return document["verdict"], document["selected"], document["passed"]


def test_a_test_may_interrupt_what_it_starts(tmp_path: Path) -> None:
    toy = Toy.new(tmp_path / "toy", {"pyproject.toml": "[tool.gate]\n", "test_it.py": INTERRUPTS})
    found = toy.check(everything=True)
    assert found.having("passed") == ["test_it.py::test_interrupt"], found.outcomes


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_at_every_moment_nothing_is_changed_or_left(tmp_path: Path, number: signal.Signals) -> None:
    """At ten moments each, spread over what a whole check takes; the grandchildren sleep for minutes (the negative control sees them)."""
    toy, token = Toy.new(tmp_path / "toy", FILES), uuid.uuid4().hex
    toy.check(everything=True)
    toy.write({"lib.py": "def one():\n    return 2 - 1\n"})
    before, target = digest(toy.folder), tmp_path / "result.json"
    begun, seen = time.monotonic(), False
    whole = start(toy, token, target)
    while whole.poll() is None:
        seen = seen or any("sleep(300)" in line for line in left(token))
        time.sleep(0.05)
    duration = time.monotonic() - begun
    assert seen
    assert (whole.returncode, digest(toy.folder), gone(token)) == (0, before, True)
    expected = selected(json.loads(target.read_text()))
    for moment in range(MOMENTS // 2):
        process = start(toy, token, target)
        time.sleep(duration * moment / (MOMENTS // 2))
        process.send_signal(number)
        process.wait(30)
        assert gone(token), left(token)
        assert digest(toy.folder) == before
    assert start(toy, token, target).wait(120) == 0
    assert selected(json.loads(target.read_text())) == expected
    assert expected == ("passed", ["test_sleeps.py::test_grandchildren", "test_sleeps.py::test_more"], expected[1])
    assert not list((toy.folder / ".gate/check").glob("session-*"))
