"""The network: a backbone of cross-stage partial blocks, a pyramid that goes down and up again, decoupled heads without anchors."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

STRIDES = (8, 16, 32)
PRIOR = 0.01  # what every class scores before training, in images of 640 pixels
REACH = 2.0  # strides from a location to its box's sides before training, nearly


class Output(NamedTuple):
    """What the network says of a batch.

    Attributes:
        logits: (B, L, C), of the classes.
        distances: (B, L, 4), float32, from each location to the box's left, top, right and bottom, in pixels, above 0.
        points: (L, 2), float32, the locations (x, y), in pixels.
    """

    logits: Tensor
    distances: Tensor
    points: Tensor

    @property
    def boxes(self) -> Tensor:
        """(B, L, 4), corners, not clipped to the image."""
        return torch.cat([self.points - self.distances[..., :2], self.points + self.distances[..., 2:]], -1)


class Conv(nn.Sequential):
    """Convolution without bias, batch norm, SiLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, stride: int = 1) -> None:
        convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        super().__init__(convolution, nn.BatchNorm2d(outputs), nn.SiLU())


class Residual(nn.Module):
    """Two 3x3 convolutions beside the identity."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(Conv(channels, channels, 3), Conv(channels, channels, 3))

    def forward(self, x: Tensor) -> Tensor:
        """(B, c, h, w) to the same."""
        return x + torch.as_tensor(self.body(x))


class Partial(nn.Module):
    """Cross-stage partial block: half of the channels go through the residuals, half past them."""

    def __init__(self, inputs: int, outputs: int, depth: int) -> None:
        super().__init__()
        half = outputs // 2
        self.past = Conv(inputs, half)
        self.through = nn.Sequential(Conv(inputs, half), *(Residual(half) for _ in range(depth)))
        self.join = Conv(2 * half, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """(B, inputs, h, w) to (B, outputs, h, w)."""
        return torch.as_tensor(self.join(torch.cat([self.through(x), self.past(x)], 1)))


class Backbone(nn.Module):
    """(B, 3, H, W) to the maps of strides 8, 16 and 32."""

    def __init__(self, channels: list[int]) -> None:
        super().__init__()
        self.stem = Conv(3, channels[0], 3, 2)
        steps = zip(channels, channels[1:], (1, 2, 2, 1), strict=False)
        self.stages = nn.ModuleList(nn.Sequential(Conv(i, o, 3, 2), Partial(o, o, depth)) for i, o, depth in steps)

    def forward(self, images: Tensor) -> list[Tensor]:
        """Finest first."""
        x = self.stem(images)
        maps = []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        return maps[1:]


class Pyramid(nn.Module):
    """Brings what the coarse maps know to the fine ones, and back: three maps to three of the same shapes."""

    def __init__(self, fine: int, middle: int, coarse: int) -> None:
        super().__init__()
        self.down = nn.ModuleList([Partial(coarse + middle, middle, 1), Partial(middle + fine, fine, 1)])
        self.shrink = nn.ModuleList([Conv(fine, fine, 3, 2), Conv(middle, middle, 3, 2)])
        self.up = nn.ModuleList([Partial(fine + middle, middle, 1), Partial(middle + coarse, coarse, 1)])

    def forward(self, maps: list[Tensor]) -> list[Tensor]:
        """Finest first."""
        fine, middle, coarse = maps
        middle = self.down[0](torch.cat([F.interpolate(coarse, scale_factor=2.0), middle], 1))
        fine = self.down[1](torch.cat([F.interpolate(middle, scale_factor=2.0), fine], 1))
        middle = self.up[0](torch.cat([self.shrink[0](fine), middle], 1))
        return [fine, middle, self.up[1](torch.cat([self.shrink[1](middle), coarse], 1))]


class Head(nn.Module):
    """What one level says: classes and distances, each by convolutions of its own."""

    def __init__(self, inputs: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.classes = nn.Sequential(Conv(inputs, hidden, 3), Conv(hidden, hidden, 3), nn.Conv2d(hidden, classes, 1))
        self.distances = nn.Sequential(Conv(inputs, hidden, 3), Conv(hidden, hidden, 3), nn.Conv2d(hidden, 4, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(B, inputs, h, w) to logits (B, hw, C) and raw distances (B, hw, 4)."""
        return self.classes(x).flatten(2).transpose(1, 2), self.distances(x).flatten(2).transpose(1, 2)


class Network(nn.Module):
    """The whole of it: (B, 3, H, W), float in 0 to 1, H and W multiples of 32, to an Output.

    Args:
        classes: how many there are.
        width: factor on the channels; 1 is the nano network of 2.7 million parameters.
        prior: what every class scores everywhere before training.
    """

    def __init__(self, classes: int, width: float = 1.0, prior: float = PRIOR) -> None:
        super().__init__()
        channels = [max(8, 8 * round(width * c / 8)) for c in (16, 32, 64, 128, 256)]
        self.backbone = Backbone(channels)
        self.pyramid = Pyramid(*channels[2:])
        self.heads = nn.ModuleList(Head(c, channels[2], classes) for c in channels[2:])
        self._initialise(-math.log((1 - prior) / prior))

    def forward(self, images: Tensor) -> Output:
        """No value is brought to the host here, and no shape depends on one."""
        logits, distances, points = [], [], []
        for x, head, stride in zip(self.pyramid(self.backbone(images)), self.heads, STRIDES, strict=True):
            of_classes, raw = head(x)
            logits.append(of_classes)
            distances.append(F.softplus(raw.float()) * stride)
            points.append(centres(x.shape[2], x.shape[3], stride, x.device))
        return Output(torch.cat(logits, 1), torch.cat(distances, 1), torch.cat(points))

    def _initialise(self, bias: float) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        for head in self.heads:
            assert isinstance(head, Head)
            of_classes, of_distances = head.classes[-1], head.distances[-1]
            assert isinstance(of_classes, nn.Conv2d)
            assert isinstance(of_distances, nn.Conv2d)
            for last, start in ((of_classes, bias), (of_distances, REACH)):
                assert last.bias is not None
                nn.init.normal_(last.weight, std=0.01)
                nn.init.constant_(last.bias, start)


def centres(height: int, width: int, stride: int, device: torch.device) -> Tensor:
    """Centres (x, y) of a level's cells in pixels: (height * width, 2), float32, row by row."""
    y, x = torch.meshgrid(torch.arange(height, device=device), torch.arange(width, device=device), indexing="ij")
    return (torch.stack([x, y], -1).reshape(-1, 2).float() + 0.5) * stride
