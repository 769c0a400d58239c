"""State of optimizers by names of parameters."""

from __future__ import annotations

import copy
import gc
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, CyclicLR, LambdaLR, LinearLR, MultiStepLR, ReduceLROnPlateau, SequentialLR

from golden.errors import Refused, ScenarioFailed
from golden.names import Names
from golden.plan import Plan
from tests.golden.states import leaves, lines, read, same, texts


def model() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1, bias=False))


def stepped(module: nn.Module, optimizer: Optimizer) -> None:
    optimizer.zero_grad()
    loss: Tensor = module(torch.ones(1, 2)).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()


def paths(**phases: Any) -> set[str]:
    return {full for full in leaves(**phases) if full.startswith("optimizer")}


def test_state_stands_under_the_name_of_its_parameter_and_hyperparameters_under_their_group() -> None:
    net = model()
    optimizer = SGD([{"params": net[0].parameters()}, {"params": net[1].parameters(), "lr": 0.5}], lr=0.1, momentum=0.9)
    stepped(net, optimizer)
    found = leaves(optimizer=optimizer, model=net)
    state = optimizer.state[net[0].weight]["momentum_buffer"]
    assert found["optimizer/0.weight/momentum_buffer"][1] == state.numpy().tobytes()
    assert {"optimizer/0.bias/momentum_buffer", "optimizer/1.weight/momentum_buffer", "optimizer/group1/lr"} <= set(found)
    assert found["optimizer/group0/params"][1] == b'["0.weight", "0.bias"]'
    assert found["optimizer/group1/lr"][1] == b"0x1.0000000000000p-1 (0.5)"
    assert found["optimizer"][0].type == "optimizer"


def test_the_path_follows_the_name_and_not_the_position() -> None:
    net = model()
    forwards, backwards = SGD(net.parameters(), lr=0.1, momentum=0.9), SGD(list(net.parameters())[::-1], lr=0.1, momentum=0.9)
    stepped(net, forwards)
    stepped(net, backwards)
    assert paths(optimizer=forwards, model=net) == paths(optimizer=backwards, model=net)
    assert (
        texts(optimizer=forwards, model=net)["optimizer/group0/params"] != texts(optimizer=backwards, model=net)["optimizer/group0/params"]
    )


def test_a_parameter_without_a_name_stands_under_its_group_and_place() -> None:
    net = model()
    optimizer = SGD(net.parameters(), lr=0.1, momentum=0.9)
    stepped(net, optimizer)
    assert "optimizer/group0/2/momentum_buffer" in paths(optimizer=optimizer)
    assert texts(optimizer=optimizer)["optimizer/group0/params"] == '["group0/0", "group0/1", "group0/2"]'


def test_names_are_remembered_from_the_start() -> None:
    net = model()
    optimizer = SGD(net.parameters(), lr=0.1, momentum=0.9)
    plan = Plan()
    read(plan, model=net)
    stepped(net, optimizer)
    assert "optimizer/0.weight/momentum_buffer" in leaves(plan, optimizer=optimizer)


def test_a_parameter_whose_module_was_replaced_has_lost_its_name() -> None:
    net = model()
    optimizer = SGD(net.parameters(), lr=0.1, momentum=0.9)
    stepped(net, optimizer)
    plan = Plan()
    read(plan, optimizer=optimizer, model=net)
    net[1] = nn.Linear(3, 1, bias=False)
    assert texts(plan, optimizer=optimizer, model=net)["optimizer/group0/params"] == '["0.weight", "0.bias", "group0/2"]'
    optimizer.add_param_group({"params": net[1].parameters()})
    assert texts(plan, optimizer=optimizer, model=net)["optimizer/group1/params"] == '["1.weight"]'


def test_a_parameter_whose_place_was_tied_to_another_has_lost_its_name() -> None:
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    optimizer = SGD(net.parameters(), lr=0.1)
    plan = Plan()
    read(plan, optimizer=optimizer, model=net)
    net[1].weight = net[0].weight
    assert texts(plan, optimizer=optimizer, model=net)["optimizer/group0/params"] == '["0.weight", "group0/1"]'


def test_a_module_renamed_within_a_phase_that_holds_its_optimizer_renames_its_state() -> None:
    net = model()
    optimizer = SGD(net.parameters(), lr=0.1)
    plan = Plan()
    read(plan, all={"optimizer": optimizer, "model": net})
    net._modules = {"first": net[0], "second": net[1]}
    assert texts(plan, all={"optimizer": optimizer, "model": net})["all/optimizer/group0/params"] == (
        '["first.weight", "first.bias", "second.weight"]'
    )


def test_the_first_module_that_has_a_parameter_names_it() -> None:
    net = model()
    optimizer = SGD(net.parameters(), lr=0.1)
    assert texts(optimizer=optimizer, head=net[1], model=net)["optimizer/group0/params"] == '["0.weight", "0.bias", "weight"]'
    assert texts(optimizer=optimizer, model=net, head=net[1])["optimizer/group0/params"] == '["0.weight", "0.bias", "1.weight"]'


