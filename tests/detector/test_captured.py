"""A recorded step has the bits of an eager one, and whatever fails leaves no trace; on a stand-in that runs what was recorded."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from detector.captured import ATTEMPTS, KEPT, Captured, CapturedStep, CaptureError, CaptureWarning
from tests.musgd.standin import StandIn

EVENTS = ("first warm-up", "second warm-up", "capture")


class Net(nn.Module):
    """Batch norm, whose buffers a forward changes, and a weight that nothing uses."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.SiLU(), nn.Flatten(), nn.Linear(144, 5))
        self.unused = nn.Parameter(torch.ones(2))

    def losses(self, images: Tensor, labels: Tensor) -> Tensor:
        first = F.cross_entropy(self.body(images).float(), labels)
        second = 0.1 * next(self.body.parameters()).square().sum()
        return torch.stack([first + second, first.detach(), second.detach()])


class Twins:
    """A network whose steps are recorded, and one whose steps are eager; both see the same batches."""

    def __init__(self, device: StandIn, **options: object) -> None:
        torch.manual_seed(0)
        self.eager, self.replayed = Net(), Net()
        self.replayed.load_state_dict(self.eager.state_dict())
        self.step = CapturedStep(self.replayed, self.replayed.losses, opens=lambda _: device, **options)  # type: ignore[arg-type]
        self.optimizers = [torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9) for net in (self.eager, self.replayed)]

    def backward(self, number: int, size: int = 4, seed: float = 1.0) -> tuple[Tensor, Tensor]:
        """Forward and backward of both; their losses."""
        generator = torch.Generator().manual_seed(number)
        images, labels = torch.randn(size, 3, 8, 8, generator=generator), torch.randint(5, (size,), generator=generator)
        expected = self.eager.losses(images, labels)
        (expected[0] * seed).backward()  # type: ignore[no-untyped-call]
        actual = self.step(images, labels)
        if actual is None:
            actual = self.replayed.losses(images, labels)
        (actual[0] * seed).backward()  # type: ignore[no-untyped-call]
        return expected.detach(), actual.detach()

    def train(self, *numbers: int, size: int = 4, to_none: bool = True) -> None:
        for number in numbers:
            losses = self.backward(number, size)
            assert same(*losses)
            self.update(to_none)

    def update(self, to_none: bool = True) -> None:
        assert self.equal()
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=to_none)
        assert self.equal()

    def equal(self) -> bool:
        """Weights, buffers and gradients, as integers."""
        pairs = zip(everything(self.eager), everything(self.replayed), strict=True)
        return all(a is b if a is None or b is None else same(a, b) for a, b in pairs)


def everything(net: nn.Module) -> Iterator[Tensor | None]:
    yield from net.buffers()
    for parameter in net.parameters():
        yield parameter.detach()
        yield parameter.grad


def same(a: Tensor, b: Tensor) -> bool:
    bits = [x.detach().contiguous().reshape(-1).view(torch.uint8) for x in (a, b)]
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(*bits)


@pytest.fixture
def device() -> StandIn:
    return StandIn()


def test_steps_from_the_second_on_are_replayed_with_the_eager_bits(device: StandIn) -> None:
    twins = Twins(device)
    twins.train(*range(6))
    assert (twins.step.recordings, twins.step.replays, twins.step.fallbacks) == (1, 5, 0)
    assert twins.replayed.unused.grad is None
    with torch.no_grad():
        twins.replayed.body[1].running_mean[0] += 1e-6  # type: ignore[index,operator]
    assert not twins.equal()


def test_a_batch_is_read_anew_at_each_replay(device: StandIn) -> None:
    twins = Twins(device)
    assert not same(twins.backward(0)[1], twins.backward(1)[1])
    assert not same(twins.backward(2)[1], twins.backward(3)[1])


