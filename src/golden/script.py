"""Records a training script as it is: it is run, and after each step of its optimizer its own variables are handed to the scenario.

```python
def train(record):
    def after_step(here, optimizer):              # here: the variables of main(), as they are now
        record(loss=here["loss"], grads=golden.gradients(here["model"]), optimizer=optimizer, model=here["model"])

    follow(record, ROOT / "train.py", "main", after_step)
```

Whatever is edited in the script counts, its loop too. torch calls the hook behind the step; no bit of the training passes through it.
"""

from __future__ import annotations

import inspect
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from golden.errors import ScenarioFailed
from golden.keys import nearest
from golden.recorder import Recorder

MODULE = "<module>"  # Python's name of the code outside any function


class _Enough(BaseException):
    """Ends the script behind its last step to record; no `except Exception` of the script takes it."""


class Variables(Mapping[str, Any]):
    """The variables of a function as they are now, and the global ones of its file. One that is not there is an error that names others."""

    def __init__(self, script: Path, frame: FrameType) -> None:
        self._script, self._where = script, _shown(frame.f_code.co_name)
        self._values = {**frame.f_globals, **frame.f_locals}

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            known = [key for key in self._values if not key.startswith("__")]
            raise ScenarioFailed(
                f"{self._script.name} has no variable {name!r} in {self._where} when its optimizer steps, {nearest(name, known)}"
            )
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def follow(record: Recorder, script: Path, function: str, after_step: Callable[[Variables, Optimizer], object]) -> None:
    """Runs a script as `python SCRIPT` would, without arguments, until `record` has its steps.

    Args:
        record: the scenario's.
        script: the file.
        function: the function in it that calls the optimizer's step; "<module>" for code outside any.
        after_step: called behind each such step with that function's variables and the optimizer; calls `record`.

    Raises:
        ScenarioFailed: no optimizer steps there, or one steps on another device than the run's.
        BaseException: what the script raises. [held by tests/golden/test_script.py::test_what_the_script_raises_is_its_own]
    """
    seen = False

    def stepped(optimizer: Optimizer, *_: object) -> None:
        nonlocal seen
        frame = _frame(script, function)
        if frame is None:
            return
        seen = True
        _check_device(record, script, optimizer)
        after_step(Variables(script, frame), optimizer)
        if record.done >= record.steps:
            raise _Enough

    arguments, path = sys.argv, list(sys.path)
    handle = register_optimizer_step_post_hook(stepped)
    sys.argv = [str(script)]
    sys.path.insert(0, str(script.parent))
    try:
        runpy.run_path(str(script), run_name="__main__")
    except _Enough:
        return
    finally:
        handle.remove()
        sys.argv, sys.path[:] = arguments, path
    if not seen:
        raise ScenarioFailed(f"{script.name} ended, and no torch.optim.Optimizer stepped in {_shown(function)}: name what calls step()")


def _frame(script: Path, function: str) -> FrameType | None:
    """The script's frame that made the step, None where it is not one of the function."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename != str(script):
        frame = frame.f_back
    return frame if frame is not None and frame.f_code.co_name == function else None


def _check_device(record: Recorder, script: Path, optimizer: Optimizer) -> None:
    found = {weight.device.type for group in optimizer.param_groups for weight in group["params"]}
    if record.device.type not in found:
        raise ScenarioFailed(
            f"{script.name} trains on {', '.join(sorted(found))}, and this run is one on {record.device.type}: "
            'let the script take its device from a variable of the environment, or set devices = ["cuda"]'
        )


def _shown(function: str) -> str:
    return "the code outside its functions" if function == MODULE else f"{function}()"
