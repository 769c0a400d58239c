"""State of optimizers, keyed by the names of parameters.

``state_dict()`` numbers parameters by position, so that a parameter added in front renames all others. Here the state of a parameter
stands under its name; under ``group0/3`` where no Module gave it one, or one that could be taken for a group's. Two parameters of one
optimizer that have the same name in two Modules have the phase in front: ``generator.0.weight``, ``discriminator.0.weight``.

::

    optimizer/group0/lr                       hyperparameters, by group
    optimizer/group0/params                   names of the group's parameters, in order
    optimizer/conv.weight/momentum_buffer     state, by parameter
    optimizer/group0/3/momentum_buffer        state of a parameter without a name
    optimizer/state/calls                     state under a key that is no parameter
    optimizer/warmup                          whatever else state_dict() has
"""

from __future__ import annotations

import re
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

from torch import Tensor
from torch.optim import Optimizer

from golden.errors import Refused
from golden.names import Name, Names
from golden.scalars import ParameterNames

Label: TypeAlias = "tuple[str, ...]"  # the keys that the state of a parameter stands under

_GROUP = re.compile(r"group\d+")


def is_optimizer(holder: Any) -> bool:
    """Whether something with ``state_dict()`` is an optimizer, or wraps one and shows its groups."""
    return isinstance(holder, Optimizer) or isinstance(getattr(holder, "param_groups", None), list)


class Renaming:
    """Puts names in the place of positions; what the parameters alone decide is worked out once for all steps that have the same.

    Args:
        names: of parameters.
        path: full path of the optimizer, for errors.
    """

    def __init__(self, names: Names, path: str) -> None:
        self._names, self._path = names, path
        self._version = -1
        self._parameters: list[weakref.ref[Tensor]] = []
        self._sizes: list[int] = []
        self._labels: list[Label] = []
        self._groups: list[ParameterNames] = []

    def named(self, optimizer: Any, state: Mapping[str, Any]) -> dict[str, Any]:
        """A ``state_dict()`` by names; as it is where it has not the form that torch's optimizers give it.

        Args:
            optimizer: has the ``param_groups`` whose tensors the positions stand for.
            state: what its ``state_dict()`` returned.

        Raises:
            Refused: if two entries would have one path.
        """
        live = optimizer.param_groups
        if not _fits(live, state):
            return dict(state)
        self._follow(live)
        groups = zip(state["param_groups"], self._groups, strict=True)
        found: dict[str, Any] = {f"group{index}": {**group, "params": names} for index, (group, names) in enumerate(groups)}
        positions = [position for group in state["param_groups"] for position in group["params"]]
        known = dict(zip(positions, self._labels, strict=True))
        others = {}
        for key, value in state["state"].items():
            if key in known:
                self._put(found, known[key], value)
            else:
                others[key] = value
        if others:
            self._put(found, ("state",), others)
        for key, value in state.items():
            if key not in ("state", "param_groups"):
                self._put(found, (key,), value)
        return found

    def _put(self, found: dict[str, Any], label: Label, value: Any) -> None:
        for key in label[:-1]:
            found = found[key]
        if label[-1] in found:
            advice = "rename the parameter, or the entry of state_dict()"
            raise Refused(self._path, f"an optimizer with two entries named {'/'.join(label)!r}", advice)
        found[label[-1]] = value

    def _follow(self, live: Sequence[Mapping[str, Any]]) -> None:
        """Brings the labels up to date."""
        parameters = [parameter for group in live for parameter in group["params"]]
        sizes = [len(group["params"]) for group in live]
        same = self._version == self._names.version and self._sizes == sizes
        if same and all(reference() is parameter for reference, parameter in zip(self._parameters, parameters, strict=True)):
            return
        self._version, self._sizes = self._names.version, sizes
        self._parameters = list(map(weakref.ref, parameters))
        self._labels = _labels(live, self._names)
        written = iter(["/".join(label) for label in self._labels])
        self._groups = [ParameterNames(islice(written, size)) for size in sizes]


def _fits(live: Any, state: Mapping[str, Any]) -> bool:
    """Whether a state numbers its parameters in the form of torch's optimizers, and has the groups that the optimizer shows."""
    packed = state.get("param_groups")
    if not isinstance(state.get("state"), Mapping) or not isinstance(packed, list) or len(packed) != len(live):
        return False
    if not all(isinstance(group, Mapping) and isinstance(group.get("params"), list) for group in (*packed, *live)):
        return False
    sizes = [(len(numbers["params"]), len(group["params"])) for numbers, group in zip(packed, live, strict=True)]
    return all(numbered == shown for numbered, shown in sizes) and all(
        type(position) is int for group in packed for position in group["params"]
    )


def _labels(live: Sequence[Mapping[str, Any]], names: Names) -> list[Label]:
    """For each parameter, in order, the keys that its state stands under: its name, or its group and place there."""
    places = [(group, index, parameter) for group, each in enumerate(live) for index, parameter in enumerate(each["params"])]
    known = [names.of(parameter) for _, _, parameter in places]
    often = Counter(name.name for name in known if name is not None)
    return [_label(name, often, group, index) for name, (group, index, _) in zip(known, places, strict=True)]


def _label(name: Name | None, often: Mapping[str, int], group: int, index: int) -> Label:
    if name is None or _GROUP.fullmatch(name.name):
        return (f"group{group}", str(index))
    return (name.name if often[name.name] == 1 else f"{name.owner}.{name.name}",)
