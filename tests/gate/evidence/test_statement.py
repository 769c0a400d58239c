"""A record is an in-toto statement that is read back as it was, and that no merge of branches conflicts over."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gate.evidence.statement import Kind, Record, Subject, parse
from tests.gate.repositories import commit, git, init


def record(seed: str = "", files: int = 200, odd: int = 4) -> Record:
    """A record of many files, of which a few follow the seed."""
    subjects = [Subject.of_value(Kind.FILE, f"src/file_{n}.py", f"{n}{seed if n < odd else ''}") for n in range(files)]
    facts = [replace(subject, value=None) for subject in subjects]
    packages = (Subject.of_value(Kind.PACKAGE, "numpy", "2.4.6"),)
    passed = {f"tests/test_{n}.py": [f"test_{m}" for m in range(20)] for n in range(30)}
    return Record(
        "tests", "h200", "2.11.0+cu130", "passed", {"passed": 600}, {"os": "Linux"}, f"2026-11-29T19:15:{len(seed):02}.000000Z",
        (*facts, *packages), details={"passed": passed},
    )  # fmt: skip


def test_it_is_an_intoto_statement() -> None:
    """Type, subjects with a sha256 each and a predicate stand where other readers look for them."""
    document = json.loads(record().text())
    assert document["_type"] == "https://in-toto.io/Statement/v1"
    assert document["subject"][0]["name"] == "src/file_0.py"
    assert all(len(subject["digest"]["sha256"]) == 64 for subject in document["subject"])
    assert document["predicate"]["counts"] == {"passed": 600}


def test_it_is_read_back_as_it_was() -> None:
    """Every field, and the name that follows from them."""
    one = record()
    assert parse(one.text().encode(), one.file) == one
    assert one.file.startswith("tests-h200-torch-2.11.0+cu130-")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"passed":600', '"passed":601', "edited"),
        ("in-toto.io/Statement/v1", "in-toto.io/Statement/v2", "no statement"),
        ("evidence:1", "evidence:2", "no evidence that this gate reads"),
        ('"check": "tests"', '"check": "texts"', "unknown check"),
        ("{", "[", "is not JSON"),
    ],
)
def test_what_was_edited_is_no_record(old: str, new: str, why: str) -> None:
    """A figure raised by hand, and what is of another format, are told from records."""
    one = record()
    assert old in one.text()
    with pytest.raises(ValueError, match=why):
        parse(one.text().replace(old, new, 1).encode(), one.file)


def test_a_renamed_record_is_none() -> None:
    one = record()
    with pytest.raises(ValueError, match="renamed"):
        parse(one.text().encode(), one.file.replace("h200", "l4"))


def merged(folder: Path, plain: bool) -> int:
    """Two branches that each replace the same record, merged: git's exit code."""
    init(folder)

    def files(seed: str) -> dict[str, str | bytes | None]:
        one = record(seed)
        return {f"goldens/h200/evidence/{one.file}": json.dumps(json.loads(one.text()), indent=2) if plain else one.text()}

    commit(folder, files(""))
    gone = dict.fromkeys(files(""))
    for branch, seed in (("one", "A"), ("two", "BB")):
        git(folder, "checkout", "-q", "-b", branch, "main")
        commit(folder, {**gone, **files(seed)}, branch)
    return subprocess.run(["git", "merge", "-q", "--no-edit", "one"], cwd=folder, capture_output=True, env=None).returncode


def test_branches_that_replace_one_record_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git does not take the two new records for two names of the old one; with the usual indentation it does."""
    for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"):
        monkeypatch.setenv(name, "A")
    for name in ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "a@b")
    assert merged(tmp_path / "plain", plain=True) == 1
    assert merged(tmp_path / "ours", plain=False) == 0
