"""Trailers that name tests, in real repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate.check import named
from gate.check.named import Trailer, UnknownTest
from gate.history import Repository
from tests.gate.repositories import commit, init

IDS = ["tests/test_a.py::test_one", "tests/test_a.py::TestB::test_two", "tests/test_a.py::test_p[a, b]", "tests/test_a.py::test_p[\\xfc x]"]


def selected(value: str) -> list[str]:
    return list(named.tests([Trailer("1a2b3c4", value)], IDS))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (IDS[0], IDS[:1]),
        ("tests/test_a.py::TestB", IDS[1:2]),
        ("tests/test_a.py", IDS),
        ("tests", IDS),
        ("tests/test_a.py::test_p", IDS[2:]),
        (IDS[2], IDS[2:3]),
        ("tests/test_a.py::test_p[ü x]", IDS[3:]),
        (f"{IDS[2]}, {IDS[0]},", [IDS[2], IDS[0]]),
        ("none yet", []),
    ],
)
def test_a_value_is_a_test_a_class_a_file_or_several(value: str, expected: list[str]) -> None:
    assert selected(value) == expected


@pytest.mark.parametrize(
    "gone", ["tests/test_a.py::test_gone", "tests/test_gone.py", "tests/test_a.py::test_on", "tests/test_a.py::test_p[a"]
)
def test_a_test_that_is_gone_is_named_with_its_commit(gone: str) -> None:
    """Also beside one that is there, and where a longer name begins like it."""
    with pytest.raises(UnknownTest) as caught:
        selected(f"{IDS[0]}, {gone}")
    assert all(part in str(caught.value) for part in ("1a2b3c4", gone))


def test_git_decides_what_a_trailer_is(tmp_path: Path) -> None:
    """Of two commits; a line in the middle of a message is none, a folded one is whole, and the first commit does not count."""
    folder = init(tmp_path / "repository")
    first = commit(folder, {"a": "1"}, "first\n\nGate: before.py")
    commit(folder, {"a": "2"}, "second\n\nGate: text.py is no trailer here.\n\nMore text.\n\nGate: a.py::test_a,\n b.py\nOther: x")
    commit(folder, {"a": "3"}, "third\n\nGate: c.py\nGate: d.py")
    found = named.trailers(Repository.of(folder), first)
    assert [trailer.value for trailer in found] == ["c.py", "d.py", "a.py::test_a, b.py"]
    assert named.trailers(Repository.of(folder), None) == ()


@pytest.mark.parametrize("byte", ["\x1e", "\x1f", "\x0b", "\x1c", "\x85", "\u2028"])
def test_any_byte_may_stand_in_a_value(tmp_path: Path, byte: str) -> None:
    """It ends neither the value nor the commit."""
    folder = init(tmp_path / "repository")
    first = commit(folder, {"a": "1"}, "first")
    commit(folder, {"a": "2"}, f"se{byte}cond\n\nGate: a.py::test_a[x{byte}y]\nGate: b.py")
    assert [trailer.value for trailer in named.trailers(Repository.of(folder), first)] == [f"a.py::test_a[x{byte}y]", "b.py"]
