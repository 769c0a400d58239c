"""Writes checkpoints while the training goes on: what they hold is brought to the host at once, and a thread does the rest."""

from __future__ import annotations

import copy
import sys
import warnings
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO
from lightning.fabric.utilities.cloud_io import get_filesystem
from torch import Tensor

MOST = 2  # on the way to their files: the best one and the last one


class Checkpoints(TorchCheckpointIO):
    """Lightning's own files, but where one takes the place of an older one it is written in the background, one after the other.

    A new name is written at once: Lightning links to it, or counts names, without asking. A file that cannot be written is an error of
    the next one, or of the end of the fit, which waits for all, as does whoever loads or removes one here; outside of a fit nothing does.
    """

    def __init__(self) -> None:
        self._writer: ThreadPoolExecutor | None = None
        self._under_way: deque[Future[None]] = deque()

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any | None = None) -> None:
        """Keeps a copy of all that is in the checkpoint, and has it written. Raises what an earlier one could not be written for."""
        if not get_filesystem(path).exists(str(path)):
            self._wait()
            super().save_checkpoint(checkpoint, path, storage_options)
            return
        self._wait(MOST - 1)
        if self._writer is None:
            self._writer = ThreadPoolExecutor(1, "checkpoints")
        self._under_way.append(self._writer.submit(super().save_checkpoint, on_host(checkpoint), path, storage_options))

    def load_checkpoint(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        """As Lightning does it."""
        self._wait()
        return super().load_checkpoint(*arguments, **options)

    def remove_checkpoint(self, path: str | Path) -> None:
        """As Lightning does it."""
        self._wait()
        super().remove_checkpoint(path)

    def teardown(self) -> None:
        """Waits for what is under way. Where the fit has failed, what could not be written is a warning beside that."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.shutdown()
        if sys.exc_info()[0] is None:
            self._wait()
            return
        while self._under_way:
            if error := self._under_way.popleft().exception():
                warnings.warn(f"a checkpoint could not be written: {error}", stacklevel=2)

    def _wait(self, left: int = 0) -> None:
        """Until no more than so many are under way. Raises what one of those that have ended has failed with."""
        while len(self._under_way) > left or (self._under_way and self._under_way[0].done()):
            wait([self._under_way[0]])  # an interrupt here loses nothing
            self._under_way.popleft().result()


def on_host(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """A copy of a checkpoint that shares nothing with it, its tensors on the CPU: those of a device come in one transfer a dtype."""
    found = {id(tensor): tensor.detach() for tensor in _tensors(checkpoint)}
    alike: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for key, tensor in found.items():
        alike.setdefault((tensor.device, tensor.dtype), []).append(key)
    copies: dict[int, Any] = {}
    for (device, _), keys in alike.items():
        several = [found[key] for key in keys]
        if device.type != "cpu":
            flat = torch.cat([tensor.reshape(-1) for tensor in several]).cpu()
            parts = torch.split(flat, [tensor.numel() for tensor in several])
            several = [part.view(tensor.shape) for part, tensor in zip(parts, several, strict=True)]
        copies |= {key: tensor.clone() for key, tensor in zip(keys, several, strict=True)}
    return copy.deepcopy(checkpoint, copies)


def _tensors(value: Any) -> Iterator[Tensor]:
    """Those in nested dicts, lists and tuples."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _tensors(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _tensors(inner)
