"""A small project without torch, in which a run of `gate mutate` takes seconds."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHOP = '''"""Prices."""

import functools

RATE = 2


class Basket:
    """Things with a price."""

    limit = 3

    def __init__(self, prices=(1, 2)):
        self.prices = list(prices)

    @functools.lru_cache
    def total(self):
        return sum(self.prices) * RATE

    def full(self):
        return len(self.prices) >= self.limit


def forgotten(a):
    return a + 1
'''
TESTS = """
from shop import Basket


def test_total():
    assert Basket().total() == 6
    assert Basket((5,)).total() == 10


def test_full():
    assert not Basket().full()
    assert Basket((1, 2, 3)).full()
"""
PROJECT = '[tool.pytest.ini_options]\ntestpaths = ["tests"]\npythonpath = ["src"]\n'


@dataclass(frozen=True)
class Answer:
    """What a run said."""

    code: int
    out: str
    err: str
    document: dict[str, Any]

    def statuses(self, **wanted: str) -> list[str]:
        """Of the mutants with these facts."""
        return [m["status"] for m in self.document["mutants"] if all(m[key].strip() == value for key, value in wanted.items())]


@dataclass(frozen=True)
class Tiny:
    """A project in a folder of its own, under git."""

    folder: Path

    @classmethod
    def new(cls, folder: Path, shop: str = SHOP, tests: str = TESTS, more: str = "") -> Tiny:
        for name, text in (
            ("src/shop.py", shop),
            ("tests/test_shop.py", tests),
            ("pyproject.toml", PROJECT + more),
            (".gitignore", ".gate/\n"),
        ):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        tiny = cls(folder)
        tiny.git("init", "--quiet")
        tiny.commit()
        return tiny

    def git(self, *arguments: str) -> None:
        names = ("-c", "user.name=n", "-c", "user.email=e@example.org")
        subprocess.run(["git", *names, *arguments], cwd=self.folder, check=True, capture_output=True)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "state")

    def digest(self) -> str:
        """Of every file but what gate keeps for itself."""
        found = hashlib.sha256()
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and not {".gate", ".git"}.intersection(path.relative_to(self.folder).parts):
                found.update(f"{path.relative_to(self.folder)}\0{path.stat().st_mtime_ns}\0".encode() + path.read_bytes())
        return found.hexdigest()

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "gate", "mutate", *arguments]

    def mutate(self, *arguments: str, **variables: str) -> Answer:
        """A run in a process of its own."""
        target = self.folder.parent / f"{self.folder.name}.json"
        target.unlink(missing_ok=True)
        environment = {**os.environ, "TMPDIR": str(self.scratch()), **variables}
        done = subprocess.run(
            self.command(*arguments, "--json", str(target)), cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300
        )
        return Answer(done.returncode, done.stdout, done.stderr, json.loads(target.read_text()) if target.exists() else {})

    def scratch(self) -> Path:
        """Where copies are made, so that tests see that none is left."""
        place = self.folder.parent / "scratch"
        place.mkdir(exist_ok=True)
        return place


def left(marker: str) -> list[str]:
    """The processes whose command line holds a text."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if marker in line and entry.name != str(os.getpid()):
            found.append(line)
    return found
