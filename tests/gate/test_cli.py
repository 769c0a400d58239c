"""The command line: help at once, one door for errors, and exit codes that a script can rely on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gate import __version__, cli, door

CONFIG = """
[tool.gate.scenarios.digits]
run = "scenarios.py:digits"
"""


def gate(*arguments: str, folder: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs the command in a process of its own, as a shell would."""
    return subprocess.run(
        [sys.executable, "-m", "gate", *arguments], cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A configured project without goldens."""
    (tmp_path / "pyproject.toml").write_text(CONFIG)
    return tmp_path


@pytest.mark.parametrize(
    "command", [(), ("verify",), ("record",), ("diff",), ("doctor",), ("init",), ("bench",), ("check",), ("mutate",), ("status",), ("run",)]
)
def test_help_shows_examples_or_exit_codes_and_ends_with_0(command: tuple[str, ...]) -> None:
    done = gate(*command, "--help")
    assert done.returncode == 0
    assert done.stderr == ""
    assert f"Usage: gate {' '.join(command)}".rstrip() in done.stdout
    assert ("Examples:\n    gate" if command else "Exit codes: 0 identical, 1 drift") in done.stdout


def test_the_main_help_tells_how_to_complete_in_three_shells() -> None:
    assert all(f"_GATE_COMPLETE={shell}_source gate" in gate("--help").stdout for shell in ("bash", "zsh", "fish"))


def test_help_takes_less_than_a_fifth_of_a_second() -> None:
    """Of a processor, the best of five: what else the machine does meanwhile does not decide."""
    best = min(processor_time("--help") for _ in range(5))
    assert best < 0.2, f"{best:.3f} s"


def processor_time(*arguments: str) -> float:
    """Seconds of user and system time that a command took."""
    process = subprocess.Popen([sys.executable, "-m", "gate", *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def test_the_version_is_the_package_s() -> None:
    assert gate("--version").stdout == f"gate {__version__}\n"


def test_help_loads_neither_torch_nor_numpy_nor_rich() -> None:
    """Shown by the modules of a process that has parsed a command line; `click` proves that the list would hold them."""
    code = "import sys; from gate.cli import main; main(['verify', '--help']); print(*sys.modules, file=sys.stderr)"
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.split())
    assert "click" in loaded
    assert not loaded & {"torch", "numpy", "rich", "safetensors", "deepdiff"}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["verify", "--frobnicate"], "--frobnicate"),
        (["verify", "digit"], "'digits'"),
        (["record", "digit"], "'digits'"),
        (["verfy"], "verfy"),
        (["verify", "--device", "tpu"], "tpu"),
        (["verify", "--torch", "latest"], "latest"),
        (["verify", "--torch", "all", "--python", sys.executable], "--python"),
        (["verify", "--jobs", "0"], "--jobs"),
        (["verify", "--profile", "fast"], "--profile"),
        (["verify", "--goldens", "nowhere/l4"], "--goldens"),
        (["verify", "digits", "--python", "no-such-python"], "no-such-python"),
        (["record", "--update"], "--reason"),
        (["record", "--update", "--reason", " "], "--reason"),
        (["record", "--reason", "because"], "--update"),
        (["record", "--from", "run", "--torch", "2.9.1"], "--torch"),
        (["record", "--from", "nowhere"], "nowhere"),
        (["diff", "a"], "B"),
        (["diff", "nowhere", "nowhere"], "nowhere"),
        (["verify", "--json", "no/such/folder.json"], "--json"),
    ],
)
def test_a_mistake_of_usage_exits_2_and_names_it(
    project: Path, arguments: list[str], named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    assert cli.main(arguments) == 2
    done = capsys.readouterr()
    assert named in done.err
    assert done.out == ""
    assert "Traceback" not in done.err


@pytest.mark.parametrize("arguments", [["verify", "digit"], ["verify", "--frobnicate"], ["diff", "nowhere", "nowhere"]])
def test_a_mistake_of_usage_is_told_in_json_as_well(project: Path, arguments: list[str]) -> None:
    done = gate(*arguments, "--json", "-", folder=project)
    answer = json.loads(done.stdout)
    assert list(answer) == ["format", "error"]
    assert answer["format"] == 1
    assert answer["error"] in done.stderr
    assert gate(*arguments, "--json=out.json", folder=project).returncode == 2
    assert json.loads((project / "out.json").read_text()) == answer


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ("[tool.gate]\nscenario = 1", "did you mean 'scenarios'"),
        ("[tool.gate.scenarios.digits]\nrun = 's.py:f'\nstep = 3", "did you mean 'steps'"),
        ("[tool.gate.scenarios.digits]\nsteps = 3", "run"),
        ("[tool.gate", "pyproject.toml"),
        ("[project]\nname = 'x'", "[tool.gate]"),
    ],
)
def test_a_wrong_configuration_exits_2_and_names_file_and_key(tmp_path: Path, config: str, named: str) -> None:
    (tmp_path / "pyproject.toml").write_text(config)
    done = gate("verify", folder=tmp_path)
    assert done.returncode == 2
    assert named in done.stderr
    assert "pyproject.toml" in done.stderr


def test_a_folder_without_project_exits_2(tmp_path: Path) -> None:
    done = gate("verify", folder=tmp_path)
    assert done.returncode == 2
    assert "pyproject.toml" in done.stderr


def test_nothing_to_judge_is_no_success(project: Path) -> None:
    done = gate("verify", "--json", "-", folder=project)
    assert done.returncode == 3
    answer = json.loads(done.stdout)
    assert (answer["verdict"], answer["reason"], answer["results"]) == ("not-judged", "nothing-checked", [])
    assert "gate record" in done.stderr


def test_bisect_skips_what_could_not_be_judged(project: Path) -> None:
    assert gate("verify", "--bisect", folder=project).returncode == 125
    assert gate("verify", "digit", "--bisect", folder=project).returncode == 2


def test_scenarios_complete_in_a_shell(project: Path) -> None:
    done = gate(folder=project, _GATE_COMPLETE="bash_complete", COMP_WORDS="gate verify di", COMP_CWORD="2")
    assert done.stdout.strip() == "plain,digits"
    (project / "pyproject.toml").write_text("[tool.gate\n")
    assert gate(folder=project, _GATE_COMPLETE="bash_complete", COMP_WORDS="gate verify di", COMP_CWORD="2").stdout.strip() == ""


def test_a_pipe_closed_early_is_quiet(project: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as broken:
        done = subprocess.run([sys.executable, "-m", "gate", "--help"], stdout=broken, stderr=subprocess.PIPE, text=True)
    assert done.stderr == ""
    assert done.returncode == 0


def broken(*arguments: object, **options: object) -> None:
    raise LookupError("lost: \udcff")


def test_a_fault_of_gate_exits_70_with_a_report_to_paste(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setattr("gate.selection.to_verify", broken)
    monkeypatch.setattr("gate.verify.to_verify", broken)
    assert cli.main(["verify", "--json", "out.json"]) == 70
    error = capsys.readouterr().err
    (report,) = (project / ".gate").glob("fault-*.txt")
    assert str(report) in error
    assert "Traceback" not in error
    text = report.read_text()
    assert "command: gate verify --json out.json" in text
    assert "torch 2." in text
    assert "LookupError" in text
    assert "Traceback" in text
    assert (project / ".gate/.gitignore").read_text() == "*\n"
    assert "LookupError" in json.loads((project / "out.json").read_text())["error"]


def test_a_fault_without_a_project_shows_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert door.failed(LookupError("lost"), ["verify"]) == 70
    assert "command: gate verify" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("error", "code"), [(PermissionError(13, "Permission denied", "x"), 3), (OSError(28, "No space left", "x"), 3)])
def test_what_the_system_refuses_is_no_fault_of_gate(error: OSError, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert door.failed(error, ["verify"]) == code
    assert "io: x: " in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_exits_130(project: Path, number: signal.Signals) -> None:
    code = (
        "import os, gate.config; from gate.cli import main\n"
        f"gate.config.find = lambda start: os.kill(os.getpid(), {int(number)}) or __import__('time').sleep(9)\n"
        "raise SystemExit(main(['verify', '--json', '-']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "gate: interrupted\n")
