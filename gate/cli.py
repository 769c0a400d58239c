"""Parses the command line, calls one function, prints its result and returns the exit code. The only module that knows click."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gate import __version__, door, manual
from gate.errors import GoldenError, UsageError
from gate.output import Target, prepare, put, say
from gate.verdict import for_bisect

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from gate.row import Results
    from gate.trial import Means

Function = TypeVar("Function", bound=Callable[..., Any])


def _version(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    from gate.version import valid

    if value is None or value == "all" or valid(value):
        return value
    raise click.BadParameter(f"{value!r} is no version, such as 2.9.1 or 2.9.1+cu129, and not all.")


def _names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes the names of configured scenarios; a broken configuration completes nothing."""
    from click.shell_completion import CompletionItem

    from gate.config import find

    try:
        return [CompletionItem(name) for name in find(Path.cwd()).scenarios if name.startswith(incomplete)]
    except GoldenError:
        return []


def _benches(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes the names of benchmarks."""
    from click.shell_completion import CompletionItem

    from gate.benchmark.setting import names
    from gate.config import find

    try:
        return [CompletionItem(name) for name in names(find(Path.cwd())) if name.startswith(incomplete)]
    except GoldenError:
        return []


def _options(*options: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """Several options as one decorator, shown in the order given."""

    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


_PATH = click.Path(path_type=Path)
_running = _options(
    click.argument("scenarios", nargs=-1, metavar="[SCENARIO]...", shell_complete=_names),
    click.option("--device", type=click.Choice(["cpu", "cuda"]), help="Only this device; it has to be here."),
    click.option(
        "--torch",
        "version",
        metavar="V|all",
        callback=_version,
        help="A torch version, or all that are configured. Default: the running one.",
    ),
    click.option(
        "--profile",
        type=click.Choice(["portable", "native"]),
        help="The CPU profile: same bits on every x86-64 CPU, or this machine as it is.",
    ),
    click.option("--python", metavar="PATH", help="An interpreter that already has that torch; checked, never changed."),
    click.option(
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        help="How many run side by side on the CPU. Default: its cores. CUDA runs go one at a time.",
    ),
)
_json = click.option("--json", "target", metavar="FILE", help="Write the result as JSON; - is standard output.")


@click.group(epilog=manual.GATE, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="gate", message="%(prog)s %(version)s")
def cli() -> None:
    """Proves that a change to PyTorch training code has not moved a single bit and, when it has, says where first and why."""


@cli.command("verify", epilog=manual.VERIFY)
@_running
@click.option("--goldens", type=_PATH, help="The goldens' root, or one hardware folder in it.")
@click.option("--base", metavar="REV", help="The revision that drift is traced against; where no golden exists, it is judged against.")
@click.option("--no-cause", is_flag=True, help="Do not look for the cause of a drift.")
@click.option("--bisect", is_flag=True, help="Exit 125 for what could not be judged, for git bisect run.")
@_json
def verify_command(
    scenarios: tuple[str, ...],
    device: str | None,
    version: str | None,
    profile: str | None,
    python: str | None,
    jobs: int | None,
    goldens: Path | None,
    base: str | None,
    no_cause: bool,
    bisect: bool,
    target: str | None,
) -> int:
    """Runs scenarios again and compares every bit with their goldens. Never writes into goldens."""
    from gate import verify
    from gate.selection import Wanted

    where = _checked(target)
    means = _means(python, version, jobs)
    wanted = Wanted(scenarios, device, _folder(goldens, means.config.root), version, profile, base)
    return _finish(verify.verify(means, wanted, cause=not no_cause), where)


@cli.command("record", epilog=manual.RECORD)
@_running
@click.option("--update", is_flag=True, help="Replace goldens whose bits differ; takes --reason.")
@click.option("--reason", metavar="TEXT", help="Why the bits were meant to move; kept in the golden.")
@click.option("--from", "kept", type=_PATH, metavar="RUN", help="Adopt a kept run (.gate/runs/ID) instead of running.")
@_json
def record_command(
    scenarios: tuple[str, ...],
    device: str | None,
    version: str | None,
    profile: str | None,
    python: str | None,
    jobs: int | None,
    update: bool,
    reason: str | None,
    kept: Path | None,
    target: str | None,
) -> int:
    """Runs scenarios twice, in fresh processes, and publishes as goldens what was equal."""
    from gate import adopt, record
    from gate.selection import Wanted

    where = _checked(target)
    if update != bool(reason and reason.strip()):
        raise UsageError('--update and --reason go together: gate record ... --update --reason "why the bits were meant to move"')
    taken = {"--device": device, "--torch": version, "--profile": profile, "--python": python}
    for option in [name for name, value in taken.items() if kept and value]:
        raise UsageError(f"--from and {option} contradict each other: the kept run says which it was. Leave {option} out.")
    means = _means(python, version, jobs)
    if kept:
        results = adopt.adopt(means, _folder(kept, means.config.root) or kept, scenarios, reason)
    else:
        results = record.record(means, Wanted(scenarios, device, None, version, profile), reason)
    return _finish(results, where)


@cli.command("diff", epilog=manual.DIFF)
@click.argument("expected", metavar="A", type=_PATH)
@click.argument("actual", metavar="B", type=_PATH)
@_json
def diff_command(expected: Path, actual: Path, target: str | None) -> int:
    """Compares two goldens or kept runs, and counts what differs."""
    from gate import diff, report

    where = _checked(target)
    result = diff.diff(expected, actual)
    for line in report.diff_messages(result):
        say(line)
    if not where.standard:
        put(report.diff_text(result))
    where.write(result.as_json())
    return result.exit_code


@cli.command("doctor", epilog=manual.DOCTOR)
@click.option(
    "--clean", is_flag=True, help="Remove leftovers of killed commands, old runs and findings, environments no golden here needs."
)
@click.option("--dry-run", is_flag=True, help="With --clean: only say what would be removed.")
@click.option(
    "--days", type=click.FloatRange(min=0), metavar="N", help="With --clean: from what age a kept run or finding is old. Default: 7."
)
@_json
def doctor_command(clean: bool, dry_run: bool, days: float | None, target: str | None) -> int:
    """Says what this machine can judge, and how to get the rest. Exit code 3 where gate verify cannot do all its work here."""
    from gate import bulletin, doctor, progress

    where = _checked(target)
    if clean:
        swept = doctor.sweep(Path.cwd(), dry=dry_run, days=days)
        return _show(swept.text(), swept.as_json(), where)
    if dry_run or days is not None:
        raise UsageError("--dry-run and --days go with --clean: gate doctor --clean --dry-run")
    found = doctor.examine(Path.cwd(), progress.choose(sys.stderr))
    return _show(bulletin.text(found), found.as_json(), where, found.exit_code)


@cli.command("init", epilog=manual.INIT)
@click.argument("script", required=False, metavar="[SCRIPT]", type=_PATH)
@_json
def init_command(script: Path | None, target: str | None) -> int:
    """Sets a project up from its training script, which is read, not run. Never overwrites."""
    from gate import init

    where = _checked(target)
    done = init.init(Path.cwd(), script)
    return _show(done.text(), done.as_json(), where)


@cli.command("bench", epilog=manual.BENCH)
@click.argument("name", shell_complete=_benches)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), help="Where to time. Default: CUDA where all scenarios run there.")
@click.option("--pairs", type=click.IntRange(min=1), metavar="N", help="How often each arm is timed. Default: as configured, 10.")
@click.option("--python", metavar="PATH", help="An interpreter that has the torch to time under; checked, never changed.")
@click.option("--fresh", is_flag=True, help="Start anew rather than go on where an earlier run was stopped.")
@click.option("--seconds", type=click.FloatRange(min=1), metavar="N", help="Begin no round that might end later; the next call goes on.")
@click.option("--journal", metavar="DIR", help="Keep what was timed in DIR; another machine of the same kind may go on with it.")
@click.option("--fail-slower", is_flag=True, help="Exit 1 where an arm is slower, 3 where that cannot be told.")
@click.option("--markdown", metavar="FILE", help="Write the result as Markdown; - is standard output.")
@_json
def bench_command(
    name: str,
    device: str | None,
    pairs: int | None,
    python: str | None,
    fresh: bool,
    seconds: float | None,
    journal: str | None,
    fail_slower: bool,
    markdown: str | None,
    target: str | None,
) -> int:
    """Times scenarios in pairs, once their bits are proven equal. Goes on where it was stopped."""
    from gate.benchmark import command, rendering
    from gate.evidence import commands

    where, document = _checked(target), Target(markdown, "--markdown")
    document.check()
    if where.standard and document.standard:
        raise UsageError("--json - and --markdown - contradict each other: one standard output holds one of them.")
    folder = None if journal is None else Path(journal).absolute()
    wanted = command.Wanted(name, device, pairs, fresh, fail_slower, folder, seconds)
    result = commands.bench(_means(python, None, None), wanted)
    for line in rendering.messages(result):
        say(line)
    if document.name:
        document.write_text(result.markdown())
    return _show("" if document.standard else result.text(), result.as_json(), where, result.exit_code)


@cli.command("check", epilog=manual.CHECK)
@click.option("--since", metavar="REV", help="Since when changes count. Default: where the branch left its upstream, or main.")
@click.option("--torch", "version", metavar="V", callback=_version, help="A torch version. Default: the running one.")
@click.option("--python", metavar="PATH", help="An interpreter that already has torch, pytest and coverage.")
@click.option("--all", "everything", is_flag=True, help="Run all tests, and learn anew what each of them runs.")
@click.option("--explain", is_flag=True, help="Say of each test why it was taken.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="How many tests run side by side. Default: as many as cores.")
@click.option("--junit", metavar="FILE", help="Write the outcomes as JUnit XML; - is standard output.")
@_json
def check_command(
    since: str | None,
    version: str | None,
    python: str | None,
    everything: bool,
    explain: bool,
    jobs: int | None,
    junit: str | None,
    target: str | None,
) -> int:
    """Runs the tests that a change touches. Exit code 1 where one fails, 3 where none shows anything."""
    from gate.check import judge, wording
    from gate.check import junit as xml
    from gate.evidence import commands

    where, document = _checked(target), Target(junit, "--junit")
    document.check()
    if version == "all":
        raise UsageError("--torch all: gate check runs under one torch at a time. Name one.")
    if where.standard and document.standard:
        raise UsageError("--json - and --junit - contradict each other: one standard output holds one of them.")
    means = _means(python, version, jobs)
    result = commands.check(means.config, judge.Asked(since, version, everything, jobs, python), means.progress)
    for line in wording.messages(result):
        say(line)
    document.write_text(xml.text(result) if document.name else "")
    return _show("" if document.standard else wording.text(result, explain=explain), result.as_json(), where, result.exit_code)


@cli.command("mutate", epilog=manual.MUTATE)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=_PATH)
@click.option("--since", metavar="REV", help="Only lines that have changed since this revision.")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", help="Whose goldens are asked, and whether tests see CUDA.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="How many mutants at a time. Default: the CPU's cores; on CUDA one.")
@click.option("--tests", multiple=True, metavar="PATH", help="Where to look for tests. Default: pytest's testpaths.")
@click.option("--all-tests", is_flag=True, help="Ask tests too that do not import the mutated package.")
@click.option("--operator", "names", multiple=True, metavar="NAME", help="Only this operator; may be given several times.")
@click.option("--witnesses", type=click.Choice(["both", "first"]), default="both", help="Ask both, or stop at the first that notices.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="A sample of N mutants; the report says so.")
@click.option("--seed", type=int, default=0, metavar="N", help="Of the sample.")
@click.option("--timeout", type=click.FloatRange(min=0.1), metavar="S", help="Seconds a run may take. Default: by what its tests take.")
@click.option("--fresh", is_flag=True, help="Take nothing from earlier runs.")
@click.option("--operators", is_flag=True, help="List the operators, and plant nothing.")
@_json
def mutate_command(
    paths: tuple[Path, ...], since: str | None, device: str, jobs: int | None, tests: tuple[str, ...], all_tests: bool,
    names: tuple[str, ...], witnesses: str, limit: int | None, seed: int, timeout: float | None, fresh: bool,
    operators: bool, target: str | None,
) -> int:  # fmt: skip
    """Plants faults in copies of the project: its tests and its goldens must notice. Exit code 1 where one survives."""
    where = _checked(target)
    from gate import mutate, progress
    from gate.evidence import commands
    from gate.trial import Means

    if operators:
        return _show(mutate.operators_text(names), mutate.operators_json(names), where)
    found = mutate.project(Path.cwd())
    inside = tuple(mutate.inside(found.root, Path.cwd(), path) for path in paths)
    asked = mutate.Asked(inside, since, device, names, tests, all_tests, witnesses == "both", limit, seed, timeout, fresh)
    result = commands.mutate(Means(found, None, jobs, progress.choose(sys.stderr)), asked)
    return _show(result.text(), result.as_json(), where, result.exit_code)


@cli.command("status", epilog=manual.STATUS)
@click.option("--keep", is_flag=True, help="Put into the repository what a merge needs and CI cannot repeat; remove what it replaces.")
@click.option("--write", is_flag=True, help="Refresh the figures between markers in documents.")
@click.option("--explain", is_flag=True, help="List every change with its commit, and every record.")
@_json
def status_command(keep: bool, write: bool, explain: bool, target: str | None) -> int:
    """Says what was checked, where, on which sources. Exit code 0 when all is fresh that a merge needs, else 3."""
    from gate import config
    from gate.claims import review
    from gate.evidence import keeping
    from gate.evidence.status import View
    from gate.screen import plain

    where = _checked(target)
    view = View.of(config.find(Path.cwd()))
    found = keeping.keep(view) if keep else view.status()
    written = review.refresh(view) if write else []
    for line in (*found.notes, *written):
        say(plain(line))
    return _show(found.text(explain), found.as_json(), where, found.exit_code)


@cli.command("run", epilog=manual.RUN)
@click.option("--since", metavar="REV", help="The revision that the change begins with. Default: the whole tree is the change.")
@click.option("--allow-stale", "allowed", multiple=True, metavar="HARDWARE", help="Go on though evidence of this hardware is not fresh.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="How many run side by side on the CPU. Default: its cores.")
@_json
def run_command(since: str | None, allowed: tuple[str, ...], jobs: int | None, target: str | None) -> int:
    """Says whether this tree may be merged: check, mutate, verify, status, golden changes, claims, trailers."""
    from gate.landing import command

    where = _checked(target)
    found = command.run(_means(None, None, jobs), since, allowed)
    for line in found.warnings():
        say(line)
    return _show(found.text(), found.as_json(), where, found.exit_code)


def main(arguments: Sequence[str] | None = None) -> int:
    """The one door: runs a command and turns every error into a message and an exit code.

    Returns:
        0 identical, 1 drift, 2 usage, 3 not judged, 4 nondeterministic, 70 a fault of gate, 130 interrupted.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    prepare()
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = _run(given)
    except click.ClickException as error:
        code = door.usage(_told(error), given)
    except (KeyboardInterrupt, click.Abort):
        code = door.interrupted()
    except BrokenPipeError:  # while printing help; results are written by gate.output
        code = 0
    except Exception as error:
        code = door.failed(error, given)
    finally:
        signal.signal(signal.SIGTERM, before)
    return for_bisect(code) if "--bisect" in given else code


def _run(given: Sequence[str]) -> int:
    """As click's own `main`, whose exit codes for broken pipes and interrupts are not ours."""
    if os.environ.get("_GATE_COMPLETE"):
        cli.main(list(given), prog_name="gate")
    try:
        with cli.make_context("gate", list(given)) as context:
            code = cli.invoke(context)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    assert isinstance(code, int), "a command returns its exit code"
    return code


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _told(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{error.format_message()} See: {context.command_path} --help" if context else error.format_message()


def _means(python: str | None, version: str | None, jobs: int | None) -> Means:
    """With what a command works that runs scenarios."""
    from gate import config, progress
    from gate.trial import Means

    if python is not None and version == "all":
        raise UsageError("--torch all and --python contradict each other: an interpreter has one torch. Leave one of them out.")
    return Means(config.find(Path.cwd()), python, jobs, progress.choose(sys.stderr))


def _checked(name: str | None) -> Target:
    target = Target(name)
    target.check()
    return target


def _folder(path: Path | None, root: Path) -> Path | None:
    """A path as the user means it: relative to the current folder, or to the project's where it is found there alone."""
    if path is None:
        return None
    here, there = Path.cwd() / path, root / path
    return Path(os.path.normpath(here if here.exists() or not there.parent.exists() else there))


def _show(text: str, document: Mapping[str, Any], target: Target, code: int = 0) -> int:
    if not target.standard:
        put(text)
    target.write(document)
    return code


def _finish(results: Results, target: Target) -> int:
    """Prints and writes a result: what was left out or could not be judged to standard error, the report to standard output."""
    from gate import report

    for line in [results.left_out, *report.messages(results)]:
        if line is not None:
            say(line)
    if not target.standard:
        put(report.text(replace(results, left_out=None)))
    target.write(results.as_json())
    return results.exit_code
