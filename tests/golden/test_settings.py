"""Settings of a scenario, and what a process is asked and answers."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.errors import UsageError
from golden.settings import Report, Request, Settings, check_pairs

RUN = "goldens/scenarios.py:digits"


def settings(**table: Any) -> Settings:
    return Settings.from_table("digits", {"run": RUN, **table})


def request_of(**changes: Any) -> Request:
    paths = {"project": Path("/p"), "out": Path("/o"), "report": Path("/r.json")}
    return replace(Request.of(settings(steps=4), device="cpu", profile="portable", **paths), **changes)


def test_every_key_is_taken() -> None:
    """A table with every key gives exactly these settings."""
    table = {
        "run": "./goldens/scenarios.py:digits",
        "steps": 12,
        "seed": 3,
        "devices": ["cpu", "cuda"],
        "store": "digest",
        "parameters": {"capture_updates": True, "sizes": [1, 2.0], "nested": {"a": "b"}},
        "same_as": "digits-eager",
        "resume_at": 6,
        "requires": ["scikit-learn"],
        "watch": ["src/musgd/"],
    }
    assert Settings.from_table("digits", table) == Settings(
        name="digits",
        run=RUN,
        steps=12,
        seed=3,
        devices=("cpu", "cuda"),
        store="digest",
        parameters={"capture_updates": True, "sizes": [1, 2.0], "nested": {"a": "b"}},
        same_as="digits-eager",
        resume_at=6,
        requires=("scikit-learn",),
        watch=("src/musgd",),
    )


def test_run_is_the_one_required_key() -> None:
    """All else has a default, and a table without run is told how to write it."""
    assert settings() == Settings("digits", RUN, 10, 0, ("cpu",), None, {}, None, None, (), ())
    with pytest.raises(UsageError, match=r"\[tool.gate.scenarios.digits\]: the key run is missing"):
        Settings.from_table("digits", {"steps": 3})


@pytest.mark.parametrize(("key", "meant"), [("step", "steps"), ("sed", "seed"), ("device", "devices"), ("resume-at", "resume_at")])
def test_an_unknown_key_names_the_nearest(key: str, meant: str) -> None:
    """A misspelt key is an error that says what was meant."""
    with pytest.raises(UsageError, match=rf"\[tool.gate.scenarios.digits\]: unknown key '{key}', did you mean '{meant}'\?"):
        settings(**{key: 1})


def test_an_unknown_key_like_no_other_lists_all() -> None:
    """Where nothing is near, every known key is named."""
    with pytest.raises(UsageError, match="unknown key 'zzz', known: devices, parameters, requires, resume_at, run"):
        settings(zzz=1)


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("steps", 0, "1 or more"),
        ("steps", True, "1 or more"),
        ("steps", 3.0, "1 or more"),
        ("steps", "3", "1 or more"),
        ("seed", -1, "from 0 to 4294967295"),
        ("seed", 2**32, "from 0 to 4294967295"),
        ("devices", [], '"cpu", "cuda" or both'),
        ("devices", "cpu", '"cpu", "cuda" or both'),
        ("devices", ["cpu", "tpu"], '"cpu", "cuda" or both'),
        ("devices", ["cpu", "cpu"], "each named once"),
        ("store", "none", '"full" or "digest"'),
        ("store", ["full"], '"full" or "digest"'),
        ("parameters", [1], "a table"),
        ("same_as", 3, "the name of another scenario"),
        ("same_as", "digits", "the name of another scenario"),
        ("resume_at", 0, "between 1 and steps - 1"),
        ("resume_at", 10, "between 1 and steps - 1, which is 9"),
        ("requires", "scikit-learn", "a list of requirements"),
        ("requires", [" "], "a list of requirements"),
        ("watch", ["../other"], "inside it"),
        ("watch", ["/etc"], "inside it"),
        ("run", "scenarios.py", "FILE.py:FUNCTION"),
        ("run", "scenarios:digits", "FILE.py:FUNCTION"),
        ("run", "scenarios.py:two words", "FILE.py:FUNCTION"),
        ("run", "/abs/scenarios.py:digits", "inside it"),
        ("run", "a/../../scenarios.py:digits", "inside it"),
        ("run", "C:/scenarios.py:digits", "inside it"),
        ("run", "goldens\\scenarios.py:digits", "forward slashes"),
        ("run", 3, "FILE.py:FUNCTION"),
    ],
)
def test_a_wrong_value_says_key_value_and_what_is_allowed(key: str, value: object, allowed: str) -> None:
    """The message holds where, what was written and what could have been."""
    with pytest.raises(UsageError) as caught:
        settings(**{key: value})
    message = str(caught.value)
    assert message.startswith(f"[tool.gate.scenarios.digits] {key}")
    assert repr(value) in message
    assert allowed in message


@pytest.mark.parametrize(
    ("parameters", "place"),
    [
        ({"when": datetime.date(2026, 1, 1)}, "parameters.when"),
        ({"a": {"b": [1, datetime.time(1)]}}, r"parameters.a.b\[1\]"),
        ({"lr": float("nan")}, "parameters.lr"),
        ({"lr": [float("inf")]}, r"parameters.lr\[0\]"),
    ],
)
def test_parameters_hold_what_json_holds(parameters: dict[str, Any], place: str) -> None:
    """A date or a number that JSON has no word for is refused where it stands."""
    with pytest.raises(UsageError, match=rf"digits\] {place} ="):
        settings(parameters=parameters)


def test_parameters_are_a_copy() -> None:
    """What the caller does to its table later does not reach the settings."""
    table = {"sizes": [1]}
    taken = settings(parameters=table)
    table["sizes"].append(2)
    assert taken.parameters == {"sizes": [1]}


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "a b", "ü", "x" * 101, "-x"])
def test_a_name_is_fit_for_a_folder(name: str) -> None:
    """A scenario's name names a folder of goldens, so that it can lead nowhere else."""
    with pytest.raises(UsageError, match="Rename it"):
        Settings.from_table(name, {"run": RUN})


