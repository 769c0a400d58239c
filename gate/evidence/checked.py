"""Leaves a record of the tests that `gate check` ran."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from gate import encoding
from gate.check.harvest import COUNTED
from gate.check.result import Checked, Word
from gate.config import Config
from gate.errors import BaselineFailed
from gate.evidence import newcomers, packages
from gate.evidence.leaving import Finding, leave
from gate.evidence.present import Present
from gate.evidence.reading import Reading
from gate.evidence.snapshot import Snapshot, StaleEvidence
from gate.machine import Machine, device_of
from gate.pytest_settings import TABLES
from gate.verdict import Reason

RESULTS = {Word.PASSED: "passed", Word.NOTHING: "passed", Word.FAILED: "failed"}


def put_on_record(config: Config, before: Snapshot, checked: Checked, *, ours: bool = True) -> Checked:
    """Leaves a record of tests that passed or failed.

    Args:
        config: the project's.
        before: taken before they ran.
        checked: what came of them.
        ours: whether they ran in gate's own interpreter, whose packages can be asked again.

    Returns:
        The result; tests that passed are not judged after all where what they read was written meanwhile.

    Raises:
        StoreError: the record cannot be written.
    """
    if checked.verdict not in RESULTS:
        return checked
    whole = checked.base is None or (checked.total is not None and len(checked.outcomes) >= checked.total > 0)
    files = sorted({key.partition("::")[0] for key in checked.outcomes})
    present = Present(config)
    plugins, absent = newcomers.plugins(present)
    subjects = {*checked.subjects, *plugins}
    patterns = {
        *newcomers.of_tests(present, files),
        *newcomers.beside(present, subjects),
        *newcomers.within(present, checked.listed),
        *absent,
    }
    reading = Reading(
        files=tuple(subjects),
        tables=TABLES,
        patterns=tuple(patterns) if whole else (),
        packages=packages.imported(config.root, checked.subjects) if ours else {},
    )
    finding = Finding(
        "tests", checked.hardware, checked.torch, RESULTS[checked.verdict], checked.counts,
        since=None if whole or checked.base is None else checked.base.commit,
        environment={"torch": checked.torch, "interpreter": "running" if ours else "another", "cpu": Machine.here().native},
        details={"passed": _by_file(checked.having("passed")), "skipped": _skipped(checked), "cuda": _cuda(config, checked)},
    )  # fmt: skip
    try:
        leave(config, before, finding, reading)
    except (StaleEvidence, BaselineFailed) as error:
        if checked.verdict is not Word.FAILED:
            return replace(checked, verdict=Word.NOT_JUDGED, reason=Reason(error.reason), message=str(error))
    return checked


def marked(source: str | bytes, marker: str = "cuda") -> Iterator[str]:
    """Names of the tests of a file that carry a marker themselves, by their class or by the file; "*" for all of them."""
    tree = encoding.tree(source)
    for node in tree.body if tree else ():
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets):
            if _names(node.value, marker):
                yield "*"
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(_names(d, marker) for d in node.decorator_list):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            yield from _of_class(node, marker)


def _of_class(node: ast.ClassDef, marker: str) -> Iterator[str]:
    whole = any(_names(decorator, marker) for decorator in node.decorator_list)
    for child in node.body:
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) and (whole or any(_names(d, marker) for d in child.decorator_list)):
            yield f"{node.name}::{child.name}"


def _names(node: ast.AST, marker: str) -> bool:
    """Whether `mark.<marker>` stands somewhere in it."""
    return any(
        isinstance(n, ast.Attribute) and n.attr == marker and isinstance(n.value, ast.Attribute) and n.value.attr == "mark"
        for n in ast.walk(node)
    )


def _cuda(config: Config, checked: Checked) -> dict[str, int]:
    """How the tests ended that need the GPU."""
    known: dict[str, set[str]] = {}
    counts = dict.fromkeys(COUNTED, 0)
    for key, outcome in checked.outcomes.items():
        file, _, name = key.partition("::")
        if file not in known:
            path = config.root / file
            known[file] = set(marked(path.read_bytes())) if path.is_file() else set()
        if {"*", name.partition("[")[0]} & known[file] and outcome.status in counts:
            counts[outcome.status] += 1
    return counts


def _skipped(checked: Checked) -> dict[str, str]:
    """Why each test was skipped; of those that need a GPU nothing where there is none."""
    if device_of(checked.hardware) == "cpu":
        return {key: checked.outcomes[key].text[:200] for key in checked.having("skipped") if "CUDA" not in checked.outcomes[key].text}
    return {key: checked.outcomes[key].text[:200] for key in checked.having("skipped")}


def _by_file(ids: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key in ids:
        file, _, name = key.partition("::")
        found.setdefault(file, []).append(name)
    return {file: sorted(names) for file, names in found.items()}
