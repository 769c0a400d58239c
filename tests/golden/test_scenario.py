"""What becomes of a request in its process: real scenarios, good and bad."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import golden
from golden.launch import _report
from golden.store import Golden
from tests.golden.forks import Done, Server, request

SCENARIOS = '''
import ctypes, os, random, signal, subprocess, sys
from pathlib import Path

import numpy as np
import torch

import golden
import sibling
from core.model import build
from core.sub import scale
from space.part import x

HERE = Path(__file__).parent


def train(record, steps=None, **more):
    model = build()
    for _ in range(record.first, (steps or record.steps) + 1):
        model(torch.randn(4, 3)).sum().backward()
        record(model=model, **more)


def good(record):
    print("from Python")
    os.system("echo from a shell")
    ctypes.CDLL(None).puts(b"from C")
    print("from stderr", file=sys.stderr)
    Path("conf.yaml").read_text()
    train(record)


def given(record):
    """Prints what a scenario finds."""
    print("given", record.device, record.steps, record.seed, record.parameters["width"], record.first, record.folder.is_dir(), Path.cwd())
    print("drawn", torch.rand(1).item(), np.random.rand(), random.random(), hash("text"))
    print("torch", torch.are_deterministic_algorithms_enabled(), torch.get_num_threads(), torch.get_num_interop_threads(), sys.argv)
    print("names", __name__, isinstance(record, golden.Recorder), "gate" in sys.modules)
    train(record)


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, index):
        assert golden.Recorder
        return torch.full((3,), float((HERE.parent / f"data/{index}.txt").read_text()))


def workers(record):
    loader = torch.utils.data.DataLoader(Data(), num_workers=1, multiprocessing_context=record.parameters["method"])
    model = build()
    for batch in loader:
        model(batch).sum().backward()
        record(batch=batch, model=model)


def flips(record):
    torch.use_deterministic_algorithms(False)
    model = build()
    record.start(model=model)
    torch.backends.cudnn.benchmark = True
    record(model=model)
    torch.set_flush_denormal(True)
    record(model=model)
    record(model=model)


def edits(record):
    train(record)
    subprocess.run(["sed", "-i", "s/1/2/", "sibling.py"], cwd=HERE, check=True)


def writes(record):
    torch.save({"a": torch.ones(3)}, "made.pt")
    torch.load("made.pt")
    Path("made.txt").write_text("a")
    Path("made.txt").read_text()
    train(record)


def resumes(record):
    generator = torch.Generator().manual_seed(record.seed)
    saved = record.folder / "saved.pt"
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=record.steps)
    things = {"model": model, "optimizer": optimizer, "schedule": schedule}
    if record.first > 1:
        state = torch.load(saved)
        for name, thing in things.items():
            if name != record.parameters.get("forgets"):
                thing.load_state_dict(state[name])
        torch.set_rng_state(state["rng"])
    record.start(model=model)
    for _ in range(record.first, record.steps + 1):
        optimizer.zero_grad()
        model(torch.randn(4, 3)).square().sum().backward()
        optimizer.step()
        schedule.step()
        record(**things)
        if record.parameters.get("saves", True):
            torch.save({"rng": torch.get_rng_state(), **{name: thing.state_dict() for name, thing in things.items()}}, saved)


# What ends badly.


def raises(record):
    train(record, 2)
    deeper()


def deeper():
    try:
        {}["missing"]
    except KeyError as error:
        raise ValueError("first line\\nsecond line") from error


def wants_more(record, more):
    pass


def silent(record):
    pass


def few(record):
    train(record, 2)


def many(record):
    train(record, record.steps + 1)


def other_phases(record):
    train(record, 1)
    record(model=build(), loss=1.0)


def refused(record):
    record(thing=object())


def own_bug(record):
    class Odd(torch.nn.Module):
        def state_dict(self, *a, **k):
            raise LookupError("odd module")
    record.start(model=Stateful())


class Stateful:
    def state_dict(self):
        raise LookupError("odd state")


def leaves(record):
    train(record)
    sys.exit()


def leaves_early(record):
    train(record, 1)
    sys.exit(0)


def leaves_badly(record):
    train(record)
    sys.exit("no luck")


def interrupts(record):
    train(record, 1)
    raise KeyboardInterrupt


def disappears(record):
    train(record, 2)
    os._exit(0)


def crashes(record):
    train(record, 1)
    ctypes.string_at(0)


def killed(record):
    os.kill(os.getpid(), signal.SIGKILL)


def forks(record):
    """Its fork comes out of the scenario like the scenario itself, once having recorded as well."""
    train(record)
    if os.fork():
        os.wait()
    else:
        try:
            record(model=build())
        except golden.ScenarioFailed as error:
            print("fork:", error)


def forks_and_raises(record):
    if os.fork():
        os.wait()
        train(record)
    else:
        raise LookupError("in the fork")


def asks_for_too_much(record):
    record.start(model=[None] * 10**15)


not_a_function = 3
'''

FILES = {
    "goldens/scenarios.py": SCENARIOS,
    "goldens/sibling.py": "x = 1\n",
    "goldens/random.py": "raise ImportError('the standard library is shadowed')\n",
    "goldens/broken.py": "import golden\nfrom sibling import missing\n",
    "goldens/syntax.py": "def f(record:\n",
    "goldens/profile.py": "import sys\ndef f(record):\n    print(__name__, sys.modules['profile'].__file__)\n    record(x=1)\n",
    "goldens/packed/__init__.py": "",
    "goldens/packed/inner.py": "from .other import y\ndef f(record):\n    print(__name__)\n    record(y=y)\n",
    "goldens/packed/other.py": "y = 1\n",
    "golden/__init__.py": "raise ImportError('golden is shadowed')\n",
    "golden.py": "raise ImportError('golden is shadowed')\n",
    "gate/__init__.py": "raise ImportError('gate is shadowed')\n",
    "core.py/placeholder": "",
    "src/core/__init__.py": "",
    "src/core/model.py": "import torch\nfrom .sub import scale\ndef build():\n    torch.manual_seed(3)\n    return torch.nn.Linear(3, 2)\n",
    "src/core/sub.py": "scale = 2\n",
    "space/part.py": "x = 1\n",
    "conf.yaml": "lr: 1\n",
    **{f"data/{index}.txt": f"{index}.5" for index in range(3)},
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


def write(folder: Path) -> Path:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write(tmp_path / "project")


class Runner:
    """Runs scenarios of a project in the server; what it records lies below .gate, as with gate."""

    def __init__(self, server: Server, project: Path) -> None:
        self.server, self.project, self.count = server, project, 0

    def __call__(self, function: str, file: str = "goldens/scenarios.py", **others: object) -> Done:
        self.count += 1
        out = self.project / ".gate" / "runs" / f"{function}{self.count}"
        return self.server.run(request(self.project, f"{file}:{function}", out, **others))  # type: ignore[arg-type]


@pytest.fixture
def run(server: Server, project: Path) -> Runner:
    return Runner(server, project)


IMPORTED = ["goldens/scenarios.py", "goldens/sibling.py", "space/part.py", "src/core/__init__.py", "src/core/model.py", "src/core/sub.py"]


def test_a_scenario_gives_a_golden(run: Runner) -> None:
    """Its settings, its steps, the sources it read and nothing else; what it prints in whatever way is in the log."""
    done = run("good", parameters={"width": 3})
    manifest = done.manifest
    assert manifest["scenario"] | {"name": ""} == {
        "name": "",
        "run": "goldens/scenarios.py:good",
        "steps": 3,
        "seed": 0,
        "device": "cpu",
        "parameters": {"width": 3},
        "profile": "portable",
        "resume_at": None,
        "watch": [],
        "store": "digest",
    }
    assert sorted(manifest["sources"]) == sorted(["conf.yaml", *IMPORTED])
    assert manifest["hardware"] == done.report.hardware == "cpu"  # type: ignore[union-attr]
    assert Golden.open(done.request.out).steps == (1, 2, 3)
    assert {"from Python", "from a shell", "from C", "from stderr"} <= set(done.log.splitlines())
    assert done.code == 0


def test_a_run_leaves_the_project_as_it_was(run: Runner, project: Path) -> None:
    """No bytecode, no other file: what version control ignores is not asked for."""
    before = sorted(project.rglob("*"))
    assert run("good").code == 0
    after = sorted(path for path in project.rglob("*") if ".gate" not in path.parts)
    assert after == before


def test_an_edit_of_equal_length_within_a_second_is_run(run: Runner, project: Path) -> None:
    """The second run has the new code, and the same code again has the same bits."""
    first, again = run("good"), run("good")
    assert Golden.open(first.request.out).roots == Golden.open(again.request.out).roots
    model = project / "src/core/model.py"
    model.write_text(model.read_text().replace("seed(3)", "seed(4)"))
    edited = run("good")
    assert Golden.open(edited.request.out).roots != Golden.open(first.request.out).roots
    changed = {path for path, digest in edited.manifest["sources"].items() if first.manifest["sources"][path] != digest}
    assert changed == {"src/core/model.py"}


def test_what_a_scenario_is_given(run: Runner, project: Path) -> None:
    """Its parameters, a folder, seeds already set, one thread, deterministic algorithms; the working folder is the root."""
    import random

    import numpy as np
    import torch

    said = run("given", parameters={"width": 7}, seed=0).log.splitlines()
    state = torch.get_rng_state()
    torch.manual_seed(0)
    drawn = torch.rand(1).item(), np.random.RandomState(0).rand(), random.Random(0).random()
    torch.set_rng_state(state)
    assert said[0] == f"given cpu 3 0 7 1 True {project}"
    assert said[1].startswith("drawn " + " ".join(map(str, drawn)))
    assert said[2] == f"torch True 1 1 ['{project / 'goldens/scenarios.py'}']"
    assert said[3] == "names scenarios True False"
    assert run("given", parameters={"width": 7}, seed=0).log.splitlines() == said


def test_a_file_called_like_the_standard_library_can_be_a_scenario(run: Runner) -> None:
    """It has another name then, and the standard library's module is the one that others find."""
    done = run("f", "goldens/profile.py", steps=1)
    name, file = done.log.split()
    assert name == "scenario_profile"
    assert Path(file).parent == Path(os.__file__).parent


