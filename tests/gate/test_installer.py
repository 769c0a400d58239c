from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gate import installer
from gate.errors import NoTorch
from gate.installer import Failed, reason


def test_the_reason_is_what_is_left_of_what_uv_says() -> None:
    """Progress, warnings before the error and frames go; the reason and the hint stay, with what to do."""
    told = (
        "Using Python 3.13.0 environment at: /x\nwarning: Failed to hardlink files\n         If this is intentional, say so.\n"
        "Downloading torch (846.3MiB)\nerror: No solution found when resolving dependencies\n"
        "  cause: Because torch==2.4.0 has no wheels with a matching Python ABI tag (e.g., `cp313`) and you require torch==2.4.0, ...\n"
        "\nhint: You require CPython 3.13 (`cp313`), but we only found wheels for `torch` (v2.4.0) with `cp312`\n"
    )
    assert reason(told).splitlines() == [
        "error: No solution found when resolving dependencies",
        "cause: Because torch==2.4.0 has no wheels with a matching Python ABI tag (e.g., `cp313`) and you require torch==2.4.0, ...",
        "hint: You require CPython 3.13 (`cp313`), but we only found wheels for `torch` (v2.4.0) with `cp312`",
        "Run gate under a Python that it supports, or give an interpreter that has it: --python PATH.",
    ]


def test_the_frames_of_other_versions_of_uv_go() -> None:
    """A cross, lines and arrows before the words are for terminals."""
    told = "  \u00d7 No solution found when resolving dependencies:\n  \u2570\u2500\u25b6 Because there is no version of torch==9.9.9 and\n"
    told += "      you require it.\n"
    assert reason(told).splitlines() == [
        "No solution found when resolving dependencies:",
        "Because there is no version of torch==9.9.9 and",
        "you require it.",
        "Name a version that exists.",
    ]


def test_a_long_reason_keeps_its_beginning_and_its_root() -> None:
    """Six lines at most, the last ones being the root cause, each cut in its middle."""
    told = reason(
        "error: a\n" + "".join(f"  cause: {n}\n" for n in range(20)) + "  cause: " + "x" * 1000 + " No space left on device (os error 28)"
    )
    lines = told.splitlines()
    assert lines[:2] + lines[2:5] == ["error: a", "cause: 0", "cause: 17", "cause: 18", "cause: 19"]
    assert lines[5].endswith("No space left on device (os error 28)")
    assert len(lines[5]) < 320
    assert lines[6].startswith("Free disk space")


def test_uv_s_output_and_progress() -> None:
    """What it prints comes back, what it tells on the way is passed on, and its failure is raised with its words."""
    heard: list[str] = []
    assert "uv" in installer.run(["--version"], installer.environment({}), heard.append)
    with pytest.raises(Failed, match="nonesuch"):
        installer.run(["nonesuch"], installer.environment({}), heard.append)
    assert any("nonesuch" in line for line in heard)


def test_its_cache_is_the_user_s_own_where_there_is_one(tmp_path: Path) -> None:
    """UV_CACHE_DIR stays as the user set it; without it the given folder counts, without that uv's default."""
    assert installer.environment({"UV_CACHE_DIR": "/mine"}, tmp_path)["UV_CACHE_DIR"] == "/mine"
    assert installer.environment({}, tmp_path)["UV_CACHE_DIR"] == str(tmp_path)
    assert "UV_CACHE_DIR" not in installer.environment({})


def test_settings_that_name_places_and_builds_are_kept() -> None:
    """UV_OFFLINE, UV_FIND_LINKS and UV_TORCH_BACKEND reach uv; another interpreter or project does not."""
    kept = {"UV_OFFLINE": "1", "UV_FIND_LINKS": "/wheels", "UV_TORCH_BACKEND": "cpu", "UV_INDEX": "x", "PATH": "/bin"}
    assert installer.environment({**kept, "UV_PYTHON": "3.9", "VIRTUAL_ENV": "/v", "PYTHONPATH": "/p"}) == {**kept, "NO_COLOR": "1"}


def test_uv_is_found_without_a_path_and_its_absence_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The one installed with gate needs no PATH; without it one on the PATH is taken; without both, the ways out are named."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Path(installer.program()).is_file()
    monkeypatch.setitem(sys.modules, "uv", None)
    with pytest.raises(NoTorch, match=r"pip install uv.*--python PATH"):
        installer.program()
    (tmp_path / "uv").write_text("#!/bin/sh\n")
    (tmp_path / "uv").chmod(0o755)
    assert installer.program() == str(tmp_path / "uv")


def test_a_python_that_is_not_here_is_none() -> None:
    """Nothing is downloaded to answer the question."""
    assert installer.python("3.1", installer.environment({})) is None
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    found = installer.python(here, installer.environment({"PATH": str(Path(sys.executable).parent)}))
    assert found is not None
    assert found.exists()
