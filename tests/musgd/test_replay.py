"""Replay on a stand-in for the device: the transaction of a recording, what invalidates it, and what is said of it."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import musgd
from musgd import MuSGD
from musgd.device import UnsupportedError, open_device
from musgd.replay import KEPT, ReplayError, ReplayWarning
from tests.musgd.standin import StandIn

if TYPE_CHECKING:
    from tests.musgd.conftest import SameBits, Twins

SHAPES = ((6, 4), (4, 2, 3, 3), (6, 4), (5,), ())
OPTIONS: dict[str, Any] = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.05, "nesterov": True, "use_muon": True}
MODES = ("capture_updates", "capture_orthogonalization")


def _params(optimizer: MuSGD) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _same(a: MuSGD, b: MuSGD, same_bits: SameBits) -> bool:
    """Weights and states, key for key."""
    pairs = list(zip(_params(a), _params(b), strict=True))
    keys = all(list(a.state[p]) == list(b.state[q]) for p, q in pairs)
    states = keys and all(same_bits(a.state[p][key], b.state[q][key]) for p, q in pairs for key in a.state[p])
    return states and all(same_bits(p, q) for p, q in pairs)


def _pair(twins: type[Twins], mode: str = "capture_updates", **options: Any) -> tuple[MuSGD, MuSGD]:
    """A replaying optimizer and its eager twin."""
    common = {**OPTIONS, **options}
    eager = {name: value for name, value in common.items() if name != "on_fallback"}
    replayed = MuSGD(twins.weights(*SHAPES), **common)
    setattr(replayed, mode, True)
    return replayed, MuSGD(twins.weights(*SHAPES), **eager)


def _step(pair: tuple[MuSGD, MuSGD], step: int, twins: type[Twins]) -> None:
    for optimizer in pair:
        twins.train(optimizer, [step])


def _replays(optimizer: MuSGD) -> int:
    return sum(status.replays for status in optimizer.replay_status())


def _recordings(optimizer: MuSGD) -> int:
    return sum(status.recordings for status in optimizer.replay_status())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("nesterov", [True, False])
@pytest.mark.parametrize("use_muon", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
def test_replayed_steps_have_the_eager_bits(
    mode: str, nesterov: bool, use_muon: bool, dtype: torch.dtype, stand_in: StandIn, same_bits: SameBits, twins: type[Twins]
) -> None:
    options = {**OPTIONS, "nesterov": nesterov, "use_muon": use_muon}
    replayed, eager = (MuSGD(twins.weights(*SHAPES, dtype=dtype), **options) for _ in range(2))
    setattr(replayed, mode, True)
    for step in range(4):
        _step((replayed, eager), step, twins)
        assert _same(replayed, eager, same_bits)
    records = use_muon or mode == "capture_updates"
    assert (_replays(replayed), _recordings(replayed)) == ((4, 1) if records else (0, 0))
    _params(eager)[0].detach().neg_()
    assert not _same(replayed, eager, same_bits)


class TestTransaction:
    """Whatever happens while a step records, it counts once, and nothing but the recording is left of it."""

    FAILURES = ("first warm-up", "second warm-up", "capture", "launch")

    def _after(self, event: str | None, stand_in: StandIn, twins: type[Twins]) -> tuple[MuSGD, MuSGD]:
        replayed, eager = _pair(twins)
        if event:
            stand_in.fails[event] = 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReplayWarning)
            _step((replayed, eager), 0, twins)
        return replayed, eager

    @pytest.mark.parametrize("event", [None, *FAILURES], ids=lambda event: (event or "nothing").replace(" ", "-") + "-fails")
    def test_momenta_are_put_back(self, event: str | None, stand_in: StandIn, same_bits: SameBits, twins: type[Twins]) -> None:
        """R4, R5: the step that records, or fails to, has the bits of one eager step, and so has every later one."""
        replayed, eager = self._after(event, stand_in, twins)
        assert _same(replayed, eager, same_bits)
        for step in range(1, 4):
            _step((replayed, eager), step, twins)
            assert _same(replayed, eager, same_bits)
        assert _replays(replayed) == (4 if event is None else 3)
        assert stand_in.seen["capture"] >= 1

    @pytest.mark.parametrize("event", [None, *FAILURES], ids=lambda event: (event or "nothing").replace(" ", "-") + "-fails")
    def test_gradients_are_left(self, event: str | None, stand_in: StandIn, same_bits: SameBits, twins: type[Twins]) -> None:
        """Gradients keep their bits, also when later gradients are other tensors and the first ones live on."""
        replayed, eager = self._after(event, stand_in, twins)
        kept = [p.grad for p in _params(replayed)]
        _step((replayed, eager), 1, twins)
        for step, gradients in ((0, kept), (1, [p.grad for p in _params(replayed)])):
            for g, expected in zip(gradients, twins.gradients(_params(replayed), step), strict=True):
                assert g is not None
                assert same_bits(g, expected)

    @pytest.mark.parametrize("event", FAILURES, ids=lambda event: event.replace(" ", "-") + "-fails")
    def test_no_graph_and_no_memory_stay(self, event: str, stand_in: StandIn, twins: type[Twins]) -> None:
        replayed, _ = self._after(event, stand_in, twins)
        assert not stand_in.graphs
        assert not stand_in.held
        (status,) = replayed.replay_status()
        assert (status.kept, status.replays, status.fallbacks, status.mode) == (0, 0, 1, "eager")

    @pytest.mark.parametrize("event", [None, "capture"], ids=["nothing-fails", "capture-fails"])
    @pytest.mark.parametrize("enabled", [True, False])
    def test_garbage_collection_is_as_it_was(self, event: str | None, enabled: bool, stand_in: StandIn, twins: type[Twins]) -> None:
        """It is held off during the capture alone."""
        seen: list[bool] = []
        stand_in.at_capture = lambda: seen.append(gc.isenabled())
        (gc.enable if enabled else gc.disable)()
        try:
            self._after(event, stand_in, twins)
            assert gc.isenabled() == enabled
        finally:
            gc.enable()
        assert seen == [False]


class TestRestores:
    """Each restore of the source is needed: without it, the transaction tests of its id fail."""

    REMOVED: ClassVar = {
        "momenta": ("recording.py", "torch._foreach_copy_(changed, kept)", "pass", "test_momenta_are_put_back", 5),
        "gradients": ("prepared.py", "    g = owned(inputs.g)", "    g = list(inputs.g)", "test_gradients_are_left", 1),
        "graph": ("replay.py", "        recording.release()\n", "", "test_no_graph_and_no_memory_stay and launch-fails", 1),
        "memory": ("recording.py", "        device.tidy()\n", "        pass\n", "test_no_graph_and_no_memory_stay", 4),
        "collection": (
            "recording.py",
            "            gc.enable()\n",
            "            pass\n",
            "test_garbage_collection_is_as_it_was and True",
            2,
        ),
        "none": ("recording.py", "gc.enable()", "gc.enable()", "TestTransaction", 0),
    }

    @pytest.mark.slow
    @pytest.mark.parametrize("restore", REMOVED)
    def test_without_it_the_id_fails(self, restore: str, tmp_path: Path) -> None:
        file, old, new, selected, failures = self.REMOVED[restore]
        source = Path(musgd.__file__).parent
        shutil.copytree(source, tmp_path / "musgd", ignore=shutil.ignore_patterns("__pycache__"))
        text = (tmp_path / "musgd" / file).read_text(encoding="utf-8")
        assert text.count(old) == 1
        (tmp_path / "musgd" / file).write_text(text.replace(old, new), encoding="utf-8")
        root = Path(__file__).parents[2]
        code = f"import musgd, pytest, sys; assert musgd.__file__.startswith({str(tmp_path)!r}); sys.exit(pytest.main(sys.argv[1:]))"
        arguments = ["-q", "-p", "no:cacheprovider", "-k", selected, str(Path(__file__)) + "::TestTransaction"]
        run = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=root,
            env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{root}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == (1 if failures else 0), run.stdout + run.stderr
        assert "passed" in run.stdout if not failures else f"{failures} failed" in run.stdout, run.stdout


class Exhausted(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Raises at the n-th operation that makes a new tensor while `armed`."""

    def __init__(self, at: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.at, self.count, self.armed = at, 0, True

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        if self.armed and function.namespace == "aten" and any(value.alias_info is None for value in function._schema.returns):
            if self.count == self.at:
                self.armed = False
                raise torch.OutOfMemoryError("CUDA out of memory (as told)")
            self.count += 1
        return function(*arguments, **(keywords or {}))


@pytest.mark.case("R3")
def test_r3_memory_may_end_at_each_allocation_of_a_recording(stand_in: StandIn, same_bits: SameBits, twins: type[Twins]) -> None:
    """Six tensors: wherever the recording stops, the step and all later ones have the eager bits, and the next recording succeeds."""
    shapes = ((6, 4), (4, 2, 3, 3), (6, 4), (5,), (), (3, 3))
    eager = MuSGD(twins.weights(*shapes), **OPTIONS)
    twins.train(eager, range(3))
    whole = Exhausted(-1)
    recording = MuSGD(twins.weights(*shapes), capture_updates=True, **OPTIONS)
    twins.train(recording, [0])
    recording.release()
    for p, g in zip(_params(recording), twins.gradients(_params(recording), 1), strict=True):
        p.grad = g
    stand_in.at_capture = lambda: setattr(whole, "armed", False)
    with whole:
        recording.step()
    recording.release()
    assert whole.count > 60
    for at in range(whole.count):
        limit = Exhausted(at)
        optimizer = MuSGD(twins.weights(*shapes), capture_updates=True, **OPTIONS)
        twins.train(optimizer, [0])
        optimizer.release()
        for p, g in zip(_params(optimizer), twins.gradients(_params(optimizer), 1), strict=True):
            p.grad = g
        with pytest.warns(ReplayWarning, match="group 0 cannot be replayed: CUDA out of memory"), limit:
            optimizer.step()
        assert not limit.armed
        assert not stand_in.graphs
        twins.train(optimizer, [2])
        assert _same(optimizer, eager, same_bits)
        assert optimizer.replay_status()[0].kept == 1
        optimizer.release()


class TestInvalidation:
    """What is baked into a recording is noticed when it changes; what is not does not cost a recording."""

    def _changed(self, change: Callable[[MuSGD], object], twins: type[Twins], same_bits: SameBits, **options: Any) -> MuSGD:
        replayed, eager = _pair(twins, **options)
        for step in range(2):
            _step((replayed, eager), step, twins)
        for optimizer in (replayed, eager):
            change(optimizer)
        for step in range(2, 5):
            _step((replayed, eager), step, twins)
            assert _same(replayed, eager, same_bits)
        assert _replays(replayed) == 5
        return replayed

    @pytest.mark.case("R11")
    def test_r11_numbers_that_change_at_each_step_are_live(self, stand_in: StandIn, same_bits: SameBits, twins: type[Twins]) -> None:
        replayed, eager = _pair(twins)
        for step in range(200):
            for optimizer in (replayed, eager):
                group = optimizer.param_groups[0]
                group["momentum"], group["weight_decay"] = 0.8 + step / 2000, 0.01 + step / 1000
                group["lr"], optimizer.muon, optimizer.sgd = 0.1 / (1 + step), 0.5 + step / 400, 0.5 - step / 500
            _step((replayed, eager), step, twins)
            assert _same(replayed, eager, same_bits)
        for step in range(200, 203):
            _step((replayed, eager), step, twins)
        assert _same(replayed, eager, same_bits)
        assert (_recordings(replayed), _replays(replayed)) == (1, 203)

    @pytest.mark.parametrize("name", ["nesterov", "maximize"])
    def test_a_switched_option_records_anew_once(self, name: str, stand_in: StandIn, same_bits: SameBits, twins: type[Twins]) -> None:
        def flip(optimizer: MuSGD) -> None:
            optimizer.param_groups[0][name] = not optimizer.param_groups[0][name]

        assert _recordings(self._changed(flip, twins, same_bits)) == 2

    def test_decay_that_becomes_zero_records_anew(self, stand_in: StandIn, same_bits: SameBits, twins: type[Twins]) -> None:
        replayed = self._changed(lambda optimizer: optimizer.param_groups[0].update(weight_decay=0.0), twins, same_bits)
        assert _recordings(replayed) == 2

    def test_weights_that_move_are_noticed(self, stand_in: StandIn, same_bits: SameBits, twins: type[Twins]) -> None:
        def move(optimizer: MuSGD) -> None:
            for p in _params(optimizer):
                p.data = p.data.clone()

        assert _recordings(self._changed(move, twins, same_bits)) == 2

    def test_weights_laid_anew_are_noticed(self, stand_in: StandIn, same_bits: SameBits, twins: type[Twins]) -> None:
        def lay(optimizer: MuSGD) -> None:
            p = _params(optimizer)[1]
            p.data = p.data.contiguous(memory_format=torch.channels_last)

        replayed = self._changed(lay, twins, same_bits)
        assert _recordings(replayed) == 2
        assert replayed.state[_params(replayed)[1]]["momentum_buffer"].is_contiguous(memory_format=torch.channels_last)

    @pytest.mark.parametrize("how", ["entry", "mapping", "data"])
    def test_momenta_that_are_replaced_are_noticed(self, how: str, stand_in: StandIn, same_bits: SameBits, twins: type[Twins]) -> None:
        def replace(optimizer: MuSGD) -> None:
            p = _params(optimizer)[0]
            new = torch.full_like(p, 0.25, requires_grad=False)
            if how == "entry":
                optimizer.state[p]["momentum_buffer"] = new
            elif how == "mapping":
                optimizer.state[p] = {**optimizer.state[p], "momentum_buffer": new}
            else:
                optimizer.state[p]["momentum_buffer"].data = new

        assert _recordings(self._changed(replace, twins, same_bits)) == 2

    def test_a_switch_of_precision_is_noticed(self, stand_in: StandIn, same_bits: SameBits, twins: type[Twins]) -> None:
        matmul = torch.backends.cuda.matmul
        before = matmul.allow_bf16_reduced_precision_reduction

        def switch(_: MuSGD) -> None:
            matmul.allow_bf16_reduced_precision_reduction = not before

        try:
            assert _recordings(self._changed(switch, twins, same_bits)) == 2
        finally:
            matmul.allow_bf16_reduced_precision_reduction = before

    @pytest.mark.case("R7")
    def test_r7_gradients_come_and_go(self, stand_in: StandIn, same_bits: SameBits, twins: type[Twins]) -> None:
        """Two sets of gradients are two recordings; a parameter without gradient keeps its momentum."""
        replayed, eager = _pair(twins)
        for step in range(8):
            for optimizer in (replayed, eager):
                for i, (p, g) in enumerate(zip(_params(optimizer), twins.gradients(_params(optimizer), step), strict=True)):
                    p.grad = None if i == 2 and step % 2 == 0 else g
                optimizer.step()
            assert _same(replayed, eager, same_bits)
        assert (_recordings(replayed), _replays(replayed)) == (2, 8)

    @pytest.mark.case("R18")
    def test_r18_the_number_of_recordings_is_bounded(self, stand_in: StandIn, same_bits: SameBits, twins: type[Twins]) -> None:
        """Thirty sets of gradients, at most four graphs, the least recently used given up first."""
        shapes = [(3, 2)] * 6
        replayed, eager = MuSGD(twins.weights(*shapes), capture_updates=True, **OPTIONS), MuSGD(twins.weights(*shapes), **OPTIONS)
        for step in range(30):
            for optimizer in (replayed, eager):
                for i, (p, g) in enumerate(zip(_params(optimizer), twins.gradients(_params(optimizer), step), strict=True)):
                    p.grad = g if (step + 1) >> i & 1 else None
                optimizer.step()
            assert len(stand_in.graphs) <= KEPT
        assert _same(replayed, eager, same_bits)
        assert (_recordings(replayed), _replays(replayed)) == (30, 30)

    @pytest.mark.case("R22")
    def test_r22_released_recordings_are_made_anew(self, stand_in: StandIn, same_bits: SameBits, twins: type[Twins]) -> None:
        replayed = self._changed(lambda optimizer: optimizer.release(), twins, same_bits)
        assert _recordings(replayed) == 2
        assert len(stand_in.graphs) == 1
        replayed.release()
        assert not stand_in.graphs

    @pytest.mark.case("R15")
    def test_r15_a_group_added_drops_them_and_is_replayed_too(self, stand_in: StandIn, same_bits: SameBits, twins: type[Twins]) -> None:
        def add(optimizer: MuSGD) -> None:
            optimizer.add_param_group({"params": twins.weights((7, 3)), "use_muon": False})

        replayed, eager = _pair(twins)
        for step in range(3):
            _step((replayed, eager), step, twins)
        for optimizer in (replayed, eager):
            add(optimizer)
        assert not stand_in.graphs
        for step in range(3, 5):
            _step((replayed, eager), step, twins)
        assert _same(replayed, eager, same_bits)
        assert [status.replays for status in replayed.replay_status()] == [5, 2]

    def test_loading_drops_them(self, stand_in: StandIn, same_bits: SameBits, twins: type[Twins]) -> None:
        def load(optimizer: MuSGD) -> None:
            optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))

        assert _recordings(self._changed(load, twins, same_bits)) == 2

    @pytest.mark.case("R14")
    @pytest.mark.filterwarnings("ignore:You are using `torch.load` with `weights_only=False`:FutureWarning")
    @pytest.mark.parametrize(
        "duplicate", [copy.deepcopy, lambda optimizer: pickle.loads(pickle.dumps(optimizer))], ids=["deepcopy", "pickle"]
    )
    def test_r14_copies_record_for_themselves(
        self, duplicate: Callable[[MuSGD], MuSGD], stand_in: StandIn, same_bits: SameBits, twins: type[Twins]
    ) -> None:
        replayed, eager = _pair(twins)
        for step in range(2):
            _step((replayed, eager), step, twins)
        copied = duplicate(replayed)
        assert copied.capture_updates
        assert copied.replay_status() == []
        twins.train(replayed, [2])
        assert not _same(copied, replayed, same_bits)
        twins.train(copied, [2])
        twins.train(eager, [2])
        assert _same(copied, eager, same_bits)
        assert _same(replayed, eager, same_bits)
        assert (_replays(replayed), _replays(copied)) == (3, 1)

    def test_both_groups_of_a_split_module_are_replayed(self, stand_in: StandIn, same_bits: SameBits) -> None:
        torch.manual_seed(0)
        models = [nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 3)) for _ in range(2)]
        models[1].load_state_dict(models[0].state_dict())
        replayed, eager = (MuSGD(musgd.param_groups(model, weight_decay=0.1), lr=0.1, momentum=0.9, nesterov=True) for model in models)
        replayed.capture_updates = True
        for _ in range(4):
            images = torch.randn(5, 1, 4, 4)
            for model, optimizer in zip(models, (replayed, eager), strict=True):
                optimizer.zero_grad()
                model(images).square().sum().backward()
                optimizer.step()
            assert _same(replayed, eager, same_bits)
        assert [(status.group, status.recordings, status.replays) for status in replayed.replay_status()] == [(0, 1, 4), (1, 1, 4)]


