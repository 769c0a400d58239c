"""What a run of `gate mutate` is aimed at: the project, its files, the changed lines, the mutants to judge."""

from __future__ import annotations

import importlib.util
import random
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gate import config, git
from gate.config import Config
from gate.errors import BaselineFailed, Unconfigured, UsageError
from gate.mutation import copies, pardons
from gate.mutation.cache import Cache
from gate.mutation.mutant import Mutant
from gate.mutation.suite import Suite
from gate.selection import NothingChecked

_HUNK = re.compile(rb"^@@ -\d+(?:,(?P<gone>\d+))? \+(?P<start>\d+)(?:,(?P<come>\d+))? @@")


@dataclass(frozen=True)
class Asked:
    """What a command line asks for.

    Attributes:
        paths: files and folders, relative to the project; empty for all sources.
        since: only lines that have changed since this revision.
        device: "cpu" or "cuda".
        operators: names; empty for all.
        tests: where tests are looked for; empty for what pytest's configuration says.
        all_tests: also tests that do not import the mutated package.
        both: asks the second witness also about what the first has killed.
        limit: how many mutants to sample, None for all.
        seed: of the sample.
        timeout: seconds that replace the usual time-out.
        fresh: takes nothing from earlier runs.
    """

    paths: tuple[str, ...] = ()
    since: str | None = None
    device: str = "cpu"
    operators: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    all_tests: bool = False
    both: bool = True
    limit: int | None = None
    seed: int = 0
    timeout: float | None = None
    fresh: bool = False


def project(start: Path) -> Config:
    """The configuration that holds for a folder; of a project without any, one that has no scenario.

    Raises:
        Unconfigured: nothing here or above is a project, and no Python file is here.
    """
    try:
        return config.find(start)
    except Unconfigured:
        start = start.resolve()
        marked = (folder for folder in (start, *start.parents) if (folder / "pyproject.toml").is_file() or (folder / ".git").exists())
        root = next(marked, start)
        if next(root.rglob("*.py"), None) is None:
            raise Unconfigured(f"There is no project in {start}: no Python file. Go to one's folder; gate init then sets it up.") from None
        return Config(root, root / "goldens")


def inside(root: Path, here: Path, path: Path) -> str:
    """A path as the user means it, relative to the project.

    Raises:
        UsageError: it leads outside.
    """
    full = (here / path).resolve()
    if not full.exists():
        full = (root / path).resolve()
    if not full.is_relative_to(root):
        raise UsageError(f"{path} lies outside the project {root}. Name a file or folder in it.")
    return full.relative_to(root).as_posix()


def catalogue() -> Any:
    """The operators and what plants them; other commands that import this module need none of it.

    Raises:
        UsageError: what they need is not installed.
    """
    missing = [name for name in ("libcst", "pytest", "coverage") if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(f"gate mutate needs {', '.join(missing)}, which {sys.executable} lacks: pip install 'musgd-gate[checks]'")
    return importlib.import_module("gate.mutation.catalogue")


def targets(suite: Suite, paths: Sequence[str], changed: Mapping[str, set[int] | None] | None) -> dict[str, set[int] | None]:
    """The files to mutate, each with its changed lines, None for all."""
    tests = set(suite.files())
    able = [n for n in suite.names if n.endswith(".py") and n not in tests and not n.endswith("conftest.py")]
    if paths:
        found = [
            n for n in suite.names if n.endswith(".py") and any(n == p or n.startswith(f"{p.rstrip('/')}/") or p == "." for p in paths)
        ]
        for path in paths:
            if not any(n == path or n.startswith(f"{path.rstrip('/')}/") or path == "." for n in found):
                raise UsageError(f"{path}: there is no Python file of the project. Name files or folders in {suite.project}.")
        chosen = [n for n in found if n in able or n in paths]
    else:
        beside = {p.split("/")[0] for p in suite.tests} | {"tests", "goldens", "docs", "setup.py"}
        chosen = [n for n in able if n.split("/")[0] not in beside or suite.tests == (".",)]
    if changed is None:
        return dict.fromkeys(chosen)
    found_lines = {name: changed[name] for name in chosen if name in changed}
    if not found_lines:
        raise NothingChecked("no source line has changed since then: nothing was checked.")
    return found_lines


def changed(project: Path, since: str | None) -> dict[str, set[int] | None] | None:
    """The lines that have changed since a revision, by file, None for all of a new file; None where no revision is named."""
    if since is None:
        return None
    try:
        commit = git.run(project, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{since}^{{commit}}").decode().strip()
    except BaselineFailed as error:
        raise BaselineFailed(
            f"--since {since}: there is no such revision here (a shallow clone?). git fetch --unshallow. {error}"
        ) from None
    found: dict[str, set[int] | None] = {}
    file = ""
    told = git.run(
        project,
        "diff",
        "--relative",
        "--unified=0",
        "--no-color",
        "--no-ext-diff",
        "--no-renames",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        commit,
        "--",
        ".",
    )
    body = 0  # lines of a hunk that are still to come: what they hold may look like anything
    for line in told.split(b"\n"):
        if body and line[:1] in (b"+", b"-"):
            body -= 1
            continue
        if line.startswith(b"+++ "):
            file = line[6:].decode(errors="replace").strip('"')
        hunk = _HUNK.match(line)
        if hunk and file:
            start, count = int(hunk["start"]), int(hunk["come"] or 1)
            body = int(hunk["gone"] or 1) + count
            lines = found.setdefault(file, set())
            if lines is not None:
                lines |= set(range(start, start + count)) if count else {start, start + 1}
    new = git.run(project, "ls-files", "-z", "--others", "--exclude-standard").decode(errors="replace").split("\0")
    return found | dict.fromkeys(filter(None, new))


def mutants(
    sources: Mapping[str, str], asked: Asked, targets: Mapping[str, set[int] | None], cache: Cache, facts: Mapping[str, str]
) -> tuple[list[Mutant], int]:
    """The mutants to judge, and of how many they are taken."""
    known_operators = catalogue()
    operators = known_operators.chosen(asked.operators)
    found: list[Mutant] = []
    comments = [pardon for file, source in sources.items() for pardon in pardons.read(file, source)]
    for file, source in sources.items():
        key = copies.combined({file: facts[file]}, known_operators.digest(judging=False), *(operator.name for operator in operators))
        known = cache.get("planted", key)
        if known is None:
            made = known_operators.plant(file, source, operators)
            cache.put("planted", key, [vars(mutant) for mutant in made])
        else:
            made = [Mutant(**{**one, "hits": tuple(one["hits"])}) for one in known]
        found += made
    found = pardons.grant(found, comments)
    if not asked.operators:
        pardons.check_used(found, comments)
    chosen = [mutant for mutant in found if _touched(mutant, targets[mutant.file])]
    if asked.limit is not None and asked.limit < len(chosen):
        places = sorted(random.Random(asked.seed).sample(range(len(chosen)), asked.limit))
        return [chosen[place] for place in places], len(chosen)
    return chosen, len(chosen)


def _touched(mutant: Mutant, lines: set[int] | None) -> bool:
    return lines is None or not lines.isdisjoint(range(mutant.line, mutant.end + 1))
