"""Finds objects on image files by a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image

from detector import plots
from detector.cache import rgb, square
from detector.coco import UNREADABLE, DataError
from detector.module import Detector
from detector.score import Found, candidates, found

SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png", ".webp")


@dataclass(frozen=True)
class Prediction:
    """What was found on a file.

    Attributes:
        file: the image.
        drawn: where it stands with its boxes.
        found: best first.
    """

    file: Path
    drawn: Path
    found: list[Found]


def images(paths: list[Path]) -> list[Path]:
    """Files as they are, folders by the images in them, each once. Raises DataError for what is not there, or where there is none."""
    files: list[Path] = []
    for path in paths:
        if not path.exists():
            raise DataError(f"{path}: there is no such file or folder")
        files.extend(sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES) if path.is_dir() else [path])
    if not files:
        raise DataError(f"{', '.join(map(str, paths))}: no images ({', '.join(SUFFIXES)}) there")
    return list(dict.fromkeys(files))


def load(checkpoint: Path) -> Detector:
    """The detector of a checkpoint, ready to predict. Raises DataError where the file is not there or holds none."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return Detector.load_from_checkpoint(checkpoint, map_location=device).eval()
    except FileNotFoundError:
        raise DataError(f"{checkpoint}: there is no such file") from None
    except Exception as error:
        raise DataError(f"{checkpoint}: is no checkpoint of a detector: {type(error).__name__}: {error}") from error


@torch.inference_mode()
def predict(detector: Detector, files: list[Path], folder: Path, threshold: float) -> Iterator[Prediction]:
    """Finds objects on each image and draws them.

    Args:
        detector: in eval mode.
        files: images.
        folder: for the drawings, each under its image's name; made where it is not there.
        threshold: lowest score to show.

    Raises:
        DataError: an image cannot be decoded; those before it are done. Or two would be drawn in one place, or one over an image.
    """
    if not 0 <= threshold <= 1:
        raise DataError(f"--threshold is {threshold}, and has to be from 0 to 1")
    places = _places(files, folder)
    folder.mkdir(parents=True, exist_ok=True)
    for drawn, file in places.items():
        try:
            with Image.open(file) as opened:
                image = rgb(opened)
            pixels = torch.from_numpy(square(image, detector.size)).to(detector.device)
        except UNREADABLE as error:
            raise DataError(f"{file}: cannot be decoded: {error}") from None
        scores, labels, corners = (part[0].cpu() for part in candidates(detector(pixels[None].float() / 255)))
        several = [one for one in found(scores, labels, corners, image.size, detector.size) if one.score >= threshold]
        plots.boxes(image, several, detector.names).save(drawn)
        yield Prediction(file, drawn, several)


def _places(files: list[Path], folder: Path) -> dict[Path, Path]:
    """Where each file is drawn: files by their drawings. Raises DataError before anything is lost."""
    originals = {file.resolve(): file for file in files}
    places: dict[Path, Path] = {}
    for file in files:
        drawn = folder / f"{file.stem}.png"
        if drawn in places:
            raise DataError(f"{places[drawn]} and {file} would both be drawn in {drawn}. Draw one at a time, each in an --out of its own.")
        if drawn.resolve() in originals:
            raise DataError(f"{file} would be drawn over the image {originals[drawn.resolve()]}. Give another folder: --out.")
        places[drawn] = file
    return places
