"""Options that a project gives pytest by its configuration are known to the tests' processes of `gate mutate`, and what is not is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gate.mutation.tiny import Answer, Tiny


@pytest.mark.parametrize(
    "options", ["-n 2 --dist loadfile", "-x --ff --lf --nf --sw", "-p xdist -n auto -p no:timeout", "-p no:cacheprovider"]
)
def test_options_of_plugins_and_of_the_cache_are_known(tmp_path: Path, options: str) -> None:
    """The tests run one after the other all the same, all of them for each mutant, and nothing is kept."""
    found = told(tmp_path, options)
    assert found.statuses(after="return sum(self.prices) / RATE") == ["killed"]
    assert found.statuses(after="return a - 1") == ["survived"]
    assert found.code == 1


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("--nonsense", "pytest ended with 4: unrecognized arguments: --nonsense."),
        ("-p nosuchplugin", """pytest ended with 4: Error importing plugin "nosuchplugin": No module named 'nosuchplugin'."""),
    ],
)
def test_what_pytest_refuses_is_told_in_its_words(tmp_path: Path, options: str, why: str) -> None:
    found = told(tmp_path, options)
    assert (found.code, found.document["reason"]) == (3, "baseline-failed")
    assert f"tests/test_shop.py: {why}" in found.err


def told(folder: Path, options: str) -> Answer:
    return Tiny.new(folder / "project", more=f"addopts = {options!r}\n").mutate("--jobs", "1", "--operator", "arithmetic")
