"""The command line from end to end, on a data set of three classes that the test has made itself."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import torch
from PIL import Image

from detector.cli import main
from tests.detector.fits import checkpoint, command, fit, logged
from tests.detector.folders import CLASSES, coco_folder, load, write

SECONDS = 120


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, float]:
    """A fit of the nano network with replay asked for: where it is, what it said, how long it took."""
    out = tmp_path_factory.mktemp("fit")
    start = time.monotonic()
    done = fit(folder, out, "--model.capture_updates", "true")
    assert done.returncode == 0, done.stderr
    return out, done.stdout + done.stderr, time.monotonic() - start


def test_a_fit_ends_in_time_and_learns(run: tuple[Path, str, float]) -> None:
    """Two epochs of 16 images within two minutes; the loss ends at most at 0.8 of where it began, the boxes' part below its own."""
    out, _, seconds = run
    assert seconds < SECONDS
    loss = logged(out, "train/loss")
    assert len(loss) == 8
    assert loss[-1] <= 0.8 * loss[0]
    assert logged(out, "train/boxes")[-1] < logged(out, "train/boxes")[0]


def test_each_flag_is_reported_once(run: tuple[Path, str, float]) -> None:
    """The one that was asked for says why it is not active, the other that it is off."""
    lines = run[1].splitlines()
    assert lines.count("capture_updates: not active (no CUDA device)") == 1
    assert lines.count("capture_orthogonalization: off") == 1


def test_it_logs_draws_and_saves(run: tuple[Path, str, float]) -> None:
    """Curves as CSV, for TensorBoard and as a picture; the best and the last checkpoint; the average precision of each epoch."""
    folder = run[0] / "detector" / "version_0"
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["best.ckpt", "last.ckpt"]
    assert any(path.name.startswith("events.out.tfevents") for path in folder.iterdir())
    with Image.open(folder / "curves.png") as curves:
        assert curves.format == "PNG"
        assert len(curves.convert("L").getcolors(1 << 16) or []) > 10
    assert len(logged(run[0], "val/mAP50")) == 2
    rates = logged(run[0], "train/lr")
    assert rates[0] < max(rates) > rates[-1]


def test_a_checkpoint_predicts(run: tuple[Path, str, float], folder: Path, tmp_path: Path) -> None:
    """Boxes are drawn on a copy of each image, of the image's own size; the classes are the data set's."""
    images = folder / "images" / "val"
    done = command("predict", "--ckpt", checkpoint(run[0], "last"), images, "--out", tmp_path / "drawn", "--threshold", 0)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 4
    for file in images.iterdir():
        with Image.open(tmp_path / "drawn" / f"{file.stem}.png") as drawn, Image.open(file) as original:
            assert drawn.size == original.size
            assert drawn.tobytes() != original.convert("RGB").tobytes()
    hyper = torch.load(checkpoint(run[0], "last"), map_location="cpu", weights_only=False)["hyper_parameters"]
    assert hyper["names"] == list(CLASSES.values())
    assert hyper["size"] == 64


