"""Where the time of a complete fit goes, for each arm of `gate bench detector-fit`: `python -m tests.detector.bench_fit` on a CUDA machine.

Each arm has three fits, each in a process of its own: "waited", where the device is waited for at the end of each part, so that a part has
its work on the device too, and the sum is more than an undisturbed fit takes; "host", where a part has the host's time alone, whose sum is
the fit's own time; "waits", one epoch, where each line that makes the host wait for the device is counted. What is there is not run again,
so that it goes on where it was stopped. Writes fit-parts.json, fit-parts.png and fit-parts.md to $OUT, or to --out. To try it elsewhere:
`--size 64 --batch 2 --train 8 --val 4 --epochs 2 --width 0.125`.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lightning.pytorch as pl

from tests.detector.parts import ORDER, Parts, captures

ROOT = Path(__file__).parents[2]
ARMS: dict[str, dict[str, Any]] = {
    "native": {},
    "updates": {"capture_updates": True},
    "step": {"capture_step": True, "capture_updates": True},
}
MODES = ("waited", "host", "waits")
FORM = {"train": 256, "val": 32, "size": 640, "epochs": 10, "batch": 4}
COLOURS = "tab20"


class Listens(pl.Callback):
    """Gives a Trainer its profiler: on the command line only those of Lightning's own can be named."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Before anything is fitted."""
        trainer.profiler = self.parts  # type: ignore[attr-defined]  # an attribute that Trainer does not declare


