"""Verdicts, exit codes and rows."""

import itertools
import json

import pytest

from gate.row import Arm, Results, Row
from gate.verdict import Cause, Reason, Verdict, for_bisect, worst, worst_verdict
from golden.compare import Difference, Kind

FIRST = Difference(3, "optimizer", "optimizer/conv.weight/momentum_buffer", Kind.BITS, 12, 288, 1, (0, 3), "0x3f800000", "0x3f800001")


def row(verdict: Verdict = Verdict.DRIFT) -> Row:
    change = {"path": "threads", "expected": 1, "actual": 2}
    return Row("digits", "digits", "cpu", "2.13.0", "golden", verdict, Cause.CODE, None, 8, (change,), ("src/musgd/update.py",), FIRST)


@pytest.mark.parametrize(
    ("verdict", "code"),
    [("identical", 0), ("drift", 1), ("not-judged", 3), ("nondeterministic", 4), ("recorded", 0), ("updated", 0)],
)
def test_each_verdict_has_its_exit_code(verdict: str, code: int) -> None:
    assert Verdict(verdict).exit_code == code


def test_the_worst_of_several_exit_codes_follows_the_documented_order() -> None:
    order = [70, 2, 1, 4, 3, 0]
    for pair in itertools.permutations(order, 2):
        assert worst(pair) == min(pair, key=order.index)


def test_an_exit_code_that_gate_never_gives_is_refused() -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        worst([0, 5])


def test_zero_work_is_never_success() -> None:
    assert worst([]) == 3
    assert worst_verdict([]) is Verdict.NOT_JUDGED
    assert (Results(()).exit_code, Results(()).verdict) == (3, Verdict.NOT_JUDGED)


def test_the_verdict_of_a_result_and_its_exit_code_are_of_the_same_row() -> None:
    for some in itertools.product(Verdict, repeat=2):
        result = Results(tuple(row(verdict) for verdict in some))
        assert result.verdict.exit_code == result.exit_code
        assert result.verdict in some


def test_bisect_skips_what_could_not_be_judged_and_nothing_else() -> None:
    assert [for_bisect(code) for code in (0, 1, 2, 3, 4, 70)] == [0, 1, 2, 125, 125, 70]


def test_words_print_as_their_value() -> None:
    assert f"{Verdict.DRIFT} {Cause.CODE!s} {Reason.NO_GOLDEN}" == "drift code no-golden"


def test_a_row_has_the_documented_keys_in_the_documented_order() -> None:
    documented = (
        '{"scenario": "digits", "golden": "digits", "hardware": "cpu", "torch": "2.13.0", "against": "golden", "verdict": "drift", '
        '"cause": "code", "reason": null, "steps": 8, "environment_changes": [{"path": "threads", "expected": 1, "actual": 2}], '
        '"changed_sources": ["src/musgd/update.py"], "first": {"step": 3, "phase": "optimizer", '
        '"path": "optimizer/conv.weight/momentum_buffer", "kind": "bits", "differing": 12, "elements": 288, "max_ulp": 1, '
        '"index": [0, 3], "expected": "0x3f800000", "actual": "0x3f800001"}, '
    )
    text = json.dumps(row().as_json())
    assert text.startswith(documented)
    assert list(json.loads(text))[12:] == ["run", "message", "arms", "seconds", "honoured", "replay"]


def test_a_result_says_format_verdict_and_results() -> None:
    result = Results((row(Verdict.IDENTICAL), row()))
    assert list(result.as_json()) == ["format", "verdict", "results"]
    assert result.as_json()["verdict"] == "drift"
    assert len(result.as_json()["results"]) == 2


def test_an_arm_says_its_seconds_to_the_millisecond() -> None:
    assert Arm("again", "identical", 1.23456).as_json() == {"name": "again", "verdict": "identical", "seconds": 1.235}
