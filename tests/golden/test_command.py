"""`python -m golden`, as a user of a bare machine types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

import golden
from golden.store import Golden

ROOT = Path(golden.__file__).parent.parent.parent
HOSTILE = {
    "OMP_NUM_THREADS": "3",
    "MKL_CBWR": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "F16C",
}

SCENARIOS = """
import time
import torch
import golden

def toy(record):
    print("said on", record.device, dict(record.parameters))
    torch.manual_seed(record.seed)
    model = torch.nn.Linear(3, 2)
    record.start(model=model)
    for _ in range(record.steps):
        model(torch.randn(4, 3)).sum().backward()
        record(grads=golden.gradients(model), model=model)

def bad(record):
    raise ValueError("no luck")

def waits(record):
    print("waiting", flush=True)
    time.sleep(600)
"""
TABLE = '[tool.gate.scenarios.named]\nrun = "goldens/scenarios.py:toy"\nsteps = 2\nstore = "full"\nparameters = {width = 3}\n'


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("command") / "a project"
    (folder / "goldens").mkdir(parents=True)
    (folder / "goldens" / "scenarios.py").write_text(SCENARIOS)
    (folder / "pyproject.toml").write_text(TABLE)
    return folder


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "golden", *arguments]
    return subprocess.run(command, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True)


def test_a_run_prints_its_roots_and_keeps_its_golden_where_told(project: Path) -> None:
    """A line a step on stdout, what the scenario says on stderr; the settings are the configured ones, unless options differ."""
    done = run(project, "run", "goldens/scenarios.py:toy", "--out", "kept/toy", "--seed", "5")
    assert done.returncode == 0, done.stderr
    kept = Golden.open(project / "kept" / "toy")
    lines = done.stdout.splitlines()
    phases = {step: "  ".join(f"{phase} {kept.root(step, phase)}" for phase in kept.phases(step)) for step in kept.steps}
    assert lines == [*(f"step {step}  {phases[step]}" for step in (0, 1, 2)), "kept/toy"]
    assert "said on cpu {'width': 3}" in done.stderr
    scenario = kept.manifest.scenario
    assert (scenario["name"], scenario["steps"], scenario["seed"], scenario["store"]) == ("named", 2, 5, "full")
    assert sorted(path.name for path in (project / "kept").iterdir()) == ["toy"]


def test_a_run_without_a_place_keeps_nothing(project: Path, tmp_path: Path) -> None:
    """Nothing is left in the temporary folder or the project, and options replace what is configured."""
    before = sorted(project.rglob("*"))
    options = ("--steps", "1", "--parameters", '{"width": 4}', "--store", "digest")
    done = run(project / "goldens", "run", "scenarios.py:toy", *options, TMPDIR=str(tmp_path))
    assert [line[:6] for line in done.stdout.splitlines()] == ["step 0", "step 1"]
    assert "said on cpu {'width': 4}" in done.stderr
    assert not list(tmp_path.glob("golden*"))
    assert sorted(project.rglob("*")) == before


def test_a_scenario_that_fails_shows_its_own_traceback(project: Path, tmp_path: Path) -> None:
    """Exit code 3, the scenario's line, nothing on stdout, and no golden."""
    done = run(project, "run", "goldens/scenarios.py:bad", "--out", str(tmp_path / "bad"))
    assert done.returncode == 3
    assert not done.stdout
    told = done.stderr.splitlines()
    assert told[0].endswith("has no scenario for goldens/scenarios.py:bad: settings by default.")
    assert told[-2:] == ["ValueError: no luck", "golden: scenario-failed: goldens/scenarios.py:bad raised ValueError: no luck"]
    assert str(ROOT / "src") not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_golden_that_is_there_is_replaced_and_nothing_else_is(project: Path, tmp_path: Path) -> None:
    """A second run replaces the first one's golden; a folder of somebody's is refused before it is touched."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    done = run(project, "run", "goldens/scenarios.py:toy", "--steps", "1", "--out", str(tmp_path / "mine"))
    assert done.returncode == 3
    assert "notes.txt: is in the way" in done.stderr
    assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"
    (tmp_path / "mine" / "notes.txt").unlink()
    first = run(project, "run", "goldens/scenarios.py:toy", "--steps", "1", "--out", str(tmp_path / "mine"))
    second = run(project, "run", "goldens/scenarios.py:toy", "--steps", "1", "--seed", "9", "--out", str(tmp_path / "mine"))
    assert (first.returncode, second.returncode) == (0, 0)
    assert first.stdout != second.stdout
    assert Golden.open(tmp_path / "mine").manifest.scenario["seed"] == 9


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "goldens/absent.py:f"], "goldens/absent.py: there is no such file"),
        (["run", "goldens/scenarios.py"], "names no function"),
        (["run", "goldens/scenarios.py:toy", "--steps", "0"], "--steps = 0: has to be a whole number, 1 or more"),
        (["run", "goldens/scenarios.py:toy", "--seed", "-1"], "--seed = -1"),
        (["run", "goldens/scenarios.py:toy", "--parameters", "[1]"], "--parameters = [1]: has to be a table"),
        (["run", "goldens/scenarios.py:toy", "--parameters", "{"], "argument --parameters: '{' is no JSON"),
        (["run", "goldens/scenarios.py:toy", "--store", "all"], "argument --store: invalid choice: 'all'"),
        (["run", "goldens/scenarios.py:toy", "--device", "tpu"], "argument --device: invalid choice: 'tpu'"),
        (["records"], "invalid choice: 'records'"),
        ([], "required: COMMAND"),
    ],
)
def test_a_mistake_on_the_command_line_is_told(project: Path, arguments: list[str], said: str) -> None:
    """Exit code 2, with what is wrong on stderr; no traceback."""
    done = run(project, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interrupted_run_says_so(project: Path, tmp_path: Path) -> None:
    """Ctrl-C ends it with 130, and nothing is left."""
    command = [sys.executable, "-m", "golden", "run", "goldens/scenarios.py:waits", "--out", str(tmp_path / "waits")]
    with subprocess.Popen(command, cwd=project, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "waiting" in line:
                break
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait() == 130
    assert rest.splitlines()[-1] == "golden: interrupted"
    assert time.monotonic() - start < 30
    assert not list(tmp_path.iterdir())


def test_the_environment_is_that_of_a_run(project: Path) -> None:
    """Whatever the command inherits, it says what a run under the profile has; the native profile leaves things as they are."""
    portable = json.loads(run(project, "environment", **HOSTILE).stdout)
    assert portable["threads"] == 1
    assert portable["variables"]["ONEDNN_MAX_CPU_ISA"] == "SSE41"
    native = json.loads(run(project, "environment", "--profile", "native", **HOSTILE).stdout)
    assert native["variables"]["OMP_NUM_THREADS"] == "3"
    assert native["variables"]["ONEDNN_MAX_CPU_ISA"] == "AVX2"
    assert native["hardware"].startswith("cpu-")


def test_known_answers_are_asked_under_the_profile(project: Path) -> None:
    """A machine that keeps the profile does so whatever the command inherits; each side is there to be compared."""
    answers = json.loads(run(project, "known", **HOSTILE).stdout)
    assert answers["honoured"] is (answers["expected"] == answers["actual"] if answers["expected"] else None)
    assert answers["actual"]


@pytest.mark.skipif(not (ROOT / "goldens").is_dir(), reason="golden is installed without the repository's goldens")
def test_it_records_what_the_repositorys_golden_holds(tmp_path: Path) -> None:
    """Through golden alone, whatever it inherits: digests and settings are those that gate recorded."""
    folder = ROOT / "goldens" / "cpu" / f"torch-{version('torch').partition('+')[0]}" / "digits-adamw"
    if not folder.is_dir():
        pytest.skip(f"the repository has no golden of torch {version('torch')}")
    inherited = {**HOSTILE, "PYTHONPATH": str(ROOT / "src"), "PYTHONHASHSEED": "7"}
    done = run(ROOT, "run", "goldens/scenarios.py:digits_adamw", "--out", str(tmp_path / "out"), **inherited)
    assert done.returncode == 0, done.stderr
    recorded, again = Golden.open(folder), Golden.open(tmp_path / "out")
    assert again.roots == recorded.roots
    assert again.manifest.scenario == recorded.manifest.scenario
    assert set(again.manifest.sources) >= {"goldens/scenarios.py", "goldens/data/digits.csv.gz"}
