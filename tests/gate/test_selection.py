"""Which rows a command line asks for, on machines with and without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gate.config import Config
from gate.errors import UsageError
from gate.machine import Machine
from gate.selection import Selection, Wanted, to_record, to_verify
from gate.verdict import Reason
from golden.settings import Settings

LAPTOP = Machine("cpu", "cpu-amd")
SERVER = Machine("cpu", "cpu-amd", "h200")


def project(root: Path, *goldens: str, torch: tuple[str, ...] = (), **scenarios: dict[str, Any]) -> Config:
    """A configuration whose goldens' folders exist, empty."""
    for golden in goldens:
        (root / "goldens" / golden).mkdir(parents=True)
    tables = scenarios or {"digits": {}, "text": {"devices": ["cpu", "cuda"]}}
    settings = {name: Settings.from_table(name, {"run": f"s.py:{name}", **table}) for name, table in tables.items()}
    return Config(root, root / "goldens", torch, settings)


def rows(selection: Selection) -> list[tuple[str, str | None, str | None]]:
    return [(row.settings.name, row.hardware, row.torch) for row in selection.candidates]


def refusals(selection: Selection) -> list[tuple[str, str]]:
    assert all(row.refusal for row in selection.candidates)
    return [(row.refusal[0].value, row.refusal[1]) for row in selection.candidates if row.refusal]


def verify(config: Config, machine: Machine = LAPTOP, running: str = "2.13.0+cu130", **wanted: Any) -> Selection:
    return to_verify(config, machine, Wanted(**wanted), running)


def test_plain_verify_asks_for_every_scenario_of_the_hardware_here_that_has_a_folder(tmp_path: Path) -> None:
    config = project(tmp_path, "cpu/torch-2.13.0/digits", "h200/torch-2.13.0+cu130/text")
    assert rows(verify(config)) == [("digits", "cpu", None), ("text", "cpu", None)]
    assert rows(verify(config, SERVER)) == [("digits", "cpu", None), ("text", "cpu", None), ("text", "h200", None)]


def test_plain_verify_leaves_out_other_hardware_other_versions_and_strangers_in_one_line(tmp_path: Path) -> None:
    config = project(
        tmp_path,
        "cpu/torch-2.13.0/digits",
        "cpu/torch-2.13.0/old",
        "cpu/torch-2.9.1/text",
        "h200/torch-2.13.0+cu130/text",
        "l4/torch-2.4.0/text",
    )
    line = verify(config).left_out
    assert line is not None
    assert line.count("\n") == 0
    assert "h200, l4" in line
    assert "cpu/torch-2.9.1" in line
    assert "cpu/torch-2.13.0/old" in line
    assert "cpu/torch-2.13.0/digits" not in line


def test_nothing_is_left_out_where_all_is_judged_or_something_is_named(tmp_path: Path) -> None:
    config = project(tmp_path, "cpu/torch-2.13.0/digits", "cpu/torch-2.13.0/text")
    assert verify(config).left_out is None
    (tmp_path / "goldens/l4/torch-2.4.0/text").mkdir(parents=True)
    assert verify(config).left_out is not None
    assert verify(config, scenarios=("digits",)).left_out is None


def test_without_any_golden_a_plain_verify_has_no_row(tmp_path: Path) -> None:
    assert rows(verify(project(tmp_path))) == []


def test_with_a_base_hardware_without_any_golden_is_judged_too(tmp_path: Path) -> None:
    config = project(tmp_path)
    assert rows(verify(config, base="HEAD")) == [("digits", "cpu", None), ("text", "cpu", None)]
    assert rows(verify(config, SERVER, base="HEAD", device="cuda")) == [("text", "h200", None)]
    assert rows(verify(config, base="HEAD", profile="native"))[0] == ("digits", "cpu-amd", None)


