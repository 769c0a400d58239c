"""Where a benchmark runs, and by what: the device, the hardware, the interpreter, the variables."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gate import interpreter
from gate.benchmark.setting import Arm, Bench
from gate.errors import NoAccelerator, UsageError
from gate.interpreter import Interpreter
from gate.layout import shown_version
from gate.machine import Machine
from gate.trial import Means
from golden import profile as profiles
from golden.environment import variables
from golden.settings import Request

PROFILE = "native"  # what is timed is this machine as it is


@dataclass(frozen=True)
class Place:
    """Where a benchmark runs.

    Attributes:
        project: the project's folder.
        device: "cpu" or "cuda".
        hardware: its slug.
    """

    project: Path
    device: str
    hardware: str
    interpreter: Interpreter

    @property
    def torch(self) -> str:
        """The torch as rows show it."""
        return shown_version(self.hardware, self.interpreter.torch)

    def request(self, arm: Arm, out: Path, report: Path) -> Request:
        """A recording of an arm: digests alone, new memory unfilled as in the timed runs."""
        plain = Request.of(arm.settings, device=self.device, profile=PROFILE, project=self.project, out=out, report=report)
        return replace(plain, store="digest", fill=False)

    def variables(self, seed: int) -> dict[str, str]:
        """The whole environment of a process."""
        return profiles.environment(self.interpreter.variables(os.environ, self.project), PROFILE, self.device, seed)

    def bound(self, anywhere: bool = False) -> dict[str, Any]:
        """What times of this machine are times of, as JSON holds it.

        Args:
            anywhere: whether another machine may go on, of the same hardware, cores and software.
        """
        return {
            "node": None if anywhere else platform.node(),
            "hardware": self.hardware,
            "cores": os.cpu_count(),
            "torch": self.interpreter.torch,
            "python": [str(self.interpreter.python), self.interpreter.version],
            "variables": variables(os.environ),
        }


def choose(means: Means, bench: Bench, device: str | None) -> Place:
    """The place for a benchmark: on CUDA where all of its scenarios run there and a device is here, else on the CPU.

    Args:
        means: with what.
        bench: what is to run.
        device: that the user names.

    Raises:
        UsageError: a scenario is not configured for the device, or there is none for which all are.
        NoAccelerator: they run on CUDA alone, or that was asked for, and it is not here.
        NoTorch: there is no interpreter for them.
    """
    machine = Machine.here()
    chosen = device or _usual(bench, machine)
    for arm in bench.arms:
        if chosen not in arm.settings.devices:
            raise UsageError(f"Scenario {arm.settings.name} of the benchmark {bench.name} is not configured for {chosen} (devices).")
    hardware = machine.default(chosen, PROFILE)
    if hardware is None:
        raise NoAccelerator(
            f"The benchmark {bench.name} runs on CUDA, and there is no such device here ({', '.join(machine.slugs())}). "
            f"On a machine with one: gate bench {bench.name}"
        )
    requires = tuple(dict.fromkeys(item for arm in bench.arms for item in arm.settings.requires))
    python = interpreter.provide(None, means.config, means.progress, python=means.python, requires=requires)
    return Place(means.config.root, chosen, hardware, python)


def _usual(bench: Bench, machine: Machine) -> str:
    able = [device for device in ("cuda", "cpu") if all(device in arm.settings.devices for arm in bench.arms)]
    if not able:
        told = "; ".join(f"{arm.settings.name}: {', '.join(arm.settings.devices)}" for arm in bench.arms)
        raise UsageError(f"The scenarios of the benchmark {bench.name} have no device in common ({told}). Correct their devices.")
    return next((device for device in able if machine.default(device)), able[0])
