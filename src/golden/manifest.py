"""The manifest of a golden: a frozen value, and the sealed canonical JSON that stands for it.

The seal is the sha256 of the canonical text without the seal. It tells a manifest that was edited by hand, merged line by line or cut
short; it is no signature, and keeps nobody from writing another golden.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from golden import canonical, digest, files
from golden.canonical import Json, as_list, as_mapping, as_text, expect, has_keys
from golden.errors import CorruptGolden
from golden.leaf import Leaf

FILE = "manifest.json"
FORMAT = 1
MOST = 1 << 30  # bytes; the manifest of a million leaves has a tenth of it
_KEYS = {"digest", "environment", "format", "hardware", "layouts", "reason", "scenario", "seal", "sources", "steps", "torch"}
_ROOT = re.compile(r"[0-9a-f]{32}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
# Two spaces before the key: in canonical text the outermost mapping alone is indented so, and no string spans lines.
_SEAL = re.compile(rb'\n  "seal": "([^"\n]*)",(?=\n)')
_AFTER_SEAL = '\n  "sources": '


@dataclass(frozen=True)
class Layout:
    """The leaves of one phase, in order.

    Args:
        phase: its name.
        leaves: with distinct paths.
        lines: theirs, where they are at hand; written anew without.
    """

    phase: str
    leaves: tuple[Leaf, ...]
    lines: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.lines:
            object.__setattr__(self, "lines", tuple(leaf.line() for leaf in self.leaves))


@dataclass(frozen=True)
class Step:
    """One step of a recording.

    Args:
        step: 0 for the start, else from 1.
        layouts: for each phase, in order of execution, its place among the manifest's layouts.
        roots: root digest of each of those phases.
        kept: whether a step file holds the whole state.
    """

    step: int
    layouts: tuple[int, ...]
    roots: tuple[str, ...]
    kept: bool


@dataclass(frozen=True)
class Reason:
    """Why a golden replaced another: the author's words, and the root digests it had (``step/phase`` to root)."""

    text: str
    replaces: Mapping[str, str]


@dataclass(frozen=True)
class Manifest:
    """All that a golden says about itself.

    Args:
        layouts: every distinct phase with its leaves, in order of first appearance.
        steps: ascending without a gap; the start, step 0, may be missing.
        scenario: its resolved settings.
        environment: nested mapping of what can move bits.
        sources: project files it was made from, relative path to the sha256 of their normalised content.
        hardware: slug.
        torch: version as in the folder's name.
        reason: why it replaced another golden; None for a first one.
    """

    layouts: tuple[Layout, ...]
    steps: tuple[Step, ...]
    scenario: Mapping[str, Json]
    environment: Mapping[str, Json]
    sources: Mapping[str, str]
    hardware: str
    torch: str
    reason: Reason | None = None
    digest: str = field(default=digest.KIND)

    @cached_property
    def columns(self) -> tuple[npt.NDArray[np.intp], ...]:
        """For each layout the columns of its leaves in the table of digests: each distinct leaf has one, in order of first appearance."""
        found: dict[str, dict[str, int]] = {}
        columns, total = [], 0
        for layout in self.layouts:
            known = found.setdefault(layout.phase, {})
            before = len(known)
            columns.append(np.array([known.setdefault(line, total + len(known) - before) for line in layout.lines], dtype=np.intp))
            total += len(known) - before
        return tuple(columns)

    @cached_property
    def width(self) -> int:
        """Number of columns in the table of digests."""
        return 1 + max(int(columns.max()) for columns in self.columns)

    @cached_property
    def roots(self) -> Mapping[str, str]:
        """Root digest of each phase of each step: ``3/model`` to 32 hexadecimal digits."""
        return {
            f"{step.step}/{self.layouts[index].phase}": root
            for step in self.steps
            for index, root in zip(step.layouts, step.roots, strict=True)
        }

    def text(self) -> str:
        """The sealed canonical JSON.

        Raises:
            ValueError: for facts that JSON cannot hold exactly.
        """
        document = {
            "digest": self.digest,
            "environment": canonical.plain(self.environment, "environment"),
            "format": FORMAT,
            "hardware": self.hardware,
            "layouts": [{"phase": layout.phase, "leaves": list(layout.lines)} for layout in self.layouts],
            "reason": None if self.reason is None else {"text": self.reason.text, "replaces": dict(self.reason.replaces)},
            "scenario": canonical.plain(self.scenario, "scenario"),
            "sources": canonical.plain(self.sources, "sources"),
            "steps": [
                {"step": step.step, "layouts": list(step.layouts), "roots": list(step.roots), "kept": step.kept} for step in self.steps
            ],
            "torch": self.torch,
        }
        unsealed = canonical.dumps(document)
        return unsealed.replace(_AFTER_SEAL, f'\n  "seal": "{seal(unsealed.encode())}",{_AFTER_SEAL}', 1)


def seal(unsealed: bytes) -> str:
    """Seal of a canonical text that holds none yet."""
    return hashlib.sha256(unsealed).hexdigest()


