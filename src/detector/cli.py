"""The command line: Lightning's for training, two commands of its own beside it."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from detector.coco import DataError

ABOUT = """\
python -m detector data synth DIR          make a data set of textured shapes
python -m detector fit --data.root DIR     train; --help lists all options
python -m detector validate --data.root DIR --ckpt_path F
python -m detector predict --ckpt F IMAGES draw what is found on images
"""


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns its exit code: 0, or 2 for what the caller has to correct."""
    given = sys.argv[1:] if arguments is None else arguments
    if not given or given[0] in ("-h", "--help"):
        sys.stdout.write(ABOUT)
        return 0 if given else 2
    try:
        if given[0] == "data":
            _data(given[1:])
        elif given[0] == "predict":
            _predict(given[1:])
        else:
            _lightning(given)
    except DataError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except OSError as error:
        if error.filename is None:
            raise
        sys.stderr.write(f"{error.filename}: {error.strerror}\n")
        return 2
    return 0


def _data(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m detector data")
    synth = parser.add_subparsers(required=True).add_parser("synth", help="make a data set of textured shapes in COCO's format")
    synth.add_argument("folder", type=Path, metavar="DIR")
    for name, default, meaning in (
        ("train", 256, "training images"),
        ("val", 32, "validation images"),
        ("size", 640, "their side in pixels"),
    ):
        synth.add_argument(f"--{name}", type=int, default=default, help=f"{meaning} ({default})")
    synth.add_argument("--seed", type=int, default=0, help="of everything (0)")
    given = parser.parse_args(arguments)
    from detector.synth import write

    try:
        write(given.folder, given.train, given.val, given.size, given.seed, os.cpu_count() or 1)
    except ValueError as error:
        raise DataError(str(error)) from None
    sys.stdout.write(f"wrote {given.train} training and {given.val} validation images to {given.folder}\n")


def _predict(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m detector predict")
    parser.add_argument("images", nargs="+", type=Path, metavar="IMAGES", help="files, or folders of them")
    parser.add_argument("--ckpt", type=Path, required=True, help="checkpoint of a training")
    parser.add_argument("--out", type=Path, default=Path("predictions"), help="folder for the drawings (predictions)")
    parser.add_argument("--threshold", type=float, default=0.3, help="lowest score to show (0.3)")
    given = parser.parse_args(arguments)
    from detector.predict import images, load, predict

    for one in predict(load(given.ckpt), images(given.images), given.out, given.threshold):
        sys.stdout.write(f"{one.file}: {len(one.found)} found, drawn in {one.drawn}\n")


def _lightning(arguments: list[str]) -> None:
    from detector.training import run

    run(arguments)
