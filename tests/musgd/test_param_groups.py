"""The usual split of a module's parameters."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from musgd import MuSGD, param_groups


class Everything(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5, 4)
        self.conv = nn.Conv2d(1, 2, 3)
        self.bn = nn.BatchNorm2d(2)
        self.conv1d = nn.Conv1d(2, 2, 3)
        self.norm = nn.LayerNorm((3, 4))
        self.rms = nn.RMSNorm((3, 4))
        self.attention = nn.MultiheadAttention(4, 2, add_bias_kv=True)
        self.gamma = nn.Parameter(torch.ones(4))
        self.tau = nn.Parameter(torch.ones(()))
        self.bias_table = nn.Parameter(torch.ones(3, 4))
        self.frozen = nn.Linear(4, 4).requires_grad_(False)
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.embed.weight


HYBRID = {"embed.weight", "conv.weight", "attention.in_proj_weight", "attention.out_proj.weight", "frozen.weight"}


def _names(module: nn.Module, group: dict[str, Any]) -> list[str]:
    names = {p: name for name, p in module.named_parameters()}
    return [names[p] for p in group["params"]]


def test_weights_of_two_and_four_dimensions_are_hybrid_and_nothing_else_is() -> None:
    module = Everything()
    hybrid, rest = param_groups(module)
    assert set(_names(module, hybrid)) == HYBRID
    assert set(_names(module, rest)) == {name for name, _ in module.named_parameters()} - HYBRID
    assert len(hybrid["params"]) + len(rest["params"]) == len(list(module.parameters()))
    assert (hybrid["use_muon"], rest["use_muon"]) == (True, False)


def test_decay_is_for_the_hybrid_group_and_other_options_for_both() -> None:
    hybrid, rest = MuSGD(param_groups(Everything(), weight_decay=0.1, momentum=0.9), lr=0.2, weight_decay=0.3).param_groups
    assert [group["weight_decay"] for group in (hybrid, rest)] == [0.1, 0.0]
    assert [group["momentum"] for group in (hybrid, rest)] == [0.9, 0.9]
    assert [group["lr"] for group in (hybrid, rest)] == [0.2, 0.2]


def test_the_optimizers_decay_is_the_hybrid_groups_when_none_is_given() -> None:
    hybrid, rest = MuSGD(param_groups(Everything()), weight_decay=0.3).param_groups
    assert [group["weight_decay"] for group in (hybrid, rest)] == [0.3, 0.0]


@pytest.mark.parametrize(
    ("module", "use_muon"), [(nn.Linear(2, 2, bias=False), True), (nn.BatchNorm1d(2), False)], ids=["weights", "norms"]
)
def test_an_empty_group_is_left_out(module: nn.Module, use_muon: bool) -> None:
    (group,) = param_groups(module)
    assert group["use_muon"] is use_muon


def test_the_split_trains() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 2))
    optimizer = MuSGD(param_groups(module, weight_decay=1e-4), lr=0.05, momentum=0.9, nesterov=True)
    images, labels, losses = torch.randn(32, 1, 4, 4), torch.randint(2, (32,)), []
    for _ in range(20):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module(images), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
