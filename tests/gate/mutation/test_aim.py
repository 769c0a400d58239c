"""Which lines a change touches."""

from __future__ import annotations

from pathlib import Path

from gate.mutation.aim import changed
from tests.gate.repositories import commit, init, write


def test_lines_that_look_like_a_difference_are_content(tmp_path: Path) -> None:
    """git shows the line "++ b/x" that is added as "+++ b/x", which is how it names a file; and lines may hold returns."""
    init(tmp_path)
    commit(tmp_path, {"notes.md": "one\ntwo\n-- a/x\nfour\n", "ü.py": "x = 1\n", "same.py": "x = 1\n"})
    write(tmp_path, {"notes.md": "one\n++ b/x\n@@ -1 +1 @@\n\rfour\nfour\nfive\n", "ü.py": "x = 1\ny = 2\n", "new.py": "x = 1\n"})
    assert changed(tmp_path, "HEAD") == {"notes.md": {2, 3, 4, 6}, "ü.py": {2}, "new.py": None}


def test_lines_that_went_touch_those_around_them(tmp_path: Path) -> None:
    init(tmp_path)
    commit(tmp_path, {"a.py": "a = 1\n++ 2\nb = 3\nc = 4\n"})
    write(tmp_path, {"a.py": "a = 1\nc = 4\n"})
    assert changed(tmp_path, "HEAD") == {"a.py": {1, 2}}
