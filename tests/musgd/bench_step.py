"""Measures one optimizer step on the 366 shapes of YOLO26n: `python -m tests.musgd.bench_step` on a CUDA machine.

Prints a table, and writes figures and profiles to $OUT/bench_step.json where OUT is set. Nothing here fails on a number.
"""

# ruff: noqa: T201

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from musgd import MuSGD

SHAPES = [tuple(entry["shape"]) for entry in json.loads((Path(__file__).parent / "shapes.json").read_text(encoding="utf-8"))]
ROUNDS = 5
STEPS = {"eager": 20, "orthogonalization": 30, "updates": 100, "operations": 10, "operations-updates": 20, "muon": 3, "sgd-fused": 100}
MIB = 1 << 20


@dataclass
class Arm:
    """What one arm took; times in milliseconds, memory in MiB."""

    name: str
    step: Callable[[], object]
    params: list[nn.Parameter]
    optimizer: torch.optim.Optimizer
    first_ms: float = 0.0
    reserved_mib: float = 0.0
    driver_mib: float = 0.0
    wall: list[float] = field(default_factory=list)
    host: list[float] = field(default_factory=list)
    device_ms: float = 0.0
    kernels: int = 0
    top: dict[str, list[float]] = field(default_factory=dict)
    status: list[dict[str, Any]] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        """Everything but the objects."""
        own = {name: value for name, value in vars(self).items() if name not in ("step", "params", "optimizer", "wall", "host")}
        each = {"wall": self.wall, "host": self.host}
        return own | {f"{name}_ms": statistics.median(values) for name, values in each.items()} | {
            f"{name}_range_ms": [min(values), max(values)] for name, values in each.items()
        }  # fmt: skip


def parameters() -> list[nn.Parameter]:
    """The 366 parameters, float32 on the GPU, the same ones each time."""
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(shape, generator=generator).mul(0.05).cuda()) for shape in SHAPES]


def groups(params: list[nn.Parameter]) -> list[dict[str, Any]]:
    """The usual split: matrices hybrid with decay, the rest plain."""
    return [
        {"params": [p for p in params if p.dim() > 1], "use_muon": True, "weight_decay": 5e-4},
        {"params": [p for p in params if p.dim() <= 1], "use_muon": False, "weight_decay": 0.0},
    ]


def build(**options: Any) -> MuSGD:
    """MuSGD on the 366 parameters."""
    return MuSGD(groups(parameters()), lr=0.01, momentum=0.9, nesterov=True, **options)


def gradient_sets(params: list[nn.Parameter], sets: int = 3) -> list[list[Tensor]]:
    """Some whole sets of gradients, which take turns."""
    generator = torch.Generator("cuda").manual_seed(1)
    return [[torch.randn(p.shape, generator=generator, device="cuda") for p in params] for _ in range(sets)]


def memory() -> tuple[float, float]:
    """Reserved by torch's allocator, and taken of the device by anything else, both after emptying caches."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    reserved = torch.cuda.memory_reserved()
    return reserved / MIB, (total - free - reserved) / MIB


def musgd(name: str, mode: str | None) -> Arm:
    """An arm of MuSGD; its state exists, and its kernels are compiled, before the first step that is measured."""
    optimizer = build()
    params = [p for group in optimizer.param_groups for p in group["params"]]
    _give(params, gradient_sets(params, 1)[0])
    optimizer.step()
    if mode:
        optimizer.on_fallback = "raise"
        setattr(optimizer, mode, True)
    return Arm(name, optimizer.step, params, optimizer)


def others() -> list[Arm]:
    """torch's own optimizers, for scale."""
    arms = []
    if hasattr(torch.optim, "Muon"):
        params = [nn.Parameter(p.detach().flatten(1)) for p in parameters() if p.dim() > 1]
        muon = torch.optim.Muon(params, lr=0.01)
        arms.append(Arm("muon", muon.step, params, muon))
    params = parameters()
    sgd = torch.optim.SGD(params, lr=0.01, momentum=0.9, nesterov=True, fused=True)
    return [*arms, Arm("sgd-fused", sgd.step, params, sgd)]


def _give(params: list[nn.Parameter], gradients: list[Tensor]) -> None:
    for p, g in zip(params, gradients, strict=True):
        p.grad = g


def first(arm: Arm) -> None:
    """The first step of the arm, and what memory it leaves taken."""
    _give(arm.params, gradient_sets(arm.params, 1)[0])
    before = memory()
    start = time.perf_counter()
    arm.step()
    torch.cuda.synchronize()
    arm.first_ms = (time.perf_counter() - start) * 1e3
    after = memory()
    arm.reserved_mib, arm.driver_mib = after[0] - before[0], after[1] - before[1]