def test_parameters_of_one_name_in_two_modules_have_the_phase_in_front() -> None:
    one, two = nn.Linear(1, 1, bias=False), nn.Linear(1, 1)
    optimizer = SGD([*one.parameters(), *two.parameters()], lr=0.1)
    assert texts(optimizer=optimizer, g=one, d=two)["optimizer/group0/params"] == '["g.weight", "d.weight", "bias"]'
    assert (
        texts(optimizer=optimizer, nets={"g": one, "d": [two]})["optimizer/group0/params"] == '["nets.g.weight", "nets.d.0.weight", "bias"]'
    )


def test_a_parameter_that_could_be_taken_for_a_group_stands_under_its_place() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.group0 = nn.Parameter(torch.ones(1))

    odd = Odd()
    optimizer = SGD(odd.parameters(), lr=0.1, momentum=0.9)
    odd.group0.grad = torch.ones(1)
    optimizer.step()
    assert "optimizer/group0/0/momentum_buffer" in paths(optimizer=optimizer, model=odd)


def test_an_optimizer_is_named_inside_a_mapping_with_its_model() -> None:
    net = model()
    optimizer = SGD(net.parameters(), lr=0.1, momentum=0.9)
    plan = Plan()
    stepped(net, optimizer)
    assert "all/optimizer/1.weight/momentum_buffer" in leaves(plan, all={"optimizer": optimizer, "model": net})
    other = model()
    swapped = SGD(other.parameters(), lr=0.1, momentum=0.9)
    stepped(other, swapped)
    assert "all/optimizer/1.weight/momentum_buffer" in leaves(plan, all={"optimizer": swapped, "model": other})


@pytest.mark.case("G11")
def test_recording_before_the_first_step_makes_no_state_and_changes_no_bit() -> None:
    def run(recorded: bool) -> list[bytes]:
        net = model()
        optimizer = Adam(net.parameters(), lr=0.1)
        if recorded:
            read(optimizer=optimizer, model=net)
            assert len(optimizer.state) == 0
        for _ in range(3):
            stepped(net, optimizer)
        return [parameter.detach().numpy().tobytes() for parameter in net.parameters()]

    assert run(True) == run(False)


@pytest.mark.case("G10")
def test_steps_as_int_float_tensor_and_bfloat16_tensor_are_three_things() -> None:
    def recorded(step: Any) -> list[str]:
        net = nn.Linear(1, 1, bias=False)
        optimizer = Adam(net.parameters())
        optimizer.state[net.weight]["step"] = step
        return [line for line in lines(optimizer=optimizer, model=net) if "step" in line]

    assert recorded(3) == ["optimizer weight/step: int"]
    assert recorded(torch.tensor(3.0)) == ["optimizer weight/step: float32[]"]
    assert recorded(torch.tensor(3.0, dtype=torch.bfloat16)) == ["optimizer weight/step: bfloat16[]"]


def test_betas_and_tensor_learning_rates_are_recorded_as_they_are() -> None:
    net = model()
    found = leaves(optimizer=AdamW(net.parameters(), lr=torch.tensor(0.1), betas=(0.5, 0.9), foreach=False), model=net)
    assert found["optimizer/group0/lr"][0].type == "float32"
    assert found["optimizer/group0/betas"][0].type == "tuple"
    assert found["optimizer/group0/betas/0"][1] == b"0x1.0000000000000p-1 (0.5)"


class Custom(SGD):
    """An optimizer with a state of its own beside that of its parameters."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.calls: Any = 7

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "calls": self.calls}


def test_entries_that_a_subclass_adds_to_its_state_are_recorded() -> None:
    net = model()
    optimizer = Custom(net.parameters(), lr=0.1, momentum=0.9)
    optimizer.state["seen"] = 3  # type: ignore[index]
    stepped(net, optimizer)
    found = texts(optimizer=optimizer, model=net)
    assert (found["optimizer/calls"], found["optimizer/state/seen"]) == ("7", "3")
    assert "optimizer/0.weight/momentum_buffer" in paths(optimizer=optimizer, model=net)
    before = read(optimizer=optimizer, model=net)
    optimizer.calls = 8
    assert not same(before, read(optimizer=optimizer, model=net))


def test_two_entries_with_one_path_are_refused() -> None:
    class Clash(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = nn.Parameter(torch.ones(1))

    net = Clash()
    optimizer = Custom(net.parameters(), lr=0.1, momentum=0.9)
    net.calls.grad = torch.ones(1)
    optimizer.step()
    with pytest.raises(Refused, match=r"^optimizer: an optimizer with two entries named 'calls'"):
        read(optimizer=optimizer, model=net)


class Wrapper:
    """Has nothing but state_dict()."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer

    def state_dict(self) -> dict[str, Any]:
        return self.optimizer.state_dict()


class Shown(Wrapper):
    """Shows its groups as well."""

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        return self.optimizer.param_groups