def test_a_scenario_in_a_package_has_its_dotted_name(run: Runner) -> None:
    """Relative imports work where the folders are packages."""
    done = run("f", "goldens/packed/inner.py", steps=1)
    assert done.log == "packed.inner\n"
    assert sorted(done.manifest["sources"]) == [f"goldens/packed/{name}.py" for name in ("__init__", "inner", "other")]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_loaders_with_workers_work(run: Runner, method: str) -> None:
    """A worker finds golden and the scenario's own classes, and what it reads is a source."""
    manifest = run("workers", parameters={"method": method}).manifest
    assert set(manifest["sources"]) == {*IMPORTED, *(f"data/{index}.txt" for index in range(3))}


@pytest.mark.case("G22")
def test_a_switch_that_moves_during_the_run_is_reported(run: Runner) -> None:
    """What a scenario sets before it builds, between building and step 1, and after that, each with its moment."""
    report = run("flips").report
    assert report is not None
    assert [(flag["path"].rpartition(".")[2], flag["expected"], flag["actual"], flag["between"]) for flag in report.flags] == [
        ("are_deterministic_algorithms_enabled()", True, False, ["import", "build"]),
        ("benchmark", False, True, ["build", "step 1"]),
        ("flush_denormal", False, True, ["step 1", "end"]),
    ]
    calm = run("good").report
    assert calm is not None
    assert not calm.flags


