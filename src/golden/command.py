"""The command line of `python -m golden`: for machines that hold torch, numpy, safetensors and xxhash, and nothing else."""

from __future__ import annotations

import argparse
import atexit
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from golden.aside import aside, clear_leftovers
from golden.errors import GoldenError, UsageError
from golden.keys import CHECKS, DEVICES, PROFILES, STORES
from golden.launch import MAIN, Children
from golden.profile import environment
from golden.project import find
from golden.settings import Report, Request, Settings

if TYPE_CHECKING:
    from golden.store import Golden

USAGE, NOT_JUDGED, FAULT, INTERRUPTED = 2, 3, 70, 130


def main(arguments: Sequence[str]) -> int:
    """Runs a command; returns the exit code: 0, 2 (usage), 3 (no golden came of it), 70 (a fault of golden) or 130 (interrupted)."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.command(options)
    except UsageError as error:
        return _fail(USAGE, str(error))
    except GoldenError as error:
        return _fail(NOT_JUDGED, f"{error.reason}: {error}")
    except KeyboardInterrupt:
        return _fail(INTERRUPTED, "interrupted")
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m golden", description="Records the state of a training run after each step.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = _add(commands, "run", _run, "run a scenario in a fresh process, print its digests, and keep its golden where --out says so")
    run.add_argument("run", metavar="FILE:FUNCTION", help="what to run; its settings are those of the nearest pyproject.toml")
    run.add_argument("--out", type=Path, metavar="DIR", help="the golden's folder; one that is there is replaced")
    run.add_argument("--name", help="which scenario of the configuration, where several run this function")
    run.add_argument("--steps", type=int, metavar="N", help="how many steps")
    run.add_argument("--seed", type=int, metavar="N", help="seed of torch, CUDA, numpy and Python")
    run.add_argument("--store", choices=STORES, help="keep tensors or digests (by default tensors up to 64 KiB a step)")
    run.add_argument("--parameters", type=_parsed, metavar="JSON", help="what the scenario gets as record.parameters")
    execute = _add(commands, "execute", _execute, "execute a request in this process, as gate does it")
    execute.add_argument("request", type=Path, help="the request's file")
    execute.add_argument("--parent", type=int, metavar="PID", help="end when this process ends")
    shown = _add(commands, "environment", _environment, "print as JSON all of this machine that can move bits")
    known = _add(commands, "known", _known, "print whether this machine keeps the portable profile, by known answers")
    for command in (run, shown):
        command.add_argument("--device", choices=DEVICES, help="where to run")
    for command in (run, shown):
        command.add_argument("--profile", choices=PROFILES, default="portable", help="portable: the same bits on every machine")
    for command in (shown, known):
        command.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    return parser


def _add(commands: Any, name: str, function: Any, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
    parser.set_defaults(command=function)
    return parser


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no JSON: {error}") from None


def _run(options: argparse.Namespace) -> int:
    found = find(Path(options.run.rpartition(":")[0]), options.run, options.name)
    if found.note:
        _say(found.note)
    settings = _overridden(found.settings, options)
    device = options.device or settings.devices[0]
    with tempfile.TemporaryDirectory(prefix="golden-") as scratch, _place(options.out) as out, Children() as children:
        folder = out or Path(scratch, "golden")
        report = Path(scratch, f"{settings.name}.report.json")
        request = Request.of(settings, device=device, profile=options.profile, project=found.project, out=folder, report=report)
        ended = children.run(Path(sys.executable), request, environment(os.environ, options.profile, device, settings.seed), None)
        if ended.report.status != "ok":
            return _explain(ended.report)
        from golden.publish import publish  # what numpy is missing for was told by now
        from golden.store import Golden

        _print_roots(Golden.open(folder))
        if out:
            publish(out, options.out.absolute())
            sys.stdout.write(f"{options.out}\n")
    return 0


def _overridden(settings: Settings, options: argparse.Namespace) -> Settings:
    given = {key: getattr(options, key) for key in ("steps", "seed", "parameters") if getattr(options, key) is not None}
    checked = {key: CHECKS[key](f"--{key}", value) for key, value in given.items()}
    return replace(settings, **checked, store=options.store or settings.store)


@contextmanager
def _place(out: Path | None) -> Iterator[Path | None]:
    """A folder to put the golden together in, on the file system of its place."""
    if out is None:
        yield None
        return
    root = out.absolute().parent
    clear_leftovers(root)
    with aside(root) as folder:
        yield folder


def _print_roots(golden: Golden) -> None:
    for step in golden.steps:
        roots = "  ".join(f"{phase} {golden.root(step, phase)}" for phase in golden.phases(step))
        sys.stdout.write(f"step {step}  {roots}\n")


def _explain(report: Report) -> int:
    for flag in report.flags:
        _say(f"flag {flag}")
    if report.traceback:
        sys.stderr.write(report.traceback)
    return _fail(FAULT if report.reason == "fault" else NOT_JUDGED, f"{report.reason}: {report.message}")


def _execute(options: argparse.Namespace) -> NoReturn:
    from golden.process import die_with

    if options.parent is not None:
        die_with(options.parent)
    from golden.scenario import execute

    _leave(execute(options.request))


def _leave(code: int) -> NoReturn:
    """Ends the process: as always but for taking torch down, which takes a second, and where a library's crash would say nothing."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _environment(options: argparse.Namespace) -> int:
    device = options.device or "cpu"
    if not options.here:
        _again(["environment", "--device", device, "--profile", options.profile], options.profile, device)
    from golden.distributions import baseline
    from golden.environment import collect
    from golden.seeding import prepare

    prepare(0, options.profile)  # as a run's process is, or switches and modules would seem to differ
    _print(collect(device, options.profile, baseline()))
    return 0


def _known(options: argparse.Namespace) -> int:
    if not options.here:
        _again(["known"], "portable", "cpu")
    from golden.known import check

    answers = check()
    _print({**asdict(answers), "honoured": answers.honoured})
    return 0


def _again(arguments: list[str], profile: str, device: str) -> NoReturn:
    """Starts over under a profile, which has to be set before torch is imported."""
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, str(MAIN), *arguments, "--here"], environment(os.environ, profile, device, 0))


def _print(value: object) -> None:
    sys.stdout.write(json.dumps(value, indent=2, sort_keys=True) + "\n")


def _say(text: str) -> None:
    sys.stderr.write(f"golden: {text}\n")


def _fail(code: int, text: str) -> int:
    _say(text)
    return code
