"""Recordings one by one, without an optimizer's training: what finds them, what is kept, in which modes they are made, what they copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor, nn

from musgd import MuSGD
from musgd import optimizer as stepping
from musgd import prepared as preparing
from musgd.bucket import Bucket, Split, are
from musgd.coefficients import Coefficients, Live
from musgd.momenta import gather, lay_momenta
from musgd.packed import Packed
from musgd.prepared import Prepared, choose, own
from musgd.recording import LaunchError, Recording, owned, record
from musgd.replay import ATTEMPTS, KEPT, Replays, ReplayWarning
from musgd.update import Form, Inputs, Plain, prepare
from tests.musgd.standin import StandIn
from tests.musgd.test_replay import MODES, OPTIONS

if TYPE_CHECKING:
    from tests.musgd.conftest import SameBits, Twins

FORM = Form(use_muon=True, nesterov=True, decays=True, maximize=False, scale="matrix")
NUMBERS = Coefficients(0.9, 0.1, 0.5, 0.5)


class Thing:
    """Kept under its name; tells when it is given up."""

    driver_bytes = 7

    def __init__(self, name: str, gone: list[str]) -> None:
        self.name, self.gone = name, gone

    def release(self) -> None:
        self.gone.append(self.name)


class Shelf:
    """The recordings of one bucket, asked for by name."""

    def __init__(self, group: int = 0) -> None:
        self.replays, self.gone, self.made = Replays(), list[str](), list[str]()
        self.bucket = Bucket(group, [torch.ones(1)], [0], True)

    def find(self, name: str) -> Thing | None:
        def make(device: object) -> Thing:
            self.made.append(name)
            return Thing(name, self.gone)

        return self.replays.find(self.bucket, lambda: name, make, "warn")

    def fail(self, cause: Exception) -> None:
        def make(device: object) -> Thing:
            raise cause

        assert self.replays.find(self.bucket, lambda: "failing", make, "warn") is None

    def reason(self) -> str | None:
        return self.replays.status()[0].reason


class TestFinding:
    def test_four_are_kept_and_three_failures_suffered(self) -> None:
        assert (KEPT, ATTEMPTS) == (4, 3)

    def test_the_one_used_least_recently_goes_first(self, stand_in: StandIn) -> None:
        shelf = Shelf()
        for name in "abcdaeafb":
            found = shelf.find(name)
            assert found is not None
            assert found.name == name
        assert ("".join(shelf.made), "".join(shelf.gone)) == ("abcdefb", "bcd")
        assert (shelf.replays.status()[0].kept, shelf.replays.status()[0].driver_bytes) == (4, 28)

    def test_a_generation_ends_with_each_recording_given_up_and_never_comes_again(self, stand_in: StandIn) -> None:
        """Whoever keeps a recording at hand sees by it that it may be gone."""
        shelf = Shelf()
        seen = [shelf.replays.generation]
        for name in "abcd":
            shelf.find(name)
        assert shelf.replays.generation == seen[0]
        for _ in range(2):
            shelf.find("e")
            dropped = shelf.find("d")
            assert dropped is not None
            seen.append(shelf.replays.generation)
            shelf.replays.drop(shelf.bucket, dropped)
            seen.append(shelf.replays.generation)
            shelf.replays.release()
            seen.append(shelf.replays.generation)
            for name in "abcd":
                shelf.find(name)
        assert seen == sorted(set(seen))

    def test_a_recording_that_does_not_replay_three_times_is_given_up(self, stand_in: StandIn) -> None:
        shelf = Shelf()
        for _ in range(3):
            found = shelf.find("a")
            assert found is not None
            shelf.replays.drop(shelf.bucket, found)
        with pytest.warns(ReplayWarning, match="given up after 3 failures, the last one: its replay failed"):
            assert shelf.find("a") is None
        assert shelf.gone == ["a"] * 3

    def test_the_last_failure_is_the_one_told(self, stand_in: StandIn) -> None:
        """By its text, or by its name where it has none."""
        shelf = Shelf()
        for cause, told in ((ValueError("first"), "first"), (KeyError(), "KeyError"), (OSError(" "), "OSError")):
            with pytest.warns(ReplayWarning, match=f"group 0 cannot be replayed: {told}; "):
                shelf.fail(cause)
            assert shelf.reason() == told
        with pytest.warns(ReplayWarning, match="given up after 3 failures, the last one: OSError; "):
            shelf.fail(ValueError("not asked"))

    def test_a_step_that_somebody_captures_is_not_recorded(self, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("musgd.replay.is_captured", lambda: True)
        shelf = Shelf()
        with pytest.warns(ReplayWarning, match="somebody else is capturing this step"):
            assert shelf.find("a") is None
        assert shelf.made == []

    def test_the_warning_is_the_callers(self, stand_in: StandIn) -> None:
        shelf = Shelf()
        shelf.find("a")
        with pytest.warns(ReplayWarning, match="why") as caught:
            shelf.replays.fall_back(shelf.bucket, ValueError("why"), "warn")
        assert caught[0].filename == __file__

    def test_what_was_given_up_takes_no_memory(self, stand_in: StandIn) -> None:
        shelf = Shelf()
        shelf.find("a")
        stand_in.held = 1
        shelf.replays.release()
        (status,) = shelf.replays.status()
        assert (stand_in.held, status.pool_bytes, status.driver_bytes, status.kept, shelf.gone) == (0, 0, 0, 0, ["a"])


class TestBuckets:
    def test_the_same_objects_are_as_many_and_the_same_each(self) -> None:
        a, b = object(), object()
        assert are([a, b], [a, b])
        assert not any(are(*pair) for pair in (([a], [a, b]), ([a, b], [a]), ([a, b], [b, a]), ([], [a])))
        assert are([], [])

    def _split(self) -> tuple[list[Tensor], list[Tensor | None], Split]:
        params: list[Tensor] = [torch.ones(3, 3), torch.ones(2, 2, 2, 2), torch.ones(8)[:4]]
        gradients: list[Tensor | None] = [torch.ones(3, 3), None, torch.ones(4)]
        return params, gradients, Split(0, params, gradients)

    def test_a_split_holds_while_nothing_changes(self) -> None:
        """Other gradients are no change."""
        params, gradients, split = self._split()
        assert split.holds(params, gradients)
        assert split.holds(list(params), [torch.zeros(3, 3), None, torch.zeros(4)])

    @pytest.mark.parametrize(
        "change", ["param", "longer", "gradient", "address", "dtype", "strides", "strides of four", "stride of a vector"]
    )
    def test_a_split_ends_when_something_changes(self, change: str) -> None:
        params, gradients, split = self._split()
        if change == "param":
            params[0] = torch.ones(3, 3)
        elif change == "longer":
            params.append(torch.ones(1))
            gradients.append(torch.ones(1))
        elif change == "gradient":
            gradients[1] = torch.ones(2, 2, 2, 2)
        elif change == "address":
            params[0].data = params[0].data.clone()
        elif change == "dtype":
            params[0].data = params[0].data.view(torch.int32)
        elif change == "strides":
            params[0].data = params[0].data.T
        elif change == "strides of four":
            params[1].data = params[1].data.transpose(0, 1)
        else:
            params[2].data = params[2].data.as_strided((4,), (2,))
        assert not split.holds(params, gradients)

    def test_matrices_come_first_and_gradients_with_them(self) -> None:
        params = [torch.ones(1), torch.ones(2, 2), torch.ones(2), torch.ones(3, 3)]
        gradients: list[Tensor | None] = [torch.full_like(p, i) for i, p in enumerate(params)]
        (bucket,) = Split(5, params, gradients).buckets
        assert (bucket.group, bucket.places, bucket.is_whole) == (5, [1, 3, 0, 2], False)
        assert [x is gradients[i] for x, i in zip(bucket.pick(gradients), bucket.places, strict=True)] == [True] * 4
        (whole,) = Split(5, params[1:3], gradients[1:3]).buckets
        assert whole.is_whole
        handed = gradients[1:3]
        assert id(whole.pick(handed)) == id(handed), "the list itself"


class TestMomenta:
    def test_they_never_ask_for_gradients(self) -> None:
        """Whether they are made, or laid anew from one that somebody loaded and that does."""
        p = nn.Parameter(torch.ones(3, 2))
        q = nn.Parameter(torch.ones(3, 2))
        loaded = torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
        state: dict[Tensor, dict[str, Any]] = {p: {}, q: {"momentum_buffer": loaded}}
        for tensor in lay_momenta(state, [p, q], FORM).tensors:
            assert (tensor.requires_grad, tensor.grad_fn, tensor.dtype) == (False, None, torch.float32)


class TestRecording:
    def _record(self, device: StandIn, changed: list[Tensor]) -> Recording:
        x = torch.ones(2)
        return record(device, lambda: [x * 2], [x], changed)

    def test_it_has_been_warmed_up_twice(self) -> None:
        device = StandIn()
        self._record(device, [])
        assert (device.seen["first warm-up"], device.seen["second warm-up"], device.seen["capture"]) == (1, 1, 1)

    def test_the_drivers_memory_is_what_it_took_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where others gave up more meanwhile, none."""
        device = StandIn()
        assert [self._record(device, []).driver_bytes for _ in range(2)] == [1000, 1000]
        for after, taken in ((1000, 0), (900, 0), (1001, 1)):
            answers = iter([1000, after])
            monkeypatch.setattr(device, "driver_bytes", lambda answers=answers: next(answers))
            assert self._record(device, []).driver_bytes == taken

    def test_what_it_reads_is_copied_without_autograd(self) -> None:
        recording = self._record(StandIn(), [])
        (got,) = recording.replay([torch.full((2,), 3.0, requires_grad=True)])
        assert got.tolist() == [6.0, 6.0]
        assert [(x.requires_grad, x.grad_fn, x.is_inference()) for x in recording.inputs] == [(False, None, False)]

    def test_owned_copies_are_plain_tensors_in_the_same_layout(self) -> None:
        """Whatever mode they are made in, and of whatever."""
        with torch.inference_mode():
            one = torch.ones(3, 2).T
            (first,) = owned([one])
        (second,) = owned([torch.full((3, 2), 2.0, requires_grad=True)])
        for x, strides, value in ((first, (1, 2), 1.0), (second, (2, 1), 2.0)):
            assert (x.requires_grad, x.grad_fn, x.is_inference(), x.stride()) == (False, None, False, strides)
            assert torch.equal(x, torch.full_like(x, value))

    def test_a_launch_refused_is_told_as_such(self) -> None:
        device = StandIn()
        recording = self._record(device, [])
        device.fails["launch"] = 1
        with pytest.raises(LaunchError, match="its graph could not be launched: no memory at the launch"):
            recording.launch()


