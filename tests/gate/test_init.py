"""Setting a project up: what is written, what is left as it is, and five commands from nothing to a caught drift."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gate import config, init, template
from gate.errors import UsageError
from gate.init import HOOK, SCENARIOS, WORKFLOW, place
from tests.gate.projects import Answer, Project
from tests.gate.repositories import git

SCRIPT = '''\
"""Trains a small network to tell two spirals apart."""

import torch
from torch import nn
from torch.nn import functional as F


def spirals(count):
    angle = torch.rand(count) * 9
    label = torch.arange(count) % 2
    turned = angle + label * torch.pi
    points = torch.stack([turned.cos(), turned.sin()], 1) * angle[:, None] / 9
    return points + torch.randn(count, 2) * 0.02, label


def main():
    torch.manual_seed(0)
    points, labels = spirals(256)
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(200):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(points), labels)
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
'''
ALL = {"pyproject.toml", SCENARIOS, WORKFLOW, HOOK}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a training script and nothing else."""
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_everything_is_written_and_told(project: Path) -> None:
    """The configuration that gate then finds, a scenario, a workflow and a hook; nothing else, and the script is as it was."""
    done = init.init(project, Path("train.py"))
    assert set(files(project)) == ALL | {"train.py"}
    assert (project / "train.py").read_text() == SCRIPT
    assert {path.relative_to(project).as_posix() for path, _ in done.wrote} == ALL
    assert (done.left, done.ready, done.next, done.scenario) == ((), True, "gate record", "train")
    found = config.find(project)
    assert [(settings.name, settings.run) for settings in found.select()] == [("train", "goldens/scenarios.py:train")]
    document = done.as_json()
    assert [each["path"] for each in document["wrote"]] == [str(path) for path, _ in done.wrote]
    assert "wrote goldens/scenarios.py: the scenario train, which runs train.py as it is" in done.text()
    assert done.text().endswith("\nNext: gate record\n")


def test_the_script_is_found_where_none_is_named(project: Path) -> None:
    assert init.init(project, None).script == project / "train.py"


def test_what_is_there_is_never_overwritten(project: Path) -> None:
    """Scenarios, workflow and hook stay as they are, byte by byte; the scenarios found there are configured, the hook is told."""
    (project / SCENARIOS).parent.mkdir()
    (project / SCENARIOS).write_text("def mine(record): pass\ndef yours(record): pass\n")
    (project / WORKFLOW).parent.mkdir(parents=True)
    (project / WORKFLOW).write_text("mine")
    (project / HOOK).write_text("repos: []\n")
    before = files(project)
    done = init.init(project, None)
    after = files(project)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"pyproject.toml"}
    assert [path.relative_to(project).as_posix() for path, _ in done.left] == [SCENARIOS, WORKFLOW, HOOK]
    assert list(config.find(project).scenarios) == ["mine", "yours"]
    assert done.ready
    assert "entry: gate verify" in done.text()


@pytest.mark.parametrize(
    "before",
    ['[project]\nname = "ü"\n', '[project]\nname = "ü"', "[tool.ruff]\r\nline-length = 100\r\n", "", "# [tool.gate]\n"],
    ids=["whole", "without end", "CRLF", "empty", "comment"],
)
def test_the_configuration_is_appended(project: Path, before: str) -> None:
    """What stood there is the beginning of the new file, line ends included, and both are read."""
    (project / "pyproject.toml").write_bytes(before.encode())
    init.init(project, None)
    after = (project / "pyproject.toml").read_bytes()
    assert after.startswith(before.encode())
    assert len(re.findall(rb"(?<!\r)\n", after)) == (0 if "\r\n" in before else after.count(b"\n"))
    found = config.find(project)
    assert list(found.scenarios) == ["train"]
    assert found.name == ("ü" if "name" in before else None)


