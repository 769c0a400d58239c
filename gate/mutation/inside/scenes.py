"""Runs a scenario in a fork of the zygote, and holds each step against its golden as it comes: the first difference ends it.

golden is imported within `main` alone: from where gate has it, or, where golden itself is mutated, from the copy. Then it only records, and
gate's own golden judges what it wrote.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any


class Different(BaseException):
    """Unwinds a scenario whose bits differ. No Exception: a scenario that catches those is still stopped."""


def main(job: dict[str, Any], sources: Any) -> dict[str, Any]:
    """Runs a job.

    Args:
        job: "tree", "request" (file), "golden" (folder, None: only record), "package" (the folder that golden is imported from in the copy,
            None for gate's), "flip", "coverage", "mutated".
        sources: the zygote's.
    """
    os.environ["TMPDIR"] = job["scratch"]
    tempfile.tempdir = None
    if job["package"] is not None:
        sys.path.insert(0, job["package"])
    measured = _coverage(job)
    answer = _judged(job)
    if measured is not None:
        measured.stop()
        data = measured.get_data()
        tree = job["tree"] + os.sep
        answer["lines"] = {f.removeprefix(tree): sorted(data.lines(f) or ()) for f in data.measured_files() if f.startswith(tree)}
        answer["modules"] = _modules(job)
    sources.keep(f"{job['scratch']}/codes", job["mutated"])
    return {**answer, "loaded": sources.loaded.get(job["mutated"] or "", ""), "failed_imports": sources.failed}


def _coverage(job: dict[str, Any]) -> Any:
    if not job["coverage"]:
        return None
    os.environ["COVERAGE_CORE"] = "ctrace"
    coverage = importlib.import_module("coverage").Coverage(data_file=None, source=[job["tree"]], config_file=False, messages=False)
    coverage.start()
    return coverage


def _modules(job: dict[str, Any]) -> list[str]:
    tree = job["tree"] + os.sep
    named = [(name, module) for name, module in list(sys.modules.items())]
    ours = ("golden", "scenario_", "__", "gate_inside")
    return [
        name
        for name, module in named
        if getattr(getattr(module, "__spec__", None), "name", "") == name
        and not (getattr(module, "__file__", None) or "").startswith(tree)
        and not name.startswith(ours)
    ]


def _judged(job: dict[str, Any]) -> dict[str, Any]:
    """What the scenario said: {"verdict": "identical" | "differs" | "failed" | "recorded", "why": ...}."""
    try:
        execution = _execution(job)
    except BaseException as error:  # golden itself, as it is mutated, cannot be imported or set up
        traceback.print_exc()
        return {"verdict": "failed", "why": f"{type(error).__name__}: {error}"[:300]}
    try:
        execution.run()
        if job["golden"] is not None:
            execution.check_all()
    except Different as difference:
        return {"verdict": "differs", "why": str(difference)}
    except BaseException as error:
        traceback.print_exc()
        half = type(error).__name__ == "HalfDone"
        return {"verdict": "recorded" if half else "failed", "why": f"{type(error).__name__}: {error}"[:300]}
    return {"verdict": "identical" if job["golden"] is not None else "recorded", "why": ""}


def _execution(job: dict[str, Any]) -> Any:
    from golden.observed import Observed
    from golden.process import Process
    from golden.scenario import Execution
    from golden.settings import Request
    from golden.sources import Watcher
    from golden.store import Golden
    from golden.tree import Tree
    from golden.writer import Writer

    file = Path(job["request"])
    request = Request.from_json(file.read_text(encoding="utf-8"))
    expected = Golden.open(Path(job["golden"])) if job["golden"] is not None else None

    class Flipping(Observed):
        """Flips one bit of the state before its last step is recorded: what every witness has to see."""

        def __call__(self, /, **phases: Any) -> None:
            if job["flip"] and self.done + 1 == self._last:
                _flip(phases)
            super().__call__(**phases)

    class Judged(Execution):
        """An execution that compares instead of writing, where there is something to compare with."""

        seen: list[int]

        def _recorder(self, folder: Path) -> tuple[Writer, Observed]:
            self.seen = []
            progress = Path(job["scratch"], "progress")
            writer = Writer(request.out)
            return writer, Flipping(writer.add if expected is None else self.check, request, folder, progress)

        def _finish(self, *arguments: Any) -> None:
            if expected is None:
                super()._finish(*arguments)

        def check(self, snapshot: Any) -> None:
            """Holds a step against the golden's."""
            self.seen.append(snapshot.step)
            told = difference(expected, snapshot)
            if told:
                raise Different(f"{request.name}: step {snapshot.step}, {told}")

        def check_all(self) -> None:
            """Holds the steps that came against those that should have."""
            assert expected is not None
            wanted = [step for step in expected.steps if (step >= request.first or request.first == 1) and step <= request.end]
            if self.seen != wanted:
                raise Different(f"{request.name}: steps {self.seen}, golden {wanted}")

    class Unwatched(Watcher):
        """Nobody asks what the run of a mutant has read; looking at every module for it takes a quarter of its time."""

        def _begin(self) -> None:
            """Hears nothing."""

        def foreign(self) -> tuple[str, ...]:
            return ()

    class Judging(Process):
        """A process whose reading decides nothing."""

        def watcher(self) -> Watcher:
            return Unwatched(Tree(request.project, request.root), Path(job["scratch"], "journal"))

    return Judged((Process if expected is None else Judging).of(request, file))


def difference(expected: Any, snapshot: Any) -> str:
    """Where a step differs from a golden's, in a few words; empty where no bit does."""
    from golden.digest import Roots

    if snapshot.step not in expected.steps:
        return "no such step in the golden"
    leaves, digests = expected.leaves(snapshot.step), expected.digests(snapshot.step)
    if tuple(snapshot.leaves) == tuple(leaves) and (snapshot.digests == digests).all():
        return ""
    phases = list(dict.fromkeys(leaf.phase for leaf in snapshot.leaves))
    if tuple(phases) != tuple(expected.phases(snapshot.step)):
        return f"phases {', '.join(phases)}"
    for phase in phases:
        places = [place for place, leaf in enumerate(snapshot.leaves) if leaf.phase == phase]
        own = [snapshot.leaves[place] for place in places]
        if Roots(own).root(snapshot.digests[places]) != expected.root(snapshot.step, phase):
            known = {leaf.full: (leaf, tuple(row)) for leaf, row in zip(leaves, digests.tolist(), strict=True)}
            for place in places:
                leaf = snapshot.leaves[place]
                if known.get(leaf.full) != (leaf, tuple(snapshot.digests[place].tolist())):
                    return f"{leaf.full}"
            return f"{phase} lacks a leaf"
    return ""


def _flip(phases: dict[str, Any]) -> None:
    """Flips the lowest bit of the first element of the first tensor that can be found."""
    torch = sys.modules["torch"]
    for value in phases.values():
        found = next(value.parameters(), None) if isinstance(value, torch.nn.Module) else value
        if isinstance(found, torch.Tensor) and found.numel() and found.is_contiguous() and not found.dtype.is_complex:
            with torch.no_grad(), contextlib.suppress(RuntimeError):
                bytes_ = found.detach().reshape(-1)[:1].view(torch.uint8)
                bytes_[:1] = bytes_[:1] ^ 1
                return
    raise RuntimeError("nothing to flip a bit of")
