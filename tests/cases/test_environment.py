"""What moves bits beside the code: G13 to G16, G18, G22 and G24."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from golden import manifest
from golden.environment import collect, difference, variables
from golden.launch import Children, beside
from golden.profile import environment
from golden.profile import variables as portable
from golden.settings import Request, Settings
from tests.cases.projects import project
from tests.cases.scenarios import NATIVE, SWITCHED
from tests.gate.projects import Answer, Project

ONE, TWO = {"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "2"}
modern = pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() == "DEFAULT",
    reason="needs a CPU with more instructions than SSE4.1, of which one can do without",
)


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project recorded on this machine as it is, with one thread."""
    found = project(tmp_path_factory.mktemp("native") / "project", NATIVE, 6, conv="", linear="")
    answer = found.gate("record", "--profile", "native", **ONE)
    assert answer.code == 0, answer.err
    return found


@pytest.fixture(scope="module")
def threaded(native: Project) -> Answer:
    """Both goldens verified with two threads."""
    return native.gate("verify", "--profile", "native", **TWO)


@pytest.mark.case("G13")
def test_every_variable_that_the_portable_profile_sets_is_listed() -> None:
    """And one that a run inherits under the native profile; what moves no bit is not."""
    listed = variables(environment({"PATH": "/", "OMP_NUM_THREADS": "7"}, "portable", "cpu", 0))
    assert listed == {name: value for name, value in portable("portable", "cpu", 0).items() if name != "PYTHONHASHSEED"}
    assert {"ONEDNN_MAX_CPU_ISA", "MKL_CBWR", "ATEN_CPU_CAPABILITY", "OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES"} <= listed.keys()
    inherited = environment({"PATH": "/", "MKL_DEBUG_CPU_TYPE": "5"}, "native", "cpu", 0)
    assert variables(inherited) == {"MKL_DEBUG_CPU_TYPE": "5"}


@pytest.mark.case("G13")
@modern
def test_a_variable_that_bits_follow_is_listed_and_named_as_the_cause(native: Project) -> None:
    """The golden says with which variables it was recorded; one that is set now moves bits, and is the cause by its name."""
    (golden,) = (native.folder / "goldens").glob("cpu-*/torch-*/conv")
    listed = manifest.read(golden).environment["variables"]
    assert isinstance(listed, dict)
    assert ONE.items() <= listed.items()
    assert "ONEDNN_MAX_CPU_ISA" not in listed
    answer = native.gate("verify", "conv", "--profile", "native", ONEDNN_MAX_CPU_ISA="SSE41", **ONE)
    row = answer.row
    assert (answer.code, row["verdict"], row["cause"], row["changed_sources"]) == (1, "drift", "environment", [])
    assert row["environment_changes"] == [{"path": "variables.ONEDNN_MAX_CPU_ISA", "expected": None, "actual": "SSE41"}]
    assert row["first"]["kind"] == "bits"
    assert "ONEDNN_MAX_CPU_ISA" in answer.out


@pytest.mark.case("G14")
def test_another_number_of_threads_is_named(threaded: Answer) -> None:
    """A linear layer's bits follow it; both the variable and the number that it makes are told."""
    (row,) = [row for row in threaded.rows if row["scenario"] == "linear"]
    assert (row["verdict"], row["cause"], row["first"]["kind"]) == ("drift", "environment", "bits")
    assert row["environment_changes"] == [
        {"path": "variables.OMP_NUM_THREADS", "expected": "1", "actual": "2"},
        {"path": "threads", "expected": 1, "actual": 2},
    ]


@pytest.mark.case("G18")
def test_differences_of_the_environment_lead_the_report(threaded: Answer) -> None:
    """Before cause, sources and first difference, in the report of a drift that was really seen."""
    assert threaded.code == 1
    shown = threaded.out
    places = [shown.index(text) for text in ("OMP_NUM_THREADS", "threads: 1 -> 2", "  cause", "  sources", "  first")]
    assert places == sorted(places)
    assert "OMP_NUM_THREADS" in "\n".join(shown.splitlines()[:4])
    bumped = difference({"python": "3.11.9", "threads": 1, "torch": "2.9.1"}, {"python": "3.12.1", "threads": 2, "torch": "2.13.0"})
    assert [change["path"] for change in bumped] == ["torch", "threads", "python"]


