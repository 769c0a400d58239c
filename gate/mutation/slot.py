"""A slot: one copy of the project with the processes that fork for it. One mutant at a time is in it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gate.mutation.copies import Copy
from gate.mutation.worker import Worker
from gate.runs import Place, halves
from gate.trial import Trial
from golden.compare import compare
from golden.errors import GoldenError
from golden.settings import Request
from golden.store import Golden

_ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
INSIDE = ("torch", "golden.observed", "golden.writer", "golden.environment", "golden.scenario", "golden.seeding", "golden.store")
OUTSIDE = ("torch", "torch.backends.opt_einsum", "numpy", "safetensors.numpy", "xxhash")


@dataclass(frozen=True)
class Said:
    """What a witness said of one run.

    Attributes:
        status: "passed", "failed", "crashed" or "timeout".
        why: the test or the difference, what raised.
        test: the failing test.
        loaded: the digest of the mutated file as it was loaded; empty where it was not.
        answer: all that the run answered.
    """

    status: str
    why: str = ""
    test: str = ""
    loaded: str = ""
    answer: Mapping[str, Any] = field(default_factory=dict)


class Slot:
    """One copy and its processes.

    Args:
        project: the project itself.
        copy: its copy.
        roots: where imports start, relative to it.
        device: "cpu" hides CUDA from tests.
        modules: what the tests' process imports first.
    """

    def __init__(self, project: Path, copy: Copy, roots: Sequence[str], device: str, modules: Sequence[str]) -> None:
        self.project, self.copy, self.roots, self.device = project, copy, tuple(roots), device
        self.tests = Worker(copy.folder, self._environment(), "testing", modules)
        self.goldens: dict[tuple[bool, bool, str], Worker] = {}
        self.learned: list[str] = []

    def _environment(self) -> dict[str, str]:
        found = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1"), "PYTHONDONTWRITEBYTECODE": "1"}
        found.pop("PYTEST_ADDOPTS", None)
        if self.device == "cpu":
            found["CUDA_VISIBLE_DEVICES"] = ""
        return found

    def close(self) -> None:
        """Ends all its processes."""
        for worker in [self.tests, *self.goldens.values()]:
            worker.close()

    def run_tests(
        self,
        files: Sequence[str],
        tests: Sequence[str],
        seconds: float,
        *,
        mutated: str = "",
        first: bool = True,
        learn: bool = False,
        coverage: bool = False,
    ) -> Said:
        """Runs tests in the copy as it is, and says what came of it."""
        job = {
            "tree": str(self.copy.tree),
            "project": str(self.project),
            "roots": list(self.roots),
            "scratch": str(self.copy.scratch),
            "files": list(files),
            "tests": list(tests),
            "first": first,
            "coverage": coverage,
            "learn": learn,
            "mutated": mutated,
            "options": [],
            "log": str(self.copy.folder / "tests.log"),
        }
        return _tested(self.tests.ask(job, seconds), mutated)

    def run_scene(
        self,
        trial: Trial,
        seconds: float,
        *,
        outside: bool,
        bare: bool = False,
        mutated: str = "",
        flip: bool = False,
        coverage: bool = False,
    ) -> Said:
        """Runs a scenario in the copy as it is: whole, or, where it resumes, in its two halves; `bare` imports nothing more beforehand."""
        scratch, tree = self.copy.scratch, self.copy.tree
        place = Place(scratch / "out" / trial.candidate.golden)
        request = replace(trial.request, project=tree, root=tree, out=place.golden, report=place.report)
        parts = [request]
        if request.resume_at is not None and not outside:
            second = Place(scratch / "again" / trial.candidate.golden)
            parts = list(halves(request, place, second))
        said = Said("passed")
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            said = self._run_part(trial, part, seconds, (outside, bare), {"flip": flip and last, "coverage": coverage, "mutated": mutated})
            if said.status != "passed":
                break
        return said

    def _run_part(self, trial: Trial, request: Request, seconds: float, how: tuple[bool, bool], more: Mapping[str, Any]) -> Said:
        outside, _ = how
        for folder in (request.out, request.report.parent, request.folder):
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
        file = request.report.with_suffix(".request.json")
        file.write_text(request.to_json(), encoding="utf-8")
        expected = self.copy.tree / trial.folder.relative_to(self.project)
        job = {
            "tree": str(self.copy.tree),
            "scratch": str(self.copy.scratch),
            "request": str(file),
            **more,
            "golden": None if outside else str(expected),
            "package": str(self.copy.tree / "src") if outside else None,
            "log": str(self.copy.folder / "golden.log"),
        }
        answer = self._worker(trial, *how).ask(job, seconds)
        said = _recorded(answer, str(more["mutated"]))
        if outside and said.status == "passed":
            return replace(said, **_compared(expected, request.out))
        return said

    def _worker(self, trial: Trial, outside: bool, bare: bool) -> Worker:
        variables = {**trial.environment, "PYTHONDONTWRITEBYTECODE": "1"}
        key = (outside, bare, repr(sorted(variables.items())))
        if key not in self.goldens:
            self.goldens[key] = Worker(self.copy.folder, variables, "scenes", OUTSIDE if outside else INSIDE)
            self.goldens[key].preload([] if bare else self.learned)
        return self.goldens[key]

    def learn(self, modules: Sequence[str]) -> None:
        """Has the goldens' processes import more."""
        self.learned = list(modules)
        for (_, bare, _), worker in self.goldens.items():
            if not bare:
                worker.preload(modules)


def _tested(answer: Mapping[str, Any], mutated: str) -> Said:
    early = _ended(answer, mutated)
    if early is not None:
        return early
    if answer["broken"]:
        return Said("crashed", answer["broken"][0], answer=answer)
    if answer["failed"]:
        first = answer["failed"][0]
        return Said("failed", f"{first['test']}: {first['why']}", first["test"], answer["loaded"], answer)
    return Said("passed", loaded=answer["loaded"], answer=answer)


def _recorded(answer: Mapping[str, Any], mutated: str) -> Said:
    early = _ended(answer, mutated)
    if early is not None:
        return early
    status = {"differs": "failed", "failed": "failed"}.get(answer["verdict"], "passed")
    return Said(status, answer["why"], loaded=answer["loaded"], answer=answer)


def _ended(answer: Mapping[str, Any], mutated: str) -> Said | None:
    """A run that did not come to its end, or could not import what is mutated."""
    if answer["ended"] == "timeout":
        return Said("timeout", f"not done after {answer['seconds']:.0f} s", answer=answer)
    if answer["ended"] == "died":
        return Said("crashed", f"its process ended with {answer['code']}", answer=answer)
    if "fault" in answer:
        return Said("crashed", answer["fault"], answer=answer)
    if mutated and mutated in answer["failed_imports"]:
        return Said("crashed", f"its import raised {answer['failed_imports'][mutated]}", loaded=answer["loaded"], answer=answer)
    return None


def _compared(expected: Path, out: Path) -> dict[str, Any]:
    """What gate's own golden says of what the copy's golden wrote."""
    try:
        first = compare(Golden.open(expected), Golden.open(out), limit=0).first
    except GoldenError as error:
        return {"status": "failed", "why": str(error)[:300]}
    if first is None:
        return {}
    return {"status": "failed", "why": f"step {first.step}, {first.path}: {first.kind.value}"}
