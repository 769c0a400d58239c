"""A new file that a check would have read makes its record stale; one that it would not have read does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gate.check.harvest import Outcome
from gate.check.result import Checked, Word
from gate.evidence import Finding, Reading, Snapshot, checked, mutated, newcomers
from gate.evidence.present import Present
from gate.evidence.settings import Search
from gate.evidence.verified import Basis, put_on_record
from gate.mutation.mutant import Judgement, Mutant, Status
from gate.mutation.result import Result as Mutation
from gate.mutation.result import Witnesses
from gate.pytest_settings import Settings
from gate.row import Row
from gate.verdict import Verdict
from tests.gate.evidence.records import CONFIG, TORCH, Toy
from tests.gate.repositories import write

BAD = "def test_bad():\n    assert False\n"
CONFTEST = "import pytest\n\n@pytest.fixture(autouse=True)\ndef b():\n    raise RuntimeError\n"
FILES = {
    "tests/test_replay.py": "import pytest\n\n\n@pytest.mark.cuda\ndef test_it():\n    pass\n",
    "toy/__init__.py": "",
    "toy/step.py": "try:\n    from toy.fast import scale\nexcept ImportError:\n    scale = 1\n",
    "plain/step.py": "import json\nimport torch\n\ntry:\n    from plain.fast import scale\nexcept ImportError:\n    import quick\n",
    "data/a.csv": "1\n", "table.csv": "1\n", "docs/page.md": "# Page\n", "docs/work/one.json": "{}\n",
    "examples/run.py": "", "env/pyvenv.cfg": "", "env/lib/a.py": "",
}  # fmt: skip
READ = ("src/update.py", "toy/__init__.py", "toy/step.py", "plain/step.py", "data/a.csv", "table.csv", "docs/work/one.json")
UNRELATED = {
    "readme": {"README.md": "# Another\n", "NEWS.md": "# News\n"},
    "document": {"docs/new.md": "# New\n", "docs/work/two.json": "{}\n"},
    "settings of ruff": {"pyproject.toml": CONFIG.replace("line-length = 100", "line-length = 120")},
    "settings of tools": {"ruff.toml": "", ".pre-commit-config.yaml": "", "Makefile": "", ".github/workflows/a.yml": ""},
    "shared settings": {"setup.cfg": "[flake8]\nmax-line-length = 100\n", "tox.ini": "[tox]\nenvlist = py\n"},
    "a golden": {"goldens/cpu/torch-2.14.1/digits/manifest.json": "{}", "goldens/cpu/torch-2.13.0/new/manifest.json": "{}"},
    "evidence": {"goldens/h200/evidence/test_x.py": BAD, ".gate/test_x.py": BAD},
    "an environment": {"env/lib/test_x.py": BAD, "env/lib/conftest.py": CONFTEST, ".venv/lib/test_x.py": BAD},
    "another folder": {"examples/more.py": "x = 1\n", "examples/a.csv": "1\n"},
}
NEW = {
    "data": {"data/b.csv": "2\n"},
    "data beside pyproject.toml": {"other.csv": "2\n"},
    "an optional module": {"toy/fast.py": "scale = 2\n"},
    "an optional package": {"toy/fast/__init__.py": "scale = 2\n"},
    "an optional module of no package": {"plain/fast.py": "scale = 2\n"},
    "an optional module of the project's folder": {"quick.py": ""},
}
TESTS = {
    "folder": {"more/test_more.py": BAD},
    "the project's own": {"test_new.py": BAD},
    "other name": {"more/deep/new_test.py": BAD},
    "doctest": {"more/test_examples.txt": ">>> 1\n2\n"},
    "conftest": {"conftest.py": CONFTEST},
    "conftest of a folder": {"more/conftest.py": CONFTEST},
}
SETTINGS = {
    "pytest.ini": {"pytest.ini": "[pytest]\naddopts = -p nosuchplugin\n"},
    "empty": {"pytest.ini": ""},
    ".pytest.ini": {".pytest.ini": "[pytest]\n"},
    "pytest.toml": {"pytest.toml": "[pytest]\naddopts = ['-x']\n"},
    "tox.ini": {"tox.ini": "[pytest]\naddopts = -x\n"},
    "setup.cfg": {"setup.cfg": "[tool:pytest]\naddopts = -x\n"},
    "does not parse": {"tox.ini": "[pytest\n"},
    "conftest": {"conftest.py": CONFTEST},
}


def cases(*several: dict[str, dict[str, str]]) -> pytest.MarkDecorator:
    """Each set of files by its name."""
    found = [pytest.param(files, id=name) for each in several for name, files in each.items()]
    return pytest.mark.parametrize("files", found)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose tests, mutants and golden left records as the checks leave them."""
    toy = Toy.new(tmp_path_factory.mktemp("prepared") / "toy")
    write(toy.folder, FILES)
    toy.git("add", "-A", "-f", "env")
    toy.git("add", "-A")
    toy.git("commit", "-qm", "More")
    toy.verified("text")
    leave_all(toy)
    return toy.folder


