"""What a person reads: the facts of a drift in the first lines, once, and what to do next in the last."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from gate import report
from gate.row import Arm, Results, Row
from gate.verdict import Cause, Reason, Verdict
from golden.compare import Comparison, Difference, Kind

FIRST = Difference(
    3, "optimizer", "optimizer/conv.weight/momentum_buffer", Kind.BITS, 12, 288, 1, (0, 3), "0x3f800000", "0x3f800001", dtype="float32"
)
THREADS = {"path": "threads", "expected": 1, "actual": 2}
DRIFT = Row(
    "digits",
    "digits",
    "cpu",
    "2.13.0",
    "golden",
    Verdict.DRIFT,
    Cause.CODE,
    steps=8,
    environment_changes=(THREADS,),
    changed_sources=("src/musgd/update.py",),
    first=FIRST,
    run=".gate/runs/1/cpu/torch-2.13.0/digits",
    arms=(Arm("again", "identical", 2.25), Arm("base 1a2b3c4", "equals the golden", 3.0)),
    seconds=7.5,
    honoured=True,
)
SAME = Row("digits", "digits", "cpu", "2.13.0", "golden", Verdict.IDENTICAL, steps=8, seconds=2.0)


@pytest.fixture(autouse=True)
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def text(*rows: Row, left_out: str | None = None) -> str:
    return report.text(Results(rows, left_out), io.StringIO())


def test_the_first_twenty_lines_of_a_drift_hold_all_that_explains_it() -> None:
    head = "\n".join(text(DRIFT).splitlines()[:20])
    facts = (
        "digits on cpu under torch 2.13.0: drift (code)",
        "honours the portable profile",
        "threads: 1 -> 2",
        "again: identical, 2.2 s; base 1a2b3c4: equals the golden, 3.0 s",
        "src/musgd/update.py",
        "step 3, phase optimizer, optimizer/conv.weight/momentum_buffer: bits",
        "12 of 288 elements differ, by 1 ULP at most; the first at [0, 3]",
        "0x3f800000 (1.0)",
        "0x3f800001 (1.0000001)",
        'gate record digits --torch 2.13.0 --update --reason "..."',
        ".gate/runs/1/cpu/torch-2.13.0/digits",
    )
    flat = " ".join(head.split())
    assert [fact for fact in facts if fact not in flat] == []


def test_the_first_twenty_lines_hold_them_also_where_much_has_changed() -> None:
    changes = tuple({"path": f"variables.A_{place}", "expected": None, "actual": "1"} for place in range(40))
    sources = tuple(f"src/some/module_{place}.py" for place in range(40))
    found = Comparison((FIRST, replace(FIRST, step=4)))
    rows = [
        replace(DRIFT, scenario=f"s{place}", torch=version, environment_changes=changes, changed_sources=sources, comparison=found)
        for place in range(6)
        for version in ("2.4.0", "2.9.1", "2.13.0", "2.14.1")
    ]
    head = "\n".join(text(*rows).splitlines()[:20])
    for fact in ("portable profile", "variables.A_0", "36 more", "37 more", "module_0.py", "phase", "12 of 288", "3f800001", "next"):
        assert fact in head, fact


def test_whether_the_machine_honours_the_profile_comes_before_the_environment_and_the_cause() -> None:
    labels = [line.split()[0] for line in text(DRIFT).splitlines()[1:12] if line.startswith("  ") and not line.startswith("    ")]
    assert labels[:5] == ["machine", "environment", "cause", "sources", "first"]


@pytest.mark.parametrize(("honoured", "words"), [(True, "honours"), (False, "does NOT honour"), (None, "not asked")])
def test_every_drift_says_what_is_known_of_the_machine(honoured: bool | None, words: str) -> None:
    assert f"machine      {words}" in text(replace(DRIFT, honoured=honoured))


@pytest.mark.case("G24")
def test_one_environment_change_that_broke_many_goldens_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    rows = [replace(DRIFT, scenario=f"s{place}", cause=Cause.ENVIRONMENT, changed_sources=()) for place in range(72)]
    shown = text(*rows)
    assert shown.count("threads: 1 -> 2") == 1
    assert shown.count("drift (environment)") == 2, "once at the top, once in the last line"
    assert "72 rows: drift (environment)" in shown.splitlines()[0]
    assert len(shown.splitlines()[-1]) < 200, "and the last line does not name them all"


def test_a_change_that_only_some_rows_have_says_so() -> None:
    shown = text(DRIFT, replace(DRIFT, scenario="text", environment_changes=()))
    assert "threads: 1 -> 2 (in 1 of 2)" in shown


def test_drifts_of_two_causes_are_told_apart() -> None:
    shown = text(DRIFT, replace(DRIFT, scenario="text", cause=Cause.ENVIRONMENT))
    assert "digits on cpu under torch 2.13.0: drift (code)" in shown
    assert "text on cpu under torch 2.13.0: drift (environment)" in shown


def test_the_worst_is_told_first() -> None:
    again = replace(DRIFT, scenario="random", verdict=Verdict.NONDETERMINISTIC, cause=None)
    shown = text(SAME, again, DRIFT)
    assert shown.index("digits on cpu") < shown.index("random on cpu")


def test_two_runs_that_differ_here_say_nothing_of_what_was_recorded() -> None:
    shown = text(replace(DRIFT, verdict=Verdict.NONDETERMINISTIC, cause=None, environment_changes=(), changed_sources=()))
    assert "12 of 288 elements differ" in shown
    assert "again: identical" in shown
    assert "as recorded" not in shown


def test_a_difference_known_by_digests_alone_says_so() -> None:
    bare = Difference(1, "loss", "loss", Kind.BITS, dtype="float32")
    shown = text(replace(DRIFT, first=bare))
    assert "only digests were kept" in shown
    assert "None" not in shown


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (Difference(1, "m", "m/w", Kind.MISSING, expected="float32[3]"), ["missing", "float32[3]", "actual       nothing"]),
        (Difference(1, "m", "m/w", Kind.DTYPE, expected="float32", actual="float64"), ["dtype", "float32", "float64"]),
        (Difference(1, "m", "m/n", Kind.VALUE, expected="3"), ["value", "actual       not known: only its digest was kept"]),
        (Difference(1, "m", "m/n", Kind.VALUE), ["value", "its values are not known"]),
        (Difference(1, "m", "m/w", Kind.BITS, 1, 1, None, (), "0x01", "0x00", dtype="bool"), ["1 of 1 element differs; the first at []"]),
    ],
)
def test_each_kind_of_difference_shows_both_sides(difference: Difference, words: list[str]) -> None:
    shown = text(replace(DRIFT, first=difference))
    assert [word for word in words if word not in shown] == []


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (SAME, "identical: every bit of 1 row as recorded. Next: nothing to do"),
        (replace(SAME, golden=None, against="base"), "identical: every bit of 1 row as the base gives it. Next: nothing to do"),
        (DRIFT, "drift (code): 1 row. Next: undo the change in src/musgd/update.py, or keep the new bits: gate record digits"),
        (replace(DRIFT, arms=(), message="The checkpoint lacks something."), "Next: mend digits where the line under the cause says"),
        (replace(DRIFT, against="base"), "Next: undo the change in src/musgd/update.py"),
        (replace(DRIFT, cause=Cause.ENVIRONMENT), "Next: set threads back, or record for the environment as it is: gate record digits"),
        (replace(DRIFT, cause=Cause.ENVIRONMENT, honoured=False), "Next: judge on a machine that honours the portable profile"),
        (replace(DRIFT, cause=Cause.UNKNOWN), "Next: gate verify digits --torch 2.13.0 --base REV"),
        (replace(DRIFT, cause=None, arms=()), "Next: leave out --no-cause to learn the cause"),
        (replace(DRIFT, verdict=Verdict.NONDETERMINISTIC, cause=None), "Next: find what digits draws anew each time"),
        (replace(SAME, verdict=Verdict.NOT_JUDGED, reason=Reason.NO_GOLDEN), "not-judged (no-golden): 1 row. Next: gate record digits"),
        (
            replace(SAME, verdict=Verdict.NOT_JUDGED, reason=Reason.IO),
            "not-judged (io): 1 row. Next: do what the message on standard error says",
        ),
        (replace(SAME, verdict=Verdict.RECORDED), "recorded: 1 row. Next: commit the goldens"),
        (replace(SAME, verdict=Verdict.UPDATED), "updated: 1 row. Next: commit the goldens"),
    ],
)
def test_the_last_line_says_what_happened_and_what_to_do(monkeypatch: pytest.MonkeyPatch, row: Row, words: str) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    assert words in text(row).splitlines()[-1]


def test_the_last_line_counts_each_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    assert text(SAME, DRIFT, SAME).splitlines()[-1].startswith("drift: 1 drift, 2 identical. Next: undo")


def test_nothing_judged_is_no_success() -> None:
    assert text().splitlines()[-1].startswith("not-judged: nothing was judged.")


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        ([replace(DRIFT, hardware="h200", torch="2.11.0+cu130")], "digits --device cuda --torch 2.11.0+cu130"),
        ([replace(DRIFT, torch="2.4.0"), replace(DRIFT, torch="2.9.1")], "digits --torch all"),
        ([replace(DRIFT, scenario="two words")], "'two words' --torch 2.13.0"),
    ],
)
def test_the_command_that_is_named_names_the_rows(monkeypatch: pytest.MonkeyPatch, rows: list[Row], options: str) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    assert f"gate record {options} --update" in text(*rows)


def test_a_table_of_all_rows_stands_above_the_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    other = replace(SAME, scenario="digits-replay", golden="digits", torch="2.9.1")
    shown = text(DRIFT, other, left_out="left out: 3 goldens of h200").splitlines()
    assert shown[-6].split()[:5] == ["scenario", "hardware", "torch", "verdict", "why"]
    assert shown[-5].split()[:5] == ["digits", "cpu", "2.13.0", "drift", "code"]
    assert shown[-4].split() == ["digits-replay", "(as", "digits)", "cpu", "2.9.1", "identical", "2.0"]
    assert shown[-2] == "left out: 3 goldens of h200"


def test_a_wide_table_shows_where_each_row_began_to_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    line = next(line for line in text(DRIFT).splitlines() if line.startswith("digits  "))
    assert "step 3, bits: optimizer/conv.weight/momentum_buffer" in line
    assert line.endswith("7.5")


def test_messages_name_what_was_not_judged_and_nothing_else() -> None:
    message = "torch 9.9.9 cannot be had.\nuv said:\n\x1b[31mno such version"
    refused = replace(SAME, torch="9.9.9", verdict=Verdict.NOT_JUDGED, reason=Reason.NO_TORCH, message=message)
    assert report.messages(Results((SAME, refused, DRIFT))) == [
        "digits on cpu under torch 9.9.9: not-judged (no-torch): torch 9.9.9 cannot be had.",
        "uv said:",
        "\\x1b[31mno such version",
    ]
    assert report.messages(Results((SAME, DRIFT))) == []


@pytest.mark.parametrize("columns", [20, 21, 33, 50, 71, 72, 80, 109, 110, 200])
def test_no_line_is_wider_than_the_screen(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    deep = replace(FIRST, path="optimizer/" + "/".join(f"block{place}" for place in range(40)))
    rows = [DRIFT, replace(DRIFT, scenario="s" * 30, first=deep), replace(SAME, scenario="text")]
    shown = text(*rows)
    assert "drift" in shown
    assert max(map(len, shown.splitlines())) <= columns


def test_names_cannot_move_the_cursor_or_end_a_line() -> None:
    evil = "\x1b[2J\r\nidentical"
    path = f"model/{evil}"
    change = {"path": evil, "expected": evil, "actual": "\u202e"}
    row = replace(
        DRIFT,
        scenario=evil,
        golden=evil,
        hardware=evil,
        torch=evil,
        environment_changes=(change,),
        changed_sources=(evil,),
        first=replace(FIRST, path=path, phase=evil, kind=Kind.VALUE, expected=evil),
        message=evil,
        run=evil,
        arms=(Arm(evil, evil, 1.0),),
        comparison=Comparison((replace(FIRST, phase=evil), FIRST)),
    )
    shown = text(row, left_out=evil)
    assert not {"\x1b", "\r", "\u202e"} & set(shown)
    assert "identical" not in shown.splitlines()


@pytest.mark.case("C19")
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_any_encoding_of_the_console_takes_a_report(encoding: str) -> None:
    code = (
        "from gate import output, report; from gate.row import Results, Row; from gate.verdict import Verdict;"
        "from golden.compare import Difference, Kind; output.prepare();"
        "first = Difference(1, 'm', 'm/\u91cd\u307f', Kind.TYPE, expected='\u2713', actual='\u00e4');"
        "row = Row('gr\u00f6\u00dfe', 'g', 'cpu', '2.13.0', 'golden', Verdict.DRIFT, first=first, changed_sources=('\u91cd.py',));"
        "output.put(report.text(Results((row,)))); output.say('\u91cd')"
    )
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = {"ascii": b"m/\\u91cd\\u307f", "cp1252": b"gr\xf6\xdfe", "utf-8": "m/重み".encode()}[encoding]
    assert expected in done.stdout


def test_a_report_is_made_without_torch() -> None:
    code = (
        "import sys; from gate import report; from gate.row import Results, Row; from gate.verdict import Verdict;"
        "report.text(Results((Row('a', 'a', 'cpu', '1', 'golden', Verdict.DRIFT),))); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_result_is_json_without_loss() -> None:
    whole: dict[str, Any] = json.loads(json.dumps(Results((DRIFT, SAME)).as_json(), allow_nan=False))
    assert whole["results"][0]["environment_changes"] == [THREADS]
    assert whole["results"][0]["arms"][1] == {"name": "base 1a2b3c4", "verdict": "equals the golden", "seconds": 3.0}
    assert whole["results"][1]["first"] is None
