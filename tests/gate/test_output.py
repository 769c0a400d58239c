"""Output that takes every character and every broken pipe, and JSON that is written whole or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gate.errors import UsageError
from gate.output import Target, replace
from golden.errors import StoreError

FULL = """
from gate import cli
cli._run = lambda given: cli.put("identical\\n") or 0
raise SystemExit(cli.main(["diff", "A", "B", "--json", "-"]))
"""
SCRIPT = "from gate.output import *; text = {text}; prepare(); put(text); say(text)"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_no_character_breaks_a_stream(encoding: str) -> None:
    """What the encoding lacks arrives as an escape, lone surrogates of odd file names included."""
    code = SCRIPT.format(text=ascii("größe ✓ \udcff\n"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding})
    assert done.returncode == 0
    assert done.stdout.decode(encoding).startswith("gr")
    assert ("✓" in done.stdout.decode(encoding)) == (encoding == "utf-8")
    assert b"\\udcff" in done.stdout


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_reader_that_went_away_is_no_error(stream: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    other = {"stdout": "stderr", "stderr": "stdout"}[stream]
    code = SCRIPT.format(text="'x\\n' * 100_000") + "; put('y'); raise SystemExit(7)"
    with os.fdopen(writer, "w") as broken:
        done = subprocess.run([sys.executable, "-c", code], **{stream: broken, other: subprocess.PIPE}, text=True)  # type: ignore[call-overload]
    assert done.returncode == 7
    assert set(getattr(done, other)) <= set("x\ny")  # no complaint


@pytest.mark.parametrize(
    ("redirection", "code"),
    [(">/dev/full", 3), ("2>/dev/full", 2), (">&-", 2), ("2>&-", 2), (">&- 2>&-", 2), (">/dev/full 2>/dev/full", 3)],
)
def test_a_stream_that_takes_nothing_never_looks_like_a_verdict(tmp_path: Path, redirection: str, code: int) -> None:
    """An interpreter that ends by a traceback says 1, which is drift."""
    command = (
        f"'{sys.executable}' -m gate verify --nonsense --json - {redirection}"
        if code == 2
        else f"'{sys.executable}' -c '{FULL}' {redirection}"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert ("standard output: No space left on device" in done.stderr) == (redirection == ">/dev/full")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["verify", "--json", "-"], "-"),
        (["verify", "--json=out.json", "x"], "out.json"),
        (["verify", "--json", "out.json", "--json", "-"], "-"),
        (["verify", "--json"], None),
        (["verify", "--", "--json", "-"], None),
        ([], None),
    ],
)
def test_raw_arguments_tell_where_json_goes(arguments: list[str], name: str | None) -> None:
    assert Target.of(arguments) == Target(name)


def test_a_document_replaces_a_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    file.write_text("old")
    Target(str(file)).write({"format": 1, "text": "✓"})
    assert json.loads(file.read_text(encoding="ascii")) == {"format": 1, "text": "✓"}
    assert list(tmp_path.iterdir()) == [file]


def test_a_document_goes_through_a_link_and_into_a_pipe(tmp_path: Path) -> None:
    file, link, pipe = tmp_path / "out.json", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(file)
    Target(str(link)).write({"a": 1})
    assert link.is_symlink()
    assert json.loads(file.read_text()) == {"a": 1}
    os.mkfifo(pipe)
    writer = threading.Thread(target=Target(str(pipe)).write, args=({"a": 1},))
    writer.start()
    assert json.loads(pipe.read_text()) == {"a": 1}
    writer.join()
    assert pipe.is_fifo()


def test_a_full_disk_is_told_with_the_file() -> None:
    with pytest.raises(StoreError, match="/dev/full: No space left"):
        Target("/dev/full").write({"a": 1})


@pytest.mark.parametrize("name", ["", "absent/out.json", ".", "file/out.json"])
def test_a_target_that_cannot_be_written_is_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="--json"):
        Target(name).check()


def test_a_target_that_can_be_written_is_not_touched_by_the_check(tmp_path: Path) -> None:
    for target in (Target(), Target("-"), Target("/dev/null"), Target(str(tmp_path / "new.json"))):
        target.check()
    assert list(tmp_path.iterdir()) == []


def test_nothing_that_json_does_not_know_is_written(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    with pytest.raises(ValueError, match="nan"):
        Target(str(file)).write({"a": float("nan")})
    assert not file.exists()


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o664])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    """What runs still runs, and what is private stays so."""
    path = tmp_path / "page.md"
    path.write_text("old")
    path.chmod(mode)
    replace(path, "new")
    assert (path.read_text(), path.stat().st_mode & 0o777, len(list(tmp_path.iterdir()))) == ("new", mode, 1)
