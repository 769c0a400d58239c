"""The loss: what it is of, what it makes smaller, and that nothing in it waits for the host."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from detector import assign, loss, model
from detector.loss import BOX, detection_loss
from detector.model import Network, Output

TRUTH = torch.tensor([[[8.0, 8.0, 40.0, 40.0], [0.0, 0.0, 0.0, 0.0]], [[20.0, 4.0, 60.0, 30.0], [2.0, 30.0, 30.0, 62.0]]])
LABELS = torch.tensor([[1, -1], [0, 2]])

# What brings a value to the host, or makes a shape of one.
WAITING = ("_local_scalar_dense", "item", "nonzero", "masked_select", "unique", "_unique", "equal", "is_nonzero")
MASKS = (torch.bool, torch.uint8)
SILENT = {"tolist", "numpy", "cpu", "item"}  # some of them reach a CPU tensor's memory past every dispatch


class Watch(TorchDispatchMode):
    """Refuses every operation that a CUDA graph could not hold, as far as a CPU can tell."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = str(func).removeprefix("aten."), kwargs or {}
        self.seen += 1
        if name.startswith(WAITING):
            raise AssertionError(f"{name} waits for the host")
        if name.startswith("index") and any(index is not None and index.dtype in MASKS for index in args[1] if isinstance(args[1], list)):
            raise AssertionError(f"{name} by a mask has a shape that depends on values")
        if name.startswith("lift_fresh") or (name.startswith(("_to_copy", "copy_")) and kwargs.get("device") is not None):
            raise AssertionError(f"{name} moves between host and device")
        return func(*args, **kwargs)


def output(seed: int = 0) -> Output:
    torch.manual_seed(seed)
    network = Network(3, 0.25)
    found: Output = network(torch.rand(2, 3, 64, 64))
    return found


def test_forward_loss_and_backward_never_wait() -> None:
    """Not one operation of forward, loss and backward brings a value to the host or has a shape that depends on one."""
    network, images = Network(3, 0.25), torch.rand(2, 3, 64, 64)
    with Watch() as watch:
        detection_loss(network(images), TRUTH, LABELS).total.backward()  # type: ignore[no-untyped-call]
    assert watch.seen > 1000


@pytest.mark.parametrize(
    "step",
    [
        lambda x: x.sum().item(),
        lambda x: bool(x.sum() > 0),
        lambda x: x[x > 0],
        lambda x: x.nonzero(),
        lambda x: torch.masked_select(x, x > 0),
        lambda x: x.unique(),
        lambda x: x.to("meta"),
        lambda x: x + torch.tensor([1.0, 2.0, 3.0]),
    ],
)
def test_the_watch_sees_what_waits(step: Callable[[Tensor], object]) -> None:
    """Each way to wait is refused."""
    with pytest.raises(AssertionError, match=r"waits|values|moves"), Watch():
        step(torch.randn(3))


@pytest.mark.parametrize("module", [model, assign, loss])
def test_nothing_reads_a_tensor_past_the_watch(module: ModuleType) -> None:
    """No call of a method that reads values stands in what forward and loss consist of; the tests themselves hold some."""
    assert not called(Path(str(module.__file__))) & SILENT
    assert called(Path(__file__)) & SILENT


def called(file: Path) -> set[str]:
    """Names of the attributes that a file reads."""
    return {node.attr for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Attribute)}


def profiled(step: Callable[[], object]) -> set[str]:
    """Operations of a step, those inside of others too: what a dispatch mode cannot see, since torch goes other ways under one."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        step()
    return {event.name.removeprefix("aten::") for event in profile.events()}


def test_no_formula_of_a_gradient_waits_either() -> None:
    """Some ask the host for a value when nobody watches: a product's does, and none of ours."""
    network, images, x = Network(3, 0.25), torch.rand(2, 3, 64, 64), torch.rand(3, 2, requires_grad=True)

    def step() -> None:
        detection_loss(network(images), TRUTH, LABELS).total.backward()  # type: ignore[no-untyped-call]

    ours = profiled(step)
    assert "convolution_backward" in ours
    assert not {name for name in ours if name.startswith(WAITING)}
    theirs = profiled(lambda: x.prod(-1).sum().backward())  # type: ignore[no-untyped-call]
    assert {name for name in theirs if name.startswith(WAITING)}


def test_forward_and_loss_need_no_values_at_all() -> None:
    """Tensors without values go through: nothing asks for one."""
    with FakeTensorMode():
        lost = detection_loss(Network(3, 0.25)(torch.rand(2, 3, 64, 64)), torch.rand(2, 4, 4), torch.zeros(2, 4, dtype=torch.int64))
        assert lost.total.shape == ()
        with pytest.raises(DataDependentOutputException, match="_local_scalar_dense"):
            lost.total.item()


def test_the_parts_make_the_total() -> None:
    """Classes and boxes, both above zero, in float32 also under bfloat16."""
    lost = detection_loss(output(), TRUTH, LABELS)
    assert lost.total == lost.classes + lost.boxes
    assert lost.classes > 0
    assert 0 < lost.boxes.item() <= 2 * BOX
    with torch.autocast("cpu", torch.bfloat16):
        assert detection_loss(output(), TRUTH, LABELS).total.dtype == torch.float32


def test_a_perfect_answer_loses_less() -> None:
    """Boxes that are the truth's lose nothing, confident scores in their places little; scores of the wrong class lose more."""
    guess = output()
    answer = [torch.full_like(guess.logits, -9.0) for _ in range(2)]
    distances = guess.distances.clone()
    for image in range(2):
        for m in range(2):
            if (label := int(LABELS[image, m])) < 0:
                continue
            x1, y1, x2, y2 = TRUTH[image, m].tolist()
            inside = [i for i, (x, y) in enumerate(guess.points.tolist()) if x1 < x < x2 and y1 < y < y2]
            for i in inside:
                x, y = guess.points[i].tolist()
                distances[image, i] = torch.tensor([x - x1, y - y1, x2 - x, y2 - y])
                answer[0][image, i, label] = 9.0
                answer[1][image, i, (label + 1) % 3] = 9.0
    right, wrong = (detection_loss(Output(logits, distances, guess.points), TRUTH, LABELS) for logits in answer)
    assert right.boxes.item() < 0.01
    assert right.classes < detection_loss(guess, TRUTH, LABELS).classes < wrong.classes


def test_an_image_without_boxes_teaches_that_there_are_none() -> None:
    """The loss is finite, of the classes alone, and its gradients push scores down."""
    guess = output()
    logits = guess.logits.detach().requires_grad_()
    lost = detection_loss(Output(logits, guess.distances, guess.points), torch.zeros(2, 1, 4), torch.full((2, 1), -1))
    lost.total.backward()  # type: ignore[no-untyped-call]
    assert lost.boxes.item() == 0
    assert logits.grad is not None
    assert (logits.grad > 0).all()
