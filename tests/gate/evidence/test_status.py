"""What a merge needs is fresh, stale with its file and commit, missing, or inconclusive."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from gate.errors import ConfigurationError
from gate.evidence import Finding, Reading, Snapshot, StaleEvidence, leave, snapshot, statement
from gate.evidence.archive import EARLIER
from gate.evidence.judging import State
from gate.evidence.keeping import keep
from gate.evidence.status import View
from gate.inventory import distributions
from gate.landing import words
from tests.gate.evidence.records import CONFIG, TORCH, Toy
from tests.gate.repositories import commit, init, write

FRESH = {"cpu/tests": "fresh", "h200/tests": "fresh", "cpu/goldens": "fresh", "cpu/mutation": "fresh"}


def test_all_is_fresh_where_nothing_has_changed(toy: Toy) -> None:
    assert toy.states() == FRESH
    assert toy.status().exit_code == 0


def test_a_rewritten_source_is_named_with_its_commit(toy: Toy) -> None:
    """The first commit after which the file was another, not the last one that touched it; reverting makes it fresh again."""
    first = toy.commit("Rewrite replay", src__replay_py="def replay():\n    return 2\n")
    toy.commit("Polish", src__replay_py="def replay():\n    return 3\n")
    line = toy.line("cpu/tests")
    assert (line.state, line.files) == (State.STALE, ("src/replay.py",))
    assert line.commit is not None
    assert line.commit.id == first
    assert line.reason == f"src/replay.py has other content since {first[:7]} (Rewrite replay)"
    assert toy.states() == {**FRESH, "cpu/tests": "stale", "h200/tests": "stale"}
    assert toy.status().exit_code == 3
    toy.git("revert", "--no-edit", "HEAD", "HEAD~1")
    assert toy.states() == FRESH


def test_a_change_that_is_in_no_commit_is_named(toy: Toy) -> None:
    write(toy.folder, {"src/replay.py": "def replay():\n    return 2\n"})
    line = toy.line("cpu/tests")
    assert line.commit is None
    assert line.reason == "src/replay.py has other content in no commit"


def test_line_ends_of_a_checkout_change_nothing(toy: Toy) -> None:
    """Content counts as git keeps it."""
    write(toy.folder, {"src/replay.py": b"def replay():\r\n    return 1\r\n"})
    assert toy.states() == FRESH


@pytest.mark.parametrize(
    "change",
    [
        {"README_md": "# Another\n"},
        {"pyproject_toml": CONFIG.replace("line-length = 100", "line-length = 120")},
        {"docs__page_md": "# A page\n"},
        {"other_py": "x = 1\n"},
    ],
    ids=["readme", "ruff", "new document", "unrelated source"],
)
def test_what_no_check_read_stales_nothing(toy: Toy, change: dict[str, str]) -> None:
    toy.commit("Unrelated", **change)
    assert toy.states() == FRESH


def test_a_scenarios_parameters_stale_its_own_golden_alone(toy: Toy) -> None:
    """And the change is told with both values and its commit."""
    moved = toy.commit("More", pyproject_toml=CONFIG.replace('text"\nsteps = 2', 'text"\nsteps = 3\nparameters = { a = 1 }'))
    line = toy.line("cpu/goldens")
    assert line.reason == f"text: [tool.gate.scenarios.text]: parameters {{}}, now {{'a': 1}}, steps 2, now 3 since {moved[:7]} (More)"
    assert line.files == ("pyproject.toml",)
    assert toy.states() == {**FRESH, "cpu/goldens": "stale"}


def test_a_golden_recorded_anew_stales_its_record(toy: Toy) -> None:
    toy.golden("text", seed=5)
    line = toy.line("cpu/goldens")
    assert line.state is State.STALE
    assert "goldens/cpu/torch-2.13.0/text/manifest.json" in line.files
    assert not any("digits" in file for file in line.files)


def test_a_changed_test_and_a_new_one_stale_the_tests(toy: Toy) -> None:
    write(toy.folder, {"tests/test_new.py": "def test_that():\n    pass\n"})
    assert toy.line("cpu/tests").reason == "tests/test_new.py is new in no commit"
    write(toy.folder, {"tests/test_new.py": None, "tests/test_replay.py": "def test_it():\n    assert 1\n"})
    assert toy.line("cpu/tests").files == ("tests/test_replay.py",)
    assert toy.states()["cpu/goldens"] == "fresh"


def test_pytests_own_settings_stale_the_tests(toy: Toy) -> None:
    """They decide what a test has to stand."""
    toy.commit("Warn", pyproject_toml=f'{CONFIG}\n[tool.pytest.ini_options]\nfilterwarnings = ["error"]\n')
    assert toy.states() == {**FRESH, "cpu/tests": "stale", "h200/tests": "stale"}


def test_another_version_of_a_package_stales(toy: Toy) -> None:
    """The one that is installed here, of records that were made here; a GPU machine's cannot be asked."""
    old = {"numpy": "1.0", "click": distributions()["click"]}
    toy.tests(packages=old)
    toy.tests("h200", packages=old)
    reason = toy.line("cpu/tests").reason
    assert toy.states() == FRESH, "the earlier record is as fresh as it was"
    for path in (toy.folder / ".gate/evidence").glob("tests-cpu-*"):
        if b'"numpy"' not in path.read_bytes():
            path.unlink()
    reason = toy.line("cpu/tests").reason
    assert reason == f"package numpy was 1.0, now {distributions()['numpy']}"
    assert toy.states() == {**FRESH, "cpu/tests": "stale"}