def test_a_native_folder_of_this_cpu_is_judged_too_and_a_profile_chooses_one(tmp_path: Path) -> None:
    config = project(tmp_path, "cpu/torch-2.13.0/digits", "cpu-amd/torch-2.13.0/digits", "cpu-intel/torch-2.13.0/digits", digits={})
    selection = verify(config)
    assert [(row.hardware, row.profile) for row in selection.candidates] == [("cpu", "portable"), ("cpu-amd", "native")]
    assert rows(verify(config, profile="native")) == [("digits", "cpu-amd", None)]
    assert rows(verify(config, profile="portable")) == [("digits", "cpu", None)]


def test_a_named_scenario_without_any_golden_still_gives_a_row(tmp_path: Path) -> None:
    config = project(tmp_path, digits={}, native={})
    assert rows(verify(config, scenarios=("digits",))) == [("digits", "cpu", None)]
    assert rows(verify(config, scenarios=("digits",), profile="native")) == [("digits", "cpu-amd", None)]


def test_a_scenario_of_both_devices_is_judged_where_it_can_be(tmp_path: Path) -> None:
    config = project(tmp_path, "cpu/torch-2.13.0/text", "h200/torch-2.13.0+cu130/text")
    assert rows(verify(config, scenarios=("text",))) == [("text", "cpu", None)]


def test_a_scenario_of_cuda_alone_is_refused_without_a_gpu_and_names_what_to_run(tmp_path: Path) -> None:
    config = project(tmp_path, "h200/torch-2.13.0+cu130/big", big={"devices": ["cuda"]}, digits={})
    selection = verify(config, scenarios=("big",))
    assert rows(selection) == [("big", None, None)]
    ((reason, message),) = refusals(selection)
    assert reason == "no-accelerator"
    assert "h200" in message
    assert "gate verify big --device cuda" in message
    assert verify(config, SERVER, scenarios=("big",)).candidates[0].refusal is None


def test_naming_cuda_without_a_gpu_refuses_every_scenario_of_it(tmp_path: Path) -> None:
    assert rows(verify(project(tmp_path), device="cuda")) == [("text", None, None)]
    assert rows(verify(project(tmp_path, digits={}), device="cuda")) == [("digits", None, None)]
    assert rows(verify(project(tmp_path), device="cuda", scenarios=("digits",))) == [("digits", None, None)]


def test_naming_cuda_with_a_gpu_but_a_scenario_of_cpu_alone_is_an_error_of_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"digits is not configured for cuda.*devices"):
        verify(project(tmp_path), SERVER, device="cuda", scenarios=("digits",))
    assert rows(verify(project(tmp_path, digits={}), SERVER, device="cuda")) == []


@pytest.mark.parametrize("exists", [True, False])
def test_a_hardware_folder_of_another_gpu_is_refused_whether_or_not_it_exists(tmp_path: Path, exists: bool) -> None:
    config = project(tmp_path, *(["l4/torch-2.13.0+cu130/text"] if exists else []))
    selection = verify(config, SERVER, goldens=config.goldens / "l4")
    assert rows(selection) == [("text", "l4", None)]
    ((reason, message),) = refusals(selection)
    assert reason == "no-accelerator"
    assert "L4" in message
    assert "gate verify --goldens goldens/l4" in message


def test_the_hardware_folder_of_this_gpu_is_judged(tmp_path: Path) -> None:
    config = project(tmp_path, "h200/torch-2.13.0+cu130/text")
    selection = verify(config, SERVER, goldens=config.goldens / "h200")
    assert rows(selection) == [("text", "h200", None)]
    assert selection.candidates[0].refusal is None
    assert selection.candidates[0].profile is None


def test_the_folder_of_another_cpu_is_refused(tmp_path: Path) -> None:
    config = project(tmp_path, "cpu-intel/torch-2.13.0/digits")
    assert {reason for reason, _ in refusals(verify(config, goldens=config.goldens / "cpu-intel"))} == {"no-accelerator"}