def timed(arm: Arm, steps: int) -> None:
    """Some steps, each from an idle device to an idle device."""
    sets = gradient_sets(arm.params)
    for i in range(steps + 3):
        _give(arm.params, sets[i % len(sets)])
        torch.cuda.synchronize()
        start = time.perf_counter()
        arm.step()
        host = time.perf_counter()
        torch.cuda.synchronize()
        end = time.perf_counter()
        if i >= 3:
            arm.wall.append((end - start) * 1e3)
            arm.host.append((host - start) * 1e3)


def profiled(arm: Arm, steps: int = 5) -> None:
    """Time on the device and number of kernels a step."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(steps):
            arm.step()
        torch.cuda.synchronize()
    total: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for event in profile.events() or []:
        if "CUDA" in str(event.device_type) and not event.name.startswith(("Optimizer.", "ProfilerStep")):
            total[event.name] += event.time_range.elapsed_us()
            count[event.name] += 1
    arm.device_ms = sum(total.values()) / steps / 1e3
    arm.kernels = round(sum(count.values()) / steps)
    arm.top = {name[:60]: [count[name] / steps, us / steps] for name, us in total.most_common(25)}


def main() -> int:
    """Measure all arms in turns, print, write."""
    import musgd.packed as packed

    device = torch.device("cuda", 0)
    start = time.perf_counter()
    reason = packed.why_not(device)
    compiling = time.perf_counter() - start
    cold = build()
    _give(
        [p for group in cold.param_groups for p in group["params"]],
        gradient_sets([p for g in cold.param_groups for p in g["params"]], 1)[0],
    )
    start = time.perf_counter()
    cold.step()
    torch.cuda.synchronize()
    first_eager = time.perf_counter() - start
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}; kernels: {reason or 'yes'}")
    print(f"trying the kernels {compiling:.2f} s, first eager step {first_eager * 1e3:.0f} ms")
    arms = [musgd("eager", None), musgd("orthogonalization", "capture_orthogonalization"), musgd("updates", "capture_updates"), *others()]
    for arm in arms:
        first(arm)
    for _ in range(ROUNDS):
        for arm in arms:
            timed(arm, STEPS[arm.name])
    for arm in arms:
        profiled(arm)
        if isinstance(arm.optimizer, MuSGD):
            arm.status = [asdict(status) for status in arm.optimizer.replay_status()]
    plain = measure_operations(packed, device) if reason is None else []
    _report([*arms, *plain], {"torch": torch.__version__, "kernels": reason, "trying_s": compiling, "first_eager_s": first_eager})
    return 0


def measure_operations(packed: Any, device: torch.device) -> list[Arm]:
    """The same where there are no kernels: by torch's operations, as on a machine without Triton."""
    packed._REASONS[device] = "as told by the benchmark"
    try:
        arms = [musgd("operations", None), musgd("operations-updates", "capture_updates")]
        for arm in arms:
            first(arm)
            timed(arm, STEPS[arm.name])
            profiled(arm, 2)
    finally:
        packed._REASONS[device] = None
    return arms


def _report(arms: list[Arm], facts: dict[str, Any]) -> None:
    print(
        f"{'arm':20s}{'wall ms':>10s}{'range':>17s}{'host ms':>9s}{'device':>8s}{'kernels':>8s}{'first':>8s}{'reserved':>9s}{'driver':>8s}"
    )
    for arm in arms:
        f = arm.figures()
        low, high = f["wall_range_ms"]
        print(
            f"{arm.name:20s}{f['wall_ms']:10.3f}{low:8.3f}-{high:8.3f}{f['host_ms']:9.3f}{arm.device_ms:8.3f}{arm.kernels:8d}"
            f"{arm.first_ms:8.1f}{arm.reserved_mib:9.1f}{arm.driver_mib:8.1f}"
        )
    for arm in arms:
        if arm.name in ("updates", "eager"):
            print(f"{arm.name}, us a step on the device:")
            for name, (count, us) in arm.top.items():
                print(f"  {us:8.1f} {count:6.1f}x {name}")
    if os.environ.get("OUT"):
        figures = {"facts": facts, "arms": [arm.figures() for arm in arms]}
        (Path(os.environ["OUT"]) / "bench_step.json").write_text(json.dumps(figures, indent=1, default=str), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
