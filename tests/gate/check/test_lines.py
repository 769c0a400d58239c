"""Sets of lines, and where lines went."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gate.check.lines import Hunk, carried, hunks, mask, numbers, shown, split, stretch

TEXTS = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=12).map("\n".join)
SETS = st.sets(st.integers(1, 200))


@given(SETS)
def test_a_set_gives_its_lines_in_order(lines: set[int]) -> None:
    assert list(numbers(mask(lines))) == sorted(lines)


@given(TEXTS, TEXTS)
def test_lines_that_stayed_keep_their_text(old: str, new: str) -> None:
    """Each alone is followed to a line of the same text; of equal contents all stay where they are."""
    before, after = split(old), split(new)
    for line, text in enumerate(before, 1):
        for found in numbers(carried(1 << line, hunks(old, new), ())):
            assert after[found - 1] == text
    assert carried(mask(range(1, len(before) + 1)), hunks(old, old), ()) == mask(range(1, len(before) + 1))


def test_a_difference_names_both_sides() -> None:
    assert hunks("a\nb\nc", "a\nx\ny\nc") == (Hunk(range(2, 3), range(2, 4)),)
    assert hunks("a\nb", "a\nb") == ()


def test_heirs_get_what_stands_in_their_place() -> None:
    """Whoever ran line 2 runs its two heirs; whoever ran line 1 alone does not."""
    differences, heirs = hunks("a\nb\nc", "a\nx\ny\nc"), [(mask([2]), mask([2, 3]))]
    assert carried(mask([2, 3]), differences, heirs) == mask([2, 3, 4])
    assert carried(mask([1]), differences, heirs) == mask([1])


def test_lines_are_counted_as_python_counts_them() -> None:
    """Carriage returns end lines, a form feed and the line separator of Unicode do not."""
    assert len(split("a\r\nb\rc\nd\x0ce\u2028f")) == 4


def test_people_read_ranges() -> None:
    assert shown([9, 1, 7, 8, 3]) == "1, 3, 7-9"
    assert stretch(range(5, 5)) == 0
