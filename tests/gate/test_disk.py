"""Sizes on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate.disk import free, shown, size


def test_a_size_is_that_of_all_files_below(tmp_path: Path) -> None:
    """A link counts as itself, what is not there as nothing."""
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/one").write_bytes(b"1" * 1000)
    (tmp_path / "a/b/two").write_bytes(b"2" * 24)
    assert size(tmp_path) == 1024
    assert size(tmp_path / "a/one") == 1000
    (tmp_path / "a/link").symlink_to(tmp_path / "a/one")
    (tmp_path / "a/loop").symlink_to(tmp_path)
    assert size(tmp_path / "a") == 1024 + len(str(tmp_path / "a/one")) + len(str(tmp_path))
    assert size(tmp_path / "absent") == 0


def test_free_space_is_asked_where_a_path_would_be(tmp_path: Path) -> None:
    assert 0 < free(tmp_path / "not/yet") < 2**60


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (1536 * 2**20, "1.5 GiB"), (2**60, "1048576.0 TiB")]
)
def test_sizes_are_told_as_people_read_them(count: int, text: str) -> None:
    assert shown(count) == text
