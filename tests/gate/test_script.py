"""What is read of a training script, which never runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate.errors import UsageError
from gate.script import only, read, scenarios, trains

TRAINS = """
import torch
net = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.ones(1)).sum().backward()
optimizer.step()
"""


def written(path: Path, text: str = TRAINS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_script_is_read_and_not_run(tmp_path: Path) -> None:
    """Its modules by inheritance in the file, its optimizer's construction as it stands there; what it would do is not done."""
    text = "open('touched', 'w')\nclass Base(nn.Module): pass\nclass Net(Base): pass\nclass Other: pass\n" + TRAINS
    script = read(written(tmp_path / "train.py", text))
    assert script.training is not None
    assert script.modules == ("Base", "Net")
    assert script.constructions == ("torch.optim.SGD(net.parameters(), lr=0.1)",)
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.parametrize(
    ("text", "importable"),
    [
        ('"""Text."""\nimport torch\nN = 3\ntorch.manual_seed(0)\ndef f(): pass\nif __name__ == "__main__":\n    f()\n', True),
        ("def f(): pass\nf()\n", False),
        ("for i in range(3):\n    print(i)\n", False),
        ("with open('x') as f:\n    pass\n", False),
        (TRAINS, False),
    ],
    ids=["guarded", "calls", "loops", "opens", "trains"],
)
def test_a_scenario_may_import_what_only_defines(tmp_path: Path, text: str, importable: bool) -> None:
    assert read(written(tmp_path / "train.py", text)).importable is importable


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"def f(:\n", "is no Python: line 1"),
        (b"a = 1\0", "is no Python"),
        (b"# coding: nonsense\n", "is no Python"),
        (None, "No such file"),
    ],
    ids=["syntax", "NUL", "encoding", "absent"],
)
def test_what_is_no_script_is_told(tmp_path: Path, content: bytes | None, told: str) -> None:
    """With its file and the reason; a search passes it over."""
    path = tmp_path / "train.py"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=rf"train\.py: .*{told}"):
        read(path)
    assert not trains(path)


def test_the_only_script_that_trains_is_found(tmp_path: Path) -> None:
    """In a subfolder as well; tests, goldens, hidden folders, links and virtual environments are not searched."""
    assert only(tmp_path) is None
    written(tmp_path / "setup.py", "print(1)\n")
    for apart in ("tests/train.py", "goldens/scenarios.py", ".hidden/train.py", "venv/lib/train.py"):
        written(tmp_path / apart)
    (tmp_path / "venv/pyvenv.cfg").write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    assert only(tmp_path) is None
    there = written(tmp_path / "tools/ü/fit.py")
    found = only(tmp_path)
    assert found is not None
    assert found.file == there


def test_several_that_train_are_named(tmp_path: Path) -> None:
    """The nearest first, with the command for the first one."""
    for name in ("b/train.py", "train it.py"):
        written(tmp_path / name)
    with pytest.raises(UsageError, match=r"several scripts train: train it\.py, b/train\.py\. Name one: gate init 'train it\.py'"):
        only(tmp_path)


def test_scenarios_are_the_functions_that_take_record(tmp_path: Path) -> None:
    """In their order; others, and a file that is none, give nothing."""
    text = "def b(record): pass\ndef helper(x): pass\ndef a(record, n=1): pass\nclass C:\n    def c(self, record): pass\n"
    assert scenarios(written(tmp_path / "scenarios.py", text)) == ("b", "a")
    assert scenarios(written(tmp_path / "scenarios.py", "def b(:")) == ()
    assert scenarios(tmp_path / "absent.py") == ()