def leave_all(toy: Toy) -> None:
    """Records as gate check, gate mutate and gate verify leave them."""
    outcomes = {"tests/test_replay.py::test_it": Outcome("passed")}
    subjects = dict.fromkeys((*READ, "tests/test_replay.py"), "")
    for hardware in ("cpu", "h200"):
        done = Checked(Word.PASSED, outcomes=outcomes, total=1, torch=TORCH, hardware=hardware, subjects=subjects)
        checked.put_on_record(toy.config, Snapshot.take(toy.config), done, ours=False)
    killed = Judgement(Mutant("src/update.py", 2, 2, "sign", "    return w - 1", "    return w + 1", (2, 2), "update"), Status.KILLED)
    found = Mutation((killed,), Witnesses(1, 1), dict.fromkeys(READ, ""), TORCH, "3.11", "cpu")
    mutated.put_on_record(toy.config, Snapshot.take(toy.config), found, (), None, whole=True)
    basis = Basis(Reading(READ, documents=True, goldens=(f"goldens/cpu/torch-{TORCH}/digits",), scenarios=("digits",)), TORCH, {})
    put_on_record(toy.config, Snapshot.take(toy.config), Row("digits", "digits", "cpu", TORCH, "golden", Verdict.IDENTICAL, basis=basis))


@pytest.fixture
def toy(prepared: Path, tmp_path: Path) -> Toy:
    return Toy(Path(shutil.copytree(prepared, tmp_path / "toy", symlinks=True)))


def stale(toy: Toy) -> set[str]:
    """The needs that are not fresh; each has to say why."""
    lines = [line for line in toy.status().lines if line.state.value != "fresh"]
    assert all(line.state.value == "stale" and line.reason for line in lines)
    return {f"{line.need.hardware}/{line.need.check}" for line in lines}


def commit(toy: Toy, files: dict[str, str]) -> None:
    write(toy.folder, dict(files))
    toy.git("add", "-A")
    toy.git("commit", "-qm", "New")


@cases(UNRELATED)
def test_unrelated_files_stale_nothing(toy: Toy, files: dict[str, str]) -> None:
    commit(toy, files)
    assert stale(toy) - ({"cpu/mutation"} if "examples/more.py" in files else set()) == set()


@cases(NEW)
def test_what_a_glob_or_an_import_would_find_stales_all_that_read_its_like(toy: Toy, files: dict[str, str]) -> None:
    commit(toy, files)
    assert stale(toy) == {"cpu/tests", "h200/tests", "cpu/goldens", "cpu/mutation"}


@cases(TESTS)
def test_a_test_that_pytest_would_collect_stales_the_tests(toy: Toy, files: dict[str, str]) -> None:
    """Wherever it is; and a conftest.py, which decides over mutants as well."""
    commit(toy, files)
    assert stale(toy) - {"cpu/mutation"} == {"cpu/tests", "h200/tests"}
    assert ("cpu/mutation" in stale(toy)) is any("conftest" in name for name in files)


@cases(SETTINGS)
def test_pytests_settings_in_files_of_their_own_stale(toy: Toy, files: dict[str, str]) -> None:
    """They decide how tests run, those that are asked about mutants too; that they are gone again makes all fresh again."""
    commit(toy, files)
    assert stale(toy) == {"cpu/tests", "h200/tests", "cpu/mutation"}
    line = toy.line("cpu/tests")
    assert line.commit is not None
    assert line.files == tuple(files)
    toy.git("revert", "--no-edit", "HEAD")
    assert stale(toy) == set()


def test_a_new_source_stales_mutants_of_all_sources_alone(toy: Toy) -> None:
    commit(toy, {"more/more.py": "def more():\n    return 1\n"})
    assert stale(toy) == {"cpu/mutation"}
    assert "more/more.py is new since " in str(toy.line("cpu/mutation").reason)


