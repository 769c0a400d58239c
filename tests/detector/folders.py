"""Data sets of COCO's format that tests make themselves: three classes, by plain drawing, nothing of the detector's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

CLASSES = {7: "circle", 11: "bar", 12: "block"}  # ids as odd as COCO's own


def coco_folder(root: Path, train: int = 16, val: int = 4, size: tuple[int, int] = (72, 64), suffix: str = ".jpg") -> Path:
    """A folder of images with three shapes each, one of each class."""
    for part, count in (("train", train), ("val", val)):
        (root / "images" / part).mkdir(parents=True)
        categories = [{"id": key, "name": name} for key, name in CLASSES.items()]
        content: dict[str, Any] = {"categories": categories, "images": [], "annotations": []}
        for i in range(count):
            name = f"{part}-{i:03}{suffix}"
            image = Image.new("RGB", size, (40 + 7 * i % 90, 60, 90))
            pen: Any = ImageDraw.Draw(image)
            for j, key in enumerate(CLASSES):
                box = place(i, j)
                {7: pen.ellipse, 11: pen.rectangle, 12: pen.rectangle}[key](box, fill=((210, 60, 50), (60, 200, 70), (240, 230, 60))[j])
                extent = [box[0], box[1], box[2] - box[0] + 1, box[3] - box[1] + 1]
                facts = {"bbox": extent, "area": extent[2] * extent[3], "iscrowd": 0}
                content["annotations"].append({"id": 100 + 3 * i + j, "image_id": 10 + i, "category_id": key, **facts})
            image.save(root / "images" / part / name)
            content["images"].append({"id": 10 + i, "file_name": name, "width": size[0], "height": size[1]})
        write(root, part, content)
    return root


def place(image: int, shape: int) -> list[int]:
    """Corners, the last pixel included: three columns, heights that differ from image to image."""
    left, top = 2 + 23 * shape, 3 + (11 * image + 17 * shape) % 36
    return [left, top, left + (19, 7, 19)[shape], top + 19]


def load(root: Path, part: str) -> dict[str, Any]:
    """An annotation file's content."""
    content: dict[str, Any] = json.loads((root / "annotations" / f"{part}.json").read_text(encoding="utf-8"))
    return content


def write(root: Path, part: str, content: Any) -> None:
    """Writes an annotation file."""
    file = root / "annotations" / f"{part}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content), encoding="utf-8")
