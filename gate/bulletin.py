"""A diagnosis as text: this machine, what is judged on it, what it takes to judge the rest, and in the last line whether all is well."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from gate.diagnosis import Diagnosis, Profile
from gate.disk import shown
from gate.facts import Fact, count, listed
from gate.prospect import Prospect
from gate.publication import MOST
from gate.screen import plain, rendered
from gate.verdict import Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType

LEAST = 25 * 2**30  # bytes that two further versions of torch and uv's cache take


def text(found: Diagnosis, stream: TextIO | None = None) -> str:
    """What `gate doctor` says on standard output; `stream` is what it is made for."""
    stream = stream or sys.stdout
    return rendered(_parts(found), stream)


def _parts(found: Diagnosis) -> Iterator[RenderableType]:
    from rich.text import Text

    from gate import table

    yield Text("this machine")
    yield table.facts([(label, plain(line)) for label, line in _machine(found)])
    if found.project.root is not None:
        for title, some in (("judged by gate verify", found.project.judged), ("the rest", found.project.rest)):
            yield Text()
            yield Text(title if some else f"{title}: nothing")
            yield table.facts([(label, plain(line)) for label, line in _prospects(some)])
    yield Text()
    if found.reason is None:
        yield Text(f"ready: {found.message}", table.STYLES[Verdict.IDENTICAL])
    else:
        yield Text(f"not judged ({found.reason}): {found.message}", table.STYLES[Verdict.NOT_JUDGED])


def _machine(found: Diagnosis) -> Iterator[Fact]:
    machine, torch = found.machine, found.torch
    cuda = f"{machine.cuda} (CUDA)" if machine.cuda else "no CUDA device"
    yield "hardware", f"{machine.portable} (portable profile), {machine.native} (native profile), {cuda}"
    yield "torch", torch.version or torch.why
    if machine.cuda and torch.version:
        yield "", torch.cuda or f"torch {torch.version} cannot use the CUDA device: install a build of it for CUDA"
    yield "python", f"{found.python}, {found.executable}"
    yield "profile", _profile(found.profile)
    yield from _project(found)
    yield from _storage(found)


def _profile(profile: Profile) -> str:
    if profile.honoured is None:
        return f"not known: {profile.why}"
    answers = f"{sum(profile.aspects.values())} of {count(len(profile.aspects), 'known answer')} are right here"
    return f"honoured: {answers}" if profile.honoured else f"NOT honoured: {answers}; wrong: {', '.join(profile.broken)}"


def _project(found: Diagnosis) -> Iterator[Fact]:
    project, git = found.project, found.history
    if project.root is not None:
        yield "project", f"{project.root}, goldens of {shown(project.size)} (at most {MOST >> 20} MiB should be)"
    if git.top is None:
        yield "git", git.why
    else:
        yield "git", f"{git.top}{', shallow: the commit of a drift may be missing: git fetch --unshallow' if git.shallow else ''}"
    if git.loose:
        yield "", "goldens are not committed as they are"


def _storage(found: Diagnosis) -> Iterator[Fact]:
    storage = found.storage
    low = ", less than further versions of torch may take" if storage.free < LEAST else ""
    yield "disk", f"{shown(storage.free)} free{low}; {count(storage.runs, 'kept run')}, {shown(storage.runs_size)}"
    if storage.uv is None:
        yield "uv", "not found: other versions of torch take it (pip install uv), or --python PATH"
    else:
        yield "uv", f"{storage.uv}, cache of {shown(storage.uv_size)} in {storage.uv_cache}"
    made = storage.environments
    if made:
        yield "environments", f"{len(made)} of other torches, {shown(sum(each.size for each in made))}, in {storage.home}"
    for each in made:
        needless = "" if each.needed else ": no golden here needs it (gate doctor --clean)"
        yield "", f"torch {each.torch}, Python {each.python}, {shown(each.size)}{needless}"


def _prospects(some: Sequence[Prospect]) -> list[Fact]:
    """Goldens of the same hardware, torch and fate in one line."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for each in some:
        what = f"{each.how} ({each.told})" if each.told and each.how else each.how or each.told
        where = f"{each.hardware}, torch {each.torch or '-'}"
        alike.setdefault((where, "" if each.plain else what, str(each.reason or "")), []).append(each.scenario)
    return [(where, f"{listed(names)}{f': {what}' if what else ''}") for (where, what, _), names in alike.items()]
