"""Trains on the synthetic set and says what came of it: `python -m tests.detector.bench_training` on a CUDA machine.

Ten epochs of 256 images of 640 pixels, batches of 4, bfloat16. Prints mAP50 of the validation images after each epoch; exit 1 where the
last is below 0.5. Curves, log and six drawn validation images go to $OUT where OUT is set. To try it elsewhere:
`--size 64 --train 16 --val 8 --epochs 2`.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import torch

from detector.cli import main as detector
from tests.detector.fits import checkpoint, logged

GOAL = 0.5
DRAWN = 6


def main() -> int:
    parser = argparse.ArgumentParser()
    for name, default in (("size", 640), ("train", 256), ("val", 32), ("epochs", 10), ("batch", 4)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    cuda = torch.cuda.is_available()
    out = Path(os.environ.get("OUT") or tempfile.mkdtemp(prefix="detector-"))
    with tempfile.TemporaryDirectory() as folder:
        data, runs = Path(folder) / "data", Path(folder) / "runs"
        detector(["data", "synth", str(data), *(f"--{name}={getattr(options, name)}" for name in ("train", "val", "size"))])
        start = time.monotonic()
        asked = {"data.root": data, "data.size": options.size, "data.batch": options.batch, "trainer.max_epochs": options.epochs}
        asked |= {
            "trainer.default_root_dir": runs,
            "trainer.enable_progress_bar": "false",
            "trainer.accelerator": "cuda" if cuda else "cpu",
        }
        asked |= {"trainer.precision": "bf16-mixed", "model.capture_updates": "true"} if cuda else {}
        code = detector(["fit", *(f"--{key}={value}" for key, value in asked.items())])
        if code:
            return code
        print(f"trained in {time.monotonic() - start:.0f} s, data included")
        images = sorted((data / "images" / "val").iterdir())[:DRAWN]
        detector(["predict", "--ckpt", str(checkpoint(runs, "last")), *map(str, images), "--out", str(out)])
        for name in ("curves.png", "metrics.csv"):
            shutil.copy(runs / "detector" / "version_0" / name, out / name)
        scores = logged(runs, "val/mAP50")
    print(f"mAP50 by epoch: {', '.join(f'{score:.3f}' for score in scores)}; goal {GOAL}; pictures in {out}")
    return 0 if scores[-1] >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