def test_gradients_are_summed_up_over_replays(device: StandIn) -> None:
    twins = Twins(device, seed=0.5)
    for number in range(8):
        twins.backward(number, seed=0.5)
        assert twins.equal()
        if number % 2:
            twins.update()
    assert twins.step.replays == 7


class Turned(nn.Module):
    """A weight whose gradient comes out transposed, which autograd puts right."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 192))

    def losses(self, images: Tensor, labels: Tensor) -> Tensor:
        loss = F.cross_entropy(images.flatten(1) @ self.weight.t().contiguous(), labels)
        return torch.stack([loss, loss.detach(), loss.detach()])


@pytest.mark.parametrize("exact", [True, False])
def test_a_gradient_lies_in_memory_as_autograd_has_it(device: StandIn, exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """And does not where the difference is overlooked."""
    if not exact:
        monkeypatch.setattr(Captured, "alike", True)
    net = Turned()
    step = CapturedStep(net, net.losses, opens=lambda _: device)
    images, labels = torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 2, 3])
    for _ in range(3):
        net.weight.grad = None
        losses = step(images, labels)
        (net.losses(images, labels) if losses is None else losses)[0].backward()  # type: ignore[no-untyped-call]
    assert net.weight.grad is not None
    assert step.replays == 2
    assert (net.weight.grad.stride() == net.weight.stride()) is exact


def test_who_watches_a_gradient_is_told_and_may_change_it(device: StandIn) -> None:
    twins, told = Twins(device), [0, 0]
    twins.train(0, 1)
    for i, net in enumerate((twins.eager, twins.replayed)):

        def seen(parameter: Tensor, i: int = i) -> None:
            told[i] += 1
            assert parameter.grad is not None
            parameter.grad.mul_(2)

        net.body[0].bias.register_post_accumulate_grad_hook(seen)  # type: ignore[operator]
    twins.train(2, 3, 4)
    assert told == [3, 3]
    assert (twins.step.recordings, twins.step.replays) == (1, 4)


def test_a_hook_on_a_gradient_is_called_once_a_batch(device: StandIn) -> None:
    """A recording would hold it, and autograd call it again: such a step is not recorded, until the hook is gone."""
    twins, told = Twins(device), [0, 0]
    twins.train(0, 1)
    hooks = []
    for i, net in enumerate((twins.eager, twins.replayed)):

        def seen(gradient: Tensor, i: int = i) -> Tensor:
            told[i] += 1
            return gradient * 2

        hooks.append(net.body[4].bias.register_hook(seen))  # type: ignore[operator]
    with pytest.warns(CaptureWarning, match="a weight has a hook on its gradient"):
        twins.train(2, 3, 4)
    assert told == [3, 3]
    assert (twins.step.recordings, twins.step.replays, twins.step.fallbacks) == (1, 1, 2)
    for hook in hooks:
        hook.remove()
    twins.train(5, 6)
    assert (twins.step.recordings, twins.step.replays) == (1, 3)


@pytest.mark.parametrize("to_none", [True, False])
def test_gradients_may_be_set_to_zero_or_to_none(device: StandIn, to_none: bool) -> None:
    twins = Twins(device)
    twins.train(*range(5), to_none=to_none)
    assert twins.step.replays == 4


def test_a_kept_gradient_is_overwritten_unless_it_is_made_the_parameters_own(device: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control of the two above."""
    monkeypatch.setattr(Captured, "part", lambda self: None)
    twins = Twins(device)
    twins.train(0)
    for number in (1, 2):
        twins.backward(number)
    assert not twins.equal()


@pytest.mark.parametrize("event", EVENTS)
def test_a_failed_recording_leaves_buffers_gradients_and_random_state(device: StandIn, event: str) -> None:
    twins = Twins(device)
    twins.train(0)
    device.fails[event] = 1
    states = torch.get_rng_state()
    with pytest.warns(CaptureWarning, match=f"no memory at the {event}"):
        twins.train(1)
    assert torch.equal(torch.get_rng_state(), states)
    assert not device.graphs
    assert twins.step.fallbacks == 1
    twins.train(2, 3)
    assert (twins.step.recordings, twins.step.replays) == (1, 2)


