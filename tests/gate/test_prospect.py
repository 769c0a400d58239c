"""What can be judged here, and what it takes to judge the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gate import inventory
from gate.config import Config
from gate.machine import Machine
from gate.progress import Silent
from gate.prospect import Prospect, judged, others
from gate.trial import Means
from gate.version import public
from golden.settings import Settings
from tests.golden.goldens import golden

RUNNING = inventory.torch_version()
HERE = public(RUNNING)
LAPTOP = Machine("cpu", "cpu-amd")


def project(root: Path, *places: str, torch: tuple[str, ...] = (), **scenarios: dict[str, Any]) -> Config:
    """A project with goldens at some places, of 3 steps each."""
    for place in places:
        hardware, folder, name = place.split("/")
        golden(
            root / "goldens" / place, hardware=hardware, torch=folder.removeprefix("torch-"), scenario={
                "name": name, "steps": 3, "seed": 0, "parameters": {}, "profile": "portable"
            },
        )  # fmt: skip
    tables = scenarios or {"digits": {}}
    settings = {name: Settings.from_table(name, {"run": f"s.py:{name}", "steps": 3, **table}) for name, table in tables.items()}
    return Config(root, root / "goldens", torch, settings)


def plain(config: Config) -> list[Prospect]:
    return judged(Means(config, None, None, Silent()), LAPTOP, RUNNING)


def rest(config: Config) -> list[tuple[Any, ...]]:
    found = others(config, LAPTOP, plain(config), None)
    assert not any(prospect.plain for prospect in found)
    return [(each.scenario, each.hardware, each.torch, each.reason and each.reason.value, each.how) for each in found]


def test_what_a_plain_verify_judges_here(tmp_path: Path) -> None:
    """A golden of this hardware and torch, whole and of the present settings."""
    (prospect,) = plain(project(tmp_path, f"cpu/torch-{HERE}/digits"))
    assert prospect == Prospect("digits", "cpu", HERE, True, None, "", "gate verify")
    assert rest(project(tmp_path)) == []


def test_what_a_plain_verify_would_fail_on(tmp_path: Path) -> None:
    """No golden, other settings, a corrupt golden: the reason, and the command that helps."""
    config = project(tmp_path, f"cpu/torch-{HERE}/digits", f"cpu/torch-{HERE}/bad", digits={"seed": 7}, text={}, bad={})
    step = config.goldens / f"cpu/torch-{HERE}/bad/step-0002.safetensors"
    step.write_bytes(step.read_bytes()[:-1] + b"\x7f")
    assert [(each.scenario, str(each.reason), each.plain) for each in plain(config)] == [
        ("digits", "settings", False),
        ("text", "no-golden", False),
        ("bad", "corrupt-golden", False),
    ]
    settings, missing, corrupt = plain(config)
    assert settings.told == "its golden was made with seed 0, now 7"
    assert settings.how == 'gate record digits --update --reason "..."'
    assert missing.how == "gate record text"
    assert "step-0002" in corrupt.told


def test_goldens_of_other_torches_hardware_and_scenarios_are_the_rest(tmp_path: Path) -> None:
    """Each with what to run, and on which machine."""
    config = project(tmp_path, f"cpu/torch-{HERE}/digits", "cpu/torch-2.4.0/digits", "h200/torch-2.13.0+cu130/digits",
                     "cpu-intel/torch-2.4.0/digits", f"cpu/torch-{HERE}/gone")  # fmt: skip
    assert rest(config) == [
        ("digits", "cpu", "2.4.0", None, "gate verify --torch 2.4.0"),
        ("gone", "cpu", HERE, "nothing-checked", "configure it, or remove its folder"),
        ("digits", "cpu-intel", "2.4.0", "no-accelerator", "on such a machine: gate verify --goldens goldens/cpu-intel"),
        ("digits", "h200", "2.13.0+cu130", "no-accelerator", "on such a machine: gate verify --goldens goldens/h200"),
    ]


def test_configured_torches_without_goldens_are_to_be_recorded(tmp_path: Path) -> None:
    """For each scenario with a golden of its own; what there is does not count."""
    config = project(
        tmp_path, f"cpu/torch-{HERE}/a", "cpu/torch-2.4.0/a", torch=("2.4.0", "2.9.1"), a={}, b={"same_as": "a"}, c={"devices": ["cuda"]}
    )
    assert [row for row in rest(config) if row[3] == "no-golden"] == [("a", "cpu", "2.9.1", "no-golden", "gate record a --torch 2.9.1")]


def test_json_holds_every_fact(tmp_path: Path) -> None:
    """A reason as its word; no message is null."""
    config = project(tmp_path, f"cpu/torch-{HERE}/digits", digits={}, text={})
    facts = {"hardware": "cpu", "torch": HERE}
    assert [each.as_json() for each in plain(config)] == [
        {"scenario": "digits", **facts, "plain": True, "reason": None, "message": None, "how": "gate verify"},
        {"scenario": "text", **facts, "plain": False, "reason": "no-golden", "how": "gate record text",
         "message": f"there is no golden at {config.goldens / 'cpu' / f'torch-{HERE}' / 'text'}"},
    ]  # fmt: skip
