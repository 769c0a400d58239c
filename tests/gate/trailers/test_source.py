"""One source has one form, however it is written; two sources have two."""

from __future__ import annotations

import pytest

from gate.trailers.source import marks

PAGE = [
    "http://www.example.org/two", "https://example.org/two", "HTTPS://Example.ORG/two/", "Two, at https://example.org/two#sec.",
    "See (https://example.org:443/two)!", "www.example.org/two", "example.org/two", "[two](http://example.org:80/two)", "<https://a@example.org/two>",
]  # fmt: skip
PAPER = [
    "arXiv:2001.01234", "https://arxiv.org/abs/2001.01234v2", "Some paper (arXiv 2001.01234)", "http://www.arxiv.org/pdf/2001.01234v11.pdf",
    "ARXIV: 2001.01234v3", "export.arxiv.org/abs/2001.01234", "https://doi.org/10.48550/arXiv.2001.01234",
    "arXiv preprint arXiv:2001.01234", "10.48550/ARXIV.2001.01234", "https://arxiv.org/html/2001.01234v1#S2",
    "arxiv.org/abs/2001.01234?context=cs", "https://arxiv.org/pdf/2001.01234v2.pdf/?download=1&a=b",
]  # fmt: skip
OLD_PAPER = ["arXiv:math.GT/0309136", "arXiv:math/0309136v2", "https://arxiv.org/abs/math/0309136"]
DOI = [
    "10.1000/xyz", "https://doi.org/10.1000/xyz", "doi:10.1000/XYZ.", "Paper, http://dx.doi.org/10.1000/xyz/", "DOI 10.1000/xyz",
    "https://dl.example.org/doi/pdf/10.1000/xyz", "https://doi.org/10.1000%2Fxyz",
]  # fmt: skip


def named(text: str) -> frozenset[str]:
    """The marks of a source without those of its words."""
    return frozenset(mark for mark in marks(text) if not mark.startswith("words"))


@pytest.mark.parametrize("writings", [PAGE, PAPER, OLD_PAPER, DOI], ids=["page", "paper", "old paper", "doi"])
def test_every_way_of_writing_it_has_one_form(writings: list[str]) -> None:
    common = frozenset.intersection(*map(named, writings))
    assert len(common) == 1, [named(text) for text in writings]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://example.org/two", "https://example.org/three"),
        ("https://example.org/two", "https://example.org/Two"),
        ("https://example.org/two?page=1", "https://example.org/two?page=2"),
        ("https://example.org:8080/two", "https://example.org/two"),
        ("arXiv:2001.01234", "arXiv:2001.01235"),
        ("arXiv:2001.01234", "arXiv:2001.0123"),
        ("https://arxiv.org/abs/hep-th/9901001", "arXiv:hep-ph/9901001"),
        ("10.1000/xyz", "10.1000/xy"),
        ("10.1016/S0167-9473(01)00065-2", "10.1016/S0167-9473(01)00099-1"),
        ("https://en.example.org/wiki/Foo_(bar)", "https://en.example.org/wiki/Foo_(baz)"),
    ],
)
def test_two_sources_have_two(one: str, other: str) -> None:
    assert named(one)
    assert named(other)
    assert not named(one) & named(other)


def test_names_with_dots_are_no_addresses() -> None:
    """Modules, files and versions, of which two sources may well speak."""
    assert named("`torch.optim.SGD`, torch 2.11's `core/Host.h`, musgd.md (e.g. a@b.org), 3.5/4, and so on...") == frozenset()


def test_words_tell_a_source_without_address() -> None:
    assert marks("The Manual!") == marks("the  manual") == {"words the manual"}


def test_marks_behind_a_name_belong_to_it() -> None:
    """Those that are ends of sentences, brackets or emphasis do not."""
    assert len({marks(text) for text in ("C", "C++", "C#", "F#", "F")}) == 5
    assert marks("**C++**, the manual.") == marks("c++ (the manual)")
    assert marks("C, the manual") != marks("C++, the manual")