class TestFallback:
    """A flag never silently does nothing (R21)."""

    @pytest.mark.case("R21")
    @pytest.mark.parametrize("mode", MODES)
    def test_r21_on_the_cpu_it_says_so_once_and_steps(self, mode: str, same_bits: SameBits, twins: type[Twins]) -> None:
        replayed, eager = _pair(twins, mode)
        with pytest.warns(ReplayWarning, match="MuSGD: group 0 cannot be replayed: its parameters are on cpu") as caught:
            twins.train(replayed, range(3))
        twins.train(eager, range(3))
        assert len(caught) == 1
        assert _same(replayed, eager, same_bits)
        (status,) = replayed.replay_status()
        assert (status.mode, status.fallbacks, status.replays) == ("eager", 3, 0)
        assert status.reason == "its parameters are on cpu, where nothing can be recorded"

    @pytest.mark.case("R21")
    def test_r21_strict_mode_raises_before_anything_moves(self, same_bits: SameBits, twins: type[Twins]) -> None:
        replayed, _ = _pair(twins, on_fallback="raise")
        with pytest.raises(ReplayError, match="group 0 cannot be replayed: its parameters are on cpu"):
            twins.train(replayed, [0])
        assert not replayed.state
        assert all(same_bits(p, q) for p, q in zip(_params(replayed), twins.weights(*SHAPES), strict=True))

    def test_strict_mode_raises_the_cause_of_a_failed_recording(self, stand_in: StandIn, same_bits: SameBits, twins: type[Twins]) -> None:
        replayed, eager = _pair(twins, on_fallback="raise")
        _step((replayed, eager), 0, twins)
        replayed.release()
        stand_in.fails["capture"] = 1
        with pytest.raises(ReplayError, match="no memory at the capture") as caught:
            twins.train(replayed, [1])
        assert isinstance(caught.value.__cause__, torch.OutOfMemoryError)
        assert _same(replayed, eager, same_bits)

    @pytest.mark.case("R4")
    def test_r4_a_recording_that_keeps_failing_is_given_up_and_steps_go_on(
        self, stand_in: StandIn, same_bits: SameBits, twins: type[Twins]
    ) -> None:
        replayed, eager = _pair(twins)
        stand_in.fails["second warm-up"] = 100
        with pytest.warns(ReplayWarning) as caught:
            twins.train(replayed, range(6))
        twins.train(eager, range(6))
        assert [str(warning.message).split(": ", 2)[2] for warning in caught] == [
            "no memory at the second warm-up; its steps are done eagerly, with the same bits",
            "given up after 3 failures, the last one: no memory at the second warm-up; its steps are done eagerly, with the same bits",
        ]
        assert _same(replayed, eager, same_bits)
        assert stand_in.seen["second warm-up"] == 3
        stand_in.fails.clear()
        replayed.release()
        _step((replayed, eager), 6, twins)
        assert _same(replayed, eager, same_bits)
        assert _replays(replayed) == 1

    @pytest.mark.parametrize("mode", MODES)
    def test_a_launch_that_fails_is_done_eagerly_in_the_same_step(
        self, mode: str, stand_in: StandIn, same_bits: SameBits, twins: type[Twins]
    ) -> None:
        replayed, eager = _pair(twins, mode)
        for step in range(5):
            stand_in.fails["launch"] = int(step == 2)
            if step == 2:
                with pytest.warns(ReplayWarning, match="its graph could not be launched: no memory at the launch"):
                    _step((replayed, eager), step, twins)
            else:
                _step((replayed, eager), step, twins)
            assert _same(replayed, eager, same_bits)
        assert (_recordings(replayed), _replays(replayed)) == (2, 4)

    def test_a_subclass_of_tensor_is_stepped_eagerly(self, stand_in: StandIn) -> None:
        class Own(nn.Parameter):
            pass

        p = Own(torch.ones(2, 2))
        p.grad = torch.ones(2, 2)
        with pytest.warns(ReplayWarning, match="it holds a Own"):
            MuSGD([p], capture_updates=True, **OPTIONS).step()
        assert not torch.equal(p, torch.ones(2, 2))

    def test_the_status_counts_bytes(self, stand_in: StandIn, twins: type[Twins]) -> None:
        replayed, _ = _pair(twins)
        assert replayed.replay_status() == []
        twins.train(replayed, [0])
        (status,) = replayed.replay_status()
        assert (status.mode, status.reason, status.kept) == ("recorded", None, 1)
        assert (status.pool_bytes, status.driver_bytes) == (10, 1000)

    def test_nothing_records_on_the_cpu(self) -> None:
        with pytest.raises(UnsupportedError, match="on cpu"):
            open_device(torch.device("cpu"))


