"""What recording costs, measured side by side: `make bench` writes docs/benchmarks.md.

Every figure is a median over interleaved pairs of one run on one machine: arm A, arm B, arm B, arm A, and so on, so that a machine
that slows down slows both. Timings are measurements, not tests: nothing here fails on a number.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAIRS = 9
REPORT = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- begin: make bench -->", "<!-- end: make bench -->"

# The scenario's process without gate and golden's recording: same seeds, same profile, a recorder that does nothing.
BARE = """
import importlib.util, sys, types
import torch
from golden import seeding
seeding.prepare(0, "portable")
sys.path[:0] = ["src"]
spec = importlib.util.spec_from_file_location("scenarios", "goldens/scenarios.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
class Nothing:
    device, steps, seed, parameters, first = torch.device("cpu"), 12, 0, {}, 1
    def start(self, **phases): pass
    def __call__(self, **phases): pass
module.digits(Nothing())
"""


@dataclass(frozen=True)
class Pairs:
    """Seconds of two arms, pair by pair."""

    base: tuple[float, ...]
    other: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Median of the pairs' own ratios."""
        return statistics.median(b / a for a, b in zip(self.base, self.other, strict=True))

    def row(self, name: str, limit: str) -> str:
        """One line of the table."""
        ratios = [b / a for a, b in zip(self.base, self.other, strict=True)]
        medians = f"{statistics.median(self.base) * 1e3:.1f} | {statistics.median(self.other) * 1e3:.1f}"
        return f"| {name} | {medians} | {self.ratio:.3f} ({min(ratios):.3f} to {max(ratios):.3f}) | {limit} |"


def interleave(base: Callable[[], float], other: Callable[[], float], pairs: int = PAIRS) -> Pairs:
    """Run both arms `pairs` times in ABBA order; each call returns its seconds."""
    first: list[float] = []
    second: list[float] = []
    for pair in range(pairs):
        for arm in ("AB", "BA")[pair % 2]:
            (first if arm == "A" else second).append(base() if arm == "A" else other())
    return Pairs(tuple(first), tuple(second))


def timed(command: list[str], environment: dict[str, str] | None = None) -> float:
    """Wall seconds of a process; its failure is an error."""
    start = time.perf_counter()
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def recording(tensors: int) -> Pairs:
    """Median step of a convolutional training, bare and recorded with digests; 38 MB of state in `tensors` tensors.

    Runs in this process, under the portable profile's one thread.
    """
    import torch
    from torch import nn

    import golden
    from golden.writer import Writer

    torch.set_num_threads(1)
    torch.manual_seed(0)
    # weights, gradients and one momentum: a third of the tensors, and of the bytes, each
    parameters = round(tensors / 3)
    body = nn.Conv2d(16, 16, 3, padding=1, bias=False)
    elements = (38_000_000 // 12 - body.weight.numel()) // (parameters - 1)
    ballast = nn.ParameterList(torch.randn(elements) for _ in range(parameters - 1))
    model = nn.ModuleList([body, ballast])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    images = torch.randn(12, 16, 112, 112)

    def train() -> torch.Tensor:
        optimizer.zero_grad()
        x = images
        for _ in range(4):
            x = torch.relu(body(x))
        loss = x.square().mean() + torch.stack([p.square().mean() for p in ballast]).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss

    def seconds(observe: Callable[[torch.Tensor], None], steps: int = 5) -> float:
        times = []
        for _ in range(steps):
            start = time.perf_counter()
            observe(train())
            times.append(time.perf_counter() - start)
        return statistics.median(times)

    with tempfile.TemporaryDirectory() as folder:
        record = golden.Recorder(sink=Writer(Path(folder)).add, steps=10**6, store="digest")
        observe = lambda loss: record(loss=loss, grads=golden.gradients(model), optimizer=optimizer, model=model)  # noqa: E731
        seconds(observe)
        return interleave(lambda: seconds(lambda loss: None), lambda: seconds(observe))


def verification() -> Pairs:
    """The scenario's process alone against `gate verify digits`, whole processes."""
    from golden import profile

    environment = profile.environment(os.environ, "portable", "cpu", 0)
    python = sys.executable
    return interleave(lambda: timed([python, "-c", BARE], environment), lambda: timed([gate(), "verify", "digits"]))


def gate() -> str:
    """The command beside this interpreter."""
    return str(Path(sys.executable).parent / "gate")


def census() -> float:
    """Seconds for the census of 10^8 float32 elements that all differ."""
    import numpy as np

    from golden.census import census as count

    expected = np.arange(10**8, dtype=np.uint32)
    actual = expected + 1
    start = time.perf_counter()
    found = count(expected.view(np.uint8), actual.view(np.uint8), "float32", (10**8,))
    seconds = time.perf_counter() - start
    assert found.differing == 10**8, found
    return seconds


def machine() -> str:
    """Processor, cores, torch, Python, system."""
    import torch

    with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{model}, {os.cpu_count()} cores; torch {torch.__version__}, Python {platform.python_version()}, {platform.system()}"


def main() -> None:
    """Measure all, print the tables, write them between the markers of docs/benchmarks.md."""
    helps = statistics.median(timed([gate(), "--help"]) for _ in range(PAIRS))
    counted = statistics.median(census() for _ in range(3))
    few, many, verified = recording(22), recording(1100), verification()
    extra = statistics.median(verified.other) - 1.2 * statistics.median(verified.base)
    text = "\n".join(
        [
            BEGIN,
            f"{PAIRS} interleaved pairs each, on {machine()}.",
            "",
            "| what | bare, ms | with, ms | median ratio (range) | target |",
            "| --- | --- | --- | --- | --- |",
            few.row("a convolutional step, recorded with digests: 38 MB in 22 tensors", "1.04"),
            many.row("the same, 38 MB in 1,100 tensors", "1.06"),
            verified.row("`gate verify digits` against the bare scenario's process", f"1.2 x + 1 s: {extra:+.2f} s beyond 1.2 x"),
            "",
            "| what | seconds | target |",
            "| --- | --- | --- |",
            f"| `gate --help`, median of {PAIRS} | {helps:.3f} | 0.2 |",
            f"| census of 10^8 differing float32 elements, median of 3 | {counted:.2f} | 3 |",
            END,
        ]
    )
    write(text)
    sys.stdout.write(text + "\n")


def write(text: str) -> None:
    """Replace what stands between the markers; the rest of the page stays."""
    page = REPORT.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    REPORT.write_text(before + text + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