def test_recording_puts_the_random_state_back(device: StandIn) -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Dropout())
    step = CapturedStep(net, lambda x: net(x).sum()[None], opens=lambda _: device)
    x = torch.ones(2, 3)
    assert step(x) is None
    device.fails["capture"] = 1
    before = torch.get_rng_state()
    with pytest.warns(CaptureWarning):
        step(x)
    assert torch.equal(torch.get_rng_state(), before)
    net(x)
    assert not torch.equal(torch.get_rng_state(), before)


def test_a_launch_that_fails_is_done_eagerly_and_recorded_anew(device: StandIn) -> None:
    twins = Twins(device)
    twins.train(0, 1)
    device.fails["launch"] = 1
    with pytest.warns(CaptureWarning, match="could not be launched"):
        twins.train(2)
    twins.train(3)
    assert (twins.step.recordings, twins.step.replays, twins.step.fallbacks) == (2, 2, 1)


def test_what_fails_thrice_is_not_tried_again_until_it_is_released(device: StandIn) -> None:
    twins = Twins(device)
    device.fails["capture"] = 100
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaptureWarning)
        twins.train(*range(8))
    assert device.seen["capture"] == ATTEMPTS
    device.fails["capture"] = 0
    twins.step.release()
    twins.train(8, 9, 10)
    assert twins.step.replays == 2


def test_fallbacks_are_errors_where_that_is_asked_for(device: StandIn) -> None:
    twins = Twins(device, on_fallback="raise")
    twins.train(0)
    device.fails["capture"] = 1
    kept = [x.clone() for x in everything(twins.replayed) if x is not None]
    images, labels = torch.randn(4, 3, 8, 8), torch.zeros(4, dtype=torch.long)
    with pytest.raises(CaptureError, match="no memory at the capture"):
        twins.step(images, labels)
    assert all(map(same, kept, (x for x in everything(twins.replayed) if x is not None)))


def test_a_smaller_last_batch_is_left_to_the_caller(device: StandIn) -> None:
    twins = Twins(device)
    for _ in range(3):
        twins.train(0, 1, 2)
        twins.train(3, size=2)
    assert (twins.step.recordings, twins.step.fallbacks) == (1, 0)
    assert twins.step.replays == 2 + 3 + 3


def test_two_shapes_are_kept_and_a_third_takes_the_place_of_the_oldest(device: StandIn) -> None:
    twins = Twins(device)
    for size in (2, 3, 4, 2):
        twins.train(0, 1, size=size)
    assert twins.step.recordings == 4
    assert len(device.graphs) == KEPT


@pytest.mark.parametrize(
    "change",
    [
        lambda net: setattr(net.body[0].weight, "data", net.body[0].weight.data.clone()),
        lambda net: net.body[0].weight.requires_grad_(False),
        lambda net: net.body[1].eval(),
        lambda net: setattr(net.body[1], "running_var", net.body[1].running_var.clone()),
    ],
    ids=["weight moved", "weight frozen", "statistics frozen", "buffer replaced"],
)
def test_what_a_recording_has_baked_in_is_noticed(device: StandIn, change: Callable[[Net], object]) -> None:
    twins = Twins(device)
    twins.train(0, 1)
    for net in (twins.eager, twins.replayed):
        change(net)
    twins.train(2, 3, 4)
    assert (twins.step.recordings, twins.step.fallbacks) == (2, 0)