def test_a_wrapper_is_recorded_by_names_if_it_shows_its_groups_and_else_as_it_saves_itself() -> None:
    net = model()
    optimizer = SGD(net.parameters(), lr=0.1, momentum=0.9)
    stepped(net, optimizer)
    assert same(read(optimizer=optimizer, model=net), read(optimizer=Shown(optimizer), model=net))
    assert "optimizer/state/int:0/momentum_buffer" in paths(optimizer=Wrapper(optimizer), model=net)


def test_a_state_in_another_form_is_recorded_as_it_is() -> None:
    class Other(SGD):
        def state_dict(self) -> dict[str, Any]:
            return {"state": [1, 2], "param_groups": "none"}

    assert lines(optimizer=Other(model().parameters(), lr=0.1)) == [
        "optimizer : optimizer",
        "optimizer state: list",
        "optimizer state/0: int",
        "optimizer state/1: int",
        "optimizer param_groups: str",
    ]


def test_a_state_whose_parameter_is_in_no_group_is_told_with_its_path() -> None:
    net = model()
    optimizer = SGD(net.parameters(), lr=0.1, momentum=0.9)
    optimizer.state[torch.ones(1)] = {"momentum_buffer": torch.ones(1)}
    with pytest.raises(ScenarioFailed, match=r"^optimizer: state_dict\(\) of torch\.optim\.sgd\.SGD raised KeyError"):
        read(optimizer=optimizer, model=net)


def test_an_optimizer_with_one_state_for_all_parameters_is_recorded() -> None:
    net = model()
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=6, lr=0.1)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = net(torch.ones(1, 2)).square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    found = paths(optimizer=optimizer, model=net)
    assert {"optimizer/0.weight/d", "optimizer/0.weight/old_dirs", "optimizer/0.weight/old_dirs/0"} <= found


@pytest.mark.parametrize(
    "make",
    [
        lambda optimizer: CosineAnnealingLR(optimizer, 10),
        lambda optimizer: LambdaLR(optimizer, lambda step: 1 / (1 + step)),
        lambda optimizer: MultiStepLR(optimizer, [1, 3]),
        lambda optimizer: CyclicLR(optimizer, 0.1, 0.2, scale_fn=lambda x: x),
        lambda optimizer: SequentialLR(optimizer, [LinearLR(optimizer), CosineAnnealingLR(optimizer, 5)], [2]),
    ],
    ids=["cosine", "lambda", "multistep", "cyclic", "sequential"],
)
@pytest.mark.filterwarnings("ignore:.*epoch parameter")
def test_a_scheduler_is_its_state_and_a_step_changes_it(make: Any) -> None:
    net = model()
    optimizer = SGD(net.parameters(), lr=0.1, momentum=0.9)
    scheduler = make(optimizer)
    before = read(scheduler=scheduler)
    assert same(before, read(scheduler=scheduler))
    assert before.leaves[0].type == "state_dict"
    assert "scheduler/last_epoch" in {leaf.full for leaf in before.leaves}
    optimizer.step()
    scheduler.step()
    assert not same(before, read(scheduler=scheduler))


def test_nested_schedulers_and_functions_that_are_no_data_are_visible() -> None:
    optimizer = SGD(model().parameters(), lr=0.1)
    chained = SequentialLR(optimizer, [LinearLR(optimizer), CosineAnnealingLR(optimizer, 5)], [2])
    assert {"scheduler/_schedulers/0/end_factor", "scheduler/_schedulers/1/T_max"} <= set(leaves(scheduler=chained))
    assert texts(scheduler=LambdaLR(optimizer, lambda step: 1.0))["scheduler/lr_lambdas/0"] == "None"

    class Kept(CosineAnnealingLR):
        def state_dict(self) -> dict[str, Any]:
            return {**super().state_dict(), "fn": read}

    assert texts(scheduler=Kept(optimizer, 5))["scheduler/fn"] == "read"


def test_a_plateau_scheduler_is_recorded_with_its_infinite_best() -> None:
    optimizer = SGD(model().parameters(), lr=0.1)
    assert texts(scheduler=ReduceLROnPlateau(optimizer))["scheduler/best"] == "inf (inf)"


def test_a_scaler_is_its_state_and_reading_it_makes_no_scale() -> None:
    scaler = torch.amp.GradScaler("cpu")
    assert texts(scaler=scaler)["scaler/scale"] == "0x1.0000000000000p+16 (65536.0)"
    assert scaler._scale is None
    assert lines(scaler=torch.amp.GradScaler("cpu", enabled=False)) == ["scaler : state_dict"]


def test_names_are_forgotten_with_their_parameters() -> None:
    names = Names()
    net = model()
    names.learn({"model": net})
    kept = net[0].weight
    assert names.of(kept) is not None
    del net
    gc.collect()
    names.learn({})
    assert len(names._known) == 1
    assert names.of(nn.Parameter(torch.ones(1))) is None


def test_a_copy_of_model_and_optimizer_has_the_same_bits() -> None:
    net = model()
    optimizer = Adam(net.parameters())
    stepped(net, optimizer)
    twin, other = copy.deepcopy((net, optimizer))
    assert same(read(optimizer=optimizer, model=net), read(optimizer=other, model=twin))
