from __future__ import annotations

import pytest

from gate.version import agrees, public, valid


@pytest.mark.parametrize("text", ["2.9.1", "v2.9.1", "2.9", "2.9.1+cu129", "2.10.0.dev20250901+cpu", "2.10.0rc1", "2.4.0a0+git1234567"])
def test_versions_are_taken(text: str) -> None:
    """Releases, builds, nightlies and release candidates are versions."""
    assert valid(text)


@pytest.mark.parametrize("text", ["", "all", "2.x", ">=2.4", "../2.4", "2.4.0 ", "2,4", "2.4.0+", "-2.4"])
def test_other_text_is_refused(text: str) -> None:
    """Ranges, paths, words and options are no versions."""
    assert not valid(text)


@pytest.mark.parametrize(
    ("asked", "measured"),
    [
        ("2.9.1", "2.9.1+cu129"), ("2.9.1", "2.9.1"), ("2.9.1+cu129", "2.9.1+cu129"), ("2.9", "2.9.0+cpu"), ("v2.9.1", "2.9.1"),
        ("2.10.0", "2.10.0"), ("2.9.1+CU129", "2.9.1+cu129"), ("2.10rc1", "2.10.0rc1"), ("2.4.0a0", "2.4.0a0+git1234567"),
    ],
)  # fmt: skip
def test_a_public_version_means_any_build_of_it(asked: str, measured: str) -> None:
    """A version without a local part is served by each of its builds, and trailing zeros do not count."""
    assert agrees(asked, measured)


@pytest.mark.parametrize(
    ("asked", "measured"),
    [
        ("2.9.1", "2.9.0"), ("2.9.1+cu129", "2.9.1+cu128"), ("2.9.1+cu129", "2.9.1"), ("2.1", "2.10"), ("2.10.0", "2.10.0rc1"),
        ("2.1", "2.1.1"),
    ],
)  # fmt: skip
def test_another_version_or_build_does_not_agree(asked: str, measured: str) -> None:
    """Another release, another named build or a release candidate is not what was asked for."""
    assert not agrees(asked, measured)


def test_the_public_version_has_no_build() -> None:
    """The local part names the build and is left out."""
    assert public("2.9.1+cu129") == "2.9.1" == public("2.9.1")