def test_autocast_is_that_of_the_forward_and_its_cache_is_left_empty(device: StandIn) -> None:
    """The backward runs outside of autocast, as eager training runs it; a weight that was cast in the recording is not used later."""
    torch.manual_seed(0)
    eager, replayed = Net(), Net()
    replayed.load_state_dict(eager.state_dict())
    step = CapturedStep(replayed, replayed.losses, opens=lambda _: device)
    images, labels = torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 2, 3])
    for number in range(4):
        for net in (eager, replayed):
            with torch.autocast("cpu", torch.bfloat16):
                losses = step(images, labels) if net is replayed else None
                losses = net.losses(images, labels) if losses is None else losses
            losses[0].backward()  # type: ignore[no-untyped-call]
        pairs = zip(eager.parameters(), replayed.parameters(), strict=True)
        assert all(a.grad is b.grad is None or (a.grad is not None and b.grad is not None and same(a.grad, b.grad)) for a, b in pairs)
        for net in (eager, replayed):
            with torch.no_grad():
                for p in net.parameters():
                    p.add_(0.01 * number)
                    p.grad = None
    assert step.replays == 3


def test_a_backward_that_comes_too_late_is_an_error(device: StandIn) -> None:
    twins = Twins(device)
    twins.train(0, 1)
    images, labels = torch.randn(4, 3, 8, 8), torch.zeros(4, dtype=torch.long)
    first, _ = twins.step(images, labels), twins.step(images, labels)
    assert first is not None
    with pytest.raises(CaptureError, match="gradients are gone"):
        first[0].backward()  # type: ignore[no-untyped-call]


def test_gradients_of_another_recording_are_put_aside_too(device: StandIn) -> None:
    """Recordings of a device share its memory: what one has handed over, another one's replay may overwrite."""
    twins = Twins(device)
    twins.train(0, 1)
    twins.train(2, 3, size=2)
    twins.backward(4, size=2)
    theirs = {g.data_ptr() for kept in twins.step._kept.values() for g in kept.gradients}
    grads = [p.grad for p in twins.replayed.body.parameters()]
    assert all(g is not None and g.data_ptr() in theirs for g in grads)
    assert twins.step(torch.randn(4, 3, 8, 8), torch.zeros(4, dtype=torch.long)) is not None
    grads = [p.grad for p in twins.replayed.body.parameters()]
    assert all(g is not None and g.data_ptr() not in theirs for g in grads)


def test_a_second_backward_is_an_error(device: StandIn) -> None:
    """It would add the gradients to themselves."""
    twins = Twins(device)
    twins.train(0, 1)
    losses = twins.step(torch.randn(4, 3, 8, 8), torch.zeros(4, dtype=torch.long))
    assert losses is not None
    losses[0].backward(retain_graph=True)  # type: ignore[no-untyped-call]
    with pytest.raises(CaptureError, match="taken already"):
        losses[0].backward()  # type: ignore[no-untyped-call]


def test_a_gradient_is_an_alias_of_the_recordings_own_and_not_that_itself(device: StandIn) -> None:
    """So that one that is given other memory leaves the recording what it writes to."""
    twins = Twins(device)
    twins.train(0)
    twins.backward(1)
    (captured,) = twins.step._kept.values()
    pairs = [(p.grad, g) for p, g in zip(captured.trained, captured.gradients, strict=True)]
    assert len(pairs) == 6
    assert all(a is not None and a is not b and a.data_ptr() == b.data_ptr() for a, b in pairs)


def test_a_cpu_cannot_record_and_says_so() -> None:
    net = Net()
    step = CapturedStep(net, net.losses)
    images, labels = torch.randn(4, 3, 8, 8), torch.zeros(4, dtype=torch.long)
    assert step(images, labels) is None
    with pytest.warns(CaptureWarning, match="on cpu, where nothing can be recorded"):
        assert step(images, labels) is None
    assert step.fallbacks == 1


def test_release_gives_up_every_graph(device: StandIn) -> None:
    twins = Twins(device)
    twins.train(0, 1)
    twins.step.release()
    assert not device.graphs
    twins.train(2, 3)
    assert twins.step.recordings == 2
