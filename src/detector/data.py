"""Batches of a COCO data set, in an order that follows from the seed and from how many there were before."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import numpy as np
import torch
from lightning.pytorch.utilities import rank_zero_info
from torch.utils.data import DataLoader, Dataset, Sampler, get_worker_info

from detector import coco
from detector.augment import Batch, augment, plain, sent
from detector.cache import Pixels, decode, fit
from detector.coco import DataError, OnError, Picture

Place = tuple[int, int]  # epoch, number of the image


class Order(Sampler[list[Place]]):
    """The batches of one rank: each epoch in an order of its own, going on where the training is.

    Args:
        images: how many there are.
        batch: how many at a time.
        seed: of the orders.
        seen: says how many batches each rank has had.
        rank: of this process, of `world`.
        world: how many processes share the batches.
    """

    def __init__(self, images: int, batch: int, seed: int, seen: Callable[[], int], rank: int = 0, world: int = 1) -> None:
        self.images, self.batch, self.seed, self.seen, self.rank, self.world = images, batch, seed, seen, rank, world

    def __len__(self) -> int:
        """Batches an epoch; images that do not fill the last one are left out of that epoch."""
        return self.images // (self.batch * self.world)

    def __iter__(self) -> Iterator[list[Place]]:
        """As many batches as an epoch has, from the next one on."""
        start, shuffled = self.seen(), -1
        for number in range(start, start + len(self)):
            epoch, turn = divmod(number, len(self))
            if epoch != shuffled:
                order, shuffled = np.random.RandomState((self.seed, epoch)).permutation(self.images), epoch
            first = (turn * self.world + self.rank) * self.batch
            yield [(epoch, int(image)) for image in order[first : first + self.batch]]


class Samples(Dataset[Batch]):
    """Images with their boxes, padded to equal numbers.

    Args:
        pictures: what is on them.
        pixels: (N, 3, S, S), their decoded images.
        seed: goes into the keys.
    """

    def __init__(self, pictures: list[Picture], pixels: Pixels, seed: int) -> None:
        self.pictures, self.pixels, self.seed = pictures, pixels, seed
        self.most = max([1, *(int((~picture.crowds).sum()) for picture in pictures)])

    def __len__(self) -> int:
        """Images."""
        return len(self.pictures)

    def __getitem__(self, place: Place) -> Batch:
        """One image, without the dimension of the batch."""
        epoch, number = place
        picture = self.pictures[number]
        single, found = ~picture.crowds, int((~picture.crowds).sum())
        scale, left, above = fit(picture.size, self.pixels.shape[-1])
        boxes, labels = np.zeros((self.most, 4), np.float32), np.full(self.most, -1, np.int64)
        boxes[:found] = picture.boxes[single] * np.float32(scale) + np.array([left, above] * 2, np.float32)
        labels[:found] = picture.labels[single]
        image = torch.from_numpy(self.pixels[number])  # not copied: `collate` does that
        return Batch(image, torch.from_numpy(boxes), torch.from_numpy(labels), torch.tensor([self.seed, epoch, number]))


def collate(samples: list[Batch]) -> Batch:
    """Samples to a batch. The images are copied once, to where the device reads them from, and by numpy: torch waits for its threads."""
    images, *others = zip(*samples, strict=True)
    pinned = torch.cuda.is_available() and get_worker_info() is None  # a worker is a fork, which must not touch the device
    pixels = torch.empty(len(images), *images[0].shape, dtype=images[0].dtype, pin_memory=pinned)
    np.stack([image.numpy() for image in images], out=pixels.numpy())
    return Batch(pixels, *(torch.stack(parts) for parts in others))


class CocoData(pl.LightningDataModule):
    """A data set of COCO's format: images in folders, annotations in JSON files.

    Args:
        root: the folder that the other paths start from.
        train: annotation file of the training images.
        train_images: their folder.
        val: annotation file of the validation images.
        val_images: their folder.
        size: side of the squares that images are brought to, in pixels, a multiple of 32.
        batch: images a step and rank.
        workers: processes that put batches together, 0 for none.
        persistent_workers: whether they outlive an epoch.
        cache_limit: MiB of memory for decoded images; what takes more is kept in a file. None for no limit.
        cache_dir: the folder for that file, the system's temporary one by default.
        on_error: "raise" for a fault in the data, or "skip" what has one.
        augment: whether training images are changed at random: colours, size, place.
        seed: of the order and of the augmentation.
    """

    def __init__(
        self,
        root: str,
        train: str = "annotations/train.json",
        train_images: str = "images/train",
        val: str = "annotations/val.json",
        val_images: str = "images/val",
        size: int = 640,
        batch: int = 4,
        workers: int = 0,
        persistent_workers: bool = False,
        cache_limit: int | None = 4096,
        cache_dir: str | None = None,
        on_error: OnError = "raise",
        augment: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if size < 32 or size % 32:
            raise DataError(f"--data.size is {size}, and has to be a multiple of 32")
        for name, value, least in (("batch", batch, 1), ("workers", workers, 0), ("cache_limit", cache_limit or 0, 0), ("seed", seed, 0)):
            if not least <= value < 1 << 32:
                raise DataError(f"--data.{name} is {value}, and has to be at least {least} and below 2^32")
        if cache_dir is not None and not Path(cache_dir).is_dir():
            raise DataError(f"--data.cache_dir is {cache_dir}, and that is no folder. Make it.")
        self.root, self.size, self.batch, self.on_error, self.seed = Path(root), size, batch, on_error, seed
        self.sources = {"train": (train, train_images), "val": (val, val_images)}
        self.workers, self.persistent_workers = workers, persistent_workers
        self.augment, self.cache_limit, self.cache_dir = augment, cache_limit, None if cache_dir is None else Path(cache_dir)
        self.sets: dict[str, Samples] = {}

    @cached_property
    def categories(self) -> dict[int, str]:
        """The classes by their ids, those of the training images."""
        return coco.categories(self.root / self.sources["train"][0])

    @property
    def names(self) -> list[str]:
        """The classes in the order of their labels."""
        return list(self.categories.values())

    def setup(self, stage: str | None = None) -> None:
        """Reads and decodes. Raises DataError with all faults found."""
        for part in ("train", "val") if stage in (None, "fit") else ("val",):
            self.sets.setdefault(part, self._read(part))
        if "train" in self.sets and not len(self._order()):
            images, needed = len(self.sets["train"]), self.batch * self._order().world
            raise DataError(f"{images} training images do not fill a batch of {needed}. Add some, or lower --data.batch.")

    def train_dataloader(self) -> DataLoader[Batch]:
        """Batches in the order of the seed, from where the training is."""
        return self._loader(self.sets["train"], batch_sampler=self._order())

    def val_dataloader(self) -> DataLoader[Batch]:
        """All validation images once, shared out among the ranks."""
        rank, world = self._rank()
        numbers = list(range(rank, len(self.sets["val"]), world))
        places = [[(0, number) for number in numbers[i : i + self.batch]] for i in range(0, len(numbers), self.batch)]
        return self._loader(self.sets["val"], batch_sampler=places)

    def state_dict(self) -> dict[str, int]:
        """What the place in the data depends on. Where that place is follows from the progress that a checkpoint of Lightning's holds."""
        order = self._order()
        return {"images": order.images, "batch": order.batch, "world": order.world, "seed": order.seed}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Raises DataError for other data than a checkpoint was made with."""
        for key, here in self.state_dict().items():
            if state.get(key, here) != here:
                raise DataError(f"The checkpoint was made with {key} = {state[key]}, and here it is {here}. Resume with the same.")

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        """Prepares the images on the device; for training, changes them."""
        if self.augment and self.trainer is not None and self.trainer.training:
            return augment(batch, device)
        return plain(sent(batch, device))

    def epoch(self, accumulate: int, limit: float | int | None) -> int:
        """Optimizer steps an epoch.

        Args:
            accumulate: batches a step.
            limit: as Trainer's limit_train_batches.
        """
        batches = len(self._order())
        if limit is not None:
            batches = min(batches, limit) if isinstance(limit, int) else int(batches * limit)
        return math.ceil(batches / accumulate)

    def _read(self, part: str) -> Samples:
        file, images = (self.root / path for path in self.sources[part])
        reading = coco.read(file, images, None if part == "train" else self.categories)
        reading.pictures, pixels, faults = decode(reading.pictures, self.size, self.cache_limit, self.cache_dir)
        reading.faults.extend(faults)
        if told := reading.settle(file, self.on_error):
            rank_zero_info(told)
        return Samples(reading.pictures, pixels, self.seed)

    def _order(self) -> Order:
        return Order(len(self.sets["train"]), self.batch, self.seed, self._seen, *self._rank())

    def _seen(self) -> int:
        """Batches that this training has had, in this process and in those that it goes on from."""
        return self.trainer.fit_loop.epoch_loop.batch_progress.total.ready if self.trainer else 0

    def _rank(self) -> tuple[int, int]:
        return (self.trainer.global_rank, self.trainer.world_size) if self.trainer else (0, 1)

    def _loader(self, samples: Samples, **options: Any) -> DataLoader[Batch]:
        return DataLoader(
            samples,
            **options,
            collate_fn=collate,
            num_workers=self.workers,
            persistent_workers=self.persistent_workers and self.workers > 0,
            multiprocessing_context="fork" if self.workers else None,  # the decoded images are shared, not copied
            generator=torch.Generator().manual_seed(self.seed),  # its own: torch's stays where it is
            pin_memory=self.workers > 0 and torch.cuda.is_available(),  # without workers, `collate` has put the images there
        )