def parse(text: bytes) -> Manifest:
    """The manifest whose :meth:`Manifest.text` this is.

    Raises:
        ValueError: with what is wrong, as a clause that goes with the name of the file.
    """
    document = canonical.loads(text)
    _check_format(document)
    _check_seal(text)
    if canonical.dumps(document).encode() != text:
        raise ValueError("is not in canonical form")
    has_keys(document, _KEYS, "the manifest")
    expect(document["digest"] == digest.KIND, f"digests of kind {document['digest']!r} are not known here")
    layouts = tuple(_layouts(document["layouts"]))
    return Manifest(
        layouts=layouts,
        steps=tuple(_steps(document["steps"], layouts)),
        scenario=as_mapping(document["scenario"], "scenario"),
        environment=as_mapping(document["environment"], "environment"),
        sources=_sources(document["sources"]),
        hardware=as_text(document["hardware"], "hardware"),
        torch=as_text(document["torch"], "torch"),
        reason=_reason(document["reason"]),
    )


def read(folder: Path) -> Manifest:
    """Reads the manifest of a golden.

    Raises:
        CorruptGolden: naming the file and what is wrong with it.
        StoreError: if the system does not let it be read.
    """
    path = folder / FILE
    content = files.read(path)
    if len(content) > MOST:
        raise CorruptGolden(path, f"has {len(content)} bytes, which no manifest has")
    try:
        return parse(content.tobytes())
    except ValueError as error:
        raise CorruptGolden(path, str(error)) from None


def _check_format(document: Any) -> None:
    found = document.get("format") if isinstance(document, dict) else None
    if type(found) is int and found > FORMAT:
        raise ValueError(f"format {found} is newer than this gate reads ({FORMAT}): update musgd-gate")
    expect(type(found) is int and found == FORMAT, f"is no manifest of format {FORMAT}")


def _check_seal(text: bytes) -> None:
    found = _SEAL.findall(text)
    expect(len(found) == 1, "has no seal, or more than one")
    expect(seal(_SEAL.sub(b"", text)) == found[0].decode(), "does not match its seal: it was edited, or its parts come from two goldens")


def _layouts(document: Any) -> Iterator[Layout]:
    seen = set()
    for entry in as_list(document, "layouts"):
        has_keys(entry, {"phase", "leaves"}, "a layout")
        phase, lines = as_text(entry["phase"], "phase"), tuple(as_text(line, "a leaf") for line in as_list(entry["leaves"], "leaves"))
        expect((phase, lines) not in seen, f"the phase {phase!r} is laid out twice in the same way")
        seen.add((phase, lines))
        yield _layout(phase, lines)


def _layout(phase: str, lines: tuple[str, ...]) -> Layout:
    """The layout of these lines: one object for all goldens that have it, which are held against each other more often than not."""
    layout = _known.get((phase, lines))
    if layout is None:
        leaves = tuple(Leaf.parse(phase, line) for line in lines)
        expect(len({leaf.path for leaf in leaves}) == len(leaves) > 0, f"the phase {phase!r} has no leaf, or one path twice")
        layout = _known[phase, lines] = Layout(phase, leaves, lines)
    return layout


_known: WeakValueDictionary[tuple[str, tuple[str, ...]], Layout] = WeakValueDictionary()


def _steps(document: Any, layouts: Sequence[Layout]) -> Iterator[Step]:
    used = -1
    previous = None
    for entry in as_list(document, "steps"):
        has_keys(entry, {"step", "layouts", "roots", "kept"}, "a step")
        step = Step(entry["step"], tuple(as_list(entry["layouts"], "layouts")), tuple(as_list(entry["roots"], "roots")), entry["kept"])
        expect(type(step.step) is int and type(step.kept) is bool, "a step has a number and says whether it is kept")
        expect(follows(previous, step.step), f"step {step.step} does not follow step {previous}: a step is missing, or out of order")
        for index in step.layouts:
            expect(type(index) is int and 0 <= index < len(layouts), f"step {step.step} names a layout that is not there")
            expect(index <= used + 1, f"step {step.step}: layouts do not stand in order of appearance")
            used = max(used, index)
        phases = {layouts[index].phase for index in step.layouts}
        expect(len(phases) == len(step.layouts) == len(step.roots) > 0, f"step {step.step} needs distinct phases, each with its root")
        expect(all(_matches(_ROOT, root) for root in step.roots), f"step {step.step} has a root that is no digest")
        previous = step.step
        yield step
    expect(previous is not None and used == len(layouts) - 1, "holds no step, or a layout that no step has")


def follows(previous: int | None, step: int) -> bool:
    """Whether a step may stand after another: one by one, and after the start with any (a resumed run has no step 1)."""
    return step >= 0 if previous is None else step == previous + 1 or previous == 0 < step


def _sources(document: Any) -> dict[str, str]:
    sources = as_mapping(document, "sources")
    for path, digits in sources.items():
        inside = path and "\0" not in path and not path.startswith("/") and not {"", ".", ".."} & set(path.split("/"))
        expect(bool(inside), f"the source {path!r} points outside the project")
        expect(_matches(_SHA256, digits), f"the source {path!r} has no sha256")
    return sources


def _reason(document: Any) -> Reason | None:
    if document is None:
        return None
    has_keys(document, {"text", "replaces"}, "the reason")
    replaces = as_mapping(document["replaces"], "replaces")
    expect(all(_matches(_ROOT, root) for root in replaces.values()), "the reason names a root that is no digest")
    return Reason(as_text(document["text"], "the reason"), replaces)


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None
