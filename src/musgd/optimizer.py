"""MuSGD as a torch.optim.Optimizer: groups, state, step. What a step computes stands in update.py."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, get_args, overload

import torch
from torch import Tensor
from torch.optim import Optimizer

from musgd.bucket import Bucket, Gradients, Name, Split, are
from musgd.coefficients import Coefficients, Live
from musgd.device import Device, is_captured
from musgd.groups import check_gradients, check_options, check_parameters
from musgd.momenta import gather, lay_momenta
from musgd.prepared import Prepared, choose, precision
from musgd.recording import LaunchError, Recording, owned, record
from musgd.replay import GroupStatus, OnFallback, Replays
from musgd.update import Form, Scale, Tensors, is_matrix, prepare

if TYPE_CHECKING:
    from torch.optim.optimizer import ParamsT, StateDict

OPTIONS = ("lr", "momentum", "weight_decay", "nesterov", "use_muon", "maximize")
ATTRIBUTES = ("muon", "sgd", "scale", "capture_orthogonalization", "capture_updates", "on_fallback")
Work = list[tuple[dict[str, Any], Bucket, list[Tensor]]]


class MuSGD(Optimizer):
    """Momentum SGD, to whose update hybrid groups add an orthogonalised one (Muon).

    A hybrid group (`use_muon=True`) moves its weights by `muon` times the orthogonalised momentum plus `sgd` times the SGD update; its
    parameters of fewer than two dimensions, and empty ones, take the SGD half alone. Other groups are plain SGD with momentum.
    A parameter whose gradient is None is left alone, momentum included. Gradients are read, never written.
    [held by tests/musgd/test_gradients.py::TestGradients::test_step_never_writes_gradients]

    State of a parameter, in its dtype and layout: `momentum_buffer` (of the Muon half, or an SGD group's own) and, in a hybrid group,
    `momentum_buffer_SGD`. `muon`, `sgd` and `scale` are attributes, neither group entries nor part of the state_dict.

    On CUDA a step can be recorded once and replayed with the same bits: see `capture_updates`, `replay_status` and `release`.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        use_muon: bool = False,
        muon: float = 0.5,
        sgd: float = 0.5,
        *,
        scale: Scale = "matrix",
        maximize: bool = False,
        capture_orthogonalization: bool = False,
        capture_updates: bool = False,
        on_fallback: OnFallback = "warn",
    ) -> None:
        """Set up the groups; the first step makes the state.

        Args:
            params: Parameters or groups, as every torch optimizer takes them: float16, bfloat16, float32 or float64, dense.
            lr: Step length (of the Muon half: in spectral norm), at least 0. Keeps its Python type. Each group has its own copy of a
                tensor, which must have one element; on a GPU, reading it synchronises in each step.
            momentum: beta of both momenta, in [0, 1).
            weight_decay: lambda of the SGD half, at least 0.
            nesterov: Look ahead along both momenta.
            use_muon: Hybrid groups rather than SGD ones.
            muon: Weight of the Muon half in hybrid groups, at least 0.
            sgd: Weight of the SGD half in hybrid groups, at least 0.
            scale: Where a convolution's rows and columns are read from for sqrt(max(1, rows / columns)): "matrix" (first dimension, the
                rest) or "kernel" (the last two dimensions).
            maximize: Climb along the gradient.
            capture_orthogonalization: Record the orthogonalisation as a CUDA graph and replay it, with the eager bits.
            capture_updates: The same for everything but the learning rate and the last write; much faster.
            on_fallback: What a step does that cannot be replayed: "warn" (once a reason) and go on eagerly, or "raise" before it starts.

        Raises:
            ValueError: An option out of its range, or a parameter of a dtype that cannot be trained.
        """
        for name, weight in (("muon", muon), ("sgd", sgd)):
            if not weight >= 0:
                raise ValueError(f"MuSGD: {name} is {weight}, must be at least 0")
        for name, chosen, choices in (("scale", scale, get_args(Scale)), ("on_fallback", on_fallback, get_args(OnFallback))):
            if chosen not in choices:
                raise ValueError(f"MuSGD: {name} is {chosen!r}, must be one of {', '.join(map(repr, choices))}")
        self.muon, self.sgd = muon, sgd
        self.scale: Scale = scale
        self.capture_orthogonalization, self.capture_updates = capture_orthogonalization, capture_updates
        self.on_fallback: OnFallback = on_fallback
        self._forget()
        options = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "nesterov": nesterov, "use_muon": use_muon}
        super().__init__(params, {**options, "maximize": maximize})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; options it lacks are the optimizer's own.

        Raises:
            ValueError: As at construction; the group is then not added.
        """
        self.release()
        super().add_param_group(param_group)
        group = self.param_groups.pop()
        check_options(group, len(self.param_groups))
        check_parameters(group, len(self.param_groups))
        if isinstance(group["lr"], Tensor):
            # Schedulers fill a tensor in place: groups that shared one would follow the last schedule.
            group["lr"] = group["lr"].detach().clone()
        self.param_groups.append(group)

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Do one step on every parameter that has a gradient.

        Args:
            closure: Evaluates the model again and returns the loss; run first, with gradients enabled.

        Returns:
            What the closure returned, or None.

        Raises:
            ValueError: A gradient is sparse; nothing has been changed then.
            ReplayError: Replay was asked for, is not possible, and `on_fallback` is "raise".
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        gradients = [[p.grad for p in group["params"]] for group in self.param_groups]
        work = [
            (group, bucket, bucket.pick(gradients[i]))
            for i, group in enumerate(self.param_groups)
            for bucket in self._buckets(i, group["params"], gradients[i])
        ]
        ready = self._take(work)
        taken = ready is not None
        if ready is None:
            # All that may fail, or take memory, comes before anything has moved.
            for i, group in enumerate(self.param_groups):
                check_gradients(group, i, gradients[i])
            ready = [self._ready(*each) for each in work]
        for (group, bucket, g), recorded in zip(work, ready, strict=True):
            self._move(group, bucket, g, recorded, taken)
        return loss

    def replay_status(self) -> list[GroupStatus]:
        """What became of replay: an entry for each group, device and dtype stepped since a capture flag was set."""
        return self._replays.status()

    def release(self) -> None:
        """Give up every recording and its memory. The next step records anew, unless the capture flags have been unset."""
        self._replays.release()
        self._splits.clear()
        self._current.clear()

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Load what `state_dict` returned, here or in another implementation with these state keys.

        Options that the saved groups lack keep the optimizer's defaults. The momenta are copied: the source can step on.
        """
        super().load_state_dict(state_dict)
        for state in self.state.values():
            state.update({key: value.clone() for key, value in state.items() if isinstance(value, Tensor)})

    def __getstate__(self) -> dict[str, Any]:
        """What pickle and deepcopy keep: no recordings."""
        return {**super().__getstate__(), **{name: getattr(self, name) for name in ATTRIBUTES}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore from pickle, deepcopy or a state_dict; the last may come from where `maximize` is unknown."""
        if "_replays" in self.__dict__:
            self.release()
        super().__setstate__(state)
        if "_replays" not in self.__dict__:
            self._forget()
        for group in self.param_groups:
            # Not all of self.defaults: torch adds an entry of its own there on loading, and a resumed group must have a fresh one's keys.
            for key in OPTIONS:
                group.setdefault(key, self.defaults[key])

    def _forget(self) -> None:
        """Begin without recordings."""
        self._replays = Replays()
        self._splits: dict[int, Split] = {}
        self._current: dict[Name, tuple[Bucket, int, Prepared]] = {}
        self._states: list[dict[str, Any]] = []

    def _buckets(self, i: int, params: list[Tensor], gradients: Gradients) -> list[Bucket]:
        split = self._splits.get(i)
        if split is None or not split.holds(params, gradients):
            split = self._splits[i] = Split(i, params, gradients)
        return split.buckets

    def _take(self, work: Work) -> Sequence[Prepared | Recording | None] | None:
        """The recordings of all buckets with their gradients copied in, where each fits as it is; else None, and nothing was done."""
        fitting = (
            [self._fitting(bucket, self._form(group)) for group, bucket, _ in work] if self.capture_updates and self._unmoved() else []
        )
        ready = [prepared for prepared in fitting if prepared is not None]
        if not ready or len(ready) < len(work):
            return None
        try:
            for prepared, (_, _, g) in zip(ready, work, strict=True):
                prepared.recording.take(g)
        except RuntimeError:
            # A gradient that cannot be copied, a sparse one, is named by the check that this step then makes.
            return None
        return ready

    def _fitting(self, bucket: Bucket, form: Form) -> Prepared | None:
        """The bucket's last recording, if it still does what is wanted."""
        # gate: equivalent [number] where no recording is found, its generation is not read
        last, generation, prepared = self._current.get(bucket.name, (None, 0, None))
        return prepared if prepared and last is bucket and generation == self._replays.generation and prepared.fits(form) else None

    def _unmoved(self) -> bool:
        """Whether every parameter's state is the object that the last recording saw, and nobody is capturing this step."""
        # gate: equivalent [arguments-swapped] being the same objects is symmetric
        return are(list(self.state.values()), self._states) and not is_captured()

    def _ready(self, group: dict[str, Any], bucket: Bucket, gradients: list[Tensor]) -> Prepared | Recording | None:
        """The recording that does this bucket's step, made now where it is missing; None to do it eagerly."""
        form = self._form(group)
        if self.capture_updates:
            return (self._fitting(bucket, form) if self._unmoved() else None) or self._whole(group, bucket, gradients, form)
        return self._orthogonalization(bucket, gradients, form) if self.capture_orthogonalization else None

    def _whole(self, group: dict[str, Any], bucket: Bucket, gradients: list[Tensor], form: Form) -> Prepared | None:
        def key() -> Hashable:
            return "updates", bucket.facts(), lay_momenta(self.state, bucket.params, form).facts(), form, precision()

        def make(device: Device) -> Prepared:
            inputs = gather(self.state, bucket.params, gradients, form)
            return Prepared.make(device, inputs, lay_momenta(self.state, bucket.params, form), self._coefficients(group), form)

        prepared = self._replays.find(bucket, key, make, self.on_fallback)
        if prepared is not None:
            self._current[bucket.name] = bucket, self._replays.generation, prepared
            self._states = list(self.state.values())
        return prepared

    def _orthogonalization(self, bucket: Bucket, gradients: list[Tensor], form: Form) -> Recording | None:
        matrices = [p for p in bucket.params if form.use_muon and is_matrix(p)]

        def key() -> Hashable:
            return "orthogonalization", tuple((p.shape, p.stride()) for p in matrices), form, precision()

        def make(device: Device) -> Recording:
            preparation = choose(gather(self.state, bucket.params, gradients, form), form)
            orthogonalize, u = preparation.orthogonalize, owned(preparation.blank())
            with torch.inference_mode(False), torch.no_grad(), torch.autocast(u[0].device.type, enabled=False):
                return record(device, lambda: orthogonalize(u), u, [])

        return self._replays.find(bucket, key, make, self.on_fallback) if matrices else None

    def _move(
        self, group: dict[str, Any], bucket: Bucket, gradients: list[Tensor], recorded: Prepared | Recording | None, taken: bool
    ) -> None:
        """Advance the bucket's momenta and move its weights, by the recording where there is one."""
        if isinstance(recorded, Prepared):
            try:
                recorded.replay(None if taken else gradients, self._coefficients(group))
            except LaunchError as failure:
                self._fail(bucket, recorded, failure)
            else:
                self._replays.replayed(bucket)
                recorded.write(float(group["lr"]))
                return
        form = self._form(group)
        preparation = choose(gather(self.state, bucket.params, gradients, form), form)

        def orthogonalize(u: Tensors) -> list[Tensor]:
            if isinstance(recorded, Recording):
                try:
                    o = recorded.replay(u)
                except LaunchError as failure:
                    self._fail(bucket, recorded, failure)
                else:
                    self._replays.replayed(bucket)
                    return o
            return preparation.orthogonalize(u)

        with torch.autocast(bucket.params[0].device.type, enabled=False):
            live = Live(bucket.params[0].device, bucket.params[0].dtype)
            live.write(self._coefficients(group))
            preparation.write(prepare(preparation, live, orthogonalize), float(group["lr"]))

    def _fail(self, bucket: Bucket, recorded: Prepared | Recording, failure: LaunchError) -> None:
        self._replays.drop(bucket, recorded)
        self._replays.fall_back(bucket, failure, self.on_fallback)

    def _form(self, group: dict[str, Any]) -> Form:
        return Form(group["use_muon"], group["nesterov"], group["weight_decay"] != 0, group["maximize"], self.scale)

    def _coefficients(self, group: dict[str, Any]) -> Coefficients:
        return Coefficients(group["momentum"], group["weight_decay"], self.muon, self.sgd)
