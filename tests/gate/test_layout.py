"""Where a golden lies, and which one is nearest to one that is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate.layout import builds, golden_folder, hardware_folders, nearest, torch_folders


def make(root: Path, *goldens: str) -> Path:
    for golden in goldens:
        (root / golden).mkdir(parents=True)
    return root


def test_cpus_go_by_the_public_version_and_gpus_by_the_full_one(tmp_path: Path) -> None:
    assert golden_folder(tmp_path, "cpu", "2.9.1+cu129", "digits") == tmp_path / "cpu/torch-2.9.1/digits"
    assert golden_folder(tmp_path, "cpu-amd", "2.9.1+cu129", "digits") == tmp_path / "cpu-amd/torch-2.9.1/digits"
    assert golden_folder(tmp_path, "h200", "2.9.1+cu129", "digits") == tmp_path / "h200/torch-2.9.1+cu129/digits"


def test_torch_folders_are_sorted_as_versions_and_hardware_folders_hold_some(tmp_path: Path) -> None:
    make(tmp_path, "cpu/torch-2.13.0/digits", "cpu/torch-2.4.0/digits", "data/digits", "evidence")
    (tmp_path / "scenarios.py").touch()
    assert [folder.name for folder in torch_folders(tmp_path / "cpu")] == ["torch-2.4.0", "torch-2.13.0"]
    assert hardware_folders(tmp_path) == [tmp_path / "cpu"]
    assert torch_folders(tmp_path / "absent") == hardware_folders(tmp_path / "absent") == []


def test_a_public_version_stands_for_any_build_and_a_full_one_for_itself(tmp_path: Path) -> None:
    make(
        tmp_path,
        "h200/torch-2.9.1+cu126/digits",
        "h200/torch-2.9.1+cu129/digits",
        "h200/torch-2.9.10+cu129/digits",
        "h200/torch-2.9.1+cu130/text",
    )
    assert [path.parent.name for path in builds(tmp_path / "h200", "2.9.1", "digits")] == ["torch-2.9.1+cu126", "torch-2.9.1+cu129"]
    assert [path.parent.name for path in builds(tmp_path / "h200", "2.9.1+cu129", "digits")] == ["torch-2.9.1+cu129"]


@pytest.mark.parametrize(
    ("goldens", "expected"),
    [
        (["cpu/torch-2.4.0/digits", "cpu/torch-2.9.1/digits", "cpu/torch-2.14.1/digits"], "cpu/torch-2.14.1/digits"),
        (["cpu/torch-2.4.0/digits", "cpu/torch-2.13.0/text", "l4/torch-2.13.0+cu130/digits"], "cpu/torch-2.4.0/digits"),
        (["l4/torch-2.13.0+cu130/digits", "cpu-amd/torch-2.4.0/digits"], "cpu-amd/torch-2.4.0/digits"),
        (["l4/torch-2.4.0/digits", "h200/torch-2.11.0+cu130/digits"], "h200/torch-2.11.0+cu130/digits"),
        (["cpu/torch-2.13.0/text"], None),
        ([], None),
    ],
)
def test_the_nearest_golden_shares_hardware_before_version(tmp_path: Path, goldens: list[str], expected: str | None) -> None:
    make(tmp_path, *goldens)
    assert nearest(tmp_path, "cpu", "2.13.0", "digits") == (None if expected is None else tmp_path / expected)