def test_pytests_settings_are_others_in_what_pytest_reads_alone(toy: Toy) -> None:
    commit(toy, {"setup.cfg": "[flake8]\nx = 1\n[tool:pytest]\nmarkers = cuda\n"})
    leave_all(toy)
    assert stale(toy) == set()
    commit(toy, {"setup.cfg": "[flake8]\nx = 2\n[tool:pytest]\nmarkers = cuda\n"})
    assert stale(toy) == set()
    commit(toy, {"setup.cfg": "[flake8]\nx = 2\n[tool:pytest]\nmarkers = slow\n"})
    assert stale(toy) == {"cpu/tests", "h200/tests", "cpu/mutation"}
    assert "what pytest reads of setup.cfg has other content since " in str(toy.line("cpu/tests").reason)


CONFIGURED = CONFIG + '\n[tool.pytest.ini_options]\nmarkers = ["cuda"]\n'
LATER = {
    "tox.ini": "[pytest]\naddopts = -x\n",
    "tox.ini of tox": "[tox]\n",
    "tox.ini that does not parse": "[pytest\n",
    "setup.cfg": "[tool:pytest]\naddopts = -x\n",
    "setup.cfg of long ago": "[pytest]\naddopts = -x\n",
}


@pytest.mark.parametrize("name", LATER)
def test_a_file_that_pytest_does_not_read_stales_nothing(toy: Toy, name: str) -> None:
    """Neither as it comes, nor with other content, nor as it goes: pyproject.toml holds the settings."""
    file = name.split()[0]
    commit(toy, {"pyproject.toml": CONFIGURED})
    leave_all(toy)
    for text in (LATER[name], "[tool:pytest]\naddopts = -q\n[pytest]\naddopts = -q\n"):
        commit(toy, {file: text})
        assert stale(toy) == set()
    leave_all(toy)
    write(toy.folder, {file: None})
    assert stale(toy) == set()


@pytest.mark.parametrize("name", ["pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"])
def test_a_file_that_pytest_reads_instead_stales(toy: Toy, name: str) -> None:
    """From then on it alone counts, and what it took the place of does not."""
    every = {"cpu/tests", "h200/tests", "cpu/mutation"}
    commit(toy, {"pyproject.toml": CONFIGURED})
    leave_all(toy)
    write(toy.folder, {name: ""})
    told = {f"what pytest reads of {name} is new", f"pytest reads {name} instead of pyproject.toml"}
    assert {*str(toy.line("cpu/tests").reason).split("; ")} == {f"{one} in no commit" for one in told}
    commit(toy, {})
    assert stale(toy) == every
    assert toy.line("cpu/tests").files == (name,)
    new = toy.git("log", "-1", "--format=%h (%s)").strip()
    assert {*str(toy.line("cpu/tests").reason).split("; ")} == {f"{one} since {new}" for one in told}
    leave_all(toy)
    commit(toy, {"pyproject.toml": CONFIGURED.replace("cuda", "slow"), "setup.cfg": LATER["setup.cfg"]})
    assert stale(toy) == set()
    write(toy.folder, {name: None})
    assert stale(toy) == every


def test_settings_of_pyproject_that_hold_nothing_leave_the_word_to_the_next_file(toy: Toy) -> None:
    commit(toy, {"pyproject.toml": CONFIG + "\n[tool.pytest]\n", "tox.ini": LATER["tox.ini"]})
    leave_all(toy)
    commit(toy, {"setup.cfg": LATER["setup.cfg"]})
    assert stale(toy) == set()
    commit(toy, {"tox.ini": "[pytest]\naddopts = -q\n"})
    assert stale(toy) == {"cpu/tests", "h200/tests", "cpu/mutation"}


@pytest.mark.parametrize("names", ["pytest.ini", "conftest.py"])
def test_a_local_plugin_is_part_of_the_tests(toy: Toy, names: str) -> None:
    """Named by -p or by pytest_plugins; with what it imports."""
    told = {"pytest.ini": "[pytest]\naddopts = -p zplug -p no:cacheprovider\n", "conftest.py": 'pytest_plugins = ["zplug"]\n'}
    commit(toy, {names: told[names], "zplug.py": "import zinner\n", "zinner.py": "x = 1\n", "zother.py": ""})
    leave_all(toy)
    assert stale(toy) == set()
    for name, moved in (("zother.py", False), ("zinner.py", True)):
        commit(toy, {name: "x = 2\n"})
        assert (stale(toy) == {"cpu/tests", "h200/tests", "cpu/mutation"}) is moved
    toy.git("revert", "--no-edit", "HEAD")
    assert stale(toy) == set()