def test_goldens_may_be_another_root_or_hardware_folder(tmp_path: Path) -> None:
    config = project(tmp_path, "cpu/torch-2.13.0/digits", digits={})
    other = tmp_path / "elsewhere"
    (other / "cpu/torch-2.13.0/digits").mkdir(parents=True)
    assert verify(config, goldens=other).candidates[0].root == other
    assert verify(config, goldens=other / "cpu").candidates[0].root == other
    assert verify(config, goldens=config.goldens).candidates[0].root == config.goldens


def test_goldens_that_do_not_exist_are_an_error_of_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--goldens .*nowhere"):
        verify(project(tmp_path), goldens=tmp_path / "nowhere")


@pytest.mark.parametrize("options", [{"device": "cuda"}, {"profile": "native"}])
def test_a_hardware_folder_contradicts_another_device_or_profile(tmp_path: Path, options: dict[str, Any]) -> None:
    config = project(tmp_path, "cpu/torch-2.13.0/digits")
    with pytest.raises(UsageError, match=f"--goldens .*--{next(iter(options))}"):
        to_verify(config, LAPTOP, Wanted(goldens=config.goldens / "cpu", **options), "2.13.0")


def test_all_versions_are_the_configured_ones_scenario_by_scenario(tmp_path: Path) -> None:
    config = project(tmp_path, "cpu/torch-2.4.0/digits", torch=("2.4.0", "2.9.1"))
    expected = [("digits", "cpu", "2.4.0"), ("digits", "cpu", "2.9.1"), ("text", "cpu", "2.4.0"), ("text", "cpu", "2.9.1")]
    assert rows(verify(config, torch="all")) == expected
    assert rows(verify(config, torch="2.9.1")) == expected[1::2]
    assert rows(verify(project(tmp_path / "b", "cpu/torch-2.4.0/digits", digits={}), torch="all")) == [("digits", "cpu", None)]


def test_an_unknown_scenario_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"digit.*digits"):
        verify(project(tmp_path), scenarios=("digit",))


def test_a_same_as_scenario_is_held_against_the_other_golden(tmp_path: Path) -> None:
    config = project(tmp_path, "cpu/torch-2.13.0/eager", eager={}, replayed={"same_as": "eager"})
    assert [row.golden for row in verify(config).candidates] == ["eager", "eager"]


def test_record_takes_every_scenario_with_a_golden_of_its_own_where_it_can_run(tmp_path: Path) -> None:
    config = project(tmp_path, digits={}, twin={"same_as": "digits"}, text={"devices": ["cpu", "cuda"]})
    assert rows(to_record(config, SERVER, Wanted())) == [("digits", "cpu", None), ("text", "cpu", None), ("text", "h200", None)]
    selection = to_record(config, LAPTOP, Wanted())
    assert rows(selection) == [("digits", "cpu", None), ("text", "cpu", None)]
    assert selection.left_out == "left out: text on cuda (no such device here)"


def test_record_refuses_a_named_scenario_that_has_nothing_to_record(tmp_path: Path) -> None:
    config = project(tmp_path, digits={}, twin={"same_as": "digits"})
    with pytest.raises(UsageError, match=r"twin.*Record digits"):
        to_record(config, LAPTOP, Wanted(scenarios=("twin",)))


def test_record_on_a_device_that_is_not_here_is_refused(tmp_path: Path) -> None:
    selection = to_record(project(tmp_path), LAPTOP, Wanted(device="cuda"))
    assert rows(selection) == [("text", None, None)]
    assert selection.candidates[0].refusal is not None
    assert selection.candidates[0].refusal[0] is Reason.NO_ACCELERATOR


def test_record_follows_the_profile_and_the_device_named(tmp_path: Path) -> None:
    config = project(tmp_path)
    assert rows(to_record(config, SERVER, Wanted(scenarios=("digits",), profile="native"))) == [("digits", "cpu-amd", None)]
    assert rows(to_record(config, SERVER, Wanted(device="cuda"))) == [("text", "h200", None)]
