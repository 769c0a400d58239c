"""The files that `gate init` writes, as text."""

from __future__ import annotations

import json
import keyword
import re
import shlex
from collections.abc import Iterable
from pathlib import PurePosixPath

from gate.script import Script
from gate.training import MODULE, Training

STEPS = 10
MARK = "FILL IN"  # stands in a scenario that cannot run yet
_TAKEN = {"golden", "follow", "Path", "record", "SCRIPT", "torch"}

_FOLLOWING = '''"""What gate records and verifies: after each step of a training, its whole state."""

from pathlib import Path

import golden
from golden.script import follow

SCRIPT = Path(__file__).parents[{depth}] / {script}


def {name}(record: golden.Recorder) -> None:
    """{title} as it is, {where}: what it computes up to step `record.steps` is recorded."""

    def after_step(here, optimizer):  # here: the variables at the optimizer's step
{last}        record(
{phases}
        )

    follow(record, SCRIPT, {function}, after_step)
'''

_SKELETON = '''"""What gate records and verifies: after each step of a training, its whole state."""

import golden
import torch
{imports}

def {name}(record: golden.Recorder) -> None:
    """{mark}: a few steps of {title}, small enough to run in seconds."""
    raise NotImplementedError("fill in the scenario {name} in {file}, and remove this line")
    model = {model}.to(record.device)  # {mark}: the module{modules}
    optimizer = {optimizer}  # {mark}: its optimizer
    record.start(model=model, optimizer=optimizer)
    for _ in range(record.steps):
        loss = model(torch.randn(8, 3)).square().mean()  # {mark}: a batch, and its loss
        loss.backward()
        optimizer.step()
        record(loss=loss, grads=golden.gradients(model), optimizer=optimizer, model=model)
        optimizer.zero_grad()
'''

_WORKFLOW = """# The goldens of this project, verified on every change: the same bits, or where they differ first, and why.
name: gate
on:
  push:
    branches: [main, master]
  pull_request:

permissions:
  contents: read

jobs:
  verify:
    runs-on: ubuntu-24.04
    timeout-minutes: 30
{folder}    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: 0 # the commit that a drift is traced to is looked for in the history
      - uses: actions/setup-python@v5
        with:
          python-version: "{python}"
      - run: python -m pip install {packages} # the torch that the goldens are of
{dependencies}      - run: gate verify
      - if: failure()
        uses: actions/upload-artifact@v4
        with:
          name: gate-runs
          path: {runs}
          include-hidden-files: true
"""

_HOOK = """repos:
  - repo: local
    hooks:
      - id: gate
        name: gate verify
        entry: {entry}
        language: system
        types: [python]
        pass_filenames: false
"""


def function_name(stem: str) -> str:
    """A scenario's name, which is its function's too, from that of a file: "train-net" gives "train_net"."""
    name = re.sub(r"\W+", "_", stem, flags=re.ASCII).strip("_") or "training"
    name = f"run_{name}" if name[0].isdigit() else name
    return f"{name}_" if name in _TAKEN or keyword.iskeyword(name) else name


def configuration(names: Iterable[str], file: str, goldens: str) -> str:
    """The tables of pyproject.toml for the scenarios of a file."""
    tables = [f'[tool.gate.scenarios.{name}]\nrun = "{file}:{name}"\nsteps = {STEPS}\n' for name in names]
    return "\n".join([f'[tool.gate]\ngoldens = "{goldens}"\n', *tables])


def following(name: str, script: PurePosixPath, training: Training, depth: int) -> str:
    """A scenario that runs a script as it is.

    Args:
        name: of its function.
        script: relative to the project.
        training: where the script trains.
        depth: how many folders the scenario's file is below the project, less one.
    """
    where = "which trains outside its functions" if training.function == MODULE else f"which trains in {training.function}()"
    several = len(training.optimizers) > 1
    last = (
        f"        if optimizer is not {_code(training.optimizers[-1])}:  # the last of them to step\n            return\n"
        if several
        else ""
    )
    return _FOLLOWING.format(
        depth=depth,
        script=json.dumps(str(script), ensure_ascii=False),
        name=name,
        title=script.name,
        where=where,
        last=last,
        phases="\n".join(f"            {phase}={code}," for phase, code in _phases(training)),
        function=json.dumps(training.function),
    )


def skeleton(name: str, file: str, script: Script | None) -> str:
    """A scenario to be filled in, which says so when it is run; with what is known of a script."""
    modules = script.modules if script and script.importable else ()
    construction = script.constructions[0] if script and script.constructions else "torch.optim.SGD(model.parameters(), lr=0.1)"
    return _SKELETON.format(
        name=name,
        file=file,
        mark=MARK,
        title=script.file.name if script else "your training",
        imports=f"\nfrom {script.file.stem} import {', '.join(modules)}\n"
        if script and modules and script.file.stem.isidentifier()
        else "",
        model=f"{modules[-1]}()" if modules else "torch.nn.Linear(3, 2)",
        modules="",
        optimizer=construction,
    )


def workflow(prefix: str, python: str, torch: str, dependencies: str | None) -> str:
    """The GitHub workflow.

    Args:
        prefix: the project's folder in the repository, "" where it is the repository.
        python: "3.11".
        torch: the version, "" where it is not known.
        dependencies: what pip installs for the project (". ", "-r requirements.txt"), None for nothing.
    """
    folder = f"    defaults:\n      run:\n        working-directory: {_quoted(prefix)}\n" if prefix else ""
    return _WORKFLOW.format(
        folder=folder,
        python=python,
        packages=f"musgd-gate torch=={torch}" if torch else "musgd-gate torch",
        dependencies=f"      - run: python -m pip install {dependencies}\n" if dependencies else "",
        runs=_quoted(f"{prefix}/.gate/runs") if prefix else ".gate/runs",
    )


def hook(prefix: str) -> str:
    """The pre-commit configuration with one hook; arguments as for `workflow`."""
    entry = f"sh -c {shlex.quote(f'cd {shlex.quote(prefix)} && exec gate verify')}" if prefix else "gate verify"
    return _HOOK.format(entry=_quoted(entry) if prefix else entry)


def _phases(training: Training) -> list[tuple[str, str]]:
    """Phases in the order of execution, each with the expression that gives it."""
    models = _named("model", training.models)
    gradients = [(phase, f"golden.gradients({code})") for phase, code in models]
    each = ", ".join(f'"{phase}": {code}' for phase, code in gradients)
    grads = gradients[0][1] if len(gradients) == 1 else f"{{{each}}}"
    optimizers = _named("optimizer", training.optimizers)
    return [
        *_named("loss", training.losses),
        ("grads", grads),
        *([("optimizer", "optimizer")] if len(optimizers) == 1 else optimizers),
        *models,
        *_named("scheduler", training.schedulers),
    ]


def _named(phase: str, expressions: tuple[str, ...]) -> list[tuple[str, str]]:
    """One expression has the usual name of its phase, several have their own."""
    if len(expressions) == 1:
        return [(phase, _code(expressions[0]))]
    return [(re.sub(r"^self\.|\W", lambda part: "" if part[0].startswith("self") else "_", text), _code(text)) for text in expressions]


def _code(expression: str) -> str:
    root, dot, rest = expression.partition(".")
    return f'here["{root}"]{dot}{rest}'


def _quoted(text: str) -> str:
    """As YAML takes it whatever is in it."""
    return json.dumps(text, ensure_ascii=False)
