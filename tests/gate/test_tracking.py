"""Goldens that git does not hold are named by `record` and by `run`: no clone has them."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from gate import record, tracking
from gate.config import find
from gate.landing import words
from gate.landing.line import Line
from gate.progress import Silent
from gate.trial import Means
from tests.gate.evidence.records import Toy
from tests.gate.repositories import git, init
from tests.golden.goldens import golden


class Heard(Silent):
    """Keeps what was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Toy.new(tmp_path_factory.mktemp("tracking") / "toy").folder


@pytest.fixture
def toy(prepared: Path, tmp_path: Path) -> Toy:
    return Toy(Path(shutil.copytree(prepared, tmp_path / "toy")))


def ignore(toy: Toy, *patterns: str) -> None:
    with (toy.folder / ".gitignore").open("a") as file:
        file.writelines(f"{pattern}\n" for pattern in patterns)


def line(toy: Toy, since: str | None = None) -> Line:
    return words.golden_changes(find(toy.folder), since and toy.git("rev-parse", since))


def heard(toy: Toy) -> list[str]:
    said = Heard()
    record.warn(Means(find(toy.folder), None, 1, said))
    return said.lines


@pytest.mark.parametrize("pattern", ["*.safetensors", "goldens/", "goldens", "manifest.json", "text"])
@pytest.mark.parametrize("since", [None, "HEAD"])
def test_a_golden_of_which_git_ignores_files_is_not_judged(toy: Toy, pattern: str, since: str | None) -> None:
    """New goldens, whatever the pattern; what git holds it holds, though a pattern fits it."""
    ignore(toy, pattern)
    assert (heard(toy), line(toy, since).code) == ([], 0)
    shutil.copytree(toy.folder / "goldens/cpu/torch-2.13.0/text", toy.folder / "goldens/cpu/torch-2.12.0/text")
    toy.git("add", "-A")
    toy.git("commit", "-q", "-m", "Record")
    found = line(toy, since)
    assert (found.word, found.code) == ("not-judged", 3)
    assert found.why == "git ignores files of 1 golden"
    (told,) = (detail for detail in found.details if "git ignores" in detail)
    assert "of goldens/cpu/torch-2.12.0/text (" in told
    assert f"by {pattern!r} (" in told
    assert heard(toy) == [f"warning: {told}"]


@pytest.mark.parametrize("goldens", ["goldens", "tests/goldens", "gold [a]*b"])
@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("../.gitignore", "*.safetensors"), ("../.gitignore", "torch-2*"), ("../.gitignore", "project/**/manifest.json"),
        (".gitignore", "*.json"), ("../.gitignore", "gold*/"), (".gitignore", "gold*"), ("../.gitignore", "project"), (".gitignore", "*"),
        ("{}/.gitignore", "*.safetensors"), ("{}/.gitignore", "/cpu"), ("{}/cpu/.gitignore", "text"),
        ("../.git/info/exclude", "*.safetensors"), ("../.git/info/exclude", "gold*"), ("../../exclude", "*.json"),
    ],
)  # fmt: skip
def test_what_it_advises_helps(tmp_path: Path, goldens: str, file: str, pattern: str) -> None:
    """Followed to the letter, in a project within a repository, git takes in all of the goldens, which it did not."""
    top, project = init(tmp_path / "top"), tmp_path / "top/project"
    golden(project / goldens / "cpu/torch-2.13.0/text")
    git(top, "config", "core.excludesFile", str(tmp_path / "exclude"))
    ignoring = project / file.format(goldens)
    with ignoring.open("a") as lines:
        lines.write(f"{pattern}\n*.log\n")
    kept = "cpu/torch-2.13.0/text/"
    every = {f"{goldens}/{path.relative_to(project / goldens)}" for path in (project / goldens / kept).iterdir()}
    git(top, "add", "--all")
    assert every - held(project)
    (told,) = tracking.ignored(project / goldens, project)
    assert f" of {goldens}/{kept[:-1]} (" in told
    follow(told, project)
    assert every <= held(project)
    assert tracking.ignored(project / goldens, project) == []


def held(project: Path) -> set[str]:
    return set(filter(None, git(project, "ls-files", "-z").split("\0")))


def follow(told: str, project: Path) -> None:
    """Does what is advised: writes the line, or takes out the one that is named, and runs the command."""
    advice = re.search(
        r"\. (?:Write (?P<new>.*) at the end of (?P<end>.*)|Take that line out of (?P<out>.*), or write.*), then: (?P<command>git .*)", told
    )
    named = re.search(r" \((?P<file>[^()]*):(?P<line>\d+)\), so that", told)
    assert advice, told
    assert named, told
    file = project / (advice["end"] or advice["out"])
    assert file.resolve() == (project / named["file"]).resolve()
    lines = file.read_text().splitlines()
    file.write_text(
        "\n".join([*lines, advice["new"]] if advice["new"] else lines[: int(named["line"]) - 1] + lines[int(named["line"]) :]) + "\n"
    )
    subprocess.run(shlex.split(advice["command"]), cwd=project, check=True)


def test_other_files_may_be_ignored_and_a_folder_outside_git_has_nothing_to_say(toy: Toy) -> None:
    ignore(toy, "*.pyc", "*.log", "evidence")
    for name in ("goldens/__pycache__/a.pyc", "goldens/cpu/torch-2.13.0/text/run.log", "goldens/cpu/evidence/a.json"):
        (toy.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (toy.folder / name).write_text("x")
    assert tracking.ignored(toy.folder / "goldens", toy.folder) == []
    ignore(toy, "*.safetensors")
    toy.git("rm", "-rq", "--cached", "goldens")
    assert len(tracking.ignored(toy.folder / "goldens", toy.folder)) == 2
    shutil.rmtree(toy.folder / ".git")
    assert tracking.ignored(toy.folder / "goldens", toy.folder) == []
    assert tracking.ignored(toy.folder / "gone", toy.folder) == []


@pytest.mark.parametrize("patterns", [(), ("goldens",)], ids=["untracked", "ignored"])
def test_goldens_taken_out_of_git_and_left_there_fail(toy: Toy, patterns: tuple[str, ...]) -> None:
    """By 1, as any change to a golden that nobody may make like this; put back they are no change."""
    ignore(toy, *patterns)
    toy.git("rm", "-rq", "--cached", "goldens/cpu/torch-2.13.0/digits")
    toy.git("add", ".gitignore")
    toy.git("commit", "-q", "-m", "Clean up")
    found = line(toy, "HEAD~1")
    assert (found.word, found.code) == ("drift", 1)
    assert "1 of 2 changed, 1 without all that a meant change needs" in found.why
    assert "that git held and holds no longer. git add goldens/cpu/torch-2.13.0/digits/" in "\n".join(found.details)
    toy.git("add", "-f", "goldens")
    assert (line(toy, "HEAD~1").word, line(toy, "HEAD~1").code) == ("passed", 0)