def test_a_later_failure_is_not_hidden_by_an_earlier_success(toy: Toy) -> None:
    toy.tests(result="failed", counts={"passed": 168, "failed": 1})
    line = toy.line("cpu/tests")
    assert (line.state, line.reason) == (State.INCONCLUSIVE, "it failed: 1 failed, 168 passed")


def test_a_missing_record_is_told_with_the_command_that_brings_it(toy: Toy) -> None:
    for path in (toy.folder / ".gate/evidence").glob("mutation-*"):
        path.unlink()
    line = toy.line("cpu/mutation")
    assert (line.state, line.reason) == (State.MISSING, "no record. Run gate mutate")


def test_missing_mutants_of_a_gpu_are_asked_for_on_its_machine(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the paths and the device that the record has to be of, by `gate status` and `gate run`; those of a CPU with paths alone."""
    table = 'mutation = ["cpu", "h200"]\npaths = { cpu = ["src"], h200 = ["src/update.py", "src/replay.py"] }'
    write(toy.folder, {"pyproject.toml": CONFIG.replace('mutation = ["cpu"]', table)})
    for path in (toy.folder / ".gate/evidence").glob("mutation-*"):
        path.unlink()
    cpu = "no record. Run gate mutate src"
    gpu = "no record. Run gate mutate src/update.py src/replay.py --device cuda on a machine with h200, and gate status --keep"
    assert [(line.state, line.reason) for line in map(toy.line, ("cpu/mutation", "h200/mutation"))] == [
        (State.MISSING, cpu),
        (State.MISSING, gpu),
    ]
    monkeypatch.setenv("COLUMNS", "200")
    told = [line.split("missing", 1)[1].strip() for line in toy.status().text().splitlines() if line.startswith("mutation")]
    assert told == [cpu, gpu]
    assert words.status(View.of(toy.config), frozenset(), ()).details == (f"mutation cpu: missing: {cpu}", f"mutation h200: missing: {gpu}")


def test_required_paths_have_one_spelling(toy: Toy) -> None:
    """That of `gate mutate`, whichever way they are written: what is told, what is run and what is recorded then agree."""
    for written in ("./src", "src/", "src/.", "src/../src", "src//"):
        write(
            toy.folder,
            {"pyproject.toml": CONFIG.replace('mutation = ["cpu"]', f'mutation = ["cpu"]\npaths = ["{written}", "src/./update.py"]')},
        )
        assert [need.paths for need in View.of(toy.config).required.needs if need.check == "mutation"] == [("src", "src/update.py")], (
            written
        )
    write(toy.folder, {"pyproject.toml": CONFIG.replace('mutation = ["cpu"]', 'mutation = ["cpu"]\npaths = ["./src", "src"]')})
    assert [need.paths for need in View.of(toy.config).required.needs if need.check == "mutation"] == [("src",)]


def test_a_record_of_a_change_alone_is_none_of_the_whole(toy: Toy) -> None:
    """Unless it is asked for what has changed since then; another file that changes makes it stale even so."""
    base = toy.git("rev-parse", "HEAD")
    toy.commit("Rewrite", src__replay_py="def replay():\n    return 2\n")
    toy.tests(since=base, counts={"passed": 3})
    assert toy.states()["cpu/tests"] == "stale"

    def state() -> State:
        return next(line.state for line in View.of(toy.config).status(frozenset({base})).lines if line.need.check == "tests")

    assert state() is State.FRESH
    write(toy.folder, {"other.py": "x = 1\n"})
    assert state() is State.STALE


def test_an_edited_record_counts_as_none(toy: Toy) -> None:
    (path,) = (toy.folder / ".gate/evidence").glob("mutation-*")
    path.write_text(path.read_text().replace('"killed":7', '"killed":70'))
    status = toy.status()
    assert toy.states()["cpu/mutation"] == "missing"
    assert status.notes == (f"{path}: does not fit its name: it was edited or renamed. It counts as no record",)


def test_records_do_not_pile_up(toy: Toy) -> None:
    """Checked again on the same sources, the earlier record goes; of other sources so many stay as a revert may bring back."""
    folder = toy.folder / ".gate/evidence"
    count = len(list(folder.iterdir()))
    for _ in range(3):
        last = toy.tests()
    assert len(list(folder.iterdir())) == count
    assert toy.line("cpu/tests").filed[0].path == last
    for number in range(EARLIER + 3):
        write(toy.folder, {"src/replay.py": f"x = {number}\n"})
        toy.tests()
    assert len(list(folder.glob("tests-cpu-*"))) == EARLIER
    assert toy.line("cpu/tests").state is State.FRESH


def test_mutants_of_one_file_do_not_replace_those_of_all(toy: Toy) -> None:
    """In a project of one source both have read the same."""
    folder, all_sources = toy.folder / ".gate/evidence", toy.mutation()
    one = toy.mutation(details={"killed": {}, "paths": ["src/update.py"]})
    assert set(folder.glob("mutation-*")) == {all_sources, one}
    again = toy.mutation(details={"killed": {}, "paths": ["src/update.py"]}, counts={"killed": 8})
    assert set(folder.glob("mutation-*")) == {all_sources, again}
    assert toy.line("cpu/mutation").state is State.FRESH


def test_what_a_gpu_gave_is_kept_and_replaced(toy: Toy) -> None:
    """In the repository, where a clone without `.gate` finds it; a later record of the same takes its place."""
    kept = toy.folder / "goldens/h200/evidence"
    assert keep(View.of(toy.config)).exit_code == 0
    (first,) = kept.iterdir()
    shutil.rmtree(toy.folder / ".gate")
    assert toy.states() == {**dict.fromkeys(FRESH, "missing"), "h200/tests": "fresh"}
    toy.commit("Keep", src__replay_py="def replay():\n    return 2\n")
    assert toy.line("h200/tests").state is State.STALE
    toy.everything()
    notes = keep(View.of(toy.config)).notes
    (second,) = kept.iterdir()
    assert first != second
    assert notes == (f"kept goldens/h200/evidence/{second.name}", f"removed goldens/h200/evidence/{first.name}, which it replaces")
    assert keep(View.of(toy.config)).notes == ("nothing to keep: no fresh record that CI cannot repeat is new",)


def test_what_ci_need_not_repeat_is_kept_where_the_table_says_so(toy: Toy) -> None:
    toy.commit("Keep", pyproject_toml=CONFIG.replace("[tool.gate.required]", '[tool.gate.required]\nkeep = ["mutation"]'))
    keep(View.of(toy.config))
    assert [path.name.partition("-")[0] for path in (toy.folder / "goldens/cpu/evidence").iterdir()] == ["mutation"]
    assert toy.states() == FRESH, "kept records are no subjects"


def test_nothing_is_put_on_record_of_sources_that_moved(toy: Toy) -> None:
    """Edited, edited and edited back, or new; a file that the check did not read may move."""
    finding, reading = Finding("tests", "cpu", "2.13.0", "passed", {"passed": 1}), Reading(("src/replay.py",))
    count = len(list((toy.folder / ".gate/evidence").iterdir()))
    path = toy.folder / "src/replay.py"
    before, text = Snapshot.take(toy.config), path.read_text()
    path.write_text("def replay():\n    return 2\n")
    with pytest.raises(StaleEvidence, match=r"src/replay\.py was written while the check ran"):
        leave(toy.config, before, finding, reading)
    path.write_text(text)
    with pytest.raises(StaleEvidence, match="written while"):
        leave(toy.config, before, finding, reading)
    before = Snapshot.take(toy.config)
    write(toy.folder, {"src/new.py": "x = 1\n"})
    with pytest.raises(StaleEvidence, match=r"src/new\.py"):
        leave(toy.config, before, finding, Reading(("src/new.py",)))
    assert len(list((toy.folder / ".gate/evidence").iterdir())) == count
    assert leave(toy.config, before, finding, reading).is_file()


@pytest.mark.parametrize(("file", "content"), [("data/new.csv", "2\n"), ("data/a.csv", None)])
def test_what_comes_to_or_goes_from_a_pattern_while_a_check_runs_gets_no_record(toy: Toy, file: str, content: str | None) -> None:
    """Of git's files: nobody knows whether the check has seen it. Of another folder it does not matter."""
    toy.commit("Data", data__a_csv="1\n", other__a_csv="1\n")
    finding, reading = Finding("bench", "cpu", "2.13.0", "passed", {}), Reading(("src/replay.py",), patterns=("/data/*",))
    before = Snapshot.take(toy.config)
    write(toy.folder, {file.replace("data", "other"): content})
    toy.git("add", "--all")
    assert leave(toy.config, before, finding, reading).is_file()
    write(toy.folder, {file: content})
    toy.git("add", "--all")
    with pytest.raises(StaleEvidence, match=file):
        leave(toy.config, before, finding, reading)


def test_what_a_check_writes_or_removes_itself_was_not_read(toy: Toy) -> None:
    """Of files that git does not hold, there or not; they are told. Once git holds them, or of another name, they are new."""
    write(toy.folder, {"data/a.csv": "1\n"})
    for earlier in (toy.folder / ".gate/evidence").glob("tests-cpu-*"):
        earlier.unlink()
    finding, reading = Finding("tests", "cpu", TORCH, "passed", {"passed": 1}), Reading(("src/replay.py",), patterns=("/data/*",))
    before = Snapshot.take(toy.config)
    write(toy.folder, {"data/a.csv": None, "data/b.csv": "2\n"})
    leave(toy.config, before, finding, reading)
    advice = "commit what a run reads, and let git ignore what it writes"
    assert (toy.states()["cpu/tests"], toy.status().notes) == ("fresh", (f"data/b.csv is in no commit: {advice}",))
    write(toy.folder, {"data/c.csv": "2\n"})
    assert toy.line("cpu/tests").reason == "data/c.csv is new in no commit"
    assert toy.status().notes == (f"data/c.csv and 1 more are in no commit: {advice}",)
    write(toy.folder, {"data/a.csv": "1\n", "data/b.csv": None, "data/c.csv": None})
    assert (toy.states()["cpu/tests"], toy.status().notes) == ("fresh", (f"data/a.csv is in no commit: {advice}",))
    made = toy.commit("Hold", data__b_csv="2\n")
    assert toy.line("cpu/tests").reason == f"data/b.csv is new since {made[:7]} (Hold)"


def test_data_that_a_check_writes_and_reads_is_its_own(toy: Toy) -> None:
    """Where it came meanwhile, or git ignores it. What was there before and was written, and any source, are not."""
    write(toy.folder, {".gitignore": ".gate/\nout/\n", "out/old.pt": "1\n", "data/old.csv": "1\n", "src/old.py": "x = 1\n"})
    before = Snapshot.take(toy.config)
    write(toy.folder, {"out/old.pt": "2\n", "out/new.pt": "2\n", "data/new.csv": "2\n", "data/old.csv": "2\n", "src/new.py": "x = 2\n"})
    finding = Finding("bench", "cpu", TORCH, "passed", {})
    record = leave(toy.config, before, finding, Reading(("src/replay.py", "out/old.pt", "out/new.pt", "data/new.csv")))
    assert statement.parse(record.read_bytes(), record.name).made == {"out/old.pt", "out/new.pt", "data/new.csv"}
    assert {path.name for path in map(Path, files_of(record))} == {"replay.py"}
    for path, told in (("data/old.csv", "git should ignore"), ("src/new.py", "git should ignore"), ("src/replay.py", "until it ends.$")):
        write(toy.folder, {"src/replay.py": "def replay():\n    return 3\n"})
        with pytest.raises(StaleEvidence, match=told):
            leave(toy.config, before, finding, Reading((path,)))


def files_of(record: Path) -> list[str]:
    """The files that a record read."""
    return [subject.name for subject in statement.parse(record.read_bytes(), record.name).subjects if subject.kind is statement.Kind.FILE]


def test_what_comes_to_a_folder_is_seen_by_every_name_of_it(toy: Toy) -> None:
    """A link to the folder that was listed, and a submodule; a link that leads elsewhere, or out, has nothing of it."""
    library = init(toy.folder.parent / "library")
    commit(library, {"a.csv": "1\n"})
    toy.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "sub")
    for name, place in (("link", "data"), ("elsewhere", "src"), ("out", str(library))):
        (toy.folder / name).symlink_to(place)
    toy.commit("Data", data__a_csv="1\n")
    for earlier in (toy.folder / ".gate/evidence").glob("tests-cpu-*"):
        earlier.unlink()
    reading = Reading(("src/replay.py",), patterns=("/link/*", "/sub/*", "/elsewhere/*", "/out/*"))
    toy.leave(Finding("tests", "cpu", TORCH, "passed", {"passed": 1}), reading)
    assert toy.states()["cpu/tests"] == "fresh"
    for file, told in (("data/b.csv", ("link/b.csv",)), ("sub/b.csv", ("sub/b.csv",)), ("tests/b.csv", ()), ("../library/b.csv", ())):
        write(toy.folder, {file: "2\n"})
        assert toy.line("cpu/tests").files == told
        write(toy.folder, {file: None})
    commit(toy.folder / "sub", {"b.csv": "2\n"})
    toy.commit("Take the library of today")
    assert toy.line("cpu/tests").files == ("sub/b.csv",)