def test_a_table_has_to_be_one() -> None:
    """A scenario that is written as a value is told so."""
    with pytest.raises(UsageError, match="is 'x', but has to be a table"):
        Settings.from_table("digits", "x")


def test_same_as_has_to_be_comparable() -> None:
    """A scenario and the one whose bits it must have share steps, seed and devices, and the other has a golden of its own."""
    eager = Settings("eager", RUN)
    check_pairs({"eager": eager, "b": Settings("b", RUN, same_as="eager", parameters={"x": 1})})
    wrong = {
        "same_as names no scenario: 'eagre', did you mean 'eager'": Settings("b", RUN, same_as="eagre"),
        "steps is 3, but eager, whose bits it must have, has 10": Settings("b", RUN, same_as="eager", steps=3),
        "seed is 1, but eager": Settings("b", RUN, same_as="eager", seed=1),
        "eager has no golden on cuda": Settings("b", RUN, same_as="eager", devices=("cpu", "cuda")),
    }
    for message, other in wrong.items():
        with pytest.raises(UsageError, match=message):
            check_pairs({"eager": eager, "b": other})
    with pytest.raises(UsageError, match="b has no golden of its own"):
        check_pairs({"eager": eager, "b": Settings("b", RUN, same_as="eager"), "c": Settings("c", RUN, same_as="b")})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, max_size=4), st.integers(0, 2**32 - 1), st.lists(st.integers(0, 9), max_size=3))
def test_a_request_survives_its_file(parameters: dict[str, Any], seed: int, keep: list[int]) -> None:
    """What is written is read back: value, type and the order of the parameters."""
    request = request_of(parameters=parameters, seed=seed, keep=tuple(keep), folder=Path("/f ü"), resume_at=2, watch=("src",))
    back = Request.from_json(request.to_json())
    assert back == request
    assert json.dumps(back.parameters) == json.dumps(parameters)


def test_a_request_that_differs_is_not_equal() -> None:
    """The round trip above would notice a lost value: each field counts."""
    assert Request.from_json(request_of(seed=1).to_json()) != request_of(seed=2)
    assert Request.from_json(request_of(folder=None).to_json()).folder is None


def test_a_report_survives_its_file() -> None:
    """A report comes back as it was, also one of a failure."""
    report = Report(
        "failed", "scenario-failed", "digits raised", "Traceback…\nValueError: x", "2.13.0", "cpu", "3.11.7",
        ("src/a.py",), ({"path": "threads", "expected": 1, "actual": 2},), {"import": 1.5},
    )  # fmt: skip
    assert Report.from_json(report.to_json()) == report
    assert Report.from_json(Report("ok").to_json()) == Report("ok")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"status": "ok"}', "nonsense"])
def test_a_file_that_is_no_report_is_refused(text: str) -> None:
    """Half a file, or another one, is a usage error and no traceback."""
    with pytest.raises(UsageError, match="This is no report"):
        Report.from_json(text)
    with pytest.raises(UsageError, match="This is no request"):
        Request.from_json(text)


def test_import_roots_are_those_that_exist(tmp_path: Path) -> None:
    """The scenario's folder, the root and its src, in that order, each once, as far as they are there."""
    (tmp_path / "goldens").mkdir()
    request = request_of(project=tmp_path, root=tmp_path)
    assert list(request.import_roots) == [tmp_path / "goldens", tmp_path]
    (tmp_path / "src").mkdir()
    assert list(request.import_roots) == [tmp_path / "goldens", tmp_path, tmp_path / "src"]
    assert list(replace(request, run="scenarios.py:digits").import_roots) == [tmp_path, tmp_path / "src"]
    assert (request.file, request.function, request.end) == (tmp_path / "goldens/scenarios.py", "digits", 4)
    assert replace(request, last=2).end == 2


def test_the_resolved_settings_hold_no_path_of_this_machine() -> None:
    """What goes into a manifest is the same wherever the project lies."""
    here, there = request_of(), request_of(project=Path("/q"), root=Path("/q"), out=Path("/z"))
    assert here.resolved("full") == there.resolved("full")
    assert here.resolved("full") != here.resolved("digest")
    assert here.resolved("full") == {
        "name": "digits", "run": RUN, "steps": 4, "seed": 0, "device": "cpu", "store": "full", "parameters": {},
        "profile": "portable", "resume_at": None, "watch": [],
    }  # fmt: skip