@pytest.mark.case("R13")
def test_r13_the_flags_leave_no_trace_in_groups_and_state(stand_in: StandIn, twins: type[Twins]) -> None:
    replayed, eager = _pair(twins)
    for step in range(2):
        _step((replayed, eager), step, twins)
    a, b = replayed.state_dict(), eager.state_dict()
    assert a["param_groups"] == b["param_groups"]
    assert {i: list(state) for i, state in a["state"].items()} == {i: list(state) for i, state in b["state"].items()}
    assert {type(value) for value in a["param_groups"][0].values()} == {float, bool, list}


@pytest.mark.case("R6")
@pytest.mark.parametrize("overflow", [(0,), (1,), (2,)], ids=str)
def test_r6_a_step_skipped_for_overflow_never_happened(
    overflow: tuple[int, ...], stand_in: StandIn, same_bits: SameBits, twins: type[Twins]
) -> None:
    replayed, eager = _pair(twins)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    for step in range(5):
        for p, g in zip(_params(replayed), twins.gradients(_params(replayed), step), strict=True):
            scale = scaler.scale(torch.ones(()))
            p.grad = torch.full_like(p, float("inf")) if step in overflow else g * scale
        scaler.step(replayed)
        scaler.update()
        if step not in overflow:
            twins.train(eager, [step])
    assert _same(replayed, eager, same_bits)
    assert (_recordings(replayed), _replays(replayed)) == (1, 4)


@pytest.mark.case("R16")
@pytest.mark.parametrize("mode", MODES)
def test_r16_steps_under_autocast_and_inference_mode(mode: str, stand_in: StandIn, same_bits: SameBits, twins: type[Twins]) -> None:
    """Recorded inside, replayed outside, and the other way round."""
    replayed, eager = _pair(twins, mode)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.inference_mode():
        _step((replayed, eager), 0, twins)
    _step((replayed, eager), 1, twins)
    with torch.inference_mode():
        _step((replayed, eager), 2, twins)
    assert _same(replayed, eager, same_bits)
    assert (_recordings(replayed), _replays(replayed)) == (1, 3)