def test_testpaths_and_python_files_decide_what_is_a_test(toy: Toy) -> None:
    config = CONFIG + '\n[tool.pytest.ini_options]\ntestpaths = ["tests", "libs/*/checks"]\npython_files = ["check_*.py"]\n'
    commit(toy, {"pyproject.toml": config, "tests/check_it.py": ""})
    leave_all(toy)
    commit(toy, {"more/check_b.py": BAD, "libs/one/test_b.py": BAD, "libs/conftest.py.txt": ""})
    assert stale(toy) == {"cpu/mutation"}
    leave_all(toy)
    for name in ("libs/one/checks/deep/check_b.py", "libs/conftest.py", "conftest.py"):
        write(toy.folder, {name: BAD})
        assert {"cpu/tests", "h200/tests"} <= stale(toy), name
        write(toy.folder, {name: None})
    assert stale(toy) == set()


@pytest.mark.parametrize(
    ("files", "places", "names"),
    [
        ({}, (), ("test_*.py", "*_test.py", "test*.txt")),
        ({"pytest.ini": "", "tox.ini": "[pytest]\ntestpaths = a\n"}, (), ("test_*.py", "*_test.py", "test*.txt")),
        ({"tox.ini": "[pytest]\ntestpaths =\n  a/\n  ./b\n"}, ("a", "b"), ("test_*.py", "*_test.py", "test*.txt")),
        ({"setup.cfg": "[tool:pytest]\naddopts = --doctest-modules\ntestpaths = ."}, (), ("test_*.py", "*_test.py", "*.py", "test*.txt")),
        ({"pytest.toml": "[pytest]\naddopts = ['--doctest-glob=*.md']"}, (), ("test_*.py", "*_test.py", "*.md")),
    ],
)
def test_where_pytest_looks_is_told_by_the_first_file_that_holds_settings(
    tmp_path: Path, files: dict[str, str], places: tuple[str, ...], names: tuple[str, ...]
) -> None:
    write(tmp_path, dict(files))
    found = Search.of(Settings.at(tmp_path))
    assert (found.places, found.names) == (places, names)


def test_a_folder_that_tests_list_is_read(toy: Toy) -> None:
    """Whether or not they open what is in it; documents, hidden folders, goldens and files of other suffixes are no part of it."""
    listed = ["/", "examples/", "docs/work/", "empty/", ".github/", f"goldens/cpu/torch-{TORCH}/digits/", "gone/", "src/"]
    write(toy.folder, {"empty/.gitkeep": "", ".github/a.yml": ""})
    assert newcomers.within(Present(toy.config), listed) == ("/*.csv", "/*.py", "/empty/*", "/examples/*.py", "/gone/*", "/src/*.py")


def test_older_patterns_mean_what_they_meant(toy: Toy) -> None:
    """Without a slash in front a star stands for slashes, too."""
    toy.leave(Finding("bench", "cpu", TORCH, "passed", {}), Reading(("src/update.py",), patterns=("toy/*.py",)))
    present = Present(toy.config)
    assert present.matching("toy/*.py") == ["toy/__init__.py", "toy/step.py"]
    write(toy.folder, {"toy/deep/x.py": ""})
    assert Present(toy.config).matching("toy/*.py") == ["toy/__init__.py", "toy/deep/x.py", "toy/step.py"]
    assert Present(toy.config).matching("/toy/*.py") == ["toy/__init__.py", "toy/step.py"]
    assert Present(toy.config).matching("/toy/**/*.py") == ["toy/__init__.py", "toy/deep/x.py", "toy/step.py"]


def test_modules_that_are_there_or_installed_call_for_none(toy: Toy) -> None:
    """json and torch are no files that somebody may add; tests' own folders are left to pytest's patterns."""
    write(toy.folder, {"tests/__init__.py": "", "tests/thing.py": "from plain.step import scale\n"})
    assert newcomers.beside(Present(toy.config), ["plain/step.py", "tests/thing.py"]) == (
        "/plain/fast.py", "/plain/fast/__init__.py", "/plain/quick.py", "/plain/quick/__init__.py", "/quick.py", "/quick/__init__.py",
        "/src/quick.py", "/src/quick/__init__.py",
    )  # fmt: skip
