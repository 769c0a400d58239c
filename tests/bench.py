"""What recording costs, measured side by side: `make bench` writes docs/benchmarks.md.

Every figure is a median over interleaved pairs of one run on one machine: arm A, arm B, arm B, arm A, and so on, so that a machine
that slows down slows both. Steps are timed by the CPU time of their one thread, which is their wall time on a machine that does nothing
else; whole processes by both. Timings are measurements, not tests: nothing here fails on a number.
"""

from __future__ import annotations

import os
import platform
import resource
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
STEPS = 5  # of an arm, of which the median counts
STATE = 38_000_000  # bytes
REPORT = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- begin: make bench -->", "<!-- end: make bench -->"

# The scenario's process without gate and golden's recording: same seeds, same profile, a recorder that does nothing.
BARE = """
import importlib.util, sys
import torch
from golden import seeding
seeding.prepare(0, "portable")
sys.path[:0] = ["src"]
spec = importlib.util.spec_from_file_location("scenarios", "goldens/scenarios.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
class Nothing:
    device, steps, seed, parameters, first, folder = torch.device("cpu"), 12, 0, {}, 1, None
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
    def ratios(self) -> list[float]:
        """Of the pairs."""
        return [other / base for base, other in zip(self.base, self.other, strict=True)]

    def row(self, name: str, limit: str) -> str:
        """One line of the table."""
        medians = f"{statistics.median(self.base) * 1e3:.1f} | {statistics.median(self.other) * 1e3:.1f}"
        ratios = f"{statistics.median(self.ratios):.3f} ({min(self.ratios):.3f} to {max(self.ratios):.3f})"
        return f"| {name} | {medians} | {ratios} | {limit} |"


@dataclass(frozen=True)
class Spent:
    """Seconds of one process: by the clock on the wall, and of CPU time with its children's."""

    wall: float
    cpu: float


def interleaved(base: Callable[[], float], other: Callable[[], float]) -> Pairs:
    """Run both arms `PAIRS` times in ABBA order; each call returns its seconds."""
    found: dict[str, list[float]] = {"A": [], "B": []}
    for pair in range(PAIRS):
        for arm in ("AB", "BA")[pair % 2]:
            found[arm].append(base() if arm == "A" else other())
    return Pairs(tuple(found["A"]), tuple(found["B"]))


def spent(command: list[str], environment: dict[str, str] | None = None) -> Spent:
    """What a process takes; its failure is an error."""
    before, start = _children(), time.perf_counter()
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return Spent(time.perf_counter() - start, _children() - before)


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def recording(tensors: int) -> Pairs:
    """Median step of a convolutional training, bare and recorded with digests; 38 MB of state in `tensors` tensors.

    Runs in this process, on one thread.
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
    elements = (STATE // 12 - body.weight.numel()) // (parameters - 1)
    ballast = nn.ParameterList(torch.randn(elements) for _ in range(parameters - 1))
    model = nn.ModuleList([body, ballast])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    images = torch.randn(12, 16, 88, 88)

    def train() -> torch.Tensor:
        optimizer.zero_grad()
        x = images
        for _ in range(4):
            x = torch.relu(body(x))
        loss = x.square().mean() + torch.stack([p.square().mean() for p in ballast]).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss

    def seconds(observe: Callable[[torch.Tensor], None]) -> float:
        times = []
        for _ in range(STEPS):
            start = time.process_time()
            observe(train())
            times.append(time.process_time() - start)
        return statistics.median(times)

    with tempfile.TemporaryDirectory() as folder:
        record = golden.Recorder(Writer(Path(folder)).add, steps=10**6, store="digest")
        observe = lambda loss: record(loss=loss, grads=golden.gradients(model), optimizer=optimizer, model=model)  # noqa: E731
        seconds(observe)
        return interleaved(lambda: seconds(lambda loss: None), lambda: seconds(observe))


def verification() -> tuple[Pairs, Pairs]:
    """The scenario's process alone against `gate verify digits`, whole processes: wall time, and CPU time."""
    from golden import profile

    environment = profile.environment(os.environ, "portable", "cpu", 0)
    cpu: dict[str, list[float]] = {"bare": [], "gate": []}

    def arm(name: str, command: list[str], variables: dict[str, str] | None) -> float:
        found = spent(command, variables)
        cpu[name].append(found.cpu)
        return found.wall

    wall = interleaved(
        lambda: arm("bare", [sys.executable, "-c", BARE], environment), lambda: arm("gate", [gate(), "verify", "digits"], None)
    )
    return wall, Pairs(tuple(cpu["bare"]), tuple(cpu["gate"]))


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
    """Processor, cores, torch, Python, system, and how busy it is: runnable processes beside ours falsify wall times."""
    import torch

    with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    versions = f"torch {torch.__version__}, Python {platform.python_version()}, {platform.system()}"
    return f"{model}, {os.cpu_count()} cores; {versions}; load average {os.getloadavg()[0]:.1f}"


def extra(pairs: Pairs) -> str:
    """What a verification takes beyond 1.2 times the bare process."""
    return f"1.2 x + 1 s: {statistics.median(pairs.other) - 1.2 * statistics.median(pairs.base):+.2f} s beyond 1.2 x"


def measured() -> str:
    """Everything, as the text between the markers."""
    before = machine()
    helps = [spent([gate(), "--help"]) for _ in range(PAIRS)]
    counted = statistics.median(census() for _ in range(3))
    few, many, (wall, cpu) = recording(22), recording(1100), verification()
    shown = f"{statistics.median(each.wall for each in helps):.3f} ({statistics.median(each.cpu for each in helps):.3f} of CPU time)"
    return "\n".join(
        [
            f"{PAIRS} interleaved pairs each, on {before} before, {os.getloadavg()[0]:.1f} after.",
            "",
            "| what | bare, ms | with, ms | median ratio (range) | target |",
            "| --- | --- | --- | --- | --- |",
            few.row("a convolutional step, recorded with digests: 38 MB in 22 tensors; CPU time", "1.04"),
            many.row("the same, 38 MB in 1,100 tensors; CPU time", "1.06"),
            wall.row("`gate verify digits` against the bare scenario's process; wall time", extra(wall)),
            cpu.row("the same; CPU time", extra(cpu)),
            "",
            "| what | seconds | target |",
            "| --- | --- | --- |",
            f"| `gate --help`, median of {PAIRS} | {shown} | 0.2 |",
            f"| census of 10^8 differing float32 elements, median of 3 | {counted:.2f} | 3 |",
        ]
    )


def write(text: str) -> None:
    """Replace what stands between the markers; the rest of the page stays."""
    page = REPORT.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    REPORT.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    found = measured()
    write(found)
    sys.stdout.write(f"{found}\n")