@pytest.mark.parametrize(
    ("pyproject", "told"),
    [
        ("[tool.gate]\n", r"has \[tool\.gate\] already"),
        ("[tool.gate.scenarios.a]\nrun = 'a.py:a'\n", "already"),
        ("tool = {ruff = {}}\n", r"(?s)cannot stand at its end.*Write it where it can:.*\[tool\.gate\.scenarios\.train\]"),
        ("[tool\n", "cannot be read"),
    ],
    ids=["gate", "scenario", "inline", "broken"],
)
def test_a_configuration_that_takes_none_is_told_and_nothing_is_written(project: Path, pyproject: str, told: str) -> None:
    (project / "pyproject.toml").write_text(pyproject)
    before = files(project)
    with pytest.raises(UsageError, match=told):
        init.init(project, None)
    assert files(project) == before


@pytest.mark.parametrize(("named", "told"), [("absent.py", "no such file"), ("../outside.py", "outside the project")])
def test_a_script_that_is_none_of_the_projects_is_told(project: Path, named: str, told: str) -> None:
    (project.parent / "outside.py").write_text(SCRIPT)
    with pytest.raises(UsageError, match=told):
        init.init(project, Path(named))
    assert set(files(project)) == {"train.py"}


def test_the_project_is_that_of_the_nearest_pyproject_within_the_repository(tmp_path: Path) -> None:
    """Else the current folder; a pyproject.toml beyond the repository is another project's."""
    (tmp_path / "pyproject.toml").write_text("")
    inner = tmp_path / "inner"
    (inner / "a/b").mkdir(parents=True)
    assert place(inner / "a").root == tmp_path
    git(inner, "init", "-q")
    assert (place(inner / "a/b").root, place(inner / "a/b").prefix) == (inner / "a/b", "a/b")
    (inner / "a/pyproject.toml").write_text("")
    assert (place(inner / "a/b").root, place(inner / "a/b").top) == (inner / "a", inner)


def test_a_project_in_a_subfolder_has_its_workflow_at_the_top(tmp_path: Path) -> None:
    """Where the host looks for it; workflow and hook go into the project's folder, whatever is in its name."""
    yaml = pytest.importorskip("yaml")
    git(tmp_path, "init", "-q")
    folder = tmp_path / "my models/größe"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(SCRIPT)
    done = init.init(folder, None)
    assert {path for path, _ in done.wrote} == {folder / "pyproject.toml", folder / SCENARIOS, tmp_path / WORKFLOW, tmp_path / HOOK}
    job = yaml.safe_load((tmp_path / WORKFLOW).read_text())["jobs"]["verify"]
    assert job["defaults"]["run"]["working-directory"] == "my models/größe"
    assert job["steps"][-1]["with"]["path"] == "my models/größe/.gate/runs"
    hook = yaml.safe_load((tmp_path / HOOK).read_text())["repos"][0]["hooks"][0]
    assert hook["entry"] == """sh -c 'cd '"'"'my models/größe'"'"' && exec gate verify'"""


@pytest.mark.parametrize(("file", "told"), [(None, None), ("requirements.txt", "-r requirements.txt"), ("pyproject.toml", ".")])
def test_the_workflow_installs_what_the_project_needs(project: Path, file: str | None, told: str | None) -> None:
    """The torch that goldens will be of, then the project or its requirements; it verifies with the whole history at hand."""
    yaml = pytest.importorskip("yaml")
    if file:
        (project / file).write_text("[project]\nname = 'p'\nversion = '0'\n" if file == "pyproject.toml" else "numpy\n")
    init.init(project, None)
    steps = yaml.safe_load((project / WORKFLOW).read_text())["jobs"]["verify"]["steps"]
    runs = [step["run"] for step in steps if "run" in step]
    assert re.fullmatch(r"python -m pip install musgd-gate torch==[\d.]+", runs[0])
    assert runs[1:-1] == ([f"python -m pip install {told}"] if told else [])
    assert runs[-1] == "gate verify"
    assert steps[0]["with"] == {"fetch-depth": 0}


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("train", "train"),
        ("a-b", "a_b"),
        ("3d", "run_3d"),
        ("class", "class_"),
        ("golden", "golden_"),
        ("größe", "gr_e"),
        ("é", "training"),
    ],
)
def test_a_scenario_is_named_after_its_script(stem: str, name: str) -> None:
    """As Python, TOML and a folder take it."""
    assert template.function_name(stem) == name


