"""Where a script trains, read from its syntax tree; and the scenario made of that, run."""

from __future__ import annotations

import ast
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

from gate import template, training
from gate.training import MODULE, Training
from golden.leaf import Snapshot
from golden.recorder import Recorder

NET = """
import torch
from torch import nn, optim
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 2)

    def forward(self, x):
        return self.line(x)
"""


@dataclass(frozen=True)
class Kind:
    """A way to write a training: its source, what has to be found in it, and the phases of its scenario."""

    text: str
    found: Training
    phases: str


KINDS = {
    "flat": Kind(
        """
net = Net()
opt = optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    F.mse_loss(net(torch.ones(4, 3)), torch.zeros(4, 2)).backward()
    opt.step()
""",
        Training(MODULE, ("opt",), ("net",)),
        "grads optimizer model",
    ),
    "main": Kind(
        """
def main():
    model, steps = Net(), 3
    optimizer = torch.optim.AdamW([{"params": model.parameters(), "lr": 0.1}])
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(torch.ones(4, 3)).square().mean()
        (loss / 2).backward()
        optimizer.step()
        scheduler.step()


if __name__ == "__main__":
    main()
""",
        Training("main", ("optimizer",), ("model",), ("loss",), ("scheduler",)),
        "loss grads optimizer model scheduler",
    ),
    "epoch in a function of its own": Kind(
        """
from torch.optim.lr_scheduler import StepLR


def train(args, model, device, batches, optimizer, epoch):
    model.train()
    for data in batches:
        optimizer.zero_grad()
        output = model(data.to(device))
        loss = F.mse_loss(output, torch.zeros_like(output))
        loss.backward()
        optimizer.step()


def test(model):
    model.eval()


def main():
    network = Net().to("cpu")
    optimizer = optim.Adadelta(network.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1)
    for epoch in range(2):
        train(None, network, "cpu", [torch.ones(4, 3)] * 2, optimizer, epoch)
        test(network)
        scheduler.step()


main()
""",
        Training("train", ("optimizer",), ("model",), ("loss",)),
        "loss grads optimizer model",
    ),
    "trainer with a scaler": Kind(
        """
class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = self.make()
        self.scaler = torch.amp.GradScaler("cpu", init_scale=4.0)

    def make(self):
        return torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self):
        for _ in range(3):
            self.optimizer.zero_grad()
            self.loss = self.model(torch.ones(4, 3)).square().mean()
            self.scaler.scale(self.loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()


if __name__ == "__main__":
    Trainer(Net()).fit()
""",
        Training("fit", ("self.optimizer",), ("self.model",), ("self.loss",)),
        "loss grads optimizer model",
    ),
    "two optimizers": Kind(
        """
def play():
    generator, discriminator = Net(), nn.Linear(2, 1)
    opt_d = optim.Adam(discriminator.parameters(), lr=0.1)
    opt_g = optim.Adam(generator.parameters(), lr=0.1)
    for _ in range(3):
        fake = generator(torch.ones(4, 3))
        opt_d.zero_grad()
        loss_d = discriminator(fake.detach()).mean()
        loss_d.backward()
        opt_d.step()
        opt_g.zero_grad()
        loss_g = -discriminator(fake).mean()
        loss_g.backward()
        opt_g.step()


play()
""",
        Training("play", ("opt_d", "opt_g"), ("discriminator", "generator"), ("loss_d", "loss_g")),
        "loss_d loss_g grads opt_d opt_g discriminator generator",
    ),
    "closure": Kind(
        """
def fit(net):
    solver = torch.optim.LBFGS(net.parameters(), max_iter=2)

    def closure():
        solver.zero_grad()
        loss = net(torch.ones(4, 3)).square().mean()
        loss.backward()
        return loss

    for _ in range(3):
        solver.step(closure)


fit(Net())
""",
        Training("fit", ("solver",), ("net",)),
        "grads optimizer model",
    ),
    "parameters named by a function, averaged weights beside": Kind(
        """
def param_groups(module):
    return [{"params": list(module.parameters()), "lr": 0.1}]


class Ema:
    def __init__(self, parameters):
        self.kept = list(parameters)

    def step(self):
        pass


def main():
    model = Net()
    optimizer = optim.SGD(param_groups(model))
    ema = Ema(model.parameters())
    for _ in range(3):
        loss = model(torch.ones(4, 3)).square().mean()
        loss.backward()
        optimizer.step()
        ema.step()


main()
""",
        Training("main", ("optimizer",), ("model",), ("loss",)),
        "loss grads optimizer model",
    ),
}


def found(text: str) -> Training | None:
    tree = ast.parse(text)
    return training.find(tree, tuple(training.constructions(tree)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_training_is_found_however_it_is_written(kind: str) -> None:
    """The function that steps, its optimizers, models, losses and schedulers."""
    assert found(NET + KINDS[kind].text) == KINDS[kind].found


@pytest.mark.parametrize("kind", KINDS)
def test_the_scenario_made_of_it_records_the_script(tmp_path: Path, kind: str) -> None:
    """Two steps with the phases in their order; the model differs between them, so that it is the one that trains."""
    (tmp_path / "train.py").write_text(NET + KINDS[kind].text)
    (tmp_path / "goldens").mkdir()
    scenarios = tmp_path / "goldens/scenarios.py"
    scenarios.write_text(template.following("train", PurePosixPath("train.py"), KINDS[kind].found, 1))
    spec = importlib.util.spec_from_file_location("scenarios_made", scenarios)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    taken: list[Snapshot] = []
    record = Recorder(taken.append, steps=2)
    module.train(record)
    record.finish()
    assert [" ".join(dict.fromkeys(leaf.phase for leaf in snapshot.leaves)) for snapshot in taken] == [f"{KINDS[kind].phases} rng"] * 2
    models = KINDS[kind].phases.split()[-1 - KINDS[kind].phases.endswith("scheduler")]
    first, second = (
        [
            bytes(pair)
            for leaf, pair in zip(snapshot.leaves, snapshot.digests, strict=True)
            if leaf.phase == models and leaf.kind == "tensor"
        ]
        for snapshot in taken
    )
    assert first
    assert first != second
    assert "train" not in sys.modules


@pytest.mark.parametrize(
    "text",
    [
        "",
        "net = Net()\nprint(net)\n",
        "def configure_optimizers(self):\n    return torch.optim.SGD(self.parameters(), lr=0.1)\n",
        "profiler.step()\nscheduler.step()\nenv.step(action)\n",
        "def loop(step):\n    optimizer.step()\n",
    ],
    ids=["empty", "no optimizer", "optimizer given away", "others that step", "no model"],
)
def test_what_trains_nothing_is_not_taken_for_a_training(text: str) -> None:
    assert found(text) is None


def test_the_place_that_calls_backward_goes_before_one_that_steps_alone() -> None:
    """A warm-up function that only steps comes first in the file, and is passed over."""
    warm = "def warm(model, optimizer):\n    model.train()\n    optimizer.step()\n"
    both = "def fit(model, optimizer):\n    model.train()\n    loss = model(1)\n    loss.backward()\n    optimizer.step()\n"
    for text in (warm + both, both + warm):
        assert found(text) == Training("fit", ("optimizer",), ("model",), ("loss",))