def test_a_source_edited_during_the_run_voids_it(run: Runner) -> None:
    """It is named, and there is no golden."""
    done = run("edits")
    assert done.failure.reason == "scenario-failed"
    assert "goldens/sibling.py changed while the scenario ran" in done.failure.message
    assert not done.request.out.exists()


def test_what_the_run_writes_is_no_source(run: Runner) -> None:
    """Neither what it writes through Python nor what torch writes for it."""
    assert sorted(run("writes").manifest["sources"]) == IMPORTED


def test_another_tree_is_run_whole(run: Runner, project: Path, tmp_path: Path) -> None:
    """All project files come from the request's root, golden stays; what was opened in the project all the same is named."""
    base = write(tmp_path / "base")
    (base / "src/core/model.py").write_text(FILES["src/core/model.py"].replace("seed(3)", "seed(5)"))
    head, other = run("good"), run("good", root=base)
    assert Golden.open(head.request.out).roots != Golden.open(other.request.out).roots
    assert list(other.manifest["sources"]) == list(head.manifest["sources"])
    assert other.report is not None
    assert not other.report.foreign
    (base / "goldens/sibling.py").write_text(f"open({str(project / 'conf.yaml')!r}).read()\n")
    void = run("good", root=base).report
    assert void is not None
    assert void.foreign == ("conf.yaml",)