@pytest.mark.case("G24")
def test_one_change_that_broke_many_goldens_is_told_once(threaded: Answer) -> None:
    """Both rows are drift by the environment; what changed and that it is the cause stand there once, not once a golden."""
    assert threaded.brief("scenario", "verdict", "cause") == [("conv", "drift", "environment"), ("linear", "drift", "environment")]
    assert threaded.out.count("threads: 1 -> 2") == 1
    assert [line.split()[:2] for line in threaded.out.splitlines() if line.startswith("  cause")] == [["cause", "environment"]]
    assert "2 rows: drift (environment)" in threaded.out.splitlines()[0]
    assert "drift (environment): 2 rows" in threaded.out.splitlines()[-1]


PROBE = """
import json, sys, torch
from golden.environment import collect, difference, variables
switch = torch.backends.cudnn
torch.backends.cuda.matmul.allow_tf32 = False
before = collect("cpu", "native")
newer = hasattr(switch, "conv")
if newer:
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    torch.backends.mkldnn.conv.fp32_precision = "tf32"
    torch.backends.mkldnn.rnn.fp32_precision = "ieee"
else:
    switch.allow_tf32 = False
print(json.dumps([newer, difference(before, collect("cpu", "native"))]))
"""


@pytest.mark.case("G15")
def test_reading_flags_that_contradict_each_other_never_fails() -> None:
    """torch raises when its older flag is asked for after its newer one was set; here it is unreadable, and the others are read.

    Products, convolutions and recurrent nets have a line each: what was set for one is not told of another.
    """
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    newer, changes = json.loads(done.stdout)
    told = {change["path"].removeprefix("flags.torch.backends."): change["actual"] for change in changes}
    if newer:
        assert told["cuda.matmul.fp32_precision"] == told["mkldnn.conv.fp32_precision"] == "tf32"
        assert told["mkldnn.rnn.fp32_precision"] == "ieee"
        assert told["cuda.matmul.allow_tf32"] == "unreadable"
        assert "mkldnn.matmul.fp32_precision" not in told
    else:
        assert told == {"cudnn.allow_tf32": False}


@pytest.mark.case("G16")
def test_the_preferred_blas_library_is_part_of_the_environment() -> None:
    """Another one is a difference with a path of its own."""
    path = "torch.backends.cuda.preferred_blas_library()"
    before = collect("cpu", "native")
    preferred = torch.backends.cuda.preferred_blas_library()
    try:
        torch.backends.cuda.preferred_blas_library("cublaslt" if str(preferred).endswith("Cublas") else "cublas")
        after = collect("cpu", "native")
    finally:
        torch.backends.cuda.preferred_blas_library(preferred)
    assert before["flags"][path] == str(preferred)
    assert [change["path"] for change in difference(before, after)] == [f"flags.{path}"]
    assert difference(before, collect("cpu", "native")) == []


@pytest.fixture(scope="module")
def switched(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return project(tmp_path_factory.mktemp("switched") / "project", SWITCHED, 2, early="", late="")


LATE = {
    "path": "flags.torch.are_deterministic_algorithms_enabled()", "expected": True, "actual": False, "between": ["build", "step 1"]
}  # fmt: skip


@pytest.mark.case("G22")
@pytest.mark.parametrize(("name", "told"), [("late", [LATE]), ("early", ["import", "build"])])
def test_a_switch_that_is_thrown_during_the_run_stands_in_its_report(
    switched: Project, tmp_path: Path, name: str, told: list[object]
) -> None:
    """Flags are read at import, at build and at step 1, and a change is told with the moments around it."""
    settings = Settings(name, f"scenarios.py:{name}", steps=2)
    report = tmp_path / f"{name}.report.json"
    (tmp_path / name).mkdir()
    request = Request.of(settings, device="cpu", profile="portable", project=switched.folder, out=tmp_path / name, report=report)
    with Children() as children:
        ended = children.run(Path(sys.executable), request, environment(os.environ, "portable", "cpu", 0), beside(report, ".log"))
    assert ended.report.status == "ok", ended.report.message
    assert told == ([dict(flag) for flag in ended.report.flags] if name == "late" else ended.report.flags[0]["between"])


@pytest.mark.case("G22")
def test_a_determinism_flag_set_after_the_model_was_built_is_told_to_the_user(switched: Project) -> None:
    """Of two scenarios that were recorded the late one is named, with the flag and when it changed."""
    answer = switched.gate("record")
    assert answer.code == 0, answer.err
    (line,) = [line for line in answer.err.splitlines() if "deterministic_algorithms" in line]
    assert all(part in line for part in ("late", "build", "step 1"))
