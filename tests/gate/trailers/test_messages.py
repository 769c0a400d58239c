"""Messages of commits hold any bytes but one, and every field stays in its place."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from gate.check import named
from gate.config import find
from gate.history import Repository
from gate.landing import words
from gate.screen import plain
from gate.trailers.message import Trailer, messages
from tests.gate.repositories import commit, git, init

CONFIG = '[tool.gate.trailers]\npaths = ["src"]\nrequired = ["WP", "Gate"]\n'
FILES = {"pyproject.toml": CONFIG, "docs/work/wp-1.md": "# One\n", "tests/test_a.py": "def test_a(): pass\n", "src/a.py": ""}
GATE = "tests/test_a.py::test_a"
WHOLE = f"WP: wp-1\nGate: {GATE}"


def raw(folder: Path, message: bytes, more: bytes = b"", author: bytes = b"A <a@b> 1600000000 +0000") -> str:
    """Commits the index with any message, as no command of git would write it."""
    tree, parent = git(folder, "write-tree").encode(), git(folder, "rev-parse", "HEAD").encode()
    text = b"tree %s\nparent %s\nauthor %s\ncommitter A <a@b> 1600000000 +0000\n%s\n%s" % (tree, parent, author, more, message)
    command = ["git", "hash-object", "-t", "commit", "-w", "--stdin", "--literally"]
    name = subprocess.run(command, cwd=folder, input=text, capture_output=True, check=True).stdout.decode().strip()
    git(folder, "update-ref", "HEAD", name)
    return name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = init(tmp_path / "project")
    commit(folder, FILES, f"Begin\n\n{WHOLE}")
    return folder


def test_every_byte_stays_where_it_is(folder: Path) -> None:
    """In a title, a body and a trailer, one commit a byte; those that end a line for git are left out of titles and trailers."""
    first = git(folder, "rev-parse", "HEAD")
    expected = {}
    for number in range(1, 256):
        byte = bytes([number])
        inline = b" " if byte in b"\n" else byte
        expected[raw(folder, b"A%sb\n\nC%sd\n\n%s\nNote: e%sf\n" % (inline, byte, WHOLE.encode(), inline))] = inline.decode(
            "utf-8", "surrogateescape"
        )
    found = messages(folder, f"{first}..HEAD")
    assert [message.id for message in found] == list(expected)
    for message in found:
        odd = expected[message.id]
        assert message.text.split("\n")[0] == f"A{odd}b"
        assert message.trailers == (Trailer("WP", "wp-1"), Trailer("Gate", GATE), Trailer("Note", f"e{odd}f"))
        assert (message.date, message.merge) == ("2020-09-13", False)
    given = named.trailers(Repository.of(folder), first)
    assert [trailer.value for trailer in given] == [GATE] * 255


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\n",
        b"\x1f",
        b"\x1e\n\n\x1f\x1e",
        b"a\x1fb\n\n\x1f\x1f\x1f",
        b"\n\n\n",
        b"\xff\xfe\n\nWP: \xff",
        b"t\n\nGate: \x1f",
        b"---\n---\n",
    ],
)
def test_no_message_ends_the_judgement(folder: Path, message: bytes) -> None:
    """The commit changes nothing, so that it has to say nothing; the one that it follows is judged as before."""
    raw(folder, message)
    line = words.trailed(find(folder), None)
    assert (line.word, line.code, line.why) == ("passed", 0, "1 commit of src")
    assert len(messages(folder, "HEAD")) == 2


@pytest.mark.parametrize("byte", [b"\x1e", b"\x1f", b"\x0b", b"\x0c", b"\x1c", b"\x85", b"\xff", b"\xc2\x85", b"\xe2\x80\xa8", b"\r"])
def test_a_fault_is_told_whatever_the_message_holds(folder: Path, byte: bytes) -> None:
    """A page's name with an odd byte in it is no page's, and what follows the byte is no trailer of its own."""
    (folder / "src/a.py").write_text("x = 1\n")
    git(folder, "add", "-A")
    raw(folder, b"Odd%s\n\nWP: wp-1%sWP: none\nGate: %s\n" % (byte, byte, GATE.encode()))
    line = words.trailed(find(folder), None)
    (fault,) = line.details
    assert "WP: wp-1" in fault
    assert "is no page's name" in fault
    assert plain(fault).isprintable()


def test_a_date_that_git_cannot_read_is_none(folder: Path) -> None:
    raw(folder, b"Old\n", author=b"A <a@b> yesterday")
    assert messages(folder, "HEAD")[-1].date is None


def test_a_message_in_another_encoding_is_read_in_it(folder: Path) -> None:
    """Whatever git is set to print; one whose encoding nobody knows is taken as it is."""
    raw(folder, "Größe\n".encode("latin-1"), b"encoding ISO-8859-1\n")
    raw(folder, b"Gr\xf6\n", b"encoding nonsense\n")
    git(folder, "config", "i18n.logOutputEncoding", "ISO-8859-1")
    assert [message.text for message in messages(folder, "HEAD")[1:]] == ["Größe\n", "Gr\udcf6\n"]


DIVIDED = [
    "C\n\nWhy.\n---\n a | 1 +\n\nWP: 1\nGate: t\n", "C\n\nWP: 1\nSigned-off-by: A\n---\na note\n",
    "C\n\n---x\n\nWP: 1\n", "C\n\n----\n\nWP: 1\n",
    "C\n\n--- a/x\n+++ b/x\n\nWP: 1\n", "C\n\nWP: 1\nGate: t\n---\nof 3\n\nWP: 1\nGate: u\n", "C\nWP: 1\n---\n\nWP: 1\n", "---\n\nWP: 1\n",
    "C\n\n---\t\n\nWP: 1\n", "C\n\nWP: 1\n  and more\n\n---\n\nWP: 1\n  and more\n", "C\n\nWP: 1\n\nWhy.\n---\n\nWP: 1\n",
    "C\n\n ---\n\nWP: 1\n",
]  # fmt: skip


@pytest.mark.parametrize("text", DIVIDED)
def test_a_line_of_dashes_ends_a_message_where_git_says_so(folder: Path, text: str) -> None:
    """What counts is what git sees whether or not it takes one for the end."""
    raw(folder, text.encode())
    (message,) = messages(folder, "HEAD~1..HEAD")
    answers = (
        subprocess.run(["git", "interpret-trailers", "--parse", *more], cwd=folder, input=text, capture_output=True, check=True, text=True)
        for more in ([], ["--no-divider"])
    )
    cut, whole = (answer.stdout.splitlines() for answer in answers)
    assert [f"{trailer.key}: {trailer.value}" for trailer in message.trailers] == [line for line in whole if line in cut]


def test_lines_of_dashes_are_of_both_kinds() -> None:
    """Some of them hide trailers and some do not."""
    real = [text for text in DIVIDED if re.search(r"^---\s", text, re.MULTILINE)]
    assert 0 < len(real) < len(DIVIDED)


def test_windows_ends_of_lines_hide_nothing(folder: Path) -> None:
    raw(folder, f"Change\n\n{WHOLE}\n".replace("\n", "\r\n").encode())
    (message,) = messages(folder, "HEAD~1..HEAD")
    assert message.values("WP") == ["wp-1"] or message.hidden(["WP"])
    assert not (message.values("WP") and message.hidden(["WP", "Gate"]))