@pytest.mark.filterwarnings("ignore")  # Lightning reads its checkpoint by ways that jsonargparse means to end
def test_what_cannot_be_predicted_is_said(
    run: tuple[Path, str, float], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No checkpoint, something else, no images, no image: exit 2 and the file's name."""
    good, image = str(checkpoint(run[0], "last")), str(folder / "images" / "val" / "val-000.jpg")
    other, empty = tmp_path / "other.ckpt", tmp_path / "empty"
    other.write_bytes(b"something else")
    empty.mkdir()
    deep = tmp_path / "deep.png"
    Image.new("I;16", (64, 64)).save(deep)
    for ckpt, images in (
        (str(tmp_path / "none"), image),
        (str(other), image),
        (good, str(empty)),
        (good, str(tmp_path / "none")),
        (good, str(other)),
        (good, str(deep)),
    ):
        assert main(["predict", "--ckpt", ckpt, images, "--out", str(tmp_path / "out")]) == 2
        named = ckpt if ckpt != good else images
        assert named in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore")
def test_a_drawing_takes_no_place_of_another_file(
    run: tuple[Path, str, float], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither of an image that is looked at, nor of another drawing; a file named twice is one."""
    good, image = str(checkpoint(run[0], "last")), folder / "images" / "val" / "val-000.jpg"
    here, there, out = tmp_path / "here", tmp_path / "there", tmp_path / "out"
    for place in (here, there):
        place.mkdir()
        with Image.open(image) as opened:
            opened.save(place / "same.png")
    before = (here / "same.png").read_bytes()
    assert main(["predict", "--ckpt", good, str(here), "--out", str(here)]) == 2
    assert "drawn over the image" in capsys.readouterr().err
    assert main(["predict", "--ckpt", good, str(here), str(there), "--out", str(out)]) == 2
    assert f"would both be drawn in {out / 'same.png'}" in capsys.readouterr().err
    assert (here / "same.png").read_bytes() == before
    assert not out.exists()
    assert main(["predict", "--ckpt", good, str(here), str(here / "same.png"), "--out", str(out)]) == 0
    assert [path.name for path in out.iterdir()] == ["same.png"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--ckpt_path", "{out}/none.ckpt"], "none.ckpt: there is no such file"),
        (["--ckpt_path", "{out}/part.ckpt"], "part.ckpt: is no checkpoint, or not all of one"),
        (["--ckpt_path", "{ckpt}", "--model.width", "0.25"], "The checkpoint was made with width = 1.0, and here it is 0.25"),
        (["--ckpt_path", "{ckpt}", "--data.train", "{out}/fewer.json"], "The checkpoint was made with images = "),
        (["--ckpt_path", "{ckpt}", "--data.batch", "2"], "The checkpoint was made with batch = 4, and here it is 2"),
        (["--ckpt_path", "{ckpt}", "--data.seed", "1"], "The checkpoint was made with seed = 0, and here it is 1"),
        (["--trainer.default_root_dir", "{out}/part.ckpt"], "part.ckpt/detector: Not a directory"),
        (["--trainer.max_epochs", "-1"], "The schedule needs an end"),
        (["--trainer.max_epochs", "-5"], "`max_epochs` must be"),
        (["--model.width", "0"], "--model.width is 0.0, and has to be above 0"),
        (["--model.decay", "1"], "--model.decay is 1.0, and has to be"),
        (["--data.batch", "0"], "--data.batch is 0"),
    ],
)
def test_what_cannot_be_trained_is_said(
    run: tuple[Path, str, float], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    """Exit 2 and a sentence, of options as of data."""
    ckpt = checkpoint(run[0], "last")
    (tmp_path / "part.ckpt").write_bytes(ckpt.read_bytes()[:10000])
    table = json.loads((folder / "annotations" / "train.json").read_text(encoding="utf-8"))
    table["images"].pop()
    table["annotations"] = [each for each in table["annotations"] if each["image_id"] in {image["id"] for image in table["images"]}]
    (tmp_path / "fewer.json").write_text(json.dumps(table), encoding="utf-8")
    given = [argument.format(out=tmp_path, ckpt=ckpt) for argument in arguments]
    usual = ["--trainer.accelerator", "cpu", "--trainer.default_root_dir", str(tmp_path / "out"), "--trainer.max_epochs", "3"]
    assert main(["fit", "--data.root", str(folder), "--data.size", "64", *usual, *given]) == 2
    assert told in capsys.readouterr().err


def test_what_is_asked_for_counts_when_a_fit_goes_on(run: tuple[Path, str, float], folder: Path, tmp_path: Path) -> None:
    """Before what its checkpoint was made with; the rest is the checkpoint's."""
    options = ("--ckpt_path", checkpoint(run[0], "last"), "--model.capture_orthogonalization", "true", "--model.capture_updates", "false")
    done = fit(folder, tmp_path / "out", *options)  # which has no steps left
    assert done.returncode == 0, done.stderr
    lines = (done.stdout + done.stderr).splitlines()
    assert "capture_orthogonalization: not active (no CUDA device)" in lines
    assert "capture_updates: off" in lines
    done = fit(folder, tmp_path / "out", *options[:2])
    assert "capture_updates: not active (no CUDA device)" in (done.stdout + done.stderr).splitlines()


def test_a_faulty_set_ends_the_command_with_a_sentence(tmp_path: Path) -> None:
    """Exit 2, file and annotation, no traceback."""
    root = coco_folder(tmp_path / "set", train=4, val=1)
    content = load(root, "train")
    content["annotations"][2]["bbox"] = [0, 0, 0, 5]
    write(root, "train", content)
    done = fit(root, tmp_path / "out")
    assert done.returncode == 2
    assert "train-000.jpg, annotation 102: its box [0, 0, 0, 5] has no area" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("arguments", "code"), [([], 2), (["--help"], 0)])
def test_without_a_command_it_says_what_there_is(arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """All four commands."""
    assert main(arguments) == code
    said = capsys.readouterr().out
    assert all(f"detector {name}" in said for name in ("fit", "data synth", "predict", "validate"))
