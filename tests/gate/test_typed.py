"""Differences of plain values, told with their types."""

import pytest

from gate.typed import changes, lines


def test_equal_values_have_no_changes() -> None:
    assert changes({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}) == []


@pytest.mark.parametrize(
    ("expected", "actual"),
    [(1, 1.0), (1, True), (1, "1"), (None, 0), (0.0, -0.0), ("a", "A"), ([], {}), ([1, 2], [2, 1]), (1e16, 1e16 + 2)],
)
def test_values_of_other_type_sign_or_order_are_told_apart(expected: object, actual: object) -> None:
    assert changes({"key": expected}, {"key": actual})
    assert changes({"key": expected}, {"key": expected}) == []


def test_a_nested_change_is_told_by_its_path_alone() -> None:
    expected = {"steps": 10, "parameters": {"lr": 0.1, "gone": "x", "sizes": [1, 2, 3]}}
    actual = {"steps": 10, "parameters": {"lr": 0.2, "new": {"a": 1}, "sizes": [1, 2, 4]}}
    assert changes(expected, actual) == [
        {"path": "parameters.gone", "expected": "x", "actual": None},
        {"path": "parameters.lr", "expected": 0.1, "actual": 0.2},
        {"path": "parameters.new", "expected": None, "actual": {"a": 1}},
        {"path": "parameters.sizes.2", "expected": 3, "actual": 4},
    ]


def test_a_change_is_one_line_that_shows_the_types() -> None:
    assert lines({"path": "threads", "expected": 1, "actual": "1"}) == ['threads: 1 -> "1"']
    assert lines({"path": "variables.OMP_NUM_THREADS", "expected": None, "actual": "2"}) == ['variables.OMP_NUM_THREADS: absent -> "2"']


def test_a_change_of_a_mapping_is_one_line_for_each_value_in_it() -> None:
    change = {"path": "distributions", "expected": {"a": "1", "b": "2"}, "actual": {"a": "1", "b": "3", "c": "4"}}
    assert lines(change) == ['distributions.b: "2" -> "3"', 'distributions.c: absent -> "4"']
