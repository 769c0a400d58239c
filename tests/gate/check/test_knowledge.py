"""What is known of tests, kept and brought to other contents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.check import knowledge
from gate.check.knowledge import Knowledge, Known
from gate.check.lines import mask, numbers

OLD = "LIMIT = 1\n\n\ndef f(x):\n    return x\n\n\ndef g(x):\n    return x + 1\n"
PATHS = st.sampled_from(["a.py", "b/ü.py", "c.py"])
KNOWN = st.builds(
    Known, file=PATHS, lines=st.dictionaries(PATHS, st.integers(0, 1 << 90)), reads=st.frozensets(PATHS),
    blind=st.sampled_from(["", "why"]), started=st.booleans(), outcome=st.sampled_from(["passed", "failed", "skipped"]),
)  # fmt: skip


@given(tests=st.dictionaries(st.text(), KNOWN, max_size=4), sources=st.dictionaries(PATHS, st.text(alphabet="aé\r\n\udce9")))
def test_what_is_kept_is_what_is_read(tmp_path_factory: pytest.TempPathFactory, tests: dict[str, Known], sources: dict[str, str]) -> None:
    """Whatever ids and contents are."""
    tests = {key.encode(errors="replace").decode(): known for key, known in tests.items()}
    folder = tmp_path_factory.mktemp("store")
    knowledge.keep(Knowledge(sources, tests), folder, "map")
    assert knowledge.load(folder, "map") == Knowledge(sources, tests)


def test_contents_that_nothing_speaks_of_are_removed(tmp_path: Path) -> None:
    """Those of another map stay."""
    knowledge.keep(Knowledge({"a.py": "1"}), tmp_path, "one")
    knowledge.keep(Knowledge({"a.py": "2"}), tmp_path, "two")
    assert len(list((tmp_path / "sources").iterdir())) == 2
    knowledge.keep(Knowledge({"a.py": "3"}), tmp_path, "two")
    assert len(list((tmp_path / "sources").iterdir())) == 2
    kept = knowledge.load(tmp_path, "one")
    assert kept is not None
    assert kept.sources == {"a.py": "1"}


@pytest.mark.parametrize("damage", ["newer", "cut", "source", "absent"])
def test_a_damaged_map_is_none(tmp_path: Path, damage: str) -> None:
    """A whole one is read (the negative control); then it is damaged."""
    knowledge.keep(Knowledge({"a.py": "1"}, {"t": Known("a.py")}), tmp_path, "map")
    assert knowledge.load(tmp_path, "map") is not None
    file = tmp_path / "map.json"
    (source,) = (tmp_path / "sources").iterdir()
    if damage == "newer":
        file.write_text(json.dumps({**json.loads(file.read_text()), "format": 2}))
    elif damage == "cut":
        file.write_text(file.read_text()[:-5])
    elif damage == "source":
        source.write_text("2")
    else:
        file.unlink()
    assert knowledge.load(tmp_path, "map") is None


def translated(new: str, lines: set[int]) -> list[int]:
    before = Knowledge({"a.py": OLD}, {"t": Known("test.py", {"a.py": mask(lines)})})
    return list(numbers(before.translated({"a.py": new}).tests["t"].lines["a.py"]))


@pytest.mark.parametrize(
    ("new", "lines", "expected"),
    [
        ("# more\n" + OLD, {5}, [6]),
        (OLD.replace("return x\n", "y = x\n    return y\n"), {5}, [5, 6]),
        (OLD.replace("return x\n", "y = x\n    return y\n"), {4}, [4]),  # who imported, and ran the `def`, does not run the body
        (OLD.replace("return x\n", "return x\n    more()\n"), {5}, [5, 6]),
        (OLD.replace("def g", "def h(x):\n    return 2\n\n\ndef g"), {5}, [5]),  # a new function after one that was run
        (OLD.replace("    return x\n", "    y = 1\n    return x\n"), {9}, [10]),
        (OLD, {5}, [5]),
    ],
)
def test_lines_are_followed_within_their_function(new: str, lines: set[int], expected: list[int]) -> None:
    assert translated(new, lines) == expected


def test_a_test_that_failed_is_still_known_for_what_it_ran_before() -> None:
    """One that passed is not: what it does not run any more is forgotten. A test that is gone is forgotten, too."""
    before = Knowledge({"a.py": OLD, "b.py": ""}, {"t": Known("t.py", {"a.py": 6}), "gone": Known("t.py", {"b.py": 2})})
    failed = before.refreshed({"t": Known("t.py", {"a.py": 8}, outcome="failed")}, ["t"])
    assert failed.tests["t"].lines == {"a.py": 14}
    assert before.refreshed({"t": Known("t.py", {"a.py": 8})}, ["t"]).tests["t"].lines == {"a.py": 8}
    assert failed.tests.keys() == {"t"}
    assert failed.sources == {"a.py": OLD}
