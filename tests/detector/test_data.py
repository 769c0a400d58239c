"""The order of the data: from the seed and the place in the training alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Trainer

from detector import score
from detector.coco import DataError
from detector.data import CocoData, Order, collate
from detector.module import Detector


def batches(images: int, batch: int, seed: int, seen: int, epochs: int = 1, rank: int = 0, world: int = 1) -> list[list[tuple[int, int]]]:
    """Epoch after epoch, from a number of batches on."""
    at = [seen]
    found = []
    for _ in range(epochs):
        order = list(Order(images, batch, seed, lambda: at[0], rank, world))
        at[0] += len(order)
        found.extend(order)
    return found


def test_an_epoch_holds_every_image_once() -> None:
    """In another order than the next epoch, and than under another seed."""
    first, second = batches(12, 4, 0, 0), batches(12, 4, 0, 3)
    for epoch, found in enumerate((first, second)):
        assert sorted(image for one in found for _, image in one) == list(range(12))
        assert {which for one in found for which, _ in one} == {epoch}
    images = [[image for one in found for _, image in one] for found in (first, second, batches(12, 4, 1, 0))]
    assert images[0] != images[1]
    assert images[0] != images[2]
    assert batches(12, 4, 0, 0) == first


@pytest.mark.parametrize("seen", range(9))
def test_it_goes_on_from_any_batch(seen: int) -> None:
    """After any number of batches, the ones that would have come; in mid-epoch and at its end."""
    whole = batches(14, 4, 5, 0, epochs=5)
    assert len(whole) == 15
    assert batches(14, 4, 5, seen, epochs=2) == whole[seen : seen + 6]


def test_ranks_share_what_one_would_have() -> None:
    """Two ranks of two images each have, together, the batches of one of four."""
    alone = batches(14, 4, 5, 0, epochs=2)
    halves = [batches(14, 2, 5, 0, epochs=2, rank=rank, world=2) for rank in (0, 1)]
    assert [one + other for one, other in zip(*halves, strict=True)] == alone


def test_samples_are_padded_to_equal_numbers(folder: Path) -> None:
    """The batch's shapes do not depend on which images are in it; keys are seed, epoch and image."""
    data = CocoData(str(folder), size=64, batch=4, seed=7)
    data.setup("fit")
    samples = data.sets["train"]
    batch = collate([samples[2, 5], samples[2, 0]])
    assert batch.images.shape == (2, 3, 64, 64)
    assert batch.images.dtype == torch.uint8
    assert batch.boxes.shape == (2, 3, 4)
    assert batch.keys.tolist() == [[7, 2, 5], [7, 2, 0]]


def test_a_batch_is_its_samples_in_memory_of_its_own(folder: Path) -> None:
    """Every field as torch stacks it; what is done to a batch is not done to the decoded images."""
    data = CocoData(str(folder), size=64, batch=4)
    data.setup("fit")
    samples = [data.sets["train"][0, number] for number in (3, 1, 2)]
    batch = collate(samples)
    for got, parts in zip(batch, zip(*samples, strict=True), strict=True):
        assert torch.equal(got, torch.stack(parts))
    assert not torch.equal(batch.images, collate(samples[::-1]).images)
    assert batch.images.is_pinned() == torch.cuda.is_available()
    batch.images.zero_()
    assert samples[0].images.any()


@pytest.mark.filterwarnings("ignore")  # Lightning and its own dependencies disagree
def test_a_validation_is_that_of_its_batches_one_by_one(folder: Path) -> None:
    """Batches of three and one come to the host together, each image with its own; images exchanged, or another network: another result."""
    told = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        data = CocoData(str(folder), size=64, batch=3)
        data.setup("fit")
        module, samples = Detector(data.names, 64, 0.25), data.sets["val"]
        options: dict[str, Any] = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
        trainer = Trainer(accelerator="cpu", enable_checkpointing=False, **options)
        trainer.validate(module, datamodule=data, verbose=False)
        results = {}
        with torch.inference_mode():
            module.eval()
            for batch in data.val_dataloader():
                parts = score.candidates(module(batch.images.float() / 255))
                for number, scores, labels, boxes in zip(batch.keys[:, 2].tolist(), *parts, strict=True):
                    picture = samples.pictures[number]
                    results[picture.id] = score.found(scores, labels, boxes, picture.size, 64)
        told.append({key: value.item() for key, value in trainer.callback_metrics.items()})
        expected = score.average_precision(samples.pictures, data.names, results)
        assert told[-1] == {f"val/{key}": torch.tensor(value).item() for key, value in expected.items()}
        swapped = dict(zip(results, list(results.values())[::-1], strict=True))
        assert score.average_precision(samples.pictures, data.names, swapped) != expected
    assert told[0] != told[1]
    assert max(told[0].values()) > 0


def test_a_checkpoint_is_held_to_its_data(folder: Path) -> None:
    """The same data is taken, another batch size, seed or number of images is refused by name."""
    data = CocoData(str(folder), size=64, batch=4)
    data.setup("fit")
    state = data.state_dict()
    data.load_state_dict(state)
    for key in state:
        with pytest.raises(DataError, match=f"{key} = {state[key] + 1}"):
            data.load_state_dict({**state, key: state[key] + 1})


@pytest.mark.parametrize(
    ("option", "value"), [("batch", 0), ("batch", -1), ("workers", -1), ("cache_limit", -1), ("seed", -1), ("seed", 1 << 32)]
)
def test_an_option_that_cannot_be_is_refused_by_name(option: str, value: int) -> None:
    """Before anything is read."""
    options: dict[str, Any] = {option: value}
    with pytest.raises(DataError, match=f"--data.{option} is {value}, and has to be at least"):
        CocoData("nowhere", **{"size": 64, **options})


def test_the_folder_for_images_has_to_be_there(folder: Path, tmp_path: Path) -> None:
    """A file or nothing is refused, whether or not it is needed."""
    with pytest.raises(DataError, match="none, and that is no folder"):
        CocoData(str(folder), size=64, cache_dir=str(tmp_path / "none"))
    CocoData(str(folder), size=64, cache_dir=str(tmp_path))


def test_torchs_generator_stays_where_it_is(folder: Path) -> None:
    """Loading draws nothing from it: how many workers there are moves no bit of what else draws."""
    data = CocoData(str(folder), size=64, batch=4)
    data.setup("fit")
    before = torch.get_rng_state()
    assert len(list(data.train_dataloader())) == 4
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(1)
    assert not torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("accumulate", "limit", "steps"), [(1, None, 4), (2, None, 2), (3, None, 2), (1, 3, 3), (1, 0.5, 2), (2, 1.0, 2), (1, 99, 4)]
)
def test_steps_of_an_epoch_are_counted(accumulate: int, limit: float | None, steps: int, folder: Path) -> None:
    """Sixteen images by four, with accumulation and Trainer's limits."""
    data = CocoData(str(folder), size=64, batch=4)
    data.setup("fit")
    assert data.epoch(accumulate, limit) == steps