def test_without_a_training_a_skeleton_says_what_to_fill_in(tmp_path: Path) -> None:
    """With what is known of the script; `gate record` fails by it, and names the file and the line to remove."""
    (tmp_path / "net.py").write_text("from torch import nn\n\nclass Net(nn.Module):\n    pass\n\nif __name__ == '__main__':\n    Net()\n")
    done = init.init(tmp_path, Path("net.py"))
    assert not done.ready
    assert "FILL IN" in done.next
    text = (tmp_path / SCENARIOS).read_text()
    assert "from net import Net" in text
    assert "model = Net().to(record.device)  # FILL IN" in text
    answer = Project(tmp_path).gate("record")
    assert (answer.code, answer.row["verdict"], answer.row["reason"]) == (3, "not-judged", "scenario-failed")
    assert "fill in the scenario net in goldens/scenarios.py, and remove this line" in answer.err
    assert not (tmp_path / "goldens/cpu").exists()


def test_a_filled_in_skeleton_is_whole(tmp_path: Path) -> None:
    """Without a script, what stands in it is a training by itself: only the line that fails is to go."""
    init.init(tmp_path, None)
    text = (tmp_path / SCENARIOS).read_text()
    assert text.count("raise NotImplementedError") == 1
    (tmp_path / SCENARIOS).write_text(re.sub(r"    raise NotImplementedError.*\n", "", text))
    answer = Project(tmp_path).gate("record")
    assert (answer.code, answer.row["verdict"]) == (0, "recorded")


def test_the_command_line_sets_up_and_tells(project: Path) -> None:
    """What it wrote as text and as JSON; the second time it is a usage error, and nothing changes."""
    first = Project(project).gate("init", "train.py")
    assert (first.code, first.err) == (0, "")
    assert first.document["scenario"] == "train"
    assert "Next: gate record" in first.out
    before = files(project)
    again = Project(project).gate("init")
    assert (again.code, again.out) == (2, "")
    assert "already" in again.err
    assert "already" in again.document["error"]
    assert files(project) == before


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """An empty repository with a script of 30 lines, set up, recorded and committed."""
    folder = tmp_path_factory.mktemp("spirals")
    (folder / "train.py").write_text(SCRIPT)
    git(folder, "init", "-q")
    here = Project(folder)
    assert here.gate("init", "train.py").code == 0
    assert verdict(here.gate("record")) == (0, "recorded")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Record goldens")
    return here


@pytest.mark.slow
def test_five_commands_lead_to_a_caught_drift(recorded: Project) -> None:
    """As the README shows it: init, record, commit, edit, verify.

    The edit is one that a reviewer lets pass, a division that becomes a multiplication by the inverse, and the first loss does not show it.
    """
    assert len(SCRIPT.splitlines()) <= 30
    assert SCRIPT.count("/ 9") == 1
    (recorded.folder / "train.py").write_text(SCRIPT.replace("/ 9", "* (1 / 9)"))
    drifted = recorded.gate("verify")
    facts = drifted.row
    assert (drifted.code, facts["verdict"], facts["cause"], facts["changed_sources"]) == (1, "drift", "code", ["train.py"])
    first = facts["first"]
    assert (first["step"], first["phase"], first["kind"]) == (1, "grads", "bits")
    assert all(first[key] is not None for key in ("differing", "elements", "max_ulp", "index", "expected", "actual"))
    assert "train.py" in drifted.out.split("first")[0]


@pytest.mark.slow
def test_an_edit_of_the_loop_counts_and_one_of_a_comment_does_not(recorded: Project) -> None:
    """The scenario runs the script's own loop: another learning rate drifts; other words in its docstring do not."""
    script = recorded.folder / "train.py"
    script.write_text(SCRIPT.replace('"""', '"""By the way: ', 1))
    assert verdict(recorded.gate("verify")) == (0, "identical")
    script.write_text(SCRIPT.replace("lr=0.01", "lr=0.02"))
    drifted = recorded.gate("verify", "--no-cause")
    assert verdict(drifted) == (1, "drift")
    assert drifted.row["first"]["path"] == "optimizer/group0/lr"


def verdict(answer: Answer) -> tuple[int, str]:
    return answer.code, answer.row["verdict"]