def measure(arm: str, mode: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """One fit in this process."""
    import torch

    from detector.training import run
    from golden.seeding import prepare
    from goldens.fits import Form, data_set, quiet

    form = Form(**{**given, **({"epochs": 1} if mode == "waits" else {})})
    device = "cuda" if torch.cuda.is_available() else "cpu"
    prepare(0, "native", fill=False)  # as `gate bench` does
    data = data_set(form, 0)
    if device == "cuda":
        torch.zeros(1, device="cuda")
    options = {**ARMS[arm], **({"on_fallback": "raise"} if device == "cuda" else {})}
    parts = Parts(device, mode == "waited")
    waits: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as out, captures(parts, device) as recorded, quiet(), warnings.catch_warnings():
        if mode == "waits" and device == "cuda":
            listen(waits, torch)
        start = parts._last = time.perf_counter()
        run(form.arguments(data, Path(out), device, options), [Listens(parts)])
        if device == "cuda":
            torch.cuda.synchronize()
        parts.finish()
        seconds = time.perf_counter() - start
    found: dict[str, Any] = {"seconds": seconds, "parts": dict(parts.seconds), "steps": len(parts.steps), "step_ms": parts.per_step()}
    if device == "cuda":
        memory = {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
        found |= {"memory": memory, "device": torch.cuda.get_device_name(), "torch": torch.__version__}
    return {**found, "captures": recorded, "waits": dict(waits.most_common(40))}


def listen(waits: Counter[str], torch: Any) -> None:
    """Counts the lines of ours, or of Lightning's, below which torch says that it waits."""

    def told(message: Any, *rest: Any, **options: Any) -> None:
        if "synchronizing" in str(message):
            lines = [f"{Path(frame.filename).name}:{frame.lineno} {frame.line}" for frame in traceback.extract_stack()[:-2]]
            waits[" < ".join(reversed(lines[-3:]))] += 1

    warnings.simplefilter("always")
    warnings.showwarning = told
    torch.cuda.set_sync_debug_mode("warn")


def table(figures: Mapping[str, Any]) -> str:
    """Markdown: seconds a fit and, in brackets, median milliseconds a step, by part and arm."""
    lines = []
    for mode in ("waited", "host"):
        arms = [arm for arm in ARMS if f"{arm} {mode}" in figures]
        if not arms:
            continue
        told = "the device waited for after each part" if mode == "waited" else "the host's time alone, nothing waited for"
        lines += [f"Seconds a fit (median ms a step), {told}:", "", f"| part | {' | '.join(arms)} |", f"| --- |{' ---: |' * len(arms)}"]
        for part in ORDER:
            cells = [cell(figures[f"{arm} {mode}"], part) for arm in arms]
            if any(cells):
                lines.append(f"| {part} | {' | '.join(cells)} |")
        total = " | ".join(f"{figures[f'{arm} {mode}']['seconds']:.2f}" for arm in arms)
        lines += [f"| all | {total} |", ""]
    rows = [
        f"| {arm} | {of} | {len(several)} | {seconds(several):.2f} | {mib(several, 'reserved')} | {mib(several, 'driver')} |"
        for arm in ARMS
        for of in ("step", "updates")
        if (several := [x for x in figures.get(f"{arm} waited", {}).get("captures", []) if x["of"] == of])
    ]
    head = ["| arm | captured | recordings | seconds | MiB reserved | MiB of the driver |", "| --- | --- | ---: | ---: | ---: | ---: |"]
    return "\n".join([*lines, *([*head, *rows, ""] if rows else [])])


def cell(run: Mapping[str, Any], part: str) -> str:
    if part not in run["parts"]:
        return ""
    step = run["step_ms"].get(part)
    return f"{run['parts'][part]:.2f}" + (f" ({step:.2f})" if step else "")


def seconds(several: list[dict[str, Any]]) -> float:
    return float(sum(x["seconds"] for x in several))


def mib(several: list[dict[str, Any]], key: str) -> str:
    return f"{sum(x[key] for x in several) / 2**20:.1f}"


def draw(figures: Mapping[str, Any], picture: Path) -> None:
    """A bar an arm, of its parts; above, waited for, below, the host's alone."""
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot(xlabel="seconds")
    rows = [(arm, mode) for mode in ("host", "waited") for arm in reversed(ARMS) if f"{arm} {mode}" in figures]
    left = [0.0] * len(rows)
    names = [f"{arm}, {'device waited for' if mode == 'waited' else 'as it is: host'}" for arm, mode in rows]
    for i, part in enumerate(ORDER):
        widths = [figures[f"{arm} {mode}"]["parts"].get(part, 0.0) for arm, mode in rows]
        if any(widths):
            axes.barh(names, widths, left=left, label=part, color=colormaps[COLOURS](i))
            left = [a + b for a, b in zip(left, widths, strict=True)]
    figure.legend(loc="outside right upper")
    figure.savefig(picture, format="png", dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser()
    for name, default in FORM.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--width", type=float, default=1.0)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT") or "."))
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--arms", nargs="+", choices=tuple(ARMS), default=tuple(ARMS))
    parser.add_argument("--single", nargs=2, metavar=("ARM", "MODE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    form = {key: getattr(options, key) for key in (*FORM, "width")}
    if options.single:
        arm, mode = options.single
        result = measure(arm, mode, form)
        (options.out / "single.json").write_text(json.dumps(result), encoding="utf-8")
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    kept = options.out / "fit-parts.json"
    figures: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {"form": form}
    if figures["form"] != form:
        print(f"{kept} is of another form: {figures['form']}. Give another --out.", file=sys.stderr)
        return 2
    for mode in options.modes:
        for arm in options.arms:
            if (label := f"{arm} {mode}") in figures:
                continue
            with tempfile.TemporaryDirectory() as folder:
                given = [f"--{key}={value}" for key, value in form.items()]
                command = [sys.executable, "-m", "tests.detector.bench_fit", *given, "--out", folder, "--single", arm, mode]
                subprocess.run(command, check=True, cwd=ROOT, stdout=sys.stderr)
                figures[label] = json.loads((Path(folder) / "single.json").read_text(encoding="utf-8"))
            print(f"{label}: {figures[label]['seconds']:.2f} s", flush=True)
            kept.write_text(json.dumps(figures, indent=1), encoding="utf-8")
            draw(figures, kept.with_suffix(".png"))
            kept.with_suffix(".md").write_text(table(figures), encoding="utf-8")
    print(table(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
