"""Augmentation: boxes go where their pixels go, each sample by its own keys."""

from __future__ import annotations

import colorsys

import pytest
import torch
from torch import Tensor

from detector.augment import HUE, SATURATION, VALUE, Batch, augment, plain, recolour, sent

SIDE = 64


def batch(count: int = 12, seed: int = 0) -> Batch:
    """Grey images with one bright rectangle each, its box and one of padding."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.full((count, 3, SIDE, SIDE), 90, dtype=torch.uint8)
    boxes = torch.zeros(count, 2, 4)
    for i in range(count):
        x, y, w, h = (int(v) for v in torch.randint(10, 24, (4,), generator=generator))
        images[i, :, y : y + h, x : x + w] = 250
        boxes[i, 0] = torch.tensor([x, y, x + w, y + h])
    labels = torch.tensor([[1, -1]]).repeat(count, 1)
    keys = torch.stack([torch.zeros(count), torch.ones(count), torch.arange(count)], 1).long()
    return Batch(images, boxes, labels, keys)


def bright(image: Tensor) -> list[float]:
    """Corners of what is brighter than the rest of an image (3, S, S)."""
    value = image.amax(0)
    mask = value > (value.max() + value.min()) / 2
    columns, rows = mask.any(0).nonzero().flatten(), mask.any(1).nonzero().flatten()
    return [columns[0].item(), rows[0].item(), columns[-1].item() + 1, rows[-1].item() + 1]


def test_a_box_goes_where_its_pixels_go() -> None:
    """To a pixel, at either flip and every scale; and hardly any stays where it was."""
    before = batch()
    after = augment(before)
    moved = 0
    for i in range(len(before.images)):
        if after.labels[i, 0] < 0:
            continue
        assert after.boxes[i, 0].tolist() == pytest.approx(bright(after.images[i]), abs=1.01)
        moved += (after.boxes[i, 0] - before.boxes[i, 0]).abs().max().item() > 2
    assert moved >= 8


def test_a_sample_is_changed_by_its_keys_alone() -> None:
    """In any company the same bits; with another epoch or seed others."""
    whole = batch()
    after = augment(whole)
    for parts in ([3], [9, 3, 0]):
        some = augment(Batch(*(part[parts] for part in whole)))
        assert all(torch.equal(one, other[parts]) for one, other in zip(some, after, strict=True))
    for column in (0, 1):
        keys = whole.keys.clone()
        keys[:, column] += 1
        other = augment(whole._replace(keys=keys))
        assert all(not torch.equal(one, another) for one, another in zip(other.images, after.images, strict=True))


@pytest.mark.cuda
def test_it_has_the_same_bits_wherever_the_batch_comes_from() -> None:
    """What is drawn, and the boxes, are computed on the host or on the device; images on the device."""
    whole = batch(64)
    device = torch.device("cuda")
    from_host, there = augment(whole, device), augment(sent(whole, device))
    assert all(torch.equal(one, other) and one.is_cuda and other.is_cuda for one, other in zip(from_host, there, strict=True))
    other = augment(whole._replace(keys=whole.keys + 1), device)
    assert not torch.equal(other.images, there.images)
    assert not torch.equal(other.boxes, there.boxes)


def test_what_is_left_is_inside_and_what_is_not_becomes_padding() -> None:
    """Over many draws some boxes are cut off, some are gone; none leaves the image, padding stays padding."""
    many = batch(200)
    many.boxes[:, 0] = torch.tensor([0.0, 20.0, 12.0, 40.0])  # at the edge
    after = augment(many)
    assert (after.labels[:, 1] == -1).all()
    seen = after.boxes[after.labels >= 0]
    assert seen.min() >= 0
    assert seen.max() <= SIDE
    assert (seen[:, 2:] - seen[:, :2]).min() >= 2
    assert 0 < int((after.labels[:, 0] == -1).sum()) < 60
    assert int(((seen == 0) | (seen == SIDE)).any(-1).sum()) > 10


def test_images_stay_between_zero_and_one() -> None:
    """Changed or not; float32 from bytes."""
    for prepared in (augment(batch()), plain(batch())):
        assert prepared.images.dtype == torch.float32
        assert prepared.images.min() >= 0
        assert prepared.images.max() <= 1
    assert plain(batch()).images[0, 0, 0, 0].item() == pytest.approx(90 / 255)


def test_colours_move_as_the_standard_library_has_them() -> None:
    """Hue, saturation and value of random colours and of grey, black and white, against colorsys."""
    generator = torch.Generator().manual_seed(0)
    colours = torch.rand(1, 3, 8, 8, generator=generator)
    colours[0, :, 0, :3] = torch.tensor([[0.0, 1.0, 0.5]] * 3)
    for u in ([0.5, 0.5, 0.5], [0.9, 0.5, 0.5], [0.5, 0.1, 0.5], [0.5, 0.5, 0.8], [0.02, 0.97, 0.3]):
        turn, saturation, value = ((2 * one - 1) * most for one, most in zip(u, (HUE, SATURATION, VALUE), strict=True))
        got = recolour(colours, torch.tensor([u]))[0].flatten(1).T.tolist()
        for colour, result in zip(colours[0].flatten(1).T.tolist(), got, strict=True):
            h, s, v = colorsys.rgb_to_hsv(*colour)
            wanted = colorsys.hsv_to_rgb((h + turn) % 1, min(1, s * (1 + saturation)), min(1, v * (1 + value)))
            assert result == pytest.approx(wanted, abs=1e-5)
    assert not torch.allclose(recolour(colours, torch.tensor([[0.9, 0.5, 0.5]])), colours, atol=1e-3)