@pytest.mark.parametrize(
    ("function", "said", "last"),
    [
        ("raises", "raised ValueError: first line", "second line"),
        ("wants_more", "raised TypeError: wants_more() missing 1 required positional argument: 'more'", None),
        ("silent", "recorded no step", None),
        ("few", "recorded 2 of 3 steps", None),
        ("many", "called for step 4, and the run has 3", "call"),
        ("other_phases", "loss unexpected", "call"),
        ("refused", "thing: object cannot be recorded", "call"),
        ("own_bug", "odd state", None),
        ("leaves_early", "recorded 1 of 3 steps", None),
        ("leaves_badly", "ended by sys.exit('no luck'): a scenario has to return", "SystemExit: no luck"),
        ("interrupts", "was interrupted", "KeyboardInterrupt"),
        ("zzz", "there is no function 'zzz' in ", None),
        ("not_a_function", "there is no function 'not_a_function'", None),
        ("raise", "did you mean 'raises'?", None),
    ],
)
def test_what_a_scenario_does_wrong_is_told(run: Runner, function: str, said: str, last: str | None) -> None:
    """The report names the scenario and the mistake; a traceback ends in the scenario's line, none of it is ours; no golden is left."""
    done = run(function)
    failure = done.failure
    assert failure.reason == "scenario-failed"
    assert said in failure.message
    assert failure.message.startswith(f"goldens/scenarios.py:{function}")
    assert done.code == (130 if function == "interrupts" else 3)
    assert not done.request.out.exists()
    if last is not None:
        assert failure.traceback is not None
        lines = failure.traceback.rstrip().splitlines()
        assert lines[-1].startswith(last) if last != "call" else lines[-1].startswith("golden.errors.")
        assert str(Path(golden.__file__).parent) not in failure.traceback
        assert "<frozen" not in failure.traceback


def test_what_was_handled_when_it_raised_is_shown_as_well(run: Runner) -> None:
    """The cause of an error stays in the scenario's traceback, with its own lines."""
    told = run("raises").failure.traceback
    assert told is not None
    assert told.index("KeyError: 'missing'") < told.index("direct cause") < told.rindex("in deeper") < told.index("ValueError: first line")


@pytest.mark.parametrize(
    ("file", "said", "last"),
    [
        ("goldens/broken.py", "raised ImportError: cannot import name 'missing'", "ImportError: cannot import name 'missing'"),
        ("goldens/syntax.py", "raised SyntaxError: ", "SyntaxError: "),
        ("goldens/absent.py", "there is no file ", ""),
    ],
)
def test_a_file_that_cannot_be_loaded_is_told(run: Runner, file: str, said: str, last: str) -> None:
    """An import that fails, a syntax error, no file: named, with the line at fault."""
    failure = run("f", file).failure
    assert failure.reason == "scenario-failed"
    assert said in failure.message
    assert (failure.traceback or "\n").rstrip().split("\n")[-1].startswith(last)
    assert (failure.traceback is None) == (not last)
    assert "importlib" not in (failure.traceback or "")