def test_a_large_file_is_told_by_when_it_was_written(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not read before a check; its record has its digest all the same."""
    monkeypatch.setattr(snapshot, "LARGE", 10)
    before = Snapshot.take(toy.config)
    assert before.files["src/replay.py"][0] is None
    finding, reading = Finding("bench", "cpu", "2.13.0", "passed", {}), Reading(("src/replay.py",))
    assert b'"name":"src/replay.py"' in leave(toy.config, before, finding, reading).read_bytes()
    path = toy.folder / "src/replay.py"
    path.write_text(path.read_text())
    with pytest.raises(StaleEvidence):
        leave(toy.config, before, finding, reading)


def test_documents_and_evidence_are_no_subjects(toy: Toy) -> None:
    """Even where a check says that it read them; a scenario's own data may be a document."""
    keep(View.of(toy.config))
    (kept,) = (toy.folder / "goldens/h200/evidence").iterdir()
    names = ("README.md", kept, "pyproject.toml", ".gate/runs/x.json", "/etc/hostname", "src/update.py")
    finding = Finding("bench", "cpu", "2.13.0", "passed", {})

    def subjects(documents: bool) -> list[str]:
        path = toy.leave(finding, Reading(names, documents=documents))
        return [subject["name"] for subject in json.loads(path.read_text())["subject"]]

    assert subjects(documents=False) == ["src/update.py"]
    assert subjects(documents=True) == ["README.md", "src/update.py"]


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('test = ["cpu"]', "unknown key 'test', did you mean 'tests'?"),
        ('tests = "cpu"', "has to be a list of hardware"),
        ('tests = ["cpu", "cpu"]', "names one twice"),
        ('mutation = ["cpu"]\npaths = { h200 = ["src"] }', "mutation is not required on 'h200'"),
        ('mutation = ["cpu"]\npaths = { cpu = "src" }', "paths.cpu = 'src': has to be a list"),
        ('goldens = ["cpu/2.13.0"]', "has to be a hardware folder"),
        ("tests = []", "requires nothing"),
    ],
)
def test_a_wrong_table_is_told(toy: Toy, table: str, told: str) -> None:
    head, _, tail = CONFIG.partition("[tool.gate.required]")
    write(toy.folder, {"pyproject.toml": f"{head}[tool.gate.required]\n{table}\n{tail[tail.index('[tool') :]}"})
    with pytest.raises(ConfigurationError) as caught:
        toy.status()
    assert told in str(caught.value)


def test_without_a_table_every_hardware_with_goldens_is_needed(toy: Toy) -> None:
    head, _, tail = CONFIG.partition("[tool.gate.required]")
    write(toy.folder, {"pyproject.toml": head + tail[tail.index("[tool") :]})
    assert toy.states() == {"cpu/goldens": "fresh"}


def test_a_project_without_git_has_evidence_as_well(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh and stale are told; no commit is."""
    shutil.rmtree(toy.folder / ".git")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", os.fspath(toy.folder.parent))
    assert toy.states() == FRESH
    write(toy.folder, {"src/replay.py": "x = 1\n"})
    line = toy.line("cpu/tests")
    assert (line.state, line.commit) == (State.STALE, None)