def made(device: StandIn) -> tuple[Prepared, Inputs, list[Tensor]]:
    """A recorded preparation, its inputs, and what updates come of them at the third time: warmed up twice, and captured."""
    params: list[Tensor] = [nn.Parameter(torch.tensor([[1.0, 2.0], [3.0, 5.0]]))]
    gradients = [torch.tensor([[1.0, -1.0], [0.5, 4.0]])]
    state: dict[Tensor, dict[str, Any]] = {params[0]: {}}
    twin: dict[Tensor, dict[str, Any]] = {params[0]: {}}
    live = Live(torch.device("cpu"), torch.float32)
    live.write(NUMBERS)
    with torch.no_grad():
        expected = [prepare(Plain(gather(twin, params, gradients, FORM), FORM), live) for _ in range(3)][2]
    inputs = gather(state, params, gradients, FORM)
    return Prepared.make(device, inputs, lay_momenta(state, params, FORM), NUMBERS, FORM), inputs, expected


class TestPrepared:
    def test_it_is_captured_with_its_gradients_and_numbers(self, same_bits: SameBits) -> None:
        prepared, _, (expected,) = made(StandIn())
        (got,) = prepared.recording.outputs
        assert same_bits(got, expected)
        assert (got.requires_grad, got.grad_fn, got.is_inference()) == (False, None, False)

    def test_memory_is_given_back_before_what_is_kept_is_made(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its gradients would lie in a part of memory reserved for something larger; and once more when warm-ups have left theirs."""
        events: list[str] = []

        class Watched(StandIn):
            def tidy(self) -> None:
                events.append("tidy")
                super().tidy()

        def watched(inputs: Inputs, form: Form) -> tuple[Any, list[Tensor]]:
            events.append("own")
            return own(inputs, form)

        monkeypatch.setattr(preparing, "own", watched)
        made(Watched())
        assert events == ["tidy", "own", "tidy"]

    def test_it_fits_while_form_precision_and_momenta_are_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        prepared, _, _ = made(StandIn())
        assert prepared.fits(FORM)
        assert not prepared.fits(Form(True, False, True, False, "matrix"))
        with monkeypatch.context() as patch:
            patch.setattr(preparing, "precision", lambda: (True, True, False))
            assert not prepared.fits(FORM)
        prepared.momenta.states[0][prepared.momenta.keys[0]] = torch.ones(2, 2)
        assert not prepared.fits(FORM)

    def test_kernels_are_taken_where_they_take_the_inputs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Eagerly on the inputs; recorded on copies of the gradients."""
        _, inputs, _ = made(StandIn())
        for taken, kind in ((True, Packed), (False, Plain)):
            monkeypatch.setattr(preparing, "takes", lambda *given, taken=taken: taken and given == (inputs, FORM))
            eager = choose(inputs, FORM)
            assert isinstance(eager, kind)
            assert (eager.inputs is inputs, eager.form is FORM) == (True, True)
            recorded, copies = own(inputs, FORM)
            assert isinstance(recorded, kind)
            assert [x is y for x, y in zip(copies, recorded.inputs.g, strict=True)] == [True]
            assert recorded.inputs.W is inputs.W
            assert torch.equal(copies[0], inputs.g[0])
            assert copies[0].data_ptr() != inputs.g[0].data_ptr()


class TestModes:
    """No mode that a step is called in reaches the work."""

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("outside", [torch.inference_mode, torch.enable_grad])
    def test_recording(self, mode: str, outside: Callable[[], Any], stand_in: StandIn, twins: type[Twins]) -> None:
        seen: list[tuple[bool, bool, bool]] = []
        stand_in.at_capture = lambda: seen.append(
            (torch.is_autocast_enabled("cpu"), torch.is_inference_mode_enabled(), torch.is_grad_enabled())
        )
        optimizer = MuSGD(twins.weights((3, 2)), **OPTIONS)
        setattr(optimizer, mode, True)
        with torch.autocast("cpu", dtype=torch.bfloat16), outside():
            twins.train(optimizer, [0])
        assert seen == [(False, False, False)]

    def test_eager_work(self, monkeypatch: pytest.MonkeyPatch, twins: type[Twins]) -> None:
        seen: list[tuple[bool, bool]] = []

        def spied(*given: Any) -> list[Tensor]:
            seen.append((torch.is_autocast_enabled("cpu"), torch.is_grad_enabled()))
            return prepare(*given)

        monkeypatch.setattr(stepping, "prepare", spied)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            twins.train(MuSGD(twins.weights((3, 2)), **OPTIONS), [0])
        assert seen == [(False, False)]


class TestSteps:
    def test_where_all_recordings_fit_nothing_else_is_asked(
        self, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, twins: type[Twins]
    ) -> None:
        """Neither the gradients nor the keys of recordings: what makes a replayed step fast."""
        optimizer = MuSGD(twins.weights((3, 2), (4,)), capture_updates=True, **OPTIONS)
        twins.train(optimizer, [0])
        with monkeypatch.context() as patch:
            patch.setattr(stepping, "check_gradients", None)
            patch.setattr(Replays, "find", None)
            twins.train(optimizer, [1, 2])
        assert optimizer.replay_status()[0].replays == 3
        optimizer.capture_updates = False
        twins.train(optimizer, [3])
        assert optimizer.replay_status()[0].replays == 3

    def test_one_that_fits_is_taken_as_it_is_beside_one_that_does_not(
        self, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, twins: type[Twins]
    ) -> None:
        (p, q) = twins.weights((3, 2), (4,))
        optimizer = MuSGD([{"params": [p]}, {"params": [q]}], capture_updates=True, **OPTIONS)
        twins.train(optimizer, [0])
        asked: list[int] = []
        find = Replays.find

        def spied(self: Replays, bucket: Bucket, *given: Any) -> Any:
            asked.append(bucket.group)
            return find(self, bucket, *given)

        monkeypatch.setattr(Replays, "find", spied)
        optimizer.param_groups[1]["nesterov"] = False
        twins.train(optimizer, [1])
        assert asked == [1]

    def test_a_switch_of_precision_records_the_orthogonalisation_anew(
        self, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, twins: type[Twins]
    ) -> None:
        optimizer = MuSGD(twins.weights((3, 2)), capture_orthogonalization=True, **OPTIONS)
        twins.train(optimizer, [0, 1])
        assert optimizer.replay_status()[0].recordings == 1
        monkeypatch.setattr(stepping, "precision", lambda: (True, True, False))
        twins.train(optimizer, [2])
        assert optimizer.replay_status()[0].recordings == 2

    def test_a_captured_step_takes_no_recording(self, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, twins: type[Twins]) -> None:
        optimizer = MuSGD(twins.weights((3, 2)), capture_updates=True, **OPTIONS)
        twins.train(optimizer, [0])
        for module in ("optimizer", "replay"):
            monkeypatch.setattr(f"musgd.{module}.is_captured", lambda: True)
        with pytest.warns(ReplayWarning, match="somebody else is capturing this step"):
            twins.train(optimizer, [1])
        assert optimizer.replay_status()[0].replays == 1

    @pytest.mark.parametrize("how", ["release", "load"])
    def test_nothing_of_recordings_given_up_is_held(self, how: str, stand_in: StandIn, twins: type[Twins]) -> None:
        optimizer = MuSGD(twins.weights((3, 2)), capture_updates=True, **OPTIONS)
        twins.train(optimizer, [0])
        assert (len(stand_in.graphs), len(optimizer._current), len(optimizer._splits)) == (1, 1, 1)
        if how == "release":
            optimizer.release()
        else:
            optimizer.load_state_dict(optimizer.state_dict())
        assert (len(stand_in.graphs), len(optimizer._current), len(optimizer._splits)) == (0, 0, 0)

    def test_groups_that_were_given_one_learning_rate_have_one_each(self, twins: type[Twins]) -> None:
        """A scheduler fills it in place, and nobody learns it by gradients."""
        lr = torch.tensor(0.1, requires_grad=True)
        p, q = twins.weights((3, 2), (4,))
        rates = [group["lr"] for group in MuSGD([{"params": [p]}, {"params": [q]}], lr=lr).param_groups]
        assert len({rate.data_ptr() for rate in (lr, *rates)}) == 3
        assert [(rate.requires_grad, rate.grad_fn, rate.item()) for rate in rates] == [(False, None, lr.detach().item())] * 2