def test_leaving_by_exit_once_all_is_recorded_is_returning(run: Runner) -> None:
    """sys.exit() after the last step, as a main() does it, gives a golden."""
    assert run("leaves").code == 0


@pytest.mark.parametrize(
    ("function", "code", "said"),
    [
        ("disappears", 0, "its process ended itself after step 2 of 3 with exit code 0. A scenario has to return"),
        ("crashes", -11, "its process was ended by SIGSEGV (signal 11) after step 1 of 3"),
        (
            "killed",
            -9,
            "its process was ended by SIGKILL (signal 9) before it recorded a step. Often that is the system being out of memory",
        ),
    ],
)
def test_a_process_that_ends_without_a_word_is_told(run: Runner, function: str, code: int, said: str) -> None:
    """There is no report then; one is made of how the process ended and how far it was."""
    done = run(function)
    assert done.report is None
    assert done.code == code
    report = _report(done.request, done.code)
    assert (report.status, report.reason) == ("failed", "scenario-failed")
    assert said in report.message
    if function == "crashes":
        assert 'scenarios.py", line' in done.log  # the line at which it crashed


def test_a_fork_that_comes_out_of_the_scenario_writes_nothing(run: Runner) -> None:
    """Whether it returns, records or raises: the golden is the first process's, once."""
    done = run("forks")
    assert Golden.open(done.request.out).steps == (1, 2, 3)
    assert "record() was called in another process" in done.log
    done = run("forks_and_raises")
    assert done.code == 0
    assert done.log.rstrip().endswith("LookupError: in the fork")


def test_too_little_memory_is_the_scenarios_failure(run: Runner) -> None:
    """A list that no machine holds."""
    assert "raised MemoryError" in run("asks_for_too_much").failure.message


def test_a_run_continued_in_another_process_has_the_same_bits(run: Runner, tmp_path: Path) -> None:
    """Stopped after step 2 and continued from what it saved, it records what the whole run records, the generators' states too."""
    whole = Golden.open(run("resumes", steps=5).request.out)
    folder = tmp_path / "saved"
    folder.mkdir()
    first = run("resumes", steps=5, last=2, folder=folder, resume_at=2)
    saved = (folder / "saved.pt").read_bytes()
    second = run("resumes", steps=5, first=3, folder=folder, resume_at=2)
    halves = {**Golden.open(first.request.out).roots, **Golden.open(second.request.out).roots}
    assert halves == whole.roots
    assert Golden.open(first.request.out).steps == (0, 1, 2)
    assert Golden.open(second.request.out).steps == (3, 4, 5)
    (folder / "saved.pt").write_bytes(saved)
    forgetful = Golden.open(run("resumes", steps=5, first=3, folder=folder, parameters={"forgets": "schedule"}).request.out)
    assert {key.partition("/")[2] for key, root in forgetful.roots.items() if root != whole.roots[key]} == {
        "schedule",
        "optimizer",
        "model",
    }


def test_a_first_half_that_saves_nothing_is_told(run: Runner, tmp_path: Path) -> None:
    """It could not be continued: what to save where is said."""
    (tmp_path / "empty").mkdir()
    failure = run("resumes", steps=5, last=2, folder=tmp_path / "empty", parameters={"saves": False}).failure
    assert "saved nothing in record.folder by the end of step 2" in failure.message


def test_a_wrong_environment_is_a_fault_of_ours(run: Runner) -> None:
    """A process that was not started under its profile must not give a golden: hash seed 0 is not that of seed 1."""
    done = run("good", seed=1)
    assert done.failure.reason == "fault"
    assert "PYTHONHASHSEED is '0' and has to be '1'" in done.failure.message
    assert done.code == 70


def test_a_golden_that_cannot_be_written_is_the_disks_fault(run: Runner) -> None:
    """What is in the way is named."""
    out = run.project / ".gate" / "runs" / "taken"
    wanted = request(run.project, "goldens/scenarios.py:good", out)
    (out / "in the way").write_text("")
    failure = run.server.run(wanted).failure
    assert failure.reason == "io"
    assert "in the way" in failure.message
